package checks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// eagerly parses with a look at every line.
func eagerly(data []byte) Summary {
	p := NewParser()
	p.eager = true
	_, _ = p.Write(data)
	return p.Summary()
}

// To pass over lines changes nothing: neither in recorded outputs with noise
// between their lines, nor in what is put together of pieces that mean something.
func TestPassedOverLinesSayNothing(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatal(len(files), err)
	}
	noise := [][]byte{nil, []byte("y\n"), []byte("    indented noise\r\n"), []byte("\n"), []byte("x.go:1: place\n"), bytes.Repeat([]byte("more noise\n"), 300)}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range noise {
			var mixed []byte
			for _, l := range bytes.SplitAfter(data, []byte("\n")) {
				mixed = append(append(mixed, l...), n...)
			}
			if d := cmp.Diff(eagerly(mixed), parse(mixed, len(mixed))); d != "" {
				t.Errorf("%s with %.20q: %s", file, n, d)
			}
		}
	}
	pieces := []string{"FAIL", "ok", "\t", " ", "x.py:3: Error", "=== FAILURES ===", "___ test_a ___", "E   why", "# pkg", "pkg", "--- FAIL: TestA (0.00s)", "    x_test.go:3: why",
		"=== RUN   TestA", "PASS", "coverage: 3%", "panic: x", "exit status 2", "==================", "WARNING: DATA RACE", "1 passed in 0.1s", "src/a.test.js", "  ● t", "js:3:4", "a.ts:3:4",
		" ❯ ", "⎯⎯", " FAIL  a.test.ts > t", "test t ... FAILED", "---- t stdout ----", "failures:", "test result: ok. 1 passed; 0 failed; 0 ignored;", "error[E0308]: x", "error: y", " --> a.rs:1:2",
		"Tests:  1 failed, 2 total", "Summary of all failing tests", "Test Suites: 1", "  ✓ x", `{"Action":"output","Package":"p","Output":"x"}`, "\x1b[31m", "\r", "\xff", "\x00", "noise", "y",
		"=== short test summary info ===", "FAILED a.py::t - why", "=== test session starts ===", strings.Repeat("long", 2000), strings.Repeat("n\n", 250), "\n", "\n", "\n", "\n"}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 80).Draw(t, "pieces"), ""))
		if d := cmp.Diff(eagerly(text), parse(text, rapid.IntRange(1, 300).Draw(t, "size"))); d != "" {
			t.Fatalf("%q: %s", text, d)
		}
	})
}

// What is passed over is most of what commands print, in any state that a
// reader may be left in: it is not looked at line by line.
func TestMostLinesArePassedOver(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "# pkg\n", "=== RUN   TestX\n", "panic: x\n", "==================\nWARNING: DATA RACE\n", "--- FAIL: TestX (0.00s)\n", "=== FAILURES ===\n___ t ___\n",
		"=== short test summary info ===\n", "=== test session starts ===\n", "FAIL src/a.test.js\n  ● t\n\n", " FAIL  src/a.test.ts > t\n", "test t ... FAILED\n---- t stdout ----\n", "error: wrong\n"} {
		for _, line := range []string{"y\n", "cc -c -o x.o x.c\r\n", "2024-01-01 12:00:00 INFO step 12345\n", "    [ 37%] Building CXX object\n"} {
			p := NewParser()
			_, _ = p.Write([]byte(before))
			_, _ = p.Write([]byte(strings.Repeat(line, 5000/len(line))))
			_, _ = p.Write([]byte(strings.Repeat(line, 400)))
			rest := []byte("\n" + strings.Repeat(line, 400))
			if p.line = p.line[:0]; !p.idle || dullScanner().before(rest) != len(rest) {
				t.Errorf("after %q, %q is looked at", before, line)
			}
		}
	}
}

func TestScanner(t *testing.T) {
	t.Parallel()
	s := newScanner([]string{"he", "she", "\nhers", "x\ny", "***"})
	for line, want := range map[string]bool{"": false, "h": false, "he": true, "usHErs": true, "hers": true, "hxers": false, "xy": false, "**": false, "a****": true} {
		if s.in(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
	s = newScanner([]string{"\nok", "bad", "\r"})
	for text, want := range map[string]int{"a\nok\n": 2, "ok\na\n": 0, "a ok\nb\n": 7, "a\r\nb\n": 5, "a\nb\rc\n": 2, "a\nb": 2, "a\nb\r": 2, "": 0, "a\nbad": 2, "BAd\n": 0} {
		if got := s.before([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func BenchmarkNoise(b *testing.B) {
	for _, line := range []string{"y\n", "cc -c -o x.o x.c\n", "error: step 12 did not work\n"} {
		b.Run(fmt.Sprintf("%q", line), func(b *testing.B) {
			data := []byte(strings.Repeat(line, 32768/len(line)))
			b.SetBytes(int64(len(data)))
			p := NewParser()
			for b.Loop() {
				_, _ = p.Write(data)
			}
		})
	}
}
