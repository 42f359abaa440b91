package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/telemetry"
)

// What a channel does not take.
const (
	// postTime is how long a channel may take for what it is to show: what was not taken by then
	// is shown later, and nobody waits for it meanwhile.
	postTime = time.Minute
	// pauseMost is the longest pause between two tries, postFor how long they go on: channels
	// look back for as long to show nothing twice.
	pauseMost = 10 * time.Minute
	postFor   = 7 * 24 * time.Hour
	// maxRefused is how many sessions are remembered, at least, whose channel takes nothing.
	maxRefused = 1000
)

// show has a channel show something.
func show(ctx context.Context, c channel.Channel, p channel.Post) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	ctx, span := telemetry.Start(ctx, "post", "")
	err := c.Post(ctx, p)
	span.End(err)
	return err
}

// posted notes that posts were shown.
func (e *Engine) posted(ctx context.Context, x session, all ...int64) {
	if err := x.update(context.WithoutCancel(ctx), func(s *State) bool {
		before := len(s.Unposted)
		s.Unposted = slices.DeleteFunc(s.Unposted, func(seq int64) bool { return slices.Contains(all, seq) })
		return len(s.Unposted) < before
	}); err != nil {
		e.Log.Error(err.Error())
	}
}

// behind reports whether a post waits for an earlier one that its channel does not take: what
// is said is shown in its order. PostOwing then shows both, or this one alone.
func (e *Engine) behind(ctx context.Context, x session, n Entry) bool {
	waits := func() bool {
		s, err := x.state()
		return err == nil && len(s.Unposted) > 0 && s.Unposted[0] < n.Seq
	}
	if !waits() || e.Quiet != nil && e.Quiet(x.kind) { // quiet holds some posts back, not what answers
		return false
	}
	e.postUnposted(ctx, x)
	return waits()
}

// owes keeps in house.db whether a session has Unposted, so that whoever has its channel finds
// it among all sessions. The caller writes to the session. A terminal is not looked for: it
// shows its sessions itself.
func (e *Engine) owes(ctx context.Context, x session, owes bool) {
	if x.kind == channel.Terminal {
		return
	}
	value := ""
	if owes {
		value = "1"
	}
	if err := e.Store.SetMark(ctx, unpostedScope(x.kind), x.ID, value); err != nil {
		e.Log.Error(err.Error(), "session_id", x.ID)
	}
}

func unpostedScope(kind channel.Kind) string { return "unposted/" + string(kind) }

// PostOwing is PostOwed of each session of this engine's channels that has something to show,
// whichever process said it. A session whose channel takes nothing is tried less and less often.
func (e *Engine) PostOwing(ctx context.Context) error {
	e.mu.Lock()
	kinds := sortedKeys(e.channels)
	e.mu.Unlock()
	failed := make([]error, len(kinds))
	var work sync.WaitGroup
	for i, kind := range kinds { // a vendor that is slow keeps no other one waiting
		work.Go(func() { failed[i] = e.postOwing(ctx, kind) })
	}
	work.Wait()
	return errors.Join(failed...)
}

// postOwing is PostOwing of one channel.
func (e *Engine) postOwing(ctx context.Context, kind channel.Kind) error {
	ids, err := e.Store.Marks(ctx, unpostedScope(kind))
	for _, id := range ids {
		x := e.open(id, kind)
		if !e.Known(id) {
			e.owes(ctx, x, false) // it was removed
			continue
		}
		if !e.due(id) {
			continue
		}
		e.tried(id, e.postAgain(context.WithValue(ctx, byItself{}, true), x))
		err = errors.Join(err, x.update(ctx, func(s *State) bool {
			if len(s.Unposted) == 0 {
				e.owes(ctx, x, false)
			}
			return false
		}))
	}
	return err
}

// refused is since when a session's channel takes nothing that is shown again, and when that was
// tried last.
type refused struct{ first, last time.Time }

// due reports whether a session's posts are to be shown again by now: a quarter of the time later
// for which they were not taken, at most pauseMost.
func (e *Engine) due(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, known := e.refused.Get(id)
	return !known || e.Now().Sub(r.last) >= min(r.last.Sub(r.first)/4, pauseMost)
}

// tried notes whether a session's channel took what was shown again.
func (e *Engine) tried(id string, taken bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if taken {
		e.refused.Drop(id)
		return
	}
	r, known := e.refused.Get(id)
	if r.last = e.Now(); !known {
		r.first = r.last
	}
	e.refused.Put(id, r)
}

// byItself marks the context of what is said without anybody having just asked for it.
type byItself struct{}

// held reports whether a post waits until it is not quiet any more.
func (e *Engine) held(ctx context.Context, x session, n Entry) bool {
	return n.Job != "" && ctx.Value(byItself{}) != nil && e.Quiet != nil && e.Quiet(x.kind) && !e.spokeLately(x)
}

// lately is for how long somebody who spoke is there to be told, also in quiet hours.
const lately = 30 * time.Minute

// spokeLately reports whether a person said something in a session within lately. Where that
// cannot be read nobody did.
func (e *Engine) spokeLately(x session) (yes bool) {
	_ = x.recent(func(n Entry) bool {
		if n.Role != roleUser {
			return true
		}
		yes = e.Now().Sub(n.Timestamp.Time) < lately
		return false
	})
	return yes
}

// PostOwed shows what the channel of a session did not take, or what another process said
// that has none.
func (e *Engine) PostOwed(ctx context.Context, sessionID string) {
	e.postAgain(context.WithValue(ctx, byItself{}, true), e.open(sessionID, kindOf(sessionID)))
}

// postAgain shows what the channel did not take before, and reports whether it took all of it. It
// is shown before it counts as shown: a channel shows no post twice. What it did not take for
// postFor is given up.
func (e *Engine) postAgain(ctx context.Context, x session) (taken bool) {
	leave, err := e.postings.Enter(ctx, x.ID)
	if err != nil {
		return false
	}
	defer leave()
	return e.postUnposted(ctx, x)
}

// postUnposted is postAgain of whose turn it is.
func (e *Engine) postUnposted(ctx context.Context, x session) (taken bool) {
	s, err := x.state()
	c := e.channel(x.kind)
	if err == nil && (len(s.Unposted) == 0 || c == nil) {
		return true
	}
	var all []Entry
	if err == nil {
		all, err = x.since(slices.Min(s.Unposted)-1, keptBack)
	}
	if err != nil {
		e.Log.Error(err.Error())
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	taken = true
	shown := slices.Clone(s.Unposted) // or there is no such post
	left := func(seq int64) { shown = slices.DeleteFunc(shown, func(n int64) bool { return n == seq }) }
	for _, seq := range s.Unposted {
		if len(all) == 0 || seq > all[len(all)-1].Seq { // it is being written
			left(seq)
		}
	}
	for _, n := range all {
		switch {
		case !slices.Contains(s.Unposted, n.Seq), n.Role != roleAssistant:
			continue
		case e.held(ctx, x, n):
			left(n.Seq)
			continue
		case x.kind != channel.Terminal && e.Now().Sub(n.Timestamp.Time) > postFor:
			e.Log.Warn(fmt.Sprintf("A post is given up, its channel did not take it for %s", postFor), "session_id", x.ID, "seq", n.Seq)
			continue
		}
		if n.Job != "" && x.kind != channel.Terminal { // whoever worked on it showed no end; a terminal follows it
			_ = c.Post(ctx, channel.Post{SessionID: x.ID, Kind: channel.Progress, Job: n.Job})
		}
		if err := c.Post(ctx, n.post(x.ID)); err != nil {
			e.Log.Warn("The channel did not take a post, it is tried again later: "+err.Error(), "session_id", x.ID)
			left(n.Seq)
			taken = false
		}
	}
	if len(shown) > 0 {
		e.posted(ctx, x, shown...)
	}
	return taken
}
