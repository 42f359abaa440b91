package agent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
)

// Who takes a run up is told what its first owner settled; a damaged file is told
// and does without.
func TestLessonsAreSettled(t *testing.T) {
	t.Parallel()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	owner := func() *run {
		return &run{Agent: &Agent{Store: s}, ledger: c, log: slog.New(slog.NewTextHandler(&log, nil))}
	}
	r := owner()
	if err := r.keepLessons(t.Context(), &memory.Inherited{}); err != nil {
		t.Fatal(err)
	}
	if r.readLessons(); r.past.lessons != nil || log.Len() > 0 {
		t.Errorf("out of nothing: %+v %s", r.past.lessons, log.String())
	}
	r.past.lessons = &planning.EarlierRuns{Runs: []planning.EarlierRun{{UUID: "u", Subtasks: []planning.EarlierSubtask{{ID: "a", Description: "d"}}, Lessons: []planning.Lesson{{Kind: "plan", Text: "G"}}}}}
	want := r.past.lessons.Sections()
	if err := r.keepLessons(t.Context(), &memory.Inherited{LeftOut: []string{memory.LeftPlans}}); err != nil {
		t.Fatal(err)
	}
	next := owner()
	if next.readLessons(); next.past.lessons == nil || next.past.lessons.Sections() != want || !next.past.lessons.Hidden || next.past.lessons.Held {
		t.Errorf("%+v", next.past.lessons)
	}
	if err := os.WriteFile(filepath.Join(c.Dir(), lessonsFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	last := owner()
	if last.readLessons(); last.past.lessons != nil || !strings.Contains(log.String(), "lessons.json") {
		t.Errorf("%+v %s", last.past.lessons, log.String())
	}
}
