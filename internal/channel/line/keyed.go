package line

import (
	"context"
	"sync"
)

// keyed are locks by key; the zero value is ready.
type keyed struct {
	mu  sync.Mutex
	all map[string]*turn
}

type turn struct {
	free  chan struct{} // holds one token while nobody has the turn
	users int
}

// lock waits for the turn of a key and returns what ends it, or the error of ctx.
func (k *keyed) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	if k.all == nil {
		k.all = map[string]*turn{}
	}
	t := k.all[key]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		k.all[key] = t
	}
	t.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(k.all, key)
		}
	}
	select {
	case <-t.free:
		return func() {
			t.free <- struct{}{}
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
