package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// Later returns a logger for those who are made before all that their records
// should carry is known: from with on, its records are those of l with args.
// Both are safe for concurrent use.
func Later(l *slog.Logger) (later *slog.Logger, with func(args ...any)) {
	h := &lateHandler{now: new(atomic.Pointer[slog.Logger])}
	h.now.Store(l)
	return slog.New(h), func(args ...any) { h.now.Store(l.With(args...)) }
}

// lateHandler passes records on to the handler of the moment.
type lateHandler struct {
	now  *atomic.Pointer[slog.Logger]
	more func(slog.Handler) slog.Handler // attributes and groups of its own; nil for none
}

func (h *lateHandler) handler() slog.Handler {
	inner := h.now.Load().Handler()
	if h.more == nil {
		return inner
	}
	return h.more(inner)
}

func (h *lateHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.now.Load().Handler().Enabled(ctx, level)
}

func (h *lateHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.handler().Handle(ctx, r)
}

func (h *lateHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.then(func(inner slog.Handler) slog.Handler { return inner.WithAttrs(attrs) })
}

func (h *lateHandler) WithGroup(name string) slog.Handler {
	return h.then(func(inner slog.Handler) slog.Handler { return inner.WithGroup(name) })
}

func (h *lateHandler) then(f func(slog.Handler) slog.Handler) slog.Handler {
	before := h.more
	return &lateHandler{now: h.now, more: func(inner slog.Handler) slog.Handler {
		if before != nil {
			inner = before(inner)
		}
		return f(inner)
	}}
}
