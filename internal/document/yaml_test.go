package document

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/parser"

	"toritsugi/internal/i18n"
)

// shapes are texts that take a parser far, each of about n bytes.
func shapes(n int) map[string]string {
	var indent, keys strings.Builder
	for i := 0; indent.Len() < n; i++ {
		indent.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	for i := 0; keys.Len() < n; i++ {
		fmt.Fprintf(&keys, "a%d: 1\n", i)
	}
	long := strings.Repeat("k", n/2)
	return map[string]string{
		"maps":             strings.Repeat("{a: ", n/5) + strings.Repeat("}", n/5),
		"open maps":        strings.Repeat("{a: ", n/4),
		"lists":            strings.Repeat("[", n/2) + strings.Repeat("]", n/2),
		"signs":            strings.Repeat("- ", n/2) + "x",
		"keys of keys":     strings.Repeat("? ", n/2) + "x",
		"signs and keys":   strings.Repeat("- ? ", n/4) + "x",
		"indented":         indent.String(),
		"a long key":       long + ": [" + strings.Repeat("1,", n/4) + "]",
		"a long key, list": long + ":\n" + strings.Repeat("- 1\n", n/8),
		"a long flow key":  "{" + long + ": [" + strings.Repeat("1,", n/4) + "]}",
		"many keys":        keys.String(),
		"many flow keys":   "{" + strings.ReplaceAll(keys.String(), "\n", ", ") + "}",
		"pairs in a list":  "[" + strings.ReplaceAll(keys.String(), "\n", ", ") + "]",
	}
}

// What a parser would need too much for is refused before it is asked, and takes no
// more than a multiple of its length.
func TestBounds(t *testing.T) { // not parallel: it measures
	for name, text := range shapes(200 << 10) {
		took := allocated(func() {
			_, err := Parse([]byte(text))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%s: %v", name, err)
			}
			if why, _ := e.Why.(*i18n.Error); why == nil || why.Key != "document.too_deep" {
				t.Errorf("%s: %v", name, err)
			}
		})
		if most := uint64(bound(len(text))); took > most {
			t.Errorf("%s, %d bytes: allocated %d MB, not at most %d", name, len(text), took>>20, most>>20)
		}
	}
	if _, err := Parse(make([]byte, MaxBytes+1)); err == nil || !strings.Contains(err.Error(), "1024 KiB") {
		t.Error(err)
	}
}

// bound is the most that a document of n bytes may allocate.
func bound(n int) int { return 4*maxWork + 512*n }

// allocated is how much f allocates in all, whether or not it is kept.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What people write is far below the bounds.
func TestPlainDocuments(t *testing.T) {
	t.Parallel()
	var steps, table strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&steps, "- say: step %d\n  calls:\n    - tool: write_file\n      args: {path: a/b.txt, content: \"[[[{{{\", more: {deep: [{er: 1}]}}\n    - tool: shell\n      args:\n        command: |\n          if ((a[[1]{{ - - - - ? ? x: y: z\n", i)
	}
	for i := range 2000 {
		fmt.Fprintf(&table, "  \"provider/model-%d\": {input: 3, output: 15, long_prompt: {above: 100000, input: 2}}\n", i)
	}
	deep := "a: "
	for i := range maxDepth/2 - 2 {
		deep = strings.Repeat("  ", i) + "k:\n" + deep
	}
	for name, text := range map[string]string{"empty": "", "script": steps.String(), "table": "models:\n" + table.String(), "brackets in a text": "a: '" + strings.Repeat("[", 1000) + "'\nb: |\n  " + strings.Repeat("{ - ", 1000)} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, want := range map[string]string{"a: 1\nb: \"x": "line 2: ", "a: 1\na: 2": "line 2: mapping key \"a\" already defined"} {
		if _, err := Parse([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Parse([]byte("a: 1\na: 2"), parser.AllowDuplicateMapKey()); err != nil {
		t.Error(err)
	}
}

// FuzzParse: no text ends the program, or takes more memory than its length allows.
func FuzzParse(f *testing.F) {
	for _, text := range shapes(200) {
		f.Add([]byte(text), 1)
		f.Add([]byte(text), 300)
	}
	f.Add([]byte("a: &x [1, {b: c}]\nd: *x\n<<: *x\n---\n? k\n: !t v\n# end"), 50)
	f.Add([]byte("- a: b\n  c:\n  - d\n  - ? e\n"), 400)
	f.Fuzz(func(t *testing.T, piece []byte, times int) {
		text := []byte(strings.Repeat(string(piece), min(max(times, 1), max(1, 200_000/(len(piece)+1)))))
		took := allocated(func() {
			var e *Error
			if _, err := Parse(text); err != nil && !errors.As(err, &e) {
				t.Errorf("%v", err)
			}
		})
		if most := bound(len(text)); took > uint64(most) {
			t.Errorf("%d bytes allocated %d MB, not at most %d", len(text), took>>20, most>>20)
		}
	})
}
