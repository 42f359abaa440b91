package cli

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

// Nightly work that is killed at random instants leaves nothing half, and the next one does the rest.
func TestMaintainKilled(t *testing.T) {
	skipShort(t, "a process after the other is killed")
	t.Parallel()
	const runs = 40
	h := newHouse(t, "http://127.0.0.1:1", "")
	ago := time.Now().AddDate(0, 0, -10)
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: h.base(), Redact: func(s string) string { return s }, Now: func() time.Time { return ago }})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(n int) *contextstore.Context {
		uuid, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "folder", Owner: "a", Repo: "r", Type: "issue", ID: fmt.Sprint(n)}, Title: "one", Run: []byte("{}")})
		must(err)
		c, _, err := s.Claim(t.Context(), uuid)
		must(err)
		for range 50 {
			_, err = c.Append(contextstore.Message{Role: "user", Content: strings.Repeat("please ", 1000)})
			must(err)
		}
		return c
	}
	for n := range runs {
		must(run(n).Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "done"}))
	}
	dead := filepath.Join(h.base(), "running", run(runs).UUID())
	must(os.CopyFS(dead+"-copy", os.DirFS(dead)))
	must(os.RemoveAll(dead))
	for n := range 100 {
		must(s.SetMark(t.Context(), "kept", fmt.Sprint(n), strings.Repeat("x", 50<<10)))
	}
	for n := range 90 {
		must(s.SetMark(t.Context(), "kept", fmt.Sprint(n), ""))
	}
	must(s.Close())
	must(os.Rename(dead+"-copy", dead))
	must(filepath.Walk(dead, func(p string, st os.FileInfo, err error) error { return errors.Join(err, disk.RestrictToOwner(p, st)) }))
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.base(), "tasks.db"))
	must(err)
	_, err = db.ExecContext(t.Context(), `DELETE FROM tasks WHERE task_id % 3 = 0; UPDATE tasks SET total_tokens = 7 WHERE task_id % 3 = 1`)
	must(errors.Join(err, db.Close()))
	args := []string{"maintain", "--base-dir", h.base(), "--config", h.config}
	for range 12 {
		p := h.start(args...)
		time.Sleep(rand.N(120 * time.Millisecond)) //nolint:gosec // an instant
		_ = p.Process.Kill()                       // unless it ended
		_ = p.code()
	}
	out := h.tori(0, args...)
	if strings.Contains(out, "failed:") {
		t.Error(out)
	}
	out = h.tori(0, args...)
	for _, want := range []string{"compressed=0", "freed=0", fmt.Sprintf("runs=%d mended=0 left=0", runs+1), "vacuum      done", fmt.Sprintf("completed=%d", runs)} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for glob, want := range map[string]int{"completed/*/messages.jsonl": 0, "completed/*/messages.jsonl.gz": runs, "running/*/.lock": 0, "running/*/messages.jsonl": 1, "completed/*/.*": 0} {
		all, err := filepath.Glob(filepath.Join(h.base(), glob))
		if err != nil || len(all) != want {
			t.Errorf("%s: %d, not %d, %v", glob, len(all), want, err)
		}
	}
	if st, err := os.Stat(filepath.Join(h.base(), contextstore.HouseDBFile)); err != nil || st.Size() > 2<<20 {
		t.Error(st.Size(), err)
	}
	h.tori(0, "check", "--base-dir", h.base())
}
