package contextstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
)

func openSessions(t *testing.T, fs *disk.FS) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{BaseDir: t.TempDir(), Redact: func(s string) string { return s }, FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func masked(s string) string { return strings.ReplaceAll(s, "s3cret", "[REDACTED]") }

type said struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

func sessionLog(t *testing.T, x *Session) string {
	t.Helper()
	var all []string
	if err := SessionLines(x.Dir, "log.jsonl", func(line []byte) bool { all = append(all, string(line)); return true }); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// Any id is a directory of its own, below sessions/, and a plain one can be read there.
func TestSessionNames(t *testing.T) {
	t.Parallel()
	s := openSessions(t, nil)
	seen := map[string]string{}
	for _, id := range []string{"terminal:hanako:1a2b", "slack:T1:C1:1700000000.000100", "line:user:U1", "a/b", "a%2Fb", "..", ".", "../x", "", "名前", strings.Repeat("x", 300), strings.Repeat("x", 299) + "y", "a\x00b", "con"} {
		x := s.Session(id, masked)
		if filepath.Dir(x.Dir) != SessionsDir(s.BaseDir) || len(filepath.Base(x.Dir)) > 255 || id != "" && filepath.Base(x.Dir) == "" {
			t.Errorf("%q lies at %s", id, x.Dir)
		}
		if other, taken := seen[x.Dir]; taken {
			t.Errorf("%q and %q are one", id, other)
		}
		seen[x.Dir] = id
	}
	if got := filepath.Base(s.Session("slack:T1:C1:17.5", masked).Dir); got != "slack%3AT1%3AC1%3A17.5" {
		t.Error(got)
	}
}

// Writers of several processes follow each other, and nothing of them is lost; every text
// is masked; files are the owner's alone.
func TestSessionWriters(t *testing.T) {
	t.Parallel()
	s := openSessions(t, nil)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			x := s.Session("terminal:a:b", masked) // a lock of its own each time, as another process has
			for n := range 10 {
				if err := x.Write(t.Context(), func(f *SessionWriter) error {
					return f.Append("log.jsonl", said{w*10 + n, "a s3cret"})
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	x := s.Session("terminal:a:b", masked)
	got := sessionLog(t, x)
	for n := range 40 {
		if strings.Count(got, fmt.Sprintf(`{"n":%d,"text":"a [REDACTED]"}`, n)) != 1 {
			t.Errorf("%d is not there once", n)
		}
	}
	for _, name := range []string{".", "log.jsonl", ".lock"} {
		if st, err := kernel.Stat(filepath.Join(x.Dir, name)); err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}

// The right to a turn is one process's; who waits too long is told.
func TestSessionTurn(t *testing.T) {
	t.Parallel()
	s := openSessions(t, nil)
	one, two := s.Session("a", masked), s.Session("a", masked)
	release, err := one.Turn(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Turn(t.Context(), time.Millisecond); !errors.Is(err, ErrTurn) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := two.Turn(ctx, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	// It keeps nobody from writing.
	if err := two.Write(t.Context(), func(w *SessionWriter) error { return w.Append("log.jsonl", said{1, "x"}) }); err != nil {
		t.Error(err)
	}
	release()
	if release, err = two.Turn(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	release()
}

// A torn end is cut off and kept aside; what was whole stays.
func TestSessionTornEnd(t *testing.T) {
	t.Parallel()
	s := openSessions(t, nil)
	x := s.Session("a", masked)
	add := func(n int) {
		t.Helper()
		if err := x.Write(t.Context(), func(w *SessionWriter) error { return w.Append("log.jsonl", said{n, "x"}) }); err != nil {
			t.Fatal(err)
		}
	}
	for i, torn := range []string{`{"n":9,"te`, "\x00\x00\x00\x00", `{"n":8,"text":"y"}`, "nonsense\n"} {
		add(i)
		f, err := kernel.OpenFile(filepath.Join(x.Dir, "log.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	add(4)
	if got := sessionLog(t, x); got != `{"n":0,"text":"x"} {"n":1,"text":"x"} {"n":2,"text":"x"} {"n":8,"text":"y"} {"n":3,"text":"x"} {"n":4,"text":"x"}` {
		t.Error(got)
	}
	var last string
	if err := SessionBack(x.Dir, "log.jsonl", func(line []byte) bool { last = string(line); return false }); err != nil || last != `{"n":4,"text":"x"}` {
		t.Errorf("%s, %v", last, err)
	}
}

// A fault of the disk leaves the log as it was, and the next write goes through.
func TestSessionFaults(t *testing.T) {
	t.Parallel()
	for at := 1; ; at++ {
		fs := &disk.FS{}
		s := openSessions(t, fs)
		x := s.Session("a", masked)
		write := func(n int) error {
			return x.Write(t.Context(), func(w *SessionWriter) error {
				if err := w.Append("log.jsonl", said{n, "x"}, said{n, "y"}); err != nil {
					return err
				}
				return w.Replace("state.json", said{n, "z"})
			})
		}
		if err := write(1); err != nil {
			t.Fatal(err)
		}
		f := &disktest.Failer{At: at, Err: syscall.ENOSPC, Short: true}
		fs.Before = f.Before
		err := write(2)
		fs.Before = nil
		if f.Hit().Kind == "" {
			if at < 5 {
				t.Errorf("a write is %d calls", at)
			}
			return
		}
		if err := write(3); err != nil {
			t.Errorf("call %d: %v", at, err)
		}
		got := strings.ReplaceAll(sessionLog(t, x), `,"text"`, "")
		without := `{"n":1:"x"} {"n":1:"y"} {"n":3:"x"} {"n":3:"y"}`
		with := strings.Replace(without, `{"n":3`, `{"n":2:"x"} {"n":2:"y"} {"n":3`, 1)
		// What failed after the append is there as a whole; what failed in it is not.
		if got != without && (got != with || f.Hit().Kind == disk.Append) || err == nil {
			t.Errorf("call %d %v: %v, %s", at, f.Hit(), err, got)
		}
		var st said
		if ok, err := ReadSession(x.Dir, "state.json", &st); !ok || err != nil || st.N != 3 {
			t.Errorf("%+v, %v", st, err)
		}
	}
}

// What stands beside contexts is no context: a check finds nothing wrong with it, and the
// index is made anew without it.
func TestSessionsAreNoContexts(t *testing.T) {
	t.Parallel()
	s := openSessions(t, nil)
	x := s.Session("terminal:a:b", masked)
	if err := x.Write(t.Context(), func(w *SessionWriter) error { return w.Append("log.jsonl", said{1, "x"}) }); err != nil {
		t.Fatal(err)
	}
	r, err := CheckBase(t.Context(), s.BaseDir, false)
	if err != nil || r.Left != 0 || r.Found != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	n := 0
	if err := EachSession(s.BaseDir, func(dir string) error {
		if n++; dir != x.Dir {
			t.Error(dir)
		}
		return nil
	}); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if err := x.Write(t.Context(), func(w *SessionWriter) error { return w.Remove() }); err != nil {
		t.Fatal(err)
	}
	if got := sessionLog(t, x); got != "" {
		t.Error(got)
	}
}
