package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// The progress file is replaced whole, is no issue of the folder, and no issue to
// be named.
func TestWriteProgress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	issue := filepath.Join(dir, "7-greet.md")
	if err := os.WriteFile(issue, []byte("# Greet\n\nPlease.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one\r\n", "two\x00\n\n", "two"} {
		if err := writeProgress(issue, text); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "7-greet.progress.md")
	if got, err := os.ReadFile(path); err != nil || string(got) != progressMark+"\ntwo\n" || ProgressPath(issue) != path {
		t.Errorf("%q %v", got, err)
	}
	if err := os.Truncate(path, 0); err != nil { // as a power cut may leave it
		t.Fatal(err)
	}
	if err := writeProgress(issue, "three"); err != nil {
		t.Error(err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 2 {
		t.Errorf("%v %v", names, err)
	}
	f, err := Open(Options{Dir: dir, Repo: forge.Repo{Owner: "a", Name: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := f.look(t.Context()); err != nil || len(all) != 1 || all[0].id != "7" {
		t.Errorf("%d issues, %v", len(all), err)
	}
	if _, err := ReadIssue(path); err == nil || !strings.Contains(err.Error(), "shows the progress") {
		t.Error(err)
	}
}

// What we did not write stays as it is, and nothing is written through a link.
func TestWriteProgressLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"a file of people's": func(p string) error { return os.WriteFile(p, []byte("# My own notes\n"), 0o600) },
		"a short one":        func(p string) error { return os.WriteFile(p, []byte("<!-"), 0o600) },
		"a directory":        func(p string) error { return os.Mkdir(p, 0o700) },
		"a pipe":             func(p string) error { return unix.Mkfifo(p, 0o600) },
		"a link":             func(p string) error { return os.Symlink(p+".target", p) },
		"a link to ours": func(p string) error {
			return os.Symlink(filepath.Join(filepath.Dir(p), "other.progress.md"), p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			issue := filepath.Join(dir, "7.md")
			other := filepath.Join(dir, "other.md")
			if err := writeProgress(other, "other"); err != nil {
				t.Fatal(err)
			}
			if err := put(ProgressPath(issue)); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(ProgressPath(issue))
			if err != nil {
				t.Fatal(err)
			}
			err = writeProgress(issue, "ours")
			if err == nil || !strings.Contains(err.Error(), "7.progress.md") {
				t.Errorf("error %v", err)
			}
			if ja := i18n.Japanese.Error(err); strings.Contains(ja, " is ") || strings.Contains(ja, "regular") {
				t.Errorf("in Japanese: %s", ja)
			}
			after, err := os.Lstat(ProgressPath(issue))
			if err != nil || !os.SameFile(before, after) || before.Size() != after.Size() {
				t.Errorf("it was replaced: %v", err)
			}
			if got, err := os.ReadFile(ProgressPath(other)); err != nil || string(got) != progressMark+"\nother\n" {
				t.Errorf("%q %v", got, err)
			}
			if _, err := os.Lstat(ProgressPath(issue) + ".target"); err == nil {
				t.Error("the link was followed")
			}
		})
	}
}

// What a kill leaves on the way goes with the next write; what is no file of ours
// stays, and nothing is written through it.
func TestWriteProgressAfterAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	issue := filepath.Join(dir, strings.Repeat("長", 75)+".md") // there is no room for more in a name
	tmp, target := filepath.Join(dir, temporary(filepath.Base(ProgressPath(issue)))), filepath.Join(dir, "notes")
	if err := os.WriteFile(tmp, []byte("half a te"), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := writeProgress(issue, "whole"); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v %v", names, err)
	}
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, tmp); err != nil {
		t.Fatal(err)
	}
	err := writeProgress(issue, "new")
	if err == nil || !strings.Contains(err.Error(), tmp+" is in the way") {
		t.Error(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "mine" {
		t.Errorf("%q %v", got, err)
	}
	if got, err := os.ReadFile(ProgressPath(issue)); err != nil || !strings.Contains(string(got), "whole") {
		t.Errorf("%q %v", got, err)
	}
	if _, err := os.Lstat(tmp); err != nil {
		t.Error(err)
	}
}
