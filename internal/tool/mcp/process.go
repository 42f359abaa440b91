package mcp

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"
)

// Command is what a server is to be started with.
type Command struct {
	Server string   // its name
	Argv   []string // not empty; no shell reads it
	Env    []string // all of its environment, "KEY=value", sorted
	Home   string   // a directory of its own, made, that HOME names
}

// Process is a started server. Its functions may be called at any time, and
// again.
type Process struct {
	Stdin  io.WriteCloser // Close makes a Write that blocks fail
	Stdout io.ReadCloser  // Close makes a Read that blocks fail
	Stderr io.ReadCloser  // likewise; nil where it is not to be had

	Terminate func() error // asks it to end, as by SIGTERM
	Kill      func() error // ends it and all that it started
	Wait      func() error // blocks until it has ended; its error says how
}

// StartFunc starts a command, confined or not. It returns once the process
// runs; ctx ends the starting only, not the process.
type StartFunc func(ctx context.Context, c Command) (*Process, error)

// tail keeps the end of a stream in bounded memory.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// maxTail is how many bytes of a server's stderr are kept.
const maxTail = 4096

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if len(p) > maxTail {
		p = p[len(p)-maxTail:]
	}
	if over := len(t.buf) + len(p) - maxTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// String returns the end, cleaned: whole lines where there are any.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := string(t.buf)
	if len(s) == maxTail {
		if _, rest, ok := strings.Cut(s, "\n"); ok {
			s = rest
		}
	}
	return strings.TrimSpace(plain(s, maxTail))
}

// killWait is how long a killed process may take to be gone. One that hangs in
// the kernel longer is left to it.
const killWait = 10 * time.Second

// shut ends a process: its input is closed, then it is asked, then it is
// killed, with grace before each step.
func shut(p *Process, exited <-chan struct{}, grace time.Duration) {
	_ = p.Stdin.Close() // the polite way to say it; what follows does not depend on it
	for _, step := range []func() error{p.Terminate, p.Kill} {
		if within(grace, exited) {
			return
		}
		_ = step() // the next step follows whatever came of it
	}
	within(killWait, exited)
}

// within waits for the end of something, no longer than wait, and reports whether
// it came.
func within(wait time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	}
	select {
	case <-over:
		return true
	default:
		return false
	}
}
