package checks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
)

// Where a test stands and how long it took say nothing about which it is.
func TestTheSameTests(t *testing.T) {
	t.Parallel()
	one := "--- FAIL: TestA (0.00s)\n    a_test.go:3: x\nFAIL\nFAIL\tm/p\t0.1s\n"
	two := "--- FAIL: TestA (1.20s)\n    a_test.go:9: y\nFAIL\nFAIL\tm/p\t2.1s\n"
	if a, b := parse([]byte(one), 99), parse([]byte(two), 99); !a.Set.Equal(b.Set) || a.Set.Len() != 1 {
		t.Error("the same test is another one")
	}
}

// However much comes, and however long its lines are, little is held.
func TestMemoryIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"go":      "--- FAIL: Test%d (0.00s)\n    x_test.go:1: wrong\n",
		"verbose": "=== RUN   Test%d\n    x_test.go:1: log\n",
		"json":    `{"Action":"output","Package":"p%d","Test":"T","Output":"    x_test.go:1: log\n"}` + "\n",
		"build":   "# pkg%d\nx.go:1:2: wrong\n",
		"race":    "==================\nWARNING: DATA RACE\n  x%d\n",
		"pytest":  "=== FAILURES ===\n___ test_%d ___\nE   wrong\nx.py:1: Error\n",
		"short":   "=== short test summary info ===\nFAILED a.py::t%d - wrong\n",
		"jest":    "FAIL src/a.test.js\n  ● t%d\n\n    wrong\n",
		"vitest":  " FAIL  src/a.test.ts > t%d\nError: wrong\n",
		"cargo":   "test t%[1]d ... FAILED\n---- t%[1]d stdout ----\nwrong\n",
		"rust":    "error: wrong %d\n --> a.rs:1:2\n\n",
		"telling": "error %d\n",
		"plain":   "%d xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
	} {
		p := NewParser()
		for i := range 60_000 {
			_, _ = fmt.Fprintf(p, text, i)
		}
		_, _ = p.Write(bytes.Repeat([]byte("x"), 8<<20))
		_, _ = p.Write([]byte("\nlast line\n"))
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s := p.Summary()
		runtime.KeepAlive(p)
		if m.HeapAlloc > 40<<20 {
			t.Errorf("%s: %d MiB are held", name, m.HeapAlloc>>20)
		}
		if len(s.Failures) > MaxFailures || len(s.Tail) > maxTail || !strings.HasSuffix(s.Tail, "last line\n") || len(s.Telling) > maxTelling {
			t.Errorf("%s: %d failures, %d bytes of tail", name, len(s.Failures), len(s.Tail))
		}
		if text := s.Text(4000); len(text) > 4000 {
			t.Errorf("%s: %d bytes of text", name, len(text))
		}
	}
}

func TestTextKeepsItsLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Summary{Framework: "go test", Tail: rapid.String().Draw(t, "tail"), Cut: rapid.Bool().Draw(t, "cut")}
		for range rapid.IntRange(0, 60).Draw(t, "failures") {
			s.Failures = append(s.Failures, Failure{Name: rapid.StringN(1, 50, 300).Draw(t, "name"), Message: rapid.StringN(0, 100, 300).Draw(t, "message"),
				File: "a.go", Line: rapid.IntRange(0, 9).Draw(t, "line"), Excerpt: rapid.StringMatching(`([a-z 長]{0,20}\n){0,20}`).Draw(t, "excerpt")})
		}
		s.More = rapid.IntRange(0, 3).Draw(t, "more")
		limit := rapid.IntRange(0, 5000).Draw(t, "limit")
		text := s.Text(limit)
		if len(text) > max(limit, minText) {
			t.Fatalf("%d bytes, limit %d:\n%s", len(text), limit, text)
		}
		if !utf8.ValidString(text) {
			t.Fatalf("%q", text)
		}
		if len(s.Failures) > 0 && s.More > 0 && !strings.Contains(text, "more failures are not shown]") {
			t.Fatalf("what was left out is not told:\n%s", text)
		}
	})
	// Every failure is named before any is explained at length.
	var s Summary
	for i := range 20 {
		s.Failures = append(s.Failures, Failure{Name: fmt.Sprint("Test", i), Message: fmt.Sprint("wrong ", i), Excerpt: strings.Repeat("a line of an excerpt\n", 90)})
	}
	s.Failed = 20
	text := s.Text(4000)
	for i := range 20 {
		if !strings.Contains(text, fmt.Sprintf("%d. Test%d: wrong %d\n", i+1, i, i)) {
			t.Errorf("Test%d is missing", i)
		}
	}
	if strings.Contains(text, "not shown") || !strings.Contains(text, "a line of an excerpt") {
		t.Error(text)
	}
}

// The end of an unknown output may hide the reason: it is told as well.
func TestTellingLines(t *testing.T) {
	t.Parallel()
	out := "main.c:3:5: error: unknown type\n" + strings.Repeat("cc -c x.c\n", 5000) + "make: *** [x] Error 1\n"
	text := parse([]byte(out), 1000).Text(2000)
	if !strings.Contains(text, "main.c:3:5: error: unknown type") || !strings.HasSuffix(text, "make: *** [x] Error 1\n") || len(text) > 2000 {
		t.Error(text)
	}
}

func TestLinesAreCleaned(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\x1b[1m\x1b[31mFAIL\x1b[0m x": "FAIL x", " 10%\r 50%\rdone\r": "done", "a\xffb": "a\uFFFDb", "a\x00b\x07": "a\uFFFDb\uFFFD", "\x1b]8;;http://x\x07link\x1b]8;;\x07": "link", "a  \t": "a",
	} {
		if got := clean([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func openText(files map[string]string) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		s, ok := files[name]
		if !ok {
			return nil, os.ErrNotExist
		}
		return io.NopCloser(strings.NewReader(s)), nil
	}
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	s, err := junit(&sink{}, []string{filepath.Join("testdata", "junit.xml")}, func(name string) (io.ReadCloser, error) { return os.Open(name) })
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{Framework: "JUnit", Passed: 2, Failed: 2, Skipped: 1, Ran: 4, Set: SetOf("shop.CartTest.total", "shop.CartTest.crash"), Failures: []Failure{
		{Name: "shop.CartTest.total", File: "CartTest.java", Line: 14, Message: "expected: <3> but was: <2>", Excerpt: "org.opentest4j.AssertionFailedError: expected: <3> but was: <2>\n\tat shop.CartTest.total(CartTest.java:14)"},
		{Name: "shop.CartTest.crash", File: "Cart.java", Line: 9, Message: "java.lang.NullPointerException", Excerpt: "java.lang.NullPointerException\n\tat shop.Cart.add(Cart.java:9)"},
	}}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
}

// Reports are read as they are found: damaged, hostile, huge.
func TestStrangeReports(t *testing.T) {
	t.Parallel()
	suite := func(body string) string { return "<testsuite name='s'>" + body + "</testsuite>" }
	bad := func(text string) string {
		return suite("<testcase name='a'><failure>" + text + "</failure></testcase>")
	}
	for name, c := range map[string]struct {
		xml    string
		failed int
		says   string // in the excerpt of the first failure
		err    bool
	}{
		"plain":             {bad("why"), 1, "why", false},
		"an entity":         {"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>" + bad("&e;"), 0, "", true},
		"a known entity":    {bad("&lt;b&gt; &amp; &#x41;"), 1, "<b> & A", false},
		"many entities":     {"<!DOCTYPE x [<!ENTITY a 'aa'><!ENTITY b '&a;&a;'>]>" + bad("&b;"), 0, "", true},
		"control bytes":     {bad("\x1b[31mred\x00\x08"), 1, "red", false},
		"not UTF-8":         {bad("caf\xe9"), 1, "caf\uFFFD", false},
		"another encoding":  {"<?xml version='1.0' encoding='ISO-8859-1'?>" + bad("caf\xe9"), 1, "caf\uFFFD", false},
		"CDATA":             {bad("<![CDATA[a <b> ]] c]]>"), 1, "a <b> ]] c", false},
		"a long text":       {bad(strings.Repeat("long &amp; text ", 200_000)), 1, "long & text", false},
		"a long CDATA":      {bad("<![CDATA[" + strings.Repeat("]]x", 200_000) + "]]>"), 1, "]]x", false},
		"a long attribute":  {suite("<testcase name='" + strings.Repeat("x&quot;", 100_000) + "'><failure/></testcase>"), 1, "", false},
		"long comments":     {bad("why") + "<!--" + strings.Repeat("-x>", 100_000) + "-->", 1, "why", false},
		"a tag without end": {"<testsuite " + strings.Repeat("a", 200_000), 0, "", true},
		"many attributes":   {bad("why") + "<testsuite" + strings.Repeat(" a=''", 200_000) + "/>", 1, "why", true},
		"name spaces":       {"<testsuite xmlns:a='b'><a:testcase name='a'><failure>why</failure></a:testcase></testsuite>", 1, "why", false},
		"another end":       {bad("why") + "<testsuite></testsuites>", 1, "why", true},
		"an end too many":   {bad("why") + "</testsuite>", 1, "why", true},
		"too deep":          {strings.Repeat("<testsuite>", 5000), 0, "", true},
		"torn":              {"<testsuite><testcase name='a'><failure>x</failure></testcase><testcase", 1, "x", true},
		"HTML":              {"<html><body>no</body></html>", 0, "", true},
		"empty":             {"", 0, "", true},
		"text":              {"no report", 0, "", true},
	} {
		s, err := junit(&sink{}, []string{"r.xml"}, openText(map[string]string{"r.xml": c.xml}))
		if (err != nil) != c.err || len(s.Failures) != c.failed {
			t.Errorf("%s: %d failures, %v", name, len(s.Failures), err)
			continue
		}
		if err != nil && !strings.Contains(err.Error(), "r.xml") {
			t.Errorf("%s: %v", name, err)
		}
		if c.failed > 0 && !strings.Contains(s.Failures[0].Excerpt, c.says) {
			t.Errorf("%s: %.200q", name, s.Failures[0].Excerpt)
		}
	}
	// What cannot be read does not hide the rest.
	s, err := junit(&sink{}, []string{"none.xml", "a.xml", "b.xml"}, openText(map[string]string{"a.xml": "<html/>", "b.xml": bad("why")}))
	if len(s.Failures) != 1 || !errors.Is(err, os.ErrNotExist) || !errors.Is(err, errNoReport) {
		t.Errorf("%d failures, %v", len(s.Failures), err)
	}
}

// An element of many attributes is not given to the decoder, which would keep them.
func TestAttributesTakeLittleMemory(t *testing.T) { // not parallel: it measures
	text := map[string]string{"r": "<testsuite" + strings.Repeat(" a=''", 10_000_000) + "/>"}
	defer disktest.Bounded(t, 0)()
	if _, err := junit(&sink{}, []string{"r"}, openText(text)); err == nil {
		t.Error("no error")
	}
}

// The name spaces of elements that are open are not kept.
func TestNameSpacesTakeLittleMemory(t *testing.T) { // not parallel: it measures
	element := "<testsuite" + strings.Repeat(" xmlns:a='b'", 40_000) + ">"
	_, err := junit(&sink{}, []string{"r"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat(element, 100)), heapReader{t})), nil
	})
	if err == nil {
		t.Error("no error")
	}
}

// heapReader is the end of a text, at which no more than 128 MiB may be held.
type heapReader struct{ t *testing.T }

func (h heapReader) Read([]byte) (int, error) {
	var m runtime.MemStats
	runtime.GC()
	if runtime.ReadMemStats(&m); m.HeapAlloc > 128<<20 {
		h.t.Errorf("%d MB are held", m.HeapAlloc>>20)
	}
	return 0, io.EOF
}

// However a section's length falls on the limit, the document stays whole.
func TestLongSectionsStaySound(t *testing.T) {
	t.Parallel()
	for n := maxText - 6; n < maxText+6; n++ {
		for _, body := range []string{"<![CDATA[" + strings.Repeat("x", n) + "]]>", "<![CDATA[" + strings.Repeat("]", n) + "]]>", strings.Repeat("x", n) + "&amp;&lt;", "<!--" + strings.Repeat("x", n) + "-->"} {
			s, err := junit(&sink{}, []string{"r"}, openText(map[string]string{"r": "<testsuite><testcase name='a'><failure>" + body + "</failure></testcase><testcase name='b'/></testsuite>"}))
			if err != nil || s.Passed != 1 || s.Failed != 1 {
				t.Fatalf("%d: %.20s: %v %+v", n, body, err, s.Passed)
			}
		}
	}
}

func FuzzParser(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, 50)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		defer disktest.Bounded(t, len(data))()
		whole := parse(data, max(1, len(data)))
		if d := cmp.Diff(whole, parse(data, max(1, size%5000))); d != "" {
			t.Fatal(d)
		}
		for _, limit := range []int{0, 1000, 8000} {
			if text := whole.Text(limit); len(text) > max(limit, minText) || !utf8.ValidString(text) {
				t.Fatalf("limit %d: %q", limit, text)
			}
		}
		if whole.Failed < len(whole.Failures) || whole.Set.Less(SetOf(whole.Names()...)) != whole.More || slices.Contains(whole.Names(), "") {
			t.Fatalf("%+v", whole)
		}
	})
}

func FuzzJUnit(f *testing.F) {
	data, err := os.ReadFile("testdata/junit.xml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add("<testsuite><testcase><failure><![CDATA[]]></failure></testcase></testsuite>")
	f.Fuzz(func(t *testing.T, data string) {
		defer disktest.Bounded(t, len(data))()
		s, err := junit(&sink{}, []string{"r"}, openText(map[string]string{"r": data}))
		if err == nil && s.Passed+s.Failed+s.Skipped < len(s.Failures) {
			t.Fatalf("%+v", s)
		}
		if !utf8.ValidString(s.Text(2000)) {
			t.Fatalf("%q", s.Text(2000))
		}
	})
}

func BenchmarkParser(b *testing.B) {
	data, err := os.ReadFile("testdata/go-verbose.txt")
	if err != nil {
		b.Fatal(err)
	}
	data = bytes.Repeat(data, 1000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		parse(data, 32<<10)
	}
}
