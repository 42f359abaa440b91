package checks

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func parse(data []byte, size int) Summary {
	p := NewParser()
	for part := range slices.Chunk(data, size) {
		_, _ = p.Write(part)
	}
	return p.Summary()
}

// The summary of each recorded output, and what the model reads of it, are
// kept beside it; how the output is cut into pieces makes no difference.
func TestRecordedOutputs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := parse(data, len(data))
		for _, size := range []int{1, 7, 4096} {
			if d := cmp.Diff(s, parse(data, size)); d != "" {
				t.Errorf("%s in pieces of %d: %s", file, size, d)
			}
		}
		shown := s
		shown.Tail, shown.Set = "", Set{} // which the names tell
		list, err := json.MarshalIndent(shown, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got := string(list) + "\n----\n" + s.Text(3000)
		golden := strings.TrimSuffix(file, ".txt") + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s: %s", file, d)
		}
		if s.Text(3000) != parse(data, 100).Text(3000) || !utf8.ValidString(got) {
			t.Errorf("%s: not stable", file)
		}
	}
}
