package scan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
)

// record notes what a patch was read as.
type record struct {
	files []string
	read  []string
}

func (r *record) begin(c change) {
	r.files = append(r.files, fmt.Sprintf("%s created=%v deleted=%v submodule=%v", c.name, c.created, c.deleted, c.submodule))
}

func (r *record) lines(all []line) {
	for _, l := range all {
		r.read = append(r.read, fmt.Sprintf("%c%d,%d %s", l.op, l.old, l.new, l.text))
	}
}

func (r *record) end() {}

func TestPatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patch        string
		files, lines []string
	}{
		"nothing":      {"", nil, nil},
		"a message":    {"commit abc\n\n    text\n--- no file\n+ nor this\n", nil, nil},
		"no newline":   {"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", []string{"x created=false deleted=false submodule=false"}, []string{"-1,1 a", "+2,1 b"}},
		"carriage":     {"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n a\r\n+b\r\n", []string{"x created=false deleted=false submodule=false"}, []string{" 1,1 a", "+2,2 b"}},
		"quoted":       {"diff --git \"a/\\346\\227\\245\\346\\234\\254.go\" \"b/\\346\\227\\245\\346\\234\\254.go\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\346\\227\\245\\346\\234\\254.go\"\n@@ -0,0 +1 @@\n+a\n", []string{"日本.go created=true deleted=false submodule=false"}, []string{"+1,1 a"}},
		"plain names":  {"diff --git a/日本 語.go b/日本 語.go\nold mode 100644\nnew mode 100755\n", []string{"日本 語.go created=false deleted=false submodule=false"}, nil},
		"binary":       {"diff --git a/x.png b/x.png\nindex 1..2\nBinary files a/x.png and b/x.png differ\ndiff --git a/y b/y\nindex 1..2\nGIT binary patch\nliteral 3\nKc$@<O00001\n\nliteral 0\nHcmV?d00001\n\n", []string{"x.png created=false deleted=false submodule=false", "y created=false deleted=false submodule=false"}, nil},
		"submodule":    {"diff --git a/m b/m\nindex 1111111..2222222 160000\n--- a/m\n+++ b/m\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n", []string{"m created=false deleted=false submodule=true"}, []string{"-1,1 Subproject commit 1", "+2,1 Subproject commit 2"}},
		"stripped":     {"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n\n-c\n+d\n", []string{"x created=false deleted=false submodule=false"}, []string{" 1,1 a", " 2,2 ", "-3,3 c", "+4,3 d"}},
		"dashes":       {"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n-+++ b/y\n+++ b/z\n+@@ -1 +1 @@\n", []string{"x created=false deleted=false submodule=false"}, []string{"-1,1 -- a/y", "-2,1 +++ b/y", "+3,1 ++ b/z", "+3,2 @@ -1 +1 @@"}},
		"format-patch": {"From 1 Mon Sep 17\nSubject: x\n---\n x | 1 +\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n\n", []string{"x created=false deleted=false submodule=false"}, []string{"-1,1 a", "+2,1 b"}},
		"no git":       {"Here it is:\n--- a/x.go\t2026-01-01\n+++ b/x.go\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+c\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-d\n", []string{"x.go created=false deleted=false submodule=false", "new created=true deleted=false submodule=false", "gone created=false deleted=true submodule=false"}, []string{"-1,1 a", "+2,1 b", "+1,1 c", "-1,1 d"}},
	} {
		var r record
		if err := readPatch(iotest.OneByteReader(strings.NewReader(c.patch)), &r); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.files, r.files); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if c.lines != nil && !cmp.Equal(c.lines, r.read) {
			t.Errorf("%s: %s", name, cmp.Diff(c.lines, r.read))
		}
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	const head = "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
	for name, c := range map[string]struct {
		patch string
		line  int
		want  string
	}{
		"broken off":      {head + "@@ -1,2 +1,2 @@\n a\n", 6, "more lines of the hunk: 1 of the file before and 1 of the file after"},
		"too many":        {head + "@@ -1 +1 @@\n-a\n+b\n+c\n", 7, "the end of the hunk"},
		"no sign":         {head + "@@ -1,2 +1,2 @@\n a\nb\n", 6, "a line of the hunk"},
		"more than said":  {head + "@@ -1,1 +1,2 @@\n-a\n-b\n", 6, "a line of the hunk"},
		"no header":       {"@@ -1 +1 @@\n-a\n+b\n", 1, "the header of a file"},
		"numbers":         {head + "@@ -a +1 @@\n", 4, "the header of a hunk"},
		"huge":            {head + "@@ -1,99999999999999999999 +1 @@\n", 4, "the header of a hunk"},
		"only ---":        {"diff --git a/x b/x\n--- a/x\n@@ -1 +1 @@\n", 3, "+++"},
		"a quote is open": {"diff --git \"a/x b/x\n", 1, "the path of one file twice"},
	} {
		_, err := Patch(strings.NewReader(c.patch), Options{})
		var e *SyntaxError
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.Line != c.line || !strings.Contains(e.Want, c.want) || !strings.Contains(e.Error(), fmt.Sprintf("line %d", c.line)) {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestReadErrorsAreTold(t *testing.T) {
	t.Parallel()
	broken := errors.New("the pipe broke")
	in := io.MultiReader(strings.NewReader(patchOf(t, file{"a.go", "", "// TODO: x\n"})), iotest.ErrReader(broken))
	r, err := Patch(in, Options{})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	if len(r.Findings) != 1 {
		t.Errorf("what was found before is lost: %v", r.Findings)
	}
}

func TestFindingsAreCappedByKind(t *testing.T) {
	t.Parallel()
	files := []file{{"a.go", "", strings.Repeat("// TODO: x\n", 300)}, {"z_test.go", "package a\n\nfunc TestA(t *testing.T) {\n}\n", ""}, {"Makefile", "a\n", "b\n"}}
	r := scanned(t, Options{Max: 10}, files...)
	if len(r.Findings) != 10 || !r.Truncated || r.Counts[Placeholder] != 300 || r.Counts[TestWeakened] != 1 || r.Counts[BuildTouched] != 1 {
		t.Errorf("%d findings, %v", len(r.Findings), r)
	}
	if k := r.Findings[len(r.Findings)-1].Kind; k != TestWeakened {
		t.Errorf("the deleted test is crowded out: %v", short(r))
	}
	if r := scanned(t, Options{}, files[1:]...); r.Truncated {
		t.Errorf("%+v", r)
	}
}

func TestOddLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("あ", 3*maxLine)
	r := scanned(t, Options{}, file{"a.rs", "", "// TODO: \xff\x00\x1b[31m" + long + "\n" + long + " // TODO: out of sight\n"})
	if len(r.Findings) != 1 {
		t.Fatalf("%d findings", len(r.Findings))
	}
	if s := r.Findings[0].Text; len(s) > maxText || !strings.HasPrefix(s, "// TODO: \uFFFD[31mあ") || !strings.HasSuffix(s, "あ…") {
		t.Errorf("%q", s)
	}
}

// endless gives a patch of n bytes without ever holding it.
type endless struct {
	head string
	line string
	left int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 && e.head == "" {
		return 0, io.EOF
	}
	n := copy(p, e.head)
	e.head = e.head[n:]
	for n+len(e.line) <= len(p) && e.left > 0 {
		n += copy(p[n:], e.line)
		e.left--
	}
	return n, nil
}

func TestMemoryIsBounded(t *testing.T) {
	const n = 100_000 // lines, 12 MB
	in := &endless{line: "+" + strings.Repeat("x", 100) + " // TODO\n", left: n}
	in.head = fmt.Sprintf("diff --git a/a.go b/a.go\nnew file mode 100644\n--- /dev/null\n+++ b/a.go\n@@ -0,0 +1,%d @@\n", n)
	var before runtime.MemStats
	peak := &peakReader{r: in}
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := Patch(peak, Options{})
	if err != nil || r.Counts[Placeholder] != n || len(r.Findings) != defaultMax || !r.Truncated {
		t.Fatalf("%v, %v", r.Counts, err)
	}
	if peak.held > before.HeapAlloc+8<<20 {
		t.Errorf("%d MiB held", (peak.held-before.HeapAlloc)>>20)
	}
}

// peakReader looks now and then how much is held.
type peakReader struct {
	r    io.Reader
	n    int
	held uint64
}

func (p *peakReader) Read(b []byte) (int, error) {
	if p.n++; p.n%40 == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		p.held = max(p.held, m.HeapAlloc)
	}
	return p.r.Read(b)
}

// drawFile makes two versions of a file with what the scanner looks for in it.
func drawFile(t *rapid.T, name string) file {
	line := rapid.SampledFrom([]string{"", "f()", "// TODO: x", "/* a", "b */", "`", "func TestA(t *testing.T) {", "func TestB(t *testing.T) {", "\tt.Skip()", "\tt.Error(\"x\")", "}",
		"panic(\"not implemented\")", "-- a", "++ b", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ x", "def f():", "    pass", "\"\"\"", "class A:", "\r", "あ\xff", " // ... existing code ..."})
	lines := func(label string) string {
		all := rapid.SliceOfN(line, 0, 12).Draw(t, label)
		if len(all) == 0 {
			return ""
		}
		return strings.Join(all, "\n") + rapid.SampledFrom([]string{"", "\n"}).Draw(t, label+" end")
	}
	f := file{name, lines("old"), lines("new")}
	if f.old == "" && f.now == "" {
		f.now = "a\n"
	}
	return f
}

// We read what go-gitdiff reads, which holds all of a patch in memory.
func TestReadsAsGitdiffDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		patch := patchOf(t, drawFile(rt, "a_test.go"), drawFile(rt, "b.py"))
		files, _, err := gitdiff.Parse(strings.NewReader(patch))
		if err != nil {
			rt.Skip(err)
		}
		var want []string
		for _, f := range files {
			for _, h := range f.TextFragments {
				old, now := max(h.OldPosition, 1), max(h.NewPosition, 1)
				for _, l := range h.Lines {
					op := l.Op.String()
					want = append(want, fmt.Sprintf("%s%d,%d %s", op, old, now, strings.TrimSuffix(strings.TrimSuffix(l.Line, "\n"), "\r")))
					if l.Old() {
						old++
					}
					if l.New() {
						now++
					}
				}
			}
		}
		var got record
		if err := readPatch(strings.NewReader(patch), &got); err != nil {
			rt.Fatalf("%v\n%s", err, patch)
		}
		if diff := cmp.Diff(want, got.read); diff != "" {
			rt.Fatalf("%s\n%s", diff, patch)
		}
	})
}

// A finding is about a line that the patch adds, or removes.
func TestFindingsAreAboutWhatChanged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		patch := patchOf(t, drawFile(rt, "a_test.go"), drawFile(rt, "b.py"), drawFile(rt, "c.go"))
		touched(rt, []byte(patch), true)
	})
}

// fataler is what a test and a property have in common.
type fataler interface {
	Fatalf(format string, args ...any)
}

func touched(t fataler, patch []byte, sound bool) {
	r, err := Patch(bytes.NewReader(patch), Options{Max: 50})
	if err != nil {
		if e := (*SyntaxError)(nil); !errors.As(err, &e) || sound {
			t.Fatalf("%v\n%s", err, patch)
		}
	}
	added, removed := map[int]bool{}, map[int]bool{}
	_ = readPatch(bytes.NewReader(patch), lineSink{added, removed})
	for _, f := range r.Findings {
		if f.Line == 0 {
			continue
		}
		if f.Old && !removed[f.Line] || !f.Old && !added[f.Line] || len(f.Text) > maxText {
			t.Fatalf("%+v is about no changed line\n%s", f, patch)
		}
	}
	if len(r.Findings) > 50 {
		t.Fatalf("%d findings", len(r.Findings))
	}
}

// lineSink notes the numbers of changed lines, of all files together.
type lineSink struct{ added, removed map[int]bool }

func (lineSink) begin(change) {}
func (s lineSink) lines(all []line) {
	for _, l := range all {
		switch l.op {
		case '+':
			s.added[l.new] = true
		case '-':
			s.removed[l.old] = true
		}
	}
}
func (lineSink) end() {}

func FuzzPatch(f *testing.F) {
	f.Add([]byte(patchOf(f, file{"a_test.go", goTests, goOne}, file{"b.py", "", "def f():\n    pass\n"})))
	f.Add([]byte("diff --git \"a/\\346\" \"b/\\346\"\nrename from x\nrename to \"y\\\"\"\n--- a/x\n+++ b/x.rb\n@@ -0,0 +1,2 @@\n+x = <<~EOF\n+/* ' \" ` ${\n"))
	for _, name := range []string{"a.js", "a.rs", "a.sh", "a.html", "a.lisp", "a.php", "a.sql", "A.java", "a.c", "package.json", "a.lua"} {
		f.Add([]byte(patchOf(f, file{name, "", "'\\x' \"${`a${b}` // TODO: x\n/* [a/ */ <<EOF\n#| --[[ {- '''\n@Test void a() {\n\"scripts\": {\n \"test\": \"x\"\n"})))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		defer disktest.Bounded(t, len(patch))()
		touched(t, patch, false)
	})
}
