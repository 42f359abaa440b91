package llmtest

import (
	"context"
	"sync"
)

// Progress counts a server's answers that are in progress. The zero value is
// ready; it is safe for concurrent use.
type Progress struct {
	mu    sync.Mutex
	busy  int
	quiet chan struct{} // closed when busy is 0
}

// Enter counts an answer in progress until leave is called.
func (p *Progress) Enter() (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy++; p.busy == 1 {
		p.quiet = make(chan struct{})
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.busy--; p.busy == 0 {
			close(p.quiet)
		}
	}
}

// Quiet waits until no answer is in progress. It fails when ctx ends before.
func (p *Progress) Quiet(ctx context.Context) error {
	p.mu.Lock()
	quiet := p.quiet
	p.mu.Unlock()
	if quiet == nil {
		return nil
	}
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
