package dispatch

import "sync"

// bell wakes who waits for it; a bell that rings stays so until somebody heard it.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// lanes have things done for several sources side by side, for each one at a time: one that
// hangs keeps no other waiting. The zero value is ready.
type lanes struct {
	mu   sync.Mutex
	busy map[string]*lane
	all  sync.WaitGroup
}

// lane is something being done for a source.
type lane struct{ more bool }

// start has f done for a source and returns at once. Where the one before is still going on, that
// is told instead that there is more: more reports so within f, and again is called after it.
func (l *lanes) start(source string, f func(more func() bool), again func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on := l.busy[source]; on != nil {
		on.more = true
		return
	}
	if l.busy == nil {
		l.busy = map[string]*lane{}
	}
	on := &lane{}
	l.busy[source] = on
	more := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return on.more
	}
	l.all.Go(func() {
		f(more)
		l.mu.Lock()
		delete(l.busy, source)
		l.mu.Unlock()
		if on.more {
			again()
		}
	})
}

// wait waits until nothing is going on.
func (l *lanes) wait() { l.all.Wait() }
