package terminal

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel/channeltest"
)

// With a screen and without one, a terminal is a channel.
func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("chat", func(t *testing.T) {
		t.Parallel()
		channeltest.Conformance(t, synctest.Test, func(t *testing.T, h *channeltest.Handler) channeltest.Fixture {
			r := chatting(t, h, 80, 24, nil)
			return channeltest.Fixture{Channel: r.term, Session: session, Shown: r.shown,
				Say: func(text string) { r.keys(text, enter) },
				Decide: func(grant bool) {
					r.keys(tab, map[bool]string{true: "a", false: "d"}[grant])
				}}
		})
	})
	t.Run("lines", func(t *testing.T) {
		t.Parallel()
		channeltest.Conformance(t, synctest.Test, func(t *testing.T, h *channeltest.Handler) channeltest.Fixture {
			in, keys := io.Pipe()
			var out safe
			opt := options()
			opt.In, opt.Out, opt.Err = in, &out, &out
			term := New(opt)
			var done sync.WaitGroup
			done.Go(func() { _ = term.Lines(t.Context(), h) })
			t.Cleanup(func() {
				_ = keys.Close()
				done.Wait()
			})
			settle := func() { time.Sleep(time.Second); synctest.Wait() }
			settle()
			return channeltest.Fixture{Channel: term, Session: session, Shown: func() string { settle(); return out.String() },
				Say: func(text string) { _, _ = io.WriteString(keys, text+"\n"); settle() }}
		})
	})
}

// safe is a buffer for several goroutines.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
