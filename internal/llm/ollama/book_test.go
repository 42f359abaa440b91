package ollama

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
)

// stateFile is the one state in dir.
func stateFile(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "ollama-*.json"))
	if err != nil || len(all) != 1 {
		t.Fatalf("state files %v, %v", all, err)
	}
	return all[0]
}

// TestNoRestartWithoutARecord: where the restart cannot be put on record it is
// not made.
func TestNoRestartWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string) *disk.FS
		err     string
	}{
		"full disk": {func(*testing.T, string) *disk.FS {
			return &disk.FS{Before: func(op disk.Op) error {
				if op.Kind == disk.Replace {
					return syscall.ENOSPC
				}
				return nil
			}}
		}, "ollama.state"},
		"a newer format": {func(t *testing.T, dir string) *disk.FS {
			write(t, filepath.Join(dir, stateName("http://ollama.test:11434")+".json"), `{"format":2}`)
			return nil
		}, "ollama.state"},
		"no directory can be made": {func(t *testing.T, dir string) *disk.FS {
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "a file")
			return nil
		}, "ollama.state"},
		"the state is a directory": {func(t *testing.T, dir string) *disk.FS {
			if err := os.Mkdir(filepath.Join(dir, stateName("http://ollama.test:11434")+".json"), 0o700); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "ollama.state"},
	} {
		dir := filepath.Join(t.TempDir(), "care")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		fs := c.prepare(t, dir)
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(chatModel, workerModel)
			w.crash()
			v := w.care(t, dir, func(cfg *CareConfig) { cfg.FS = fs }).After(t.Context(), time.Now(), failed)
			if v.Retry || key(v.Err) != c.err || len(w.restarts) != 0 {
				t.Errorf("%s: %+v, %d restarts", name, v, len(w.restarts))
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRecordedBeforeMade: a program that dies while the command runs has the
// restart counted.
func TestRecordedBeforeMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		w.crash()
		var during []byte
		care := w.care(t, dir, nil)
		run := care.cfg.Run
		care.cfg.Run = func(ctx context.Context, argv []string, out io.Writer) error {
			during, _ = os.ReadFile(stateFile(t, dir))
			return run(ctx, argv, out)
		}
		if v := care.After(t.Context(), time.Now(), failed); !v.Retry {
			t.Fatalf("%+v", v)
		}
		if !bytes.Contains(during, []byte(`"restarts":["2000-01-01T00:00:00Z"]`)) {
			t.Errorf("while it ran: %s", during)
		}
	})
}

// TestDamagedState: what cannot be understood counts as nothing, and what a
// wrong clock wrote does not forbid restarts for ever.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	b := &book{fs: &disk.FS{}, dir: t.TempDir(), name: "s", window: 10 * time.Minute}
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for content, want := range map[string]int{
		"": 0, "\x00\x00\x00": 0, "{": 0, "[]": 0, `{"restarts":"x"}`: 0, `{"restarts":[1]}`: 0,
		`{"format":1,"restarts":["2026-11-21T07:55:00Z","2026-11-21T07:50:01Z","2026-11-21T07:49:59Z"]}`: 2,
		`{"format":1,"restarts":["2026-11-21T08:05:00Z","2030-01-01T00:00:00Z"],"other":1}`:              1,
		`{"format":1,"restarts":["2026-11-21T07:55:00Z"],"last_error":"` + strings.Repeat("x", maxState): 0,
	} {
		write(t, b.path(".json"), content)
		st, err := b.load(now)
		if err != nil || len(st.Restarts) != want {
			t.Errorf("%.90q: %d restarts, %v", content, len(st.Restarts), err)
		}
	}
}

// TestWaitsForAnotherProcess: while another holds the lock nothing is repaired,
// and waiting ends with ctx.
func TestWaitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		w.crash()
		care := w.care(t, dir, nil)
		f, err := os.OpenFile(care.book.path(".lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil || setLock(f, unix.F_WRLCK) != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if v := care.After(ctx, time.Now(), failed); !errors.Is(v.Err, context.DeadlineExceeded) || len(w.restarts) != 0 {
			t.Errorf("%+v, %d restarts", v, len(w.restarts))
		}
		_ = f.Close() // as a process that was killed
		if v := care.After(t.Context(), time.Now(), failed); !v.Retry || len(w.restarts) != 1 {
			t.Errorf("%+v, %d restarts", v, len(w.restarts))
		}
	})
}
