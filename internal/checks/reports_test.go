package checks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func failing(name string) string {
	return "<testsuite name='s'><testcase name='" + name + "'><failure message='why'/></testcase></testsuite>"
}

func TestReports(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	find := func(pattern string) *Reports {
		t.Helper()
		r, err := FindReports(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	// What lay there before is no report of this check, unless it was written anew.
	put(t, dir, "out/old.xml", failing("old"))
	put(t, dir, "out/again.xml", failing("again"))
	r := find("out/**/*.xml")
	put(t, dir, "out/again.xml", failing("again, now"))
	put(t, dir, "out/deep/er/new.xml", failing("new"))
	put(t, dir, "out/new.txt", failing("text"))
	put(t, dir, "elsewhere/new.xml", failing("elsewhere"))
	put(t, outside, "x.xml", failing("outside"))
	for name, to := range map[string]string{"out/link.xml": filepath.Join(outside, "x.xml"), "out/dir": outside, "out/loop": "../out"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "out/pipe.xml"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, n, err := r.Read(t.Context(), Set{})
	if d := cmp.Diff([]string{"s.again, now", "s.new"}, s.Names()); d != "" || n != 2 || err != nil || s.Failed != 2 {
		t.Errorf("%d, %v\n%s", n, err, d)
	}
	// One that cannot be read is told, and hides nothing.
	put(t, dir, "out/torn.xml", "<testsuite><testcase")
	s, n, err = r.Read(t.Context(), Set{})
	if len(s.Failures) != 2 || n != 3 || err == nil || !strings.Contains(err.Error(), "out/torn.xml") {
		t.Errorf("%d, %v", n, err)
	}
	if _, n, err := find("none/*.xml").Read(t.Context(), Set{}); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// What is read of all reports is bounded, and so is the time.
func TestManyReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	read := func(ctx context.Context, left int64) (Summary, error) {
		t.Helper()
		r, err := FindReports(root, "none/*.xml")
		if err != nil {
			t.Fatal(err)
		}
		r.pattern, r.left = []string{"*.xml"}, left
		s, n, err := r.Read(ctx, Set{})
		if n != 3 {
			t.Error(n)
		}
		return s, err
	}
	for _, name := range []string{"a", "b", "c"} {
		put(t, dir, name+".xml", failing(name)+strings.Repeat(" ", 1<<20))
	}
	s, err := read(t.Context(), 3<<19)
	if d := cmp.Diff([]string{"s.a", "s.b"}, s.Names()); d != "" || err == nil || !strings.Contains(err.Error(), "2 of 3 are left out, from b.xml on") || !strings.Contains(err.Error(), "256 MiB") {
		t.Errorf("%v\n%s", err, d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err = read(ctx, maxAllReports); len(s.Failures) != 0 || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestReportPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"junit.xml", "junit.xml", true}, {"junit.xml", "a/junit.xml", false}, {"a/*.xml", "a/b.xml", true}, {"a/*.xml", "a/b/c.xml", false},
		{"**/*.xml", "c.xml", true}, {"**/*.xml", "a/b/c.xml", true}, {"a/**", "a/b/c", true}, {"a/**/b/*.xml", "a/b/x.xml", true}, {"a/**/b/*.xml", "a/c/d/b/x.xml", true},
		{"a/**/b/*.xml", "a/c/x.xml", false}, {"**/**/x", "x", true}, {"*/target/TEST-*.xml", "m/target/TEST-a.xml", true}, {"r?.xml", "r1.xml", true}, {"r?.xml", "r12.xml", false},
	} {
		if got := matches(strings.Split(c.pattern, "/"), strings.Split(c.name, "/")); got != c.want {
			t.Errorf("%s, %s: %v", c.pattern, c.name, got)
		}
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, p := range []string{"", "/a", "../a", "a/../b", "a//b", "./a", "a/", "[", "."} {
		if _, err := FindReports(root, p); err == nil {
			t.Errorf("%q is taken", p)
		}
	}
}

func TestWithReports(t *testing.T) {
	t.Parallel()
	out := Summary{Framework: "pytest", Failures: []Failure{{Name: "a.py::t"}}, Failed: 1, Tail: "the end", Cut: true}
	if d := cmp.Diff(out, out.With(Summary{Framework: "JUnit", Passed: 3})); d != "" {
		t.Error(d)
	}
	want := Summary{Framework: "JUnit", Failures: []Failure{{Name: "a.t"}}, Failed: 1, Passed: 3, Tail: "the end", Cut: true}
	if d := cmp.Diff(want, out.With(Summary{Framework: "JUnit", Passed: 3, Failed: 1, Failures: []Failure{{Name: "a.t"}}})); d != "" {
		t.Error(d)
	}
}
