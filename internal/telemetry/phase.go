package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// phases are those of a run, one after the other. What begins directly below the run is of
// the phase that it is in, whichever function that began in.
type phases struct {
	run trace.Span

	mu      sync.Mutex
	now     *Span
	name    string
	subtask int
}

type phasesKey struct{}

// Phase says that the run of ctx is in a phase from now on, at the subtask of that number; 0
// is none. Saying it again changes nothing.
func Phase(ctx context.Context, name string, subtask int) {
	p, _ := ctx.Value(phasesKey{}).(*phases)
	if p == nil || name == "" {
		return
	}
	p.enter(func() *Span {
		_, s := tracerOf(ctx).start(trace.ContextWithSpan(ctx, p.run), "phase", name)
		s.Text("tori.phase", name)
		if subtask > 0 {
			s.Int("tori.subtask", subtask)
		}
		return s
	}, name, subtask)
}

// enter ends the phase that is going on; begin begins the next one, nil for none.
func (p *phases) enter(begin func() *Span, name string, subtask int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.name == name && p.subtask == subtask {
		return
	}
	p.now.End(nil)
	if p.now, p.name, p.subtask = nil, name, subtask; begin != nil {
		p.now = begin()
	}
}

// within is ctx with the span of the phase in place of that of its run.
func within(ctx context.Context) context.Context {
	p, _ := ctx.Value(phasesKey{}).(*phases)
	if p == nil || !trace.SpanContextFromContext(ctx).Equal(p.run.SpanContext()) {
		return ctx
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, p.now.span)
}
