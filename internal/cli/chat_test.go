package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/channel/terminal"
	"toritsugi/internal/i18n"
)

// A conversation on a real terminal: keys go in, the screen shows the answer, Ctrl-C
// stops the turn and Ctrl-D leaves, and the terminal is as it was before.
func TestChatOnATerminal(t *testing.T) {
	t.Parallel()
	master, slave := pty(t)
	defer func() { _ = slave.Close() }()
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	shown := watchOutput(master)
	h := &channeltest.Handler{}
	h.Reply = func(ctx context.Context, m channel.Message) error {
		if m.UserText == "wait" {
			h.Channel.(channel.Streamer).Stream(m.SessionID, m.ID, "so far")
			<-ctx.Done()
			return ctx.Err()
		}
		return h.Channel.Post(ctx, channel.Post{SessionID: m.SessionID, Key: "a" + m.ID, Kind: channel.Answer, ReplyTo: m.ID, Text: "you said **" + m.UserText + "**"})
	}
	term := terminal.New(terminal.Options{Session: "terminal:hanako:0123", User: "terminal:hanako", Lang: i18n.English, Now: time.Now, NewID: rand.Text,
		Mask: func(s string) string { return s }, Environ: []string{"TERM=xterm-256color"}, In: slave, Out: slave})
	h.Channel = term
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer done.Wait()
	defer cancel()
	var chatErr error
	done.Go(func() { _, chatErr = term.Chat(ctx, h, terminal.Start{}) })
	for _, step := range []struct{ keys, want string }{
		{"", "Ctrl-D leaves"},
		{"こんにちは\r", "you said \x1b[1mこんにちは"},
		{"wait\r", "so far"},
		{"\x03", "Stopped."},
		{"again\r", "you said \x1b[1magain"},
	} {
		if _, err := io.WriteString(master, step.keys); err != nil {
			t.Fatal(err)
		}
		if !shown.until(step.want) {
			t.Fatalf("%q is not in %q", step.want, shown.text())
		}
	}
	if _, err := io.WriteString(master, "\x04"); err != nil {
		t.Fatal(err)
	}
	if done.Wait(); chatErr != nil {
		t.Error(chatErr)
	}
	after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("%v: %+v, was %+v", err, after, before)
	}
	if s := shown.text(); strings.Contains(s, "\x1b[?1049h") {
		t.Error("the alternate screen was used")
	}
}

// output is what a terminal was sent.
type output struct {
	mu    sync.Mutex
	b     bytes.Buffer
	moved chan struct{}
}

func watchOutput(f *os.File) *output {
	o := &output{moved: make(chan struct{})}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			o.mu.Lock()
			o.b.Write(buf[:n])
			close(o.moved)
			o.moved = make(chan struct{})
			o.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return o
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// until waits for a text, for three minutes at most.
func (o *output) until(want string) bool {
	late := time.After(3 * time.Minute)
	for {
		o.mu.Lock()
		has, moved := strings.Contains(o.b.String(), want), o.moved
		o.mu.Unlock()
		if has {
			return true
		}
		select {
		case <-moved:
		case <-late:
			return false
		}
	}
}

func TestChatUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cmd  chatCmd
		want string
	}{
		"a session and the last one": {chatCmd{Session: "a", Continue: true, Message: "x"}, "--continue"},
		"no name":                    {chatCmd{Session: "a:b", Message: "x"}, `"a:b"`},
		"nothing to say":             {chatCmd{Message: "  "}, "nothing to send"},
	} {
		out := &bytes.Buffer{}
		err := c.cmd.Run(&console{out: out, err: out, lang: i18n.English, getenv: func(string) string { return "" }})
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// How it ended is an exit code, as that of tori run.
func TestChatEnds(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx    context.Context
		result terminal.Result
		err    error
		once   bool
		want   int
	}{
		"answered":               {t.Context(), terminal.Result{}, nil, true, exitOK},
		"not taken":              {t.Context(), terminal.Result{Failed: true}, nil, true, exitFailed},
		"failed":                 {t.Context(), terminal.Result{}, errors.New("x"), false, exitFailed},
		"a proposal waits":       {t.Context(), terminal.Result{Waiting: true}, nil, true, exitWaiting},
		"by a key":               {t.Context(), terminal.Result{Stopped: true}, nil, true, exitStopped},
		"by a signal":            {stopped, terminal.Result{Failed: true}, context.Canceled, true, exitStopped},
		"a conversation, killed": {stopped, terminal.Result{}, context.Canceled, false, exitOK},
		"one message failed":     {t.Context(), terminal.Result{Failed: true}, nil, false, exitOK},
	} {
		got, err := exitOK, chatEnd(c.ctx, c.result, c.err, c.once)
		var exit *exitError
		if errors.As(err, &exit) {
			got = exit.code
		} else if err != nil {
			got = exitFailed
		}
		if got != c.want {
			t.Errorf("%s: %d (%v), want %d", name, got, err, c.want)
		}
	}
}
