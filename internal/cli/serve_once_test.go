package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/task"
)

// tori serve --once that is told to end puts its work back into the queue, too,
// however stubborn a command is: it does not wait for it, and owes nothing that
// the next start does not deliver.
func TestOnceIsToldToEnd(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, n := asked(t, "")
	script := filepath.Join(w.dir, "script.yaml")
	write(t, script, `
- calls: [{tool: shell, args: {command: "trap '' TERM INT HUP; echo 42 > answer.txt; touch began; while :; do sleep 1; done"}}]
- say: The answer is 42 now.
`)
	d := w.start("--once")
	w.until(d, "the command runs", func() bool {
		began, _ := filepath.Glob(filepath.Join(w.dir, "base", "workspaces", "*", "tree", "began"))
		return len(began) == 1
	})
	w.end(d)
	w.stands(n, task.Queued, "coding agent processing", "In progress", d.out.String())
	if v := w.of(n); v.State.Recoveries != 0 || v.Held {
		t.Errorf("%d recoveries, held: %v", v.State.Recoveries, v.Held)
	}
	began, _ := filepath.Glob(filepath.Join(w.dir, "base", "workspaces", "*", "tree", "began"))
	for _, f := range began {
		_ = os.Remove(f)
	}
	last := w.once()
	w.handed(n, d.out.String()+last)
	if !strings.Contains(last, "Nothing is left to do now.") || strings.Contains(d.out.String(), "Nothing is left") {
		t.Errorf("how it ended:\n%s---- then\n%s", d.out, last)
	}
}
