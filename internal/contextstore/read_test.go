package contextstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/task"
)

// within fails the test where f takes longer than a reader may.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		t.Fatalf("%s does not end", what)
	}
}

func TestAPipeIsNotWaitedFor(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	for _, name := range []string{MetadataFile, StateFile, LockFile, Messages, Summaries, Tools, Window, Checks} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			id := put(t, s, task.Paused)
			dir := filepath.Join(s.BaseDir, DirPaused, id)
			_ = kernel.Remove(filepath.Join(dir, name))
			if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
				t.Fatal(err)
			}
			who := Viewer{Admin: true}
			within(t, "a listing", func() { _, _ = scan(s.BaseDir, 10, who, func(View) bool { return true }) })
			within(t, "a look at it", func() {
				if v, err := Find(s.BaseDir, id, who); err == nil {
					for _, log := range []string{Messages, Summaries, Tools} {
						_ = v.Tail(log, 10, func([]byte) error { return nil })
					}
					_, _ = v.LastFinal()
				}
			})
			within(t, "a check", func() {
				r, err := CheckBase(t.Context(), s.BaseDir, false)
				if err != nil || r.Left == 0 {
					t.Errorf("%+v %v", r, err)
				}
			})
		})
	}
}

func TestACopyIsNotTakenForTheRun(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	s := open(t, Options{})
	id, copied := put(t, s, task.Paused), "00000000-0000-4000-8000-000000000000"
	if err := os.CopyFS(filepath.Join(s.BaseDir, DirPaused, copied), os.DirFS(filepath.Join(s.BaseDir, DirPaused, id))); err != nil {
		t.Fatal(err)
	}
	if v, err := Find(s.BaseDir, copied, Viewer{Admin: true}); err == nil {
		t.Errorf("found %s", v.Metadata.UUID)
	}
	if _, err := s.Control(t.Context(), copied, Stop, "ken"); err == nil {
		t.Error("stopped")
	}
	if _, _, err := s.Claim(t.Context(), copied); err == nil {
		t.Error("claimed")
	}
	l, err := scan(s.BaseDir, 10, Viewer{Admin: true}, func(View) bool { return true })
	if err != nil || len(l.Views) != 1 || l.Views[0].Metadata.UUID != id || l.Views[0].Status() != task.Paused || len(l.Damaged) != 1 {
		t.Errorf("%+v %v", l, err)
	}
	if _, err := s.dir(""); err == nil {
		t.Error("a status directory is taken for a run")
	}
}

func TestALostStateDoesNotChangeTheEnd(t *testing.T) {
	t.Parallel()
	for _, want := range []task.Status{task.Completed, task.Stopped, task.Failed} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			id := put(t, s, want)
			dir := filepath.Join(s.BaseDir, DirCompleted, id)
			if err := kernel.Truncate(filepath.Join(dir, StateFile), 0); err != nil {
				t.Fatal(err)
			}
			if v, err := Find(s.BaseDir, id, Viewer{Admin: true}); err != nil || v.Status() != want {
				t.Errorf("%s %v", v.Status(), err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			must(t, ReindexBase(t.Context(), s.BaseDir))
			check(t, s.BaseDir, true)
			if st, err := ReadState(dir); err != nil || st.TaskStatus != want {
				t.Errorf("%s %v", st.TaskStatus, err)
			}
		})
	}
}
