package tool_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/tool"
)

func TestEditFileMessages(t *testing.T) {
	t.Parallel()
	source := "package a\n\nfunc One() {\n\tif true {\n\t\treturn\n\t}\n}\n\nfunc Two() {\n\tif true {\n\t\treturn\n\t}\n}\n"
	mail := "name: Ann\nmail: ann@example.com\ncity: Kyoto\n"
	w := newWorkspace(t, map[string]string{
		"a.go": source, "dos.txt": "one\r\ntwo\r\nthree\r\n", "mixed.txt": "one\r\ntwo\nthree\n", "mail.yaml": mail,
		"bin": "a\x00b", "quotes.md": "it’s “here”\n", "long": strings.Repeat("x = 1\n", 100),
	}, func(e *tool.Env) { e.Masks = masks })
	c := conversation{w: w}
	for _, args := range []string{
		`{"path":"a.go","old_text":"","new_text":"x"}`,
		`{"path":"a.go","old_text":"package a","new_text":"package a"}`,
		`{"path":"missing.go","old_text":"a","new_text":"b"}`,
		`{"path":"bin","old_text":"a","new_text":"b"}`,
		`{"path":"a.go","old_text":"if true {","new_text":"if false {"}`,
		`{"path":"long","old_text":"x = 1","new_text":"x = 2"}`,
		`{"path":"a.go","old_text":"func One() {\nif true {\nreturn","new_text":"func One() {\nif true {\npanic(1)"}`,
		`{"path":"a.go","old_text":"if true {\n        return","new_text":"x"}`,
		`{"path":"a.go","old_text":"\tif true {  \n\t\treturn","new_text":"x"}`,
		`{"path":"a.go","old_text":"3\tfunc One() {\n\tif true {","new_text":"x"}`,
		`{"path":"a.go","old_text":"func  One( ) {","new_text":"x"}`,
		`{"path":"a.go","old_text":"FUNC one() {","new_text":"x"}`,
		`{"path":"quotes.md","old_text":"it's \"here\"","new_text":"x"}`,
		`{"path":"a.go","old_text":"\tif true {\r\n\t\treturn\r\n","new_text":"x"}`,
		`{"path":"a.go","old_text":"func Two() {\n\tif maybe {\n\t\treturn 1\n\t}\n}","new_text":"x"}`,
		`{"path":"a.go","old_text":"zebra crossing","new_text":"x"}`,
		`{"path":"mail.yaml","old_text":"mail: [EMAIL]","new_text":"mail: x"}`,
		`{"path":"mail.yaml","old_text":"city: Kyoto","new_text":"city: [EMAIL]"}`,
		`{"path":"mail.yaml","old_text":"city: Kyoto","new_text":"city: 京都"}`,
		`{"path":"a.go","old_text":"func Two() {\n\tif true {","new_text":"func Two() {\n\t// Why not.\n\tif false {"}`,
		`{"path":"a.go","old_text":"return","new_text":"panic(1)","replace_all":true}`,
		`{"path":"dos.txt","old_text":"one\ntwo","new_text":"one\n1.5\ntwo"}`,
		`{"path":"mixed.txt","old_text":"one\ntwo","new_text":"1\n2"}`,
		`{"path":"quotes.md","old_text":"it’s “here”\n","new_text":""}`,
		`{"path":".git/config","old_text":"a","new_text":"b"}`,
	} {
		c.call("edit_file", args)
	}
	golden(t, "edit_file.golden", c.b.String())
	for name, want := range map[string]string{
		"a.go":      strings.ReplaceAll(strings.Replace(source, "func Two() {\n\tif true {", "func Two() {\n\t// Why not.\n\tif false {", 1), "return", "panic(1)"),
		"dos.txt":   "one\r\n1.5\r\ntwo\r\nthree\r\n",
		"mixed.txt": "1\r\n2\nthree\n",
		"mail.yaml": strings.Replace(mail, "Kyoto", "京都", 1),
		"quotes.md": "",
		"bin":       "a\x00b",
	} {
		if got := w.get(name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

// A token that the file has already may be written again.
func TestEditFileKeepsTokensOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"a.go": `case "[EMAIL]":` + "\n"}, func(e *tool.Env) { e.Masks = masks })
	res := w.call("edit_file", obj{"path": "a.go", "old_text": `case "[EMAIL]"`, "new_text": `case "[EMAIL]", "x"`})
	if res.IsError || w.get("a.go") != `case "[EMAIL]", "x":`+"\n" {
		t.Errorf("%s: %q", res.Text, w.get("a.go"))
	}
}

// An edit changes the match and not one byte beside it; one that fails changes
// nothing at all.
func TestEditLaws(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, nil)
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string, most int) string {
			words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "aa", " ", "\t", "\n", "\n\n", "あ", "\xff", "{"}), 0, most).Draw(t, label)
			return strings.Join(words, "")
		}
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		asFile := func(s string) string { return strings.ReplaceAll(s, "\n", end) }
		valid := func(s string) string { return strings.ToValidUTF8(s, "") }
		// The first line end tells which the file has.
		before, old, after := "\n"+text("before", 20), valid(text("old", 6)), text("after", 20)
		if old == "" {
			return
		}
		replacement := valid(text("new", 6))
		content := asFile(before + old + after)
		if err := os.WriteFile(filepath.Join(w.dir, "f"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		all := rapid.Bool().Draw(t, "all")
		res := w.call("edit_file", obj{"path": "f", "old_text": old, "new_text": replacement, "replace_all": all})
		got := w.get("f")
		want := content
		if !res.IsError {
			want = asFile(before + replacement + after)
			if all {
				want = strings.ReplaceAll(content, asFile(old), asFile(replacement))
			}
		} else if old != replacement && (all || occurrences(content, asFile(old)) == 1) {
			t.Fatalf("refused: %s", res.Text)
		}
		if got != want {
			t.Fatalf("%q with %q -> %q gave %q, want %q\n%s", content, old, replacement, got, want, res.Text)
		}
	})
}

// occurrences counts sub in s, also where it overlaps itself.
func occurrences(s, sub string) (n int) {
	for i := range len(s) {
		if strings.HasPrefix(s[i:], sub) {
			n++
		}
	}
	return n
}

func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\n", "a\nb", "c")
	f.Add("aaa", "aa", "b")
	f.Add("\tif x {\n", "    if x {\n", "")
	dir := f.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = root.Close() })
	reg, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root})...)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content, old, replacement string) {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		w := &workspace{t: t, dir: dir, reg: reg}
		res := w.call("edit_file", obj{"path": "f", "old_text": old, "new_text": replacement})
		got := w.get("f")
		if res.IsError && got != content {
			t.Fatalf("a refused edit changed %q to %q", content, got)
		}
		if !res.IsError && len(got) < len(content)-2*len(old)-2 {
			t.Fatalf("%q lost more than %q: %q", content, old, got)
		}
	})
}

// Numbers of lines that were copied from a result are left out where that is
// plainly meant; an edit that was made already is said to be.
func TestEditsAsMeant(t *testing.T) {
	t.Parallel()
	const file = "one line\ntwo lines\n3\tnumbered\ntwo lines\n"
	for args, want := range map[string]string{
		`{"old_text":"1\tone line\n","new_text":"1\tfirst line\n"}`:            "first line\ntwo lines\n3\tnumbered\ntwo lines\n",
		`{"old_text":"  1\tone line\n  2\ttwo lines","new_text":"first line"}`: "first line\n3\tnumbered\ntwo lines\n",
		`{"old_text":"1: one line","new_text":"1: first line"}`:                "first line\ntwo lines\n3\tnumbered\ntwo lines\n",
		`{"old_text":"3\tnumbered","new_text":"4\tnumbered"}`:                  "one line\ntwo lines\n4\tnumbered\ntwo lines\n", // it stands so in the file
		`{"old_text":"2\ttwo lines","new_text":"2\tlines"}`:                    "",                                              // which of the two?
		`{"old_text":"1\tone line\ntwo lines","new_text":"x"}`:                 "",
		`{"old_text":"1\tone line","new_text":"1\tfirst line\nsecond"}`:        "", // the number would be written
		`{"old_text":"something else","new_text":"one line\ntwo lines"}`:       "nothing was changed: old_text is not in the file, and new_text is, once, at line 1.",
		`{"old_text":"something else","new_text":"two lines"}`:                 "",
		`{"old_text":"something else","new_text":"one"}`:                       "",
	} {
		w := newWorkspace(t, map[string]string{"a": file}, nil)
		res := w.call("edit_file", `{"path":"a",`+args[1:])
		switch got := w.get("a"); {
		case want == "" && (!res.IsError || got != file), want != "" && res.IsError:
			t.Errorf("%s: %s", args, res.Text)
		case strings.HasPrefix(want, "nothing") && (got != file || !strings.Contains(res.Text, want)), want != "" && !strings.HasPrefix(want, "nothing") && got != want:
			t.Errorf("%s: %s\n%s", args, res.Text, got)
		}
	}
}

// White space at the ends of lines is forgiven where the lines are there once and the
// indentation of the new text follows from the old one; else the answer shows the lines,
// with each tab as a word.
func TestEditsWithOtherIndentation(t *testing.T) {
	t.Parallel()
	tabs := "func One() {\n\tif a {\n\t\treturn 1\n\t}\n}\n"
	spaces := "def one():\n    if a:\n        return 1\n    return 2\n"
	for name, c := range map[string]struct{ file, old, new, want string }{
		"spaces for tabs":               {tabs, "    if a {\n        return 1\n    }", "    if b {\n        if c {\n            return 1\n        }\n    }", "func One() {\n\tif b {\n\t\tif c {\n\t\t\treturn 1\n\t\t}\n\t}\n}\n"},
		"two spaces for tabs":           {tabs, "  if a {\n    return 1\n", "  if b {\n    return 2\n", "func One() {\n\tif b {\n\t\treturn 2\n\t}\n}\n"},
		"tabs for spaces":               {spaces, "\tif a:\n\t\treturn 1\n", "\tif a:\n\t\tif b:\n\t\t\treturn 3\n\t\treturn 1\n", "def one():\n    if a:\n        if b:\n            return 3\n        return 1\n    return 2\n"},
		"less deep":                     {spaces, "if a:\n    return 1\nreturn 2\n", "if a:\n    return 1\n\nreturn 3\n", "def one():\n    if a:\n        return 1\n\n    return 3\n"},
		"from within its first line":    {tabs, "if a {\n        return 1\n    }", "if b {\n        return 1\n    }", "func One() {\n\tif b {\n\t\treturn 1\n\t}\n}\n"},
		"one line":                      {tabs, "        return 1  ", "        x()\n        return 1", "func One() {\n\tif a {\n\t\tx()\n\t\treturn 1\n\t}\n}\n"},
		"the new text as the file":      {tabs, "    if a {\n        return 1\n", "\tif b {\n\t\treturn 1\n", "func One() {\n\tif b {\n\t\treturn 1\n\t}\n}\n"},
		"white space at the end":        {"a  \n\tb\nc\n", "a\n\tb", "a\n\td", "a\n\td\nc\n"},
		"lines that end in CRLF":        {strings.ReplaceAll(tabs, "\n", "\r\n"), "    if a {\n        return 1\n    }", "    if b {\n        return 1\n    }", strings.ReplaceAll(strings.Replace(tabs, "if a", "if b", 1), "\n", "\r\n")},
		"no end at the end":             {"a {\n\tb", "a {\n    b\n", "a {\n    c\n", "a {\n\tc\n"},
		"none":                          {tabs, "if a {\nreturn 1\n}\n}", "if b {\nreturn 1\n}\n}", ""},
		"a depth that does not follow":  {tabs, "    if a {\n        return 1\n", "    if b {\n      return 1\n", ""},
		"two places":                    {tabs + tabs, "    if a {\n        return 1\n", "    if b {\n        return 1\n", ""},
		"tabs and spaces before a line": {"a {\n\t  b\n}\n", "a {\n    b\n}", "a {\n    c\n}", ""},
	} {
		w := newWorkspace(t, map[string]string{"f": c.file}, nil)
		res := w.call("edit_file", obj{"path": "f", "old_text": c.old, "new_text": c.new})
		switch got := w.get("f"); {
		case c.want != "" && (got != c.want || !strings.Contains(res.Text, "new_text was indented as the file is")):
			t.Errorf("%s: %q, want %q\n%s", name, got, c.want, res.Text)
		case c.want == "" && (got != c.file || !res.IsError || !strings.Contains(res.Text, "\t<tab>")):
			t.Errorf("%s: %q\n%s", name, got, res.Text)
		}
	}
}

// Whatever stands in tabs and is edited in spaces ends in tabs.
func TestIndentationLaw(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, nil)
	rapid.Check(t, func(t *rapid.T) {
		block := func(label, word string, least int) string {
			var b strings.Builder
			for i, n := range rapid.SliceOfN(rapid.IntRange(0, 4), least, 6).Draw(t, label) {
				b.WriteString(strings.Repeat("\t", n) + word + strconv.Itoa(i) + "\n")
			}
			return b.String()
		}
		unit := strings.Repeat(" ", rapid.IntRange(1, 8).Draw(t, "unit"))
		asSpaces := func(s string) string { return strings.ReplaceAll(s, "\t", unit) }
		before, old, after, text := block("before", "before", 0), block("old", "old", 2), block("after", "after", 0), block("new", "new", 1)
		if !strings.Contains(old[1:], "\n\t") { // nothing tells how wide a tab is
			return
		}
		if err := os.WriteFile(filepath.Join(w.dir, "f"), []byte(before+old+after), 0o600); err != nil {
			t.Fatal(err)
		}
		res := w.call("edit_file", obj{"path": "f", "old_text": asSpaces(old), "new_text": asSpaces(text)})
		if got := w.get("f"); res.IsError || got != before+text+after {
			t.Fatalf("%q with %q -> %q gave %q\n%s", before+old+after, asSpaces(old), asSpaces(text), got, res.Text)
		}
	})
}
