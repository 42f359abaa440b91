package progress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
)

// What a terminal shows, in as many lines and columns as there are.
func TestLines(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
		r := full()
		r.Items[2].Text = "答えを README に書く\x1b[31m、\u202eそして長い説明がさらに続き、さらに続き、さらに続き、終わらない"
		for _, size := range [][2]int{{76, 10}, {76, 4}, {30, 3}, {76, 1}} {
			fmt.Fprintf(&b, "-- %s %dx%d\n", l, size[0], size[1])
			for _, line := range r.Lines(l, size[0], size[1], noon.Add(3*time.Hour+62*time.Second)) {
				b.WriteString(line + "\n")
			}
		}
		fmt.Fprintf(&b, "-- %s without a plan\n", l)
		plain := Report{Stage: Working, Branch: "tori/issue-1", Calls: 2, Started: noon}
		b.WriteString(strings.Join(plain.Lines(l, 76, 10, noon.Add(time.Minute)), "\n") + "\n")
	}
	golden(t, "lines.golden", b.String())
}

// No line is wider than what there is, no more lines than there are, and nothing in
// them steers the terminal.
func TestLinesFit(t *testing.T) {
	t.Parallel()
	r := full()
	for n := range 200 {
		r.Items = append(r.Items, planning.Item{ID: fmt.Sprint("長い名前_", n), Text: strings.Repeat("語a\x1b[2J\n\t\u202e", 30)})
	}
	for _, current := range []string{"three", "長い名前_199", "長い名前_100", "nothing"} {
		r.Current = current
		for width := -1; width < 100; width += 3 {
			for height := -1; height < 15; height++ {
				lines := r.Lines(i18n.Japanese, width, height, noon)
				if len(lines) > max(height, 0) || (len(lines) == 0) != (width < 1 || height < 1) {
					t.Fatalf("%d lines in %d", len(lines), height)
				}
				for _, line := range lines {
					if Width(line) > width || strings.ContainsAny(line, "\x1b\n\t\u202e") {
						t.Fatalf("%d columns of %d: %q", Width(line), width, line)
					}
				}
				if current != "nothing" && height > 2 && width > 60 && !strings.Contains(strings.Join(lines, "\n"), "[>] "+current) {
					t.Errorf("%s is not seen in %d lines:\n%s", current, height, strings.Join(lines, "\n"))
				}
			}
		}
	}
}

func TestWidth(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"": 0, "abc": 3, "日本語": 6, "ｱｲｳ": 3, "ＡＢ": 4, "é": 2, "e\u0301": 1, "か\u3099": 2, "✅": 2, "🎯": 2, "…": 2, "▶️": 3, "a\u200bb": 2} {
		if got := Width(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abcdef", 6, "abcdef"}, {"abcdef", 5, "abc.."}, {"日本語", 5, "日.."}, {"日本語", 6, "日本語"}, {"日本語", 2, ".."}, {"日本語", 1, "."}, {"abc", 0, ""}, {"abc", -1, ""}} {
		if got := Fit(c.s, c.n); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.s, c.n, got, c.want)
		}
	}
}
