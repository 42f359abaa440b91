package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// seldom passes on warnings and errors, each text at most once a minute: River tells of a server
// that is away at each of its looks.
type seldom struct {
	slog.Handler
	mu   sync.Mutex
	told map[string]time.Time // when a text was said last
}

const (
	sayAgain = time.Minute
	maxTold  = 1000
)

// Enabled implements slog.Handler.
func (h *seldom) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h *seldom) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last, before := h.told[r.Message]; before && r.Time.Sub(last) < sayAgain {
		return nil
	}
	if len(h.told) < maxTold {
		h.told[r.Message] = r.Time
	}
	r.Message = "Queue: " + r.Message
	return h.Handler.Handle(ctx, r)
}
