package github

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// limits remembers until when one credential may not ask: GitHub punishes
// whoever asks on. Source: GitHub docs, "Rate limits for the REST API" and
// "Best practices for using the REST API".
type limits struct {
	now func() time.Time

	mu      sync.Mutex
	primary map[string]time.Time // by resource: "core", "graphql", "search"
	second  time.Time
	strikes int // secondary limits in a row that did not say how long
}

// limited is the error of a call that was not made, or was refused, because of a
// rate limit.
type limited struct {
	wait      time.Duration
	secondary bool
	status    int // 0 where nothing was sent
}

func (e *limited) Error() string {
	return "rate limited for " + e.wait.Round(time.Second).String()
}

const (
	// leastPause is how long to be still after a secondary limit that does not
	// say; it doubles up to mostPause.
	leastPause = time.Minute
	mostPause  = 16 * time.Minute
	// mostWait bounds what an answer can make us wait: limits are counted by the hour.
	mostWait = 2 * time.Hour
)

// resource is what a request is counted under.
func resource(path string) string {
	switch {
	case strings.HasSuffix(path, "/graphql"):
		return "graphql"
	case strings.Contains(path, "/search/"):
		return "search"
	}
	return "core"
}

// check returns a *limited where the resource may not be asked for yet.
func (l *limits) check(resource string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if wait := l.second.Sub(now); wait > 0 {
		return &limited{wait: wait, secondary: true}
	}
	if wait := l.primary[resource].Sub(now); wait > 0 {
		return &limited{wait: wait}
	}
	return nil
}

// observe learns from an answer and returns a *limited where it is a refusal
// because of a limit.
func (l *limits) observe(asked string, r *http.Response, body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if r.StatusCode != http.StatusForbidden && r.StatusCode != http.StatusTooManyRequests {
		if used, wait := exhausted(r, now); used {
			l.primary[asked] = now.Add(wait)
		}
		return nil
	}
	if wait, ok := retryAfter(r, now); ok {
		l.second = now.Add(wait)
		return &limited{wait: wait, secondary: true, status: r.StatusCode}
	}
	if used, wait := exhausted(r, now); used {
		l.primary[asked] = now.Add(wait)
		return &limited{wait: wait, status: r.StatusCode}
	}
	if r.StatusCode == http.StatusForbidden && !aboutLimits(body) {
		return nil
	}
	if now.Sub(l.second) > mostPause {
		l.strikes = 0
	}
	wait := min(leastPause<<min(l.strikes, 8), mostPause)
	l.strikes++
	l.second = now.Add(wait)
	return &limited{wait: wait, secondary: true, status: r.StatusCode}
}

// exhausted reports that nothing is left of the primary limit, and for how long.
// Both times are the server's, so that our clock may be wrong.
func exhausted(r *http.Response, now time.Time) (bool, time.Duration) {
	reset, err := strconv.ParseInt(r.Header.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil || r.Header.Get("X-RateLimit-Remaining") != "0" {
		return false, 0
	}
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		now = date
	}
	return true, bounded(min(time.Unix(reset, 0).Sub(now), mostWait) + time.Second)
}

func retryAfter(r *http.Response, now time.Time) (time.Duration, bool) {
	v := r.Header.Get("Retry-After")
	if v == "" {
		return 0, false
	}
	if s, err := strconv.ParseInt(v, 10, 32); err == nil {
		return bounded(time.Duration(s) * time.Second), true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		now = date
	}
	return bounded(at.Sub(now)), true
}

func bounded(d time.Duration) time.Duration { return min(max(d, time.Second), mostWait) }

// aboutLimits tells a secondary limit from a permission that lacks.
func aboutLimits(body []byte) bool {
	s := strings.ToLower(string(body[:min(len(body), 64<<10)]))
	return strings.Contains(s, "secondary rate limit") || strings.Contains(s, "secondary-rate-limits") ||
		strings.Contains(s, "abuse detection") || strings.Contains(s, "#abuse-rate-limits") || strings.Contains(s, "api rate limit exceeded")
}
