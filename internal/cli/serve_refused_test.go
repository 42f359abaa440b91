package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/disk/disktest"
)

// A rule that refuses the branch for good is told first, in its own words and in
// the language of the house; once it is mended, /retry is all it takes.
func TestARuleRefusesTheBranch(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	raw, _ := readFile(w.config)
	write(t, w.config, strings.Replace(string(raw), "language: en", "language: ja", 1))
	hooks := t.TempDir()
	hook := filepath.Join(hooks, "pre-receive")
	disktest.Program(t, hook, "#!/bin/sh\necho 'error: GH013: workflows need the scope @acme/admins' >&2\nexit 1\n")
	if out, err := w.repo.Git("config", "core.hooksPath", hooks); err != nil {
		t.Fatal(out, err)
	}
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	_, ours := w.shown(n)
	if len(ours) != 1 || !strings.HasPrefix(ours[0], "⚠️ ブランチを引き渡せませんでした: ") || !strings.Contains(ours[0], "拒否されました") || !strings.Contains(ours[0], "GH013: workflows need the scope") ||
		strings.Contains(ours[0], "@acme/admins") || !strings.Contains(ours[0], "/retry") {
		t.Errorf("%q\n%s", ours, log)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	w.repo.Comment(n, "hanako", "/retry")
	log += w.once()
	if labels, ours := w.shown(n); labels != "coding agent done" || len(ours) != 2 || len(w.repo.Pulls()) != 1 || strings.Contains(ours[1], "⚠️") {
		t.Errorf("labels %q, %q, %d pull requests\n%s", labels, ours, len(w.repo.Pulls()), log)
	}
}
