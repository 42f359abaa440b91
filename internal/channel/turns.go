package channel

import (
	"context"
	"sync"
)

// Turns lets one at a time do something for each key, as posts of a session go out one after
// another. The zero value is ready.
type Turns struct {
	mu  sync.Mutex
	all map[string]*keyed
}

type keyed struct {
	busy  chan struct{} // full while somebody has the turn
	users int
}

// Enter waits for the turn of a key and returns what ends it, or the error of ctx.
func (t *Turns) Enter(ctx context.Context, key string) (leave func(), err error) {
	t.mu.Lock()
	if t.all == nil {
		t.all = map[string]*keyed{}
	}
	k := t.all[key]
	if k == nil {
		k = &keyed{busy: make(chan struct{}, 1)}
		t.all[key] = k
	}
	k.users++
	t.mu.Unlock()
	gone := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(t.all, key)
		}
	}
	select {
	case k.busy <- struct{}{}:
		return func() { <-k.busy; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	}
}

// Recent remembers the latest of what it is given: at least Most of them, at most twice that.
// It is not for several goroutines at a time.
type Recent[V any] struct {
	Most        int
	now, before map[string]V
}

// Put remembers v by a key.
func (r *Recent[V]) Put(key string, v V) {
	if r.now == nil || len(r.now) >= r.Most {
		r.before, r.now = r.now, map[string]V{}
	}
	r.now[key] = v
}

// Get is what was put last by a key.
func (r *Recent[V]) Get(key string) (v V, known bool) {
	if v, known = r.now[key]; !known {
		v, known = r.before[key]
	}
	return v, known
}

// Drop forgets what was put by a key.
func (r *Recent[V]) Drop(key string) {
	delete(r.now, key)
	delete(r.before, key)
}
