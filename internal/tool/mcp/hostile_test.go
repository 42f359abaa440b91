package mcp_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/tool/mcp"
)

// TestServersThatNeverBecomeReady harm neither the others nor the opening.
func TestServersThatNeverBecomeReady(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ mode, reason string }{
		{"mute", "did not answer the handshake within 30s"},
		{"deaf", "did not answer the handshake within 30s"},
		{"exit", "exit status 3"},
		{"garbage", "more than 8 MiB on its standard output that are no messages"},
		{"endless line", "a message of more than 1048576 bytes"},
		{"wrong version", `unsupported protocol version: "1999-01-01"`},
		{"asks", "32 requests without reading the answers"},
		{"pages", "never ends: it repeats a page"},
		{"many", "more than 512 tools"},
		{"not a list", "did not list its tools"},
		{"dies", "exit status 1"},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &within{}
				m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: w.start, MaxMessage: 1 << 20}, mode("good"), mode(tc.mode))
				defer m.Close()
				says(t, call(t, m, "good__echo", `{"text":"hi"}`), false, `echo {"text":"hi"}`)
				s := status(t, m, tc.mode)
				if s.State == mcp.Ready || !strings.Contains(s.Reason, tc.reason) {
					t.Errorf("state %s, reason %q, want %q", s.State, s.Reason, tc.reason)
				}
				for _, n := range names(m.Tools()) {
					if !strings.HasPrefix(n, "good__") {
						t.Errorf("%s is offered", n)
					}
				}
			})
		})
	}
}

// TestBadAnswers end in a result that tells what happened, and the server can
// be used again.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		tool  string
		isErr bool
		says  []string
	}{
		{"twice", false, []string{"once"}},
		{"huge", true, []string{"ended during the call", "more than 1048576 bytes", "not known"}},
		{"values", true, []string{"ended during the call", "more than 100000 values", "not known"}},
		{"broken", true, []string{"ended during the call", "a message that is not valid"}},
		{"nonsense", true, []string{"failed"}},
		{"die", true, []string{"ended during the call", "exit status 7", "the disk is on fire", "not known"}},
		{"hang", true, []string{"did not answer within 1m0s", "cancelled"}},
		{"refuse", true, []string{"refused the call: text is missing (code -32602)"}},
		{"flood", false, []string{"done"}},
		{"empty", false, []string{"(The result is empty.)"}},
		{"input", true, []string{"asks for input"}},
	} {
		t.Run(tc.tool, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &within{}
				m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: w.start, MaxMessage: 1 << 20}, mode("bad"), mode("good"))
				defer m.Close()
				says(t, call(t, m, "bad__"+tc.tool, ""), tc.isErr, tc.says...)
				says(t, call(t, m, "good__echo", ""), false, "echo {}")
				says(t, call(t, m, "bad__echo", ""), false, "echo {}") // after a restart, where there was one
			})
		})
	}
}

func TestNoiseOnStandardOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, mode("noise"))
		defer m.Close()
		says(t, call(t, m, "noise__echo", ""), false, "echo {}")
		s := status(t, m, "noise")
		if !strings.Contains(s.Stderr, "(stdout) Starting server...") || !strings.Contains(s.Stderr, "listening") {
			t.Errorf("the noise is not kept: %q", s.Stderr)
		}
		if s.Program != "fake 1.2" || s.Protocol == "" || s.State != mcp.Ready {
			t.Errorf("status %+v", s)
		}
	})
}

// TestOldServer never answers what newer clients ask first: it is asked
// otherwise at once, and first the next time.
func TestOldServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, w := t.TempDir(), &within{}
		var began time.Time
		for opened, c := range []struct {
			starts int
			took   time.Duration
		}{{2, 5 * time.Second}, {1, 0}} {
			w.started, began = nil, time.Now()
			m := mustOpen(t, mcp.Options{Dir: dir, Start: w.start}, mode("old"))
			if took := time.Since(began); took < c.took || took > c.took+5*time.Second || w.count("old") != c.starts {
				t.Errorf("opening %d took %s and %d starts", opened, took, w.count("old"))
			}
			if s := status(t, m, "old"); s.State != mcp.Ready || s.Protocol != "2025-11-25" {
				t.Errorf("status %+v", s)
			}
			says(t, call(t, m, "old__echo", ""), false, "echo {}")
			m.Close()
		}
		// Another program under its name is greeted as one that is not known.
		s := mode("old")
		s.Command = append(s.Command, "--new")
		began = time.Now()
		m := mustOpen(t, mcp.Options{Dir: dir, Start: w.start, FirstWait: time.Second}, s)
		if took := time.Since(began); took < time.Second || took > 4*time.Second {
			t.Errorf("another program took %s", took)
		}
		m.Close()
		if b, err := os.ReadFile(filepath.Join(dir, "pins.json")); err != nil || !strings.Contains(string(b), `"older":true`) {
			t.Errorf("%s, %v", b, err)
		}
	})
}

// TestSlowServer needs longer than the first wait, and knows the newer greeting
// only: it gets the time that it needs at the next attempt.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, mode("slow"))
		defer m.Close()
		if s := status(t, m, "slow"); s.State == mcp.Ready || !strings.Contains(s.Reason, "did not answer the handshake within 5s") || !strings.Contains(s.Reason, "nothing of that kind") {
			t.Errorf("status %+v", s)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := status(t, m, "slow"); s.State != mcp.Ready {
			t.Errorf("status %+v", s)
		}
	})
}

// TestSuspend ends what runs, says nothing of it, starts nothing meanwhile, and
// is over with Resume.
func TestSuspend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		w := &within{}
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: w.start, Logger: slog.New(slog.NewTextHandler(&logged, nil))}, mode("s"))
		defer m.Close()
		m.Suspend()
		m.Suspend()
		if w.running() != 0 {
			t.Errorf("%d run", w.running())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		says(t, call(t, m, "s__echo", ""), true, "not available: the servers are suspended")
		if s := status(t, m, "s"); s.State != mcp.Suspended || w.count("s") != 1 {
			t.Errorf("status %+v, %d starts", s, w.count("s"))
		}
		m.Resume(t.Context())
		m.Resume(t.Context())
		says(t, call(t, m, "s__echo", ""), false, "echo {}")
		if w.count("s") != 2 || w.running() != 1 {
			t.Errorf("%d starts, %d run", w.count("s"), w.running())
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			says(t, call(t, m, "s__hang", ""), true, "ended during the call")
		}()
		synctest.Wait()
		m.Suspend()
		<-done
		m.Close()
		m.Suspend()
		m.Resume(t.Context())
		if s := status(t, m, "s"); s.State != mcp.Closed || w.running() != 0 {
			t.Errorf("status %+v", s)
		}
		if text := logged.String(); strings.Contains(text, "lost") || strings.Count(text, "MCP server ready") != 2 {
			t.Errorf("logged %s", text)
		}
	})
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, mode("s"))
		defer m.Close()
		ctx, cancel := context.WithCancel(context.Background())
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			cancel()
		}()
		_, err := registry(t, m.Tools()).Call(ctx, "s__hang", "")
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("err %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("returned %s after the call began, not at once when it was cancelled", took)
		}
		synctest.Wait()
		says(t, call(t, m, "s__cancelled", ""), false, "1")
	})
}

// TestBackOff watches when a server that always fails is started.
func TestBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		w := &within{fail: func(string, int) error {
			at = append(at, time.Since(began))
			return errors.New("no such program")
		}}
		dir := t.TempDir()
		m := mustOpen(t, mcp.Options{Dir: dir, Start: w.start, Rand: func() float64 { return 0.5 },
			Restart: mcp.Restart{First: time.Second, Max: 5 * time.Second, Limit: 5}}, mode("s"))
		defer m.Close()
		time.Sleep(time.Hour)
		synctest.Wait()
		// 3/4 of 1, 2, 4 and 5 s, then no more.
		want := []time.Duration{0, 750 * time.Millisecond, 2250 * time.Millisecond, 5250 * time.Millisecond, 9 * time.Second}
		if len(at) != len(want) {
			t.Fatalf("started at %v, want %v", at, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("started at %v, want %v", at, want)
				break
			}
		}
		if s := status(t, m, "s"); s.State != mcp.Stopped || !strings.Contains(s.Reason, "could not be started: no such program") {
			t.Errorf("status %+v", s)
		}
	})
}

// TestStoppedServerIsStartedByACall and offers the tools that are pinned for it
// while it is down.
func TestStoppedServerIsStartedByACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		mustOpen(t, mcp.Options{Dir: dir, Start: (&within{}).start}, mode("s")).Close()
		var whole atomic.Bool
		w := &within{fail: func(string, int) error {
			if !whole.Load() {
				return errors.New("no such program")
			}
			return nil
		}}
		m := mustOpen(t, mcp.Options{Dir: dir, Start: w.start, Restart: mcp.Restart{Limit: 1}}, mode("s"))
		defer m.Close()
		before := names(m.Tools())
		says(t, call(t, m, "s__echo", ""), true, "The MCP server s is not available", "no such program")
		whole.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		says(t, call(t, m, "s__echo", ""), false, "echo")
		if got := names(m.Tools()); strings.Join(got, " ") != strings.Join(before, " ") || len(got) == 0 {
			t.Errorf("the tools were %q and are %q", before, got)
		}
		if n := w.count("s"); n != 2 {
			t.Errorf("started %d times", n)
		}
	})
}

func TestOpenIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w := &within{}
		_, err := mcp.Open(ctx, []mcp.Server{mode("mute"), mode("good")}, mcp.Options{Dir: t.TempDir(), Start: w.start})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err %v", err)
		}
	})
}

// TestCloseDuringACall ends the call.
func TestCloseDuringACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, mode("s"))
		done := make(chan struct{})
		go func() {
			defer close(done)
			says(t, call(t, m, "s__hang", ""), true, "ended during the call")
		}()
		synctest.Wait()
		m.Close()
		<-done
		says(t, call(t, m, "s__echo", ""), true, "the run has ended")
		m.Close()
	})
}
