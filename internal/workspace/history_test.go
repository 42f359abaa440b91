package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogAndBlame(t *testing.T) {
	t.Parallel()
	repo := newRepo(t, "r")
	write(t, filepath.Join(repo, "src/main.go"), "package main\n\nfunc main() {}\n")
	git(t, repo, "commit", "-q", "-a", "-m", "add main\n\nIt does nothing yet.", "--date=2024-05-06T12:00:00Z")
	write(t, filepath.Join(repo, "-f [x]"), "odd\n")
	write(t, filepath.Join(repo, "big"), strings.Repeat("line\n", 100_000))
	git(t, repo, "add", "--", "./-f [x]", "big")
	git(t, repo, "commit", "-q", "-m", "odd")
	w := create(t, repo)
	write(t, filepath.Join(w.Tree(), "src/main.go"), "package main\n\n// new\nfunc main() {}\n")
	ctx := t.Context()
	text := func(s string, err error) string {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return s
	}
	lines := func(s string) int { return strings.Count(s, "\n") }
	if s := text(w.LogText(ctx, "", "", 10, false, 1000)); lines(s) != 3 || !strings.Contains(s, " 2024-05-06 u: add main\n") {
		t.Error(s)
	}
	if s := text(w.LogText(ctx, "HEAD~1", "src", 10, false, 1000)); lines(s) != 2 {
		t.Error(s)
	}
	if s := text(w.LogText(ctx, "", "-f [x]", 10, false, 1000)); lines(s) != 1 || !strings.HasSuffix(s, "u: odd\n") {
		t.Error(s)
	}
	if s := text(w.LogText(ctx, "", "nowhere", 10, false, 1000)); s != "" {
		t.Error(s)
	}
	if s := text(w.LogText(ctx, "", "src", 1, true, 10_000)); !strings.Contains(s, "    It does nothing yet.\n") || !strings.Contains(s, "+func main() {}\n") {
		t.Error(s)
	}
	if s := text(w.LogText(ctx, "", "", 3, true, 500)); len(s) > 600 || !strings.HasSuffix(s, "\n[cut here; ask for less]\n") {
		t.Error(s)
	}
	if s := text(w.BlameText(ctx, "src/main.go", 1, 4, 1000)); lines(s) != 4 || strings.Count(s, "Not Committed Yet") != 1 || !strings.Contains(s, "4) func main() {}") {
		t.Error(s)
	}
	if s := text(w.BlameText(ctx, "-f [x]", 1, 1, 1000)); !strings.HasSuffix(s, "1) odd\n") {
		t.Error(s)
	}
	if s := text(w.BlameText(ctx, "big", 1, 50_000, 1000)); len(s) > 1100 || !strings.HasSuffix(s, "[cut here; ask for less]\n") {
		t.Error(s)
	}
	if s := text(w.FileText(ctx, "HEAD", "src/main.go", 1000)); s != "package main\n\nfunc main() {}\n" {
		t.Error(s)
	}
	if s := text(w.FileText(ctx, "HEAD", "-f [x]", 1000)); s != "odd\n" {
		t.Error(s)
	}
	for _, path := range []string{"nowhere", "src", "../x"} {
		if s, err := w.FileText(ctx, "HEAD", path, 1000); err == nil {
			t.Errorf("%s: %s", path, s)
		}
	}
	for _, revision := range []string{"nothing", "--output=x", "-p", "HEAD^{tree}:x"} {
		if s, err := w.LogText(ctx, revision, "", 10, false, 1000); err == nil {
			t.Errorf("%s: %s", revision, s)
		}
	}
	if _, err := w.BlameText(ctx, "new", 1, 2, 1000); err == nil || err.Error() != "cannot stat path 'new': No such file or directory" && !strings.Contains(err.Error(), "no such path") {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := w.LogText(gone, "", "", 1, false, 10); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
