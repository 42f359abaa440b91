package turn

import (
	"fmt"
	"time"

	"toritsugi/internal/llm"
)

// cacheWatch follows how much of each request the provider had in its cache.
type cacheWatch struct {
	prompt, cached int // tokens of the request before
	seen           bool
	warm           bool // it has read from its cache in this process
	by             string
	at             time.Time
	decisions      int
}

// Providers keep what was sent for about five minutes; a cache is said to have
// dropped where less than half of the request before was read from it.
const (
	cacheLife  = 5 * time.Minute
	cacheShare = 0.5
)

// watchCache logs a drop of what the provider read from its cache, with its cause:
// the request before is the beginning of this one unless the window was
// rewritten, so that nearly all of it should have been there.
func (l *Loop) watchCache(r *llm.Reply) {
	if r.Usage == nil {
		return
	}
	event, decisions := l.Window.Decision()
	now := cacheWatch{prompt: r.Usage.PromptTokens, cached: r.Usage.CachedTokens, seen: true, warm: l.cache.warm || r.Usage.CachedTokens > 0,
		by: r.By, at: l.Now(), decisions: decisions}
	was := l.cache
	l.cache = now
	if !was.seen || !was.warm || float64(now.cached) >= cacheShare*float64(was.prompt) || was.cached == 0 && now.cached == 0 {
		return
	}
	cause := "not known: the request only grew at its end"
	switch idle := now.at.Sub(was.at); {
	case now.decisions != was.decisions:
		cause = fmt.Sprintf("the window was rewritten (%s %d: %s)", event.Type, event.ID, event.Reason)
	case now.by != was.by:
		cause = "another model answered"
	case idle > cacheLife:
		cause = fmt.Sprintf("the request before was %s ago", idle.Round(time.Second))
	}
	l.Log.Warn("The provider's cache was read less than before", "cached", now.cached, "of", now.prompt, "cached_before", was.cached, "of_before", was.prompt, "cause", cause)
}
