package dispatch

import "time"

// retries are the pauses before what failed is tried again, each twice as long as the
// one before, up to most.
type retries struct {
	most time.Duration
	all  map[string]retry
}

type retry struct {
	pause time.Duration
	next  time.Time
}

// maxRetries bounds what is remembered; what was forgotten is tried at once.
const maxRetries = 10_000

// waits reports whether something is left alone for now.
func (r *retries) waits(what string, now time.Time) bool { return r.left(what, now) > 0 }

// left is for how long something is left alone yet.
func (r *retries) left(what string, now time.Time) time.Duration {
	return max(0, r.all[what].next.Sub(now))
}

// failed leaves something alone: for first, for longer where it failed before, and for
// least in any case. It returns for how long.
func (r *retries) failed(what string, now time.Time, first, least time.Duration) time.Duration {
	if r.all == nil || len(r.all) >= maxRetries {
		r.all = map[string]retry{}
	}
	pause := first
	if before, again := r.all[what]; again {
		pause = min(max(2*before.pause, first), r.most)
	}
	wait := max(pause, least)
	r.all[what] = retry{pause, now.Add(wait)}
	return wait
}

// worked forgets that something failed.
func (r *retries) worked(what string) { delete(r.all, what) }
