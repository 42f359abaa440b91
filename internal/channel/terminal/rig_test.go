package terminal

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/vt"

	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/i18n"
)

// rig is a chat on a terminal of its own, within a bubble of synctest.
type rig struct {
	t      *testing.T
	term   *Terminal
	h      *channeltest.Handler
	in     io.Writer
	emu    *vt.SafeEmulator
	raw    *recorder
	cancel context.CancelFunc
	ended  chan struct{}
	result Result
	err    error
}

// recorder keeps what is written on its way to a terminal.
type recorder struct {
	mu  sync.Mutex
	to  io.Writer
	raw strings.Builder
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw.Write(p)
	if _, err := io.WriteString(r.to, strings.ReplaceAll(string(p), "\n", "\r\n")); err != nil { // as a terminal's driver does
		return 0, err
	}
	return len(p), nil
}

const session = "terminal:hanako:0123abcd"

func options() Options {
	n := 0
	var mu sync.Mutex
	return Options{Session: session, User: "terminal:hanako", Name: "acme/widgets", Lang: i18n.English, Now: time.Now, Mask: func(s string) string { return s },
		NewID: func() string { mu.Lock(); defer mu.Unlock(); n++; return fmt.Sprint("m", n) }, Environ: []string{"TERM=xterm-256color"}}
}

// chatting begins a chat in a terminal of that size.
func chatting(t *testing.T, h *channeltest.Handler, width, height int, change func(*Options, *Start)) *rig {
	t.Helper()
	opt, start := options(), Start{}
	emu := vt.NewSafeEmulator(width, height)
	raw := &recorder{to: emu}
	in, keys := io.Pipe()
	opt.In, opt.Out, opt.Width, opt.Height = in, raw, width, height
	if change != nil {
		change(&opt, &start)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &rig{t: t, term: New(opt), h: h, in: keys, emu: emu, raw: raw, cancel: cancel, ended: make(chan struct{})}
	h.Channel = r.term
	go func() { _, _ = io.Copy(keys, emu) }() // what the terminal answers
	go func() {
		r.result, r.err = r.term.Chat(ctx, h, start)
		_ = in.Close()
		close(r.ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
		_ = emu.Close()
	})
	r.settle()
	return r
}

// settle waits until nothing moves but the clock.
func (r *rig) settle() {
	time.Sleep(time.Second) // of the bubble
	synctest.Wait()
}

// keys types keys one by one.
func (r *rig) keys(all ...string) {
	r.t.Helper()
	for _, k := range all {
		if _, err := io.WriteString(r.in, k); err != nil {
			r.t.Fatal(err)
		}
		r.settle()
	}
}

const (
	enter    = "\r"
	esc      = "\x1b"
	altEnter = "\x1b\r"
	ctrlC    = "\x03"
	ctrlD    = "\x04"
	tab      = "\t"
	up       = "\x1b[A"
	down     = "\x1b[B"
	left     = "\x1b[D"
)

// shown is the scrollback and the screen.
func (r *rig) shown() string {
	r.settle()
	var b strings.Builder
	row := func(cell func(x int) string) {
		var l strings.Builder
		for x := range r.emu.Width() {
			l.WriteString(cell(x))
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	for y := range r.emu.ScrollbackLen() {
		row(func(x int) string {
			if c := r.emu.ScrollbackCellAt(x, y); c != nil {
				return c.Content
			}
			return " "
		})
	}
	b.WriteString(strings.Repeat("~", r.emu.Width()) + "\n")
	for y := range r.emu.Height() {
		row(func(x int) string {
			if c := r.emu.CellAt(x, y); c != nil {
				return c.Content
			}
			return " "
		})
	}
	return strings.TrimRight(b.String(), "\n")
}

// has asserts that texts are shown.
func (r *rig) has(texts ...string) {
	r.t.Helper()
	s := r.shown()
	for _, want := range texts {
		if !strings.Contains(s, want) {
			r.t.Errorf("%q is not in\n%s", want, s)
		}
	}
}
