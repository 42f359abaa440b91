package agent

import (
	"context"
	"slices"
	"sync"

	"toritsugi/internal/sandbox"
)

// sideRunners are the sandboxes of what runs beside the model: its jobs in the
// background and the servers of its tools.
type sideRunners struct {
	mu  sync.Mutex
	all []sandbox.Runner
}

// recording is shell that records the sandboxes it makes.
func (b *sideRunners) recording(shell func(sandbox.Spec) (sandbox.Runner, error)) func(sandbox.Spec) (sandbox.Runner, error) {
	return func(spec sandbox.Spec) (sandbox.Runner, error) {
		r, err := shell(spec)
		if err == nil {
			b.mu.Lock()
			b.all = append(b.all, r)
			b.mu.Unlock()
		}
		return r, err
	}
}

// suspend makes all of them stand suspend while git looks at the tree.
func (b *sideRunners) suspend(ctx context.Context) (resume func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var done []func()
	resume = func() {
		for _, f := range slices.Backward(done) {
			f()
		}
	}
	for _, r := range b.all {
		f, err := r.Suspend(ctx)
		if err != nil {
			resume()
			return nil, err
		}
		done = append(done, f)
	}
	return resume, nil
}
