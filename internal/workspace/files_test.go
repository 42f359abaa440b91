package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What git would take is listed, below the top level wherever one stands, up to a bound,
// and nothing of the repository is executed.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := newRepo(t, "files")
	write(t, filepath.Join(dir, ".gitignore"), "*.log\n")
	write(t, filepath.Join(dir, "new 日本.txt"), "x")
	write(t, filepath.Join(dir, "build.log"), "x")
	hook := filepath.Join(dir, "hook")
	write(t, hook, "#!/bin/sh\ntouch "+filepath.Join(dir, "ran")+"\n")
	if err := os.Chmod(hook, 0o700); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "config", "core.fsmonitor", hook)
	src, err := Inspect(t.Context(), filepath.Join(dir, "src"), InspectOptions{NoStatus: true})
	if err != nil {
		t.Fatal(err)
	}
	all, err := src.Files(t.Context(), walls(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"README.md", ".gitignore", "new 日本.txt", "hook"} {
		if !slices.Contains(all, want) {
			t.Errorf("%s is not in %q", want, all)
		}
	}
	if slices.Contains(all, "build.log") {
		t.Errorf("an ignored file is in %q", all)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a program of the repository was executed")
	}
	if some, err := src.Files(t.Context(), walls(), 2); err != nil || len(some) != 2 {
		t.Errorf("%q, %v", some, err)
	}
	bare := filepath.Join(t.TempDir(), "bare.git")
	git(t, dir, "clone", "-q", "--bare", dir, bare)
	if src, err = Inspect(t.Context(), bare, InspectOptions{NoStatus: true}); err != nil {
		t.Fatal(err)
	}
	if all, err := src.Files(t.Context(), walls(), 10); err != nil || all != nil {
		t.Errorf("%q, %v", all, err)
	}
}
