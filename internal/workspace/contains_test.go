package workspace

import (
	"strings"
	"testing"
)

func TestContains(t *testing.T) {
	t.Parallel()
	dir := newRepo(t, "repo")
	first := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
	git(t, dir, "switch", "-q", "-c", "side")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "side")
	side := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
	git(t, dir, "switch", "-q", "main")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "second")
	second := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
	w := create(t, dir)
	for commit, want := range map[string]bool{first: true, second: true, side: false, strings.Repeat("0", 40): false, "": false, "HEAD": false, "--help": false, first[:20]: false} {
		if got := w.Contains(t.Context(), commit); got != want {
			t.Errorf("%q: %v", commit, got)
		}
	}
}
