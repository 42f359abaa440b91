package tool

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWildmatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		slashes, want bool
	}{
		{"foo", "foo", true, true}, {"foo", "bar", true, false}, {"", "", true, true}, {"???", "foo", true, true}, {"??", "foo", true, false},
		{"*", "foo", true, true}, {"f*", "foo", true, true}, {"*f", "foo", true, false}, {"*ob*a*r*", "foobar", true, true},
		{`foo\*`, "foo*", true, true}, {`foo\*bar`, "foobar", true, false}, {`f\\oo`, `f\oo`, true, true}, {"*[al]?", "ball", true, true},
		{"[ten]", "ten", true, false}, {"t[a-g]n", "ten", true, true}, {"t[!a-g]n", "ten", true, false}, {"t[^a-g]n", "ton", true, true},
		{"a[]]b", "a]b", true, true}, {"a[]-]b", "a-b", true, true}, {"a[]a-]b", "aab", true, true}, {"]", "]", true, true},
		{"foo*bar", "foo/baz/bar", true, false}, {"foo**bar", "foo/baz/bar", true, false}, {"foo**bar", "foobazbar", true, true},
		{"foo/**/bar", "foo/baz/bar", true, true}, {"foo/**/**/bar", "foo/bar", true, true}, {"foo/**/bar", "foo/b/a/z/bar", true, true},
		{"foo?bar", "foo/bar", true, false}, {"foo[/]bar", "foo/bar", true, false}, {"foo[/]bar", "foo/bar", false, true},
		{"f[^eiu][^eiu][^eiu][^eiu][^eiu]r", "foo-bar", true, true}, {"**/foo", "XXX/foo", true, true}, {"**/foo", "bar/baz/foo", true, true},
		{"*/foo", "bar/baz/foo", true, false}, {"**/bar*", "foo/bar/baz", true, false}, {"**/bar/*", "deep/foo/bar/baz", true, true},
		{"**/bar/*/*", "deep/foo/bar", true, false}, {"*/bar/**", "deep/foo/bar/baz/x", true, false}, {"**/bar/**", "deep/foo/bar/baz/", true, true},
		{"[[:alpha:]][[:digit:]][[:upper:]]", "a1B", true, true}, {"[[:digit:][:upper:][:space:]]", "a", true, false}, {"[a-c[:digit:]x-z]", "5", true, true},
		{"[[:xdigit:]]", "f", true, true}, {"[[:nothing:]]", "f", true, false}, {"[", "[", true, false}, {"[!", "ab", true, false}, {"[[:", "[", true, false},
		{`[\-_]`, "-", true, true}, {`[\\]`, `\`, true, true}, {`[!\]]`, "a", true, true}, {"[,-.]", "-", true, true}, {"[-]", "-", true, true}, {"[a-]", "-", true, true},
		{`\`, `\`, true, false}, {`a\`, "a", true, false}, {"-*-*-*-*-*-*-12-*-*-*-m-*-*-*", "-adobe-courier-bold-o-normal--12-120-75-75-m-70-iso8859-1", true, true},
		{"*/*/*", "foo/bb/aa/rr", true, false}, {"**/*/*/*/*", "a/b/c", true, false}, {"a/**", "a/b/c", true, true}, {"a/**", "a", true, false},
	} {
		if got, _ := wildmatch(c.pattern, c.text, c.slashes); got != c.want {
			t.Errorf("%q with %q (slashes %v) is %v", c.pattern, c.text, c.slashes, got)
		}
	}
}

// A pattern made to take forever takes a bounded number of steps.
func TestWildmatchIsBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a/", 200) + "b"
	w := wilder{slashes: true, left: wildSteps}
	if w.match(strings.Repeat("**/a*/", 40)+"c", text) == wildMatch {
		t.Error("it matched")
	}
	if w.left > 0 {
		t.Errorf("the pattern took %d steps only: it tests nothing", wildSteps-w.left)
	}
}

// tested are the paths that rules are compared on. A directory ends with a slash.
var tested = []string{"a", "b.go", "ab", "a b", "x/", "x/a", "x/b.go", "x/x/", "x/x/a", "x/x/ab", "x/y/", "x/y/b.go", "x/y/a b", "y/", "y/a", "y/x/", "y/x/b.go", "[", "#a", "!a", `a\`, "日本.go", "y/A", "y/ "}

func drawRules(t *rapid.T, label string) string {
	atom := rapid.SampledFrom([]string{"a", "b", "x", "y", "*", "**", "/", "?", "!", "#", `\`, " ", "[a-x]", "[!a]", "[^ab]", "[[:alpha:]]", "[", "]", ".go", "**/", "/**", "/**/", "ab", "日本", "*.go", "\r", "-"})
	lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(atom, 0, 5).Draw(t, "atoms"), "")
	}), 0, 5).Draw(t, label)
	return strings.Join(lines, "\n") + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
}

// The matcher says what git check-ignore says, on any rules at any level.
func TestIgnoreAgreesWithGit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	for _, p := range tested {
		full := filepath.Join(dir, p)
		if strings.HasSuffix(p, "/") {
			if err := os.MkdirAll(full, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	w := &workspaceFiles{root: root}
	rapid.Check(t, func(t *rapid.T) {
		for _, at := range []string{"", "x", "x/y"} {
			if err := os.WriteFile(filepath.Join(dir, at, gitignoreFile), []byte(drawRules(t, "rules"+at)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		sameAsGit(t, w, dir)
	})
}

func FuzzIgnoreAgreesWithGit(f *testing.F) {
	f.Add("a\n!x/a\n", "*.go\n", "!/b.go")
	f.Add("/x/**/a\n", "\\#a\\ \n", "a**/b")
	dir := f.TempDir()
	git(f, dir, "init", "-q")
	for _, p := range tested {
		if strings.HasSuffix(p, "/") {
			_ = os.MkdirAll(filepath.Join(dir, p), 0o755)
		} else {
			_ = os.WriteFile(filepath.Join(dir, p), nil, 0o600)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = root.Close() })
	f.Fuzz(func(t *testing.T, top, x, y string) {
		for at, text := range map[string]string{"": top, "x": x, "x/y": y} {
			if err := os.WriteFile(filepath.Join(dir, at, gitignoreFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		sameAsGit(t, &workspaceFiles{root: root}, dir)
	})
}

type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// sameAsGit compares the files that the walk leaves out with git's.
func sameAsGit(t failer, w *workspaceFiles, dir string) {
	t.Helper()
	var names []string
	for _, p := range tested {
		if !strings.HasSuffix(p, "/") {
			names = append(names, p)
		}
	}
	cmd := exec.Command("git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(strings.Join(names, "\x00")+"\x00")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("git check-ignore: %v %s", err, complaint.String())
	}
	left := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	tree, err := w.walk(context.Background(), ".", walkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	tree.entries(func(rel string, kind entryKind) {
		if kind != kindDir {
			found = append(found, rel)
		}
	})
	for _, n := range names {
		if slices.Contains(left, n) == slices.Contains(found, n) {
			rules := ""
			for _, at := range []string{"", "x", "x/y"} {
				text, _ := os.ReadFile(filepath.Join(dir, at, gitignoreFile))
				rules += "\n" + at + ": " + strings.ReplaceAll(string(text), "\n", "⏎")
			}
			t.Fatalf("git ignores %q: %v; the walk finds it: %v\nrules %q", n, slices.Contains(left, n), slices.Contains(found, n), rules)
		}
	}
}

func git(t failer, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v %s", args, err, out)
	}
}
