package broker

import (
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/redact"
)

// No text can open, close or fill a fold, nor hide what is in it: whatever the
// lines hold, there is one, with each line where it belongs.
func TestFold(t *testing.T) {
	t.Parallel()
	f := NewFilter(FilterOptions{Sanitizer: redact.New([]string{"s3cret-of-the-house"}, nil)})
	for _, bad := range []string{
		"</details>", "<details>", "<summary>", "</summary></details>", "<!--", "<!-- tori:x -->", "--> x <!--", "x\n\n</details>\n\n<details>", "x\u2028</details>", "<\u200b/details>", "<DETAILS open>", "&#60;/details&#62;",
		"```", "~~~\n</details>", "``` </details>", "- > ```", "<pre>", "<script>", "[x]: http://evil.example", "<img src=x>", "</details", "<div", "s3cret-of-the-house",
	} {
		got, _, err := f.Collapse(CollapsedList{Title: bad + "TITLE", Lines: []string{"first", bad, bad + " middle", "last"}, Dropped: func(int) string { return bad + "DROPPED" }}, 10_000)
		if err != nil {
			t.Fatalf("%q: %v", bad, err)
		}
		head, rest, _ := strings.Cut(got, "</summary>\n\n")
		items := strings.Split(strings.TrimSuffix(rest, "\n\n</details>\n\n"), "\n")
		if !strings.HasPrefix(head, "<details>\n<summary>") || !strings.HasSuffix(head, "TITLE") || !strings.HasSuffix(got, "\n\n</details>\n\n") || strings.Count(got, "\n\n") != 3 {
			t.Errorf("%q makes\n%s", bad, got)
		}
		if len(items) != 5 || items[1] != "- first" || !strings.HasSuffix(items[3], "middle") || items[4] != "- last" {
			t.Errorf("%q makes %d items\n%s", bad, len(items), got)
		}
		for _, tag := range []string{"<details", "</details", "<summary", "</summary", "<!--", "<script", "<img", "<pre", "<div"} {
			want := map[string]int{"<details": 1, "</details": 1, "<summary": 1, "</summary": 1}[tag]
			if n := strings.Count(strings.ToLower(got), tag); n != want {
				t.Errorf("%q: %s is there %d times\n%s", bad, tag, n, got)
			}
		}
		if strings.Contains(got, "s3cret") {
			t.Error(got)
		}
		for _, item := range items {
			if !strings.HasPrefix(item, "- ") {
				t.Errorf("%q: %q is no item\n%s", bad, item, got)
			}
		}
	}
}

// What does not fit goes from the beginning, and that is said with its number.
func TestFoldIsBounded(t *testing.T) {
	t.Parallel()
	f := NewFilter(FilterOptions{})
	var lines []string
	for n := range 50 {
		lines = append(lines, fmt.Sprintf("line %02d", n))
	}
	x := CollapsedList{Title: "History", Lines: lines, Dropped: func(n int) string { return map[bool]string{true: fmt.Sprint(n, " before")}[n > 0] }}
	for _, most := range []int{10, 60, 90, 200, 500, 5000} {
		got, _, err := f.Collapse(x, most)
		if err != nil || len(got) > most {
			t.Fatalf("%d: %d bytes, %v", most, len(got), err)
		}
		shown := strings.Count(got, "- line")
		if got != "" && (!strings.Contains(got, "- line 49\n") || shown < 50 && !strings.Contains(got, fmt.Sprintf("- %d before\n", 50-shown)) || shown == 50 && strings.Contains(got, "before")) {
			t.Errorf("%d: %s", most, got)
		}
		if (got == "") != (most < 90) {
			t.Errorf("%d: %q", most, got)
		}
	}
}

// A comment goes out with its fold, whole: the digest is of both, and their length
// is bounded together.
func TestCommentWithFold(t *testing.T) {
	t.Parallel()
	r := comment("Done.")
	b := open(t, &notes{})
	plain := judge(t, b, r)
	r.Collapsed = []CollapsedList{{Title: "History", Lines: []string{strings.Repeat("long ", 100), "last </details>"}}}
	v := judge(t, b, r)
	if v.Decision != Allow || !strings.HasPrefix(v.Text, "Done.\n\n<details>\n<summary>History</summary>\n") || !strings.Contains(v.Text, "- last &lt;/details>") || v.Digest == plain.Digest {
		t.Errorf("%s %q", v.Decision, v.Text)
	}
	r.Collapsed[0].Lines = []string{strings.Repeat("x", maxInput+1)} // which nobody can clean
	if v := judge(t, b, r); v.Decision != Allow || v.Text != plain.Text {
		t.Errorf("%s %.100q", v.Decision, v.Text)
	}
}

// Each line may be harmless, and the whole not.
func TestFoldHoldsNoSecretInPieces(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{github, known} {
		r := comment("It is done.")
		r.Collapsed = []CollapsedList{{Title: "History", Lines: []string{"read a.go", secret[:3], secret[3:], "done"}}}
		if v := judge(t, open(t, &notes{}), r); v.Decision != Allow || strings.Contains(v.Text, secret[3:]) || !strings.Contains(v.Text, "It is done.") {
			t.Errorf("%+v", v)
		}
	}
}
