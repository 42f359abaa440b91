package folder

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
)

var when = time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 9*3600))

func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadIssue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       Issue
	}{
		{"12-fix-x.md", "intro\n\n# Fix x #\n\nbody\n", Issue{ID: "12", Title: "Fix x", Body: "intro\n\n# Fix x #\n\nbody"}},
		{"ISSUE.md", "\n\n  first line\nmore", Issue{ID: "ISSUE", Title: "first line", Body: "  first line\nmore"}},
		{"007.md", "x", Issue{ID: "007", Title: "x", Body: "x"}},
		{"3rd try.md", "x", Issue{ID: "3rd-try", Title: "x", Body: "x"}},
		{"不具合 報告.md", "## 件名\n本文", Issue{ID: "不具合-報告", Title: "件名", Body: "## 件名\n本文"}},
		{"noext", "x", Issue{ID: "noext", Title: "x", Body: "x"}},
		{".md", "x", Issue{ID: "md", Title: "x", Body: "x"}},
		{"!!!.md", "x", Issue{ID: "issue-e84c538e", Title: "x", Body: "x"}},
		{"a.md", "```\n# not a title\n```\ntitle\n", Issue{ID: "a", Title: "title", Body: "```\n# not a title\n```\ntitle"}},
		{"a.md", "```\ncode\n```", Issue{ID: "a", Title: "```", Body: "```\ncode\n```"}},
		{"a.md", "\uFEFF---\r\nid: 5\r\ntitle: T\r\n---\r\nbody\r\nmore\r\n", Issue{ID: "5", Title: "T", Body: "body\nmore"}},
		{"a.md", "---\nid: \"PROJ 5/6\"\ntitle: >\n  two\n  lines\nauthor: 鳥 次\nlabels:\n  - bug\n  - \"1\"\n---\n# H\n", Issue{ID: "PROJ-5-6", Title: "two lines", Author: "鳥 次", Labels: []string{"bug", "1"}, Body: "# H"}},
		{"a.md", "---\nlabels: []\n# a remark\nid: 0010\n---\nx", Issue{ID: "0010", Title: "x", Body: "x"}},
		{"a.md", "---\n---\nx", Issue{ID: "a", Title: "x", Body: "x"}},
		{"a.md", "---\n# only a remark\n---\nx", Issue{ID: "a", Title: "x", Body: "x"}},
		{"a.md", "---\n\nA rule, not front matter.\n", Issue{ID: "a", Title: "---", Body: "---\n\nA rule, not front matter."}},
		{"a.md", "x\n---\nid: 5\n---\n", Issue{ID: "a", Title: "x", Body: "x\n---\nid: 5\n---"}},
	} {
		path := file(t, c.name, c.text)
		got, err := ReadIssue(path)
		if err != nil {
			t.Errorf("%s %q: %v", c.name, c.text, err)
			continue
		}
		c.want.Path = path
		if c.want.Labels == nil {
			got.Labels = nil
		}
		if d := cmp.Diff(&c.want, got); d != "" {
			t.Errorf("%s %q:\n%s", c.name, c.text, d)
		}
	}
}

func TestReadIssueRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	withComments := file(t, "b.md", "x")
	if err := os.Mkdir(CommentsPath(withComments), 0o700); err != nil {
		t.Fatal(err)
	}
	type bad struct{ path, key, text string }
	cases := []bad{
		{filepath.Join(dir, "missing.md"), "folder.missing", "missing.md"},
		{dir, "folder.not_file", ""},
		{fifo, "folder.not_file", ""},
		{"/proc/self/mem", "folder.unreadable", ""},
		{file(t, "a.comments.md", "x"), "folder.is_comments", ""},
		{file(t, "a.md", ""), "folder.empty", ""},
		{file(t, "a.md", "\uFEFF \r\n\t\n　"), "folder.empty", ""},
		{file(t, "a.md", "---\ntitle: x\n---\n \n"), "folder.empty", ""},
		{file(t, "a.md", "---\ntitle: x\n---"), "folder.empty", ""},
		{file(t, "a.md", "\x83e\x83X\x83g"), "folder.not_utf8", ""},
		{file(t, "a.md", "a\x00b"), "folder.not_utf8", ""},
		{file(t, "a.md", strings.Repeat("x", maxIssue+1)), "folder.too_large", "1 MiB"},
		{withComments, "folder.unreadable", "b.comments.md"},
	}
	for text, want := range map[string]string{
		"---\nid: 5\nlable: x\n---\nx":           `line 3: unknown key "lable"`,
		"---\nid: [1]\n---\nx":                   "line 2: id must be a whole number",
		"---\nid: 1.5\n---\nx":                   "line 2: id must be",
		"---\nid: ''\n---\nx":                    "line 2: id must be",
		"---\nid: null\n---\nx":                  "line 2: id must be",
		"---\ntitle: 5\n---\nx":                  "line 2: title must be a text",
		"---\ntitle: t\nauthor: {a: b}\n---\nx":  "line 3: author must be a text",
		"---\nlabels: bug, ui\n---\nx":           "line 2: labels must be a list",
		"---\nlabels:\n  - bug\n  - 1\n---\nx":   "line 4: labels must be a list",
		"---\n- a\n---\nx":                       "line 2: expected lines",
		"---\njust text\n---\nx":                 "line 2: expected lines",
		"---\ntitle: x\n\nbody without an end\n": "line 1: it begins with ---",
		"---\ntitle: x\ntitle: y\n---\nx":        "line 3",
		"---\ntitle: \"x\n---\nx":                "not valid YAML",
		"---\nid: &a 1\ntitle: *a\n---\nx":       "must be",
		"---\n!!binary x: y\n---\nx":             "line 2",
	} {
		cases = append(cases, bad{file(t, "a.md", text), "folder.front_matter", want})
	}
	for _, c := range cases {
		_, err := readWhole(c.path)
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != c.key || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), filepath.Dir(c.path)) {
			t.Errorf("%s: %v, want %s %q", c.path, err, c.key, c.text)
			continue
		}
		if ja := i18n.Japanese.Error(err); strings.Contains(ja, "must be") || strings.Contains(ja, "%!") {
			t.Errorf("Japanese: %s", ja)
		}
	}
}

func TestParseComments(t *testing.T) {
	t.Parallel()
	text := `people just write

second paragraph

## 花子 — 2026-01-02T03:04:05+09:00
hello

## not a separator
## also — not a time
## tori — 2026-01-02T04:00:00Z

done
\## x — 2026-01-02T04:00:00Z
\\<!-- tori:x -->

<!-- tori:550e8400-e29b -->

an answer without a heading
## empty — 2026-01-02T04:00:00Z

## a — b — 2026-13-02T04:00:00Z
## a — b — 2026-01-02T04:00:00Z
last`
	utc := func(h int) time.Time { return time.Date(2026, 1, 2, h, 0, 0, 0, time.UTC) }
	want := []Comment{
		{Body: "people just write\n\nsecond paragraph"},
		{Author: "花子", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 9*3600)), Body: "hello\n\n## not a separator\n## also — not a time"},
		{Author: "tori", Time: utc(4), Body: "done\n## x — 2026-01-02T04:00:00Z\n\\<!-- tori:x -->", Marker: "550e8400-e29b"},
		{Body: "an answer without a heading"},
		{Author: "empty", Time: utc(4), Body: "## a — b — 2026-13-02T04:00:00Z"},
		{Author: "a — b", Time: utc(4), Body: "last"},
	}
	if d := cmp.Diff(want, parseComments(text)); d != "" {
		t.Error(d)
	}
	issue := file(t, "a.md", "x")
	if err := os.WriteFile(CommentsPath(issue), []byte("\uFEFF"+strings.ReplaceAll(text, "\n", "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readWhole(issue)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got.Comments); d != "" {
		t.Errorf("with CRLF:\n%s", d)
	}
}

func TestAppendComment(t *testing.T) {
	t.Parallel()
	issue := file(t, "12-fix.md", "x")
	path := CommentsPath(issue)
	if filepath.Base(path) != "12-fix.comments.md" {
		t.Fatal(path)
	}
	c := Comment{Author: "tori", Time: when, Body: "first\r\nline\n\n", Marker: "u-1"}
	for range 2 {
		if err := appendComment(issue, c); err != nil {
			t.Fatal(err)
		}
	}
	want := "## tori — 2026-03-04T05:06:07+09:00\n\nfirst\nline\n\n<!-- tori:u-1 -->\n"
	if got := read(t, path); got != want {
		t.Errorf("%q", got)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm()&0o600 != 0o600 || st.Mode().Perm()&^0o644 != 0 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	// Somebody's editor, or a crash, left a last line without an end.
	torn := want + "\n## tori — 2026-03-04T05:06:07+09:00\n\nhalf a com"
	if err := os.WriteFile(path, []byte(torn), 0o644); err != nil {
		t.Fatal(err)
	}
	c.Marker, c.Body = "u-2", "whole comment"
	if err := appendComment(issue, c); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != torn+"\n\n## tori — 2026-03-04T05:06:07+09:00\n\nwhole comment\n\n<!-- tori:u-2 -->\n" {
		t.Errorf("%q", got)
	}
	got, err := readWhole(issue)
	if err != nil || len(got.Comments) != 3 || got.Comments[1].Body != "half a com" || got.Comments[2] != c {
		t.Errorf("%+v, %v", got, err)
	}
	// A marker that is only spoken of is none.
	c.Marker, c.Body = "u-3", "see\n<!-- tori:u-4 -->"
	if err := appendComment(issue, c); err != nil {
		t.Fatal(err)
	}
	c.Marker, c.Body = "u-4", "the fourth"
	if err := appendComment(issue, c); err != nil {
		t.Fatal(err)
	}
	if got, err := readWhole(issue); err != nil || len(got.Comments) != 5 || got.Comments[4] != c {
		t.Errorf("%+v, %v", got, err)
	}
	before := read(t, path)
	for name, bad := range map[string]Comment{
		"marker": {Time: when, Marker: "a -->\n"}, "no time": {Body: "x"}, "year": {Body: "x", Time: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if err := appendComment(issue, bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if read(t, path) != before {
		t.Error("a refused comment was written")
	}
	var e *i18n.Error
	if err := appendComment(filepath.Join(t.TempDir(), "no", "x.md"), c); !errors.As(err, &e) || e.Key != "folder.unwritable" {
		t.Errorf("no directory: %v", err)
	}
}

// Ours are no people's, also where a crash left one without its marker.
func TestPeople(t *testing.T) {
	t.Parallel()
	f := oneIssue(t, "7.md")
	text := `an unknown person
## ken — 2026-01-02T03:04:05Z
hello
## tori — 2026-01-02T04:00:00Z
half a com

## tori — 2026-01-02T04:00:01Z

half a comment
<!-- tori:u-1 -->
`
	if err := os.WriteFile(CommentsPath(f.o.Issue.Path), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, _, err := f.Comments(t.Context(), f.key("7"))
	var said []string
	for _, c := range all {
		if !c.Author.Bot {
			said = append(said, c.Body)
		}
	}
	if d := cmp.Diff([]string{"an unknown person", "hello"}, said); d != "" || err != nil {
		t.Error(d, err)
	}
}

// oneIssue is the forge of one issue's file.
func oneIssue(t *testing.T, name string) *Forge {
	t.Helper()
	return OpenIssue(Options{Repo: house, Issue: &Issue{ID: idOfName(name), Path: file(t, name, "# x")}})
}

// The comments of one issue are parsed again when their file changed, and not before.
func TestOneIssue(t *testing.T) {
	t.Parallel()
	f := oneIssue(t, "7.md")
	path := CommentsPath(f.o.Issue.Path)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var last *said
	listen := func(n int, again bool) {
		t.Helper()
		if all, _, err := f.Comments(t.Context(), f.key("7")); err != nil || len(all) != n {
			t.Errorf("%d comments, not %d: %v", len(all), n, err)
		}
		if now := f.said[path]; (now != nil && now != last) != again {
			t.Errorf("parsed again: %t", !again)
		} else {
			last = now
		}
	}
	listen(0, false)
	write("one")
	listen(1, true)
	listen(1, false)
	write("one\n## ken — 2026-01-02T03:04:05Z\ntwo")
	listen(2, true)
	if err := errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)); err != nil {
		t.Fatal(err)
	}
	if all, _, err := f.Comments(t.Context(), f.key("7")); err == nil || all != nil {
		t.Errorf("%+v, %v", all, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	listen(0, false)
	write("one")
	listen(1, true)
	it, err := f.Item(t.Context(), f.key("7"))
	if err != nil || it.Title != "x" || it.URL != f.o.Issue.Path {
		t.Errorf("%+v, %v", it, err)
	}
}

// A message has a text, and no place where anybody could speak of it.
func TestMessage(t *testing.T) {
	t.Parallel()
	f := OpenIssue(Options{Repo: house, Issue: &Issue{ID: "message-1", Title: "t", Body: "b", Author: "ken"}})
	it, err := f.Item(t.Context(), f.key("message-1"))
	if err != nil || it.Title != "t" || it.Body != "b" || it.Author.Login != "ken" {
		t.Errorf("%+v, %v", it, err)
	}
	if all, _, err := f.Comments(t.Context(), f.key("message-1")); all != nil || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	if all, _, err := f.Images(t.Context(), f.key("message-1"), "/repo"); all != nil || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// whole is an issue with its comments.
type whole struct {
	*Issue
	Comments    []Comment
	CommentsCut int64
}

func readWhole(path string) (w whole, err error) {
	if w.Issue, err = ReadIssue(path); err == nil {
		w.Comments, w.CommentsCut, err = readComments(CommentsPath(path))
	}
	return w, err
}

// appendComment adds c to the comments of the issue at path.
func appendComment(path string, c Comment) error {
	path = CommentsPath(path)
	c.Author, c.Body = c.author(), cleanBody(c.Body)
	if _, err := format(c); err != nil {
		return err
	}
	return changeComments(path, func(f *os.File, b beside) error { return put(f, b, &c) })
}

func TestManyComments(t *testing.T) {
	t.Parallel()
	issue := file(t, "a.md", "x")
	first := Comment{Author: "first", Time: when, Body: strings.Repeat("長い行", 100_000), Marker: "m-first"}
	if err := appendComment(issue, first); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		c := Comment{Author: "a", Time: when, Body: strings.Repeat("x", 600_000), Marker: "m-" + string(rune('0'+i))}
		if err := appendComment(issue, c); err != nil {
			t.Fatal(err)
		}
	}
	size := int64(len(read(t, CommentsPath(issue))))
	if err := appendComment(issue, first); err != nil { // far before what is read
		t.Fatal(err)
	}
	if now := int64(len(read(t, CommentsPath(issue)))); now != size {
		t.Errorf("the first comment was written again: %d bytes, then %d", size, now)
	}
	got, err := readWhole(issue)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Comments) != 6 || got.CommentsCut == 0 || got.Comments[0].Author != "a" || len(got.Comments[0].Body) != 600_000 {
		t.Errorf("%d comments, %d bytes cut", len(got.Comments), got.CommentsCut)
	}
}

// body draws texts that try to be mistaken for the file's own structure.
func body() *rapid.Generator[string] {
	line := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`\\{0,3}## [a-z—]{0,3} — 2026-01-02T03:04:05(Z|\+09:00)[ \t]?`),
		rapid.StringMatching(`\\{0,3}<!-- tori:[a-c]{1,2} -->[ \t]?`),
		rapid.SampledFrom([]string{"", " ", "```", "---", "\r", "## x", `\`, "\u2028", "\v", "\u0085"}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 6).Draw(t, "lines"), rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end"))
	})
}

// What is appended is what is read, each comment on its own, whatever people
// have written before.
func TestCommentsLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want []Comment
		text := ""
		count := rapid.IntRange(1, 3).Draw(t, "count")
		for i := range count {
			c := Comment{
				Author: rapid.String().Draw(t, "author"), Body: body().Draw(t, "body"), Marker: "m" + string(rune('0'+i)),
				Time: time.Unix(rapid.Int64Range(1, 4e9).Draw(t, "time"), 0).UTC(),
			}
			entry, err := format(c)
			if err != nil {
				t.Fatal(err)
			}
			text += string(entry)
			c.Author = strings.Join(strings.Fields(c.Author), " ")
			if c.Author == "" {
				c.Author = "tori"
			}
			c.Body = cleanBody(c.Body)
			want = append(want, c)
		}
		if d := cmp.Diff(want, parseComments(text)); d != "" {
			t.Fatalf("%q:\n%s", text, d)
		}
	})
}

func FuzzComments(f *testing.F) {
	f.Add("## a — 2026-01-02T03:04:05Z\nx\n<!-- tori:a -->\n", "## a — 2026-01-02T03:04:05Z")
	f.Fuzz(func(t *testing.T, before, body string) {
		defer disktest.Bounded(t, len(before))()
		before = strings.ReplaceAll(before, "\r", "")
		n := len(parseComments(before))
		entry, err := format(Comment{Author: "tori", Time: when, Body: body, Marker: "end"})
		if err != nil {
			t.Fatal(err)
		}
		all := parseComments(before + "\n\n" + string(entry))
		if last := all[len(all)-1]; len(all) != n+1 || last.Body != cleanBody(body) || last.Author != "tori" {
			t.Errorf("%q then %q: %+v", before, body, all)
		}
	})
}

// A quarter of a megabyte of maps in maps took five gigabytes.
func TestFrontMatterIsBounded(t *testing.T) { // not parallel: it measures
	for _, text := range []string{strings.Repeat("{a: ", 60_000), strings.Repeat("{a: ", 3000) + strings.Repeat("}", 3000), "title: x\n" + strings.Repeat("# x\n", 5000),
		"labels: [" + strings.Repeat("k", 7000) + ": [" + strings.Repeat("1,", 4000) + "]]"} {
		path := file(t, "1.md", "---\n"+text+"\n---\nx")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadIssue(path)
		runtime.ReadMemStats(&after)
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != "folder.front_matter" {
			t.Errorf("%.20q: %v", text, err)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 {
			t.Errorf("%.20q: %d MB for %d bytes", text, took, len(text))
		}
	}
}

func FuzzFrontMatter(f *testing.F) {
	f.Add("---\nid: 5\ntitle: x\nlabels: [a]\n---\nbody")
	f.Add("---\n? a\n: b\n---\n")
	f.Add("---\na: *b\n<<: {id: 1}\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		var i Issue
		defer disktest.Bounded(t, len(text))()
		body, err := i.frontMatter("a.md", lf(text))
		if err == nil && !strings.HasSuffix(lf(text), body) {
			t.Errorf("body %q of %q", body, text)
		}
		var e *i18n.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// A comments file that is far too large, as one with a hole takes no disk for, is
// neither read through nor copied, and stays as it is: the comment is refused in words
// that say what to do, and goes into the file that somebody then leaves there.
func TestHugeCommentsFile(t *testing.T) {
	t.Parallel()
	issue := file(t, "x.md", "# x")
	path := CommentsPath(issue)
	c := Comment{Time: when, Body: "done", Marker: "m1"}
	if err := errors.Join(appendComment(issue, c), os.Truncate(path, 40<<30)); err != nil {
		t.Fatal(err)
	}
	c.Marker = "m2"
	if err := appendComment(issue, c); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Error(err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != 40<<30 {
		t.Errorf("%v, %v", st.Size(), err)
	}
	if _, err := readWhole(issue); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Truncate(path, 0), appendComment(issue, c), appendComment(issue, c)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(read(t, path), "<!-- tori:m2 -->"); got != 1 {
		t.Errorf("written %d times", got)
	}
}

// A line that somebody else wrote is no mark of ours.
func TestMarkerOfAnother(t *testing.T) {
	t.Parallel()
	issue := file(t, "x.md", "# x")
	c := Comment{Time: when, Body: "done", Marker: "m1"}
	if err := errors.Join(os.WriteFile(CommentsPath(issue), []byte("## ken — 2026-01-02T03:04:05Z\n<!-- tori:m1 -->\n"), 0o600), appendComment(issue, c)); err != nil {
		t.Fatal(err)
	}
	if got := read(t, CommentsPath(issue)); !strings.Contains(got, "done") {
		t.Errorf("%q", got)
	}
}

func TestAppendCommentAtOnce(t *testing.T) {
	t.Parallel()
	issue := file(t, "x.md", "# x")
	c := Comment{Time: when, Body: "done", Marker: "m1"}
	b, err := besideOf(CommentsPath(issue))
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	other, err := b.openLocked(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- appendComment(issue, c) }()
	select {
	case err := <-done:
		t.Fatalf("written while another process writes: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	entry, err := format(c)
	if err == nil {
		err = appendEntry(other, entry)
	}
	if err := errors.Join(err, other.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(read(t, CommentsPath(issue)), "<!-- tori:m1 -->"); got != 1 {
		t.Errorf("written %d times", got)
	}
}
