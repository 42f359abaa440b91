package scan

import (
	"strings"
)

// gitHeader reads from "diff --git" to what comes before the first hunk
// (git-diff(1), "Generating patch text").
func (p *reader) gitHeader() error {
	name, ok := twice(strings.TrimPrefix(p.cur, "diff --git "))
	if !ok {
		return p.wrong("the path of one file twice, as a/x b/x")
	}
	p.named, p.file = true, change{name: name}
	for {
		if err := p.advance(); err != nil {
			return err
		}
		key, value, _ := strings.Cut(p.cur, " ")
		switch {
		case p.eof:
			return nil
		case strings.HasPrefix(p.cur, "deleted file mode "):
			p.file.deleted = true
		case strings.HasPrefix(p.cur, "new file mode "):
			p.file.created = true
		case key == "---":
			return p.fromTo()
		case key == "index", strings.HasPrefix(p.cur, "old mode "), strings.HasPrefix(p.cur, "new mode "):
		default:
			return nil
		}
		p.file.submodule = p.file.submodule || strings.HasSuffix(value, " 160000")
		p.file.link = p.file.link || strings.HasSuffix(value, " 120000")
	}
}

// fromTo reads the lines --- and +++, which say again what is known.
func (p *reader) fromTo() error {
	if err := p.advance(); err != nil {
		return err
	}
	if !strings.HasPrefix(p.cur, "+++ ") {
		return p.wrong("+++ and the path of the file after the change")
	}
	return p.advance()
}

// plainHeader reads --- and +++ where no "diff --git" stands before them, as models write
// patches. A line --- without +++ behind it is of a message.
func (p *reader) plainHeader() error {
	from := plainPath(p.cur[len("--- "):], "a/")
	if err := p.advance(); err != nil || !strings.HasPrefix(p.cur, "+++ ") {
		return err
	}
	p.close()
	to := plainPath(p.cur[len("+++ "):], "b/")
	p.named, p.file = true, change{name: to, created: from == noFile, deleted: to == noFile}
	if p.file.deleted {
		p.file.name = from
	}
	return p.advance()
}

// noFile stands for a file that is not there before or after a change.
const noFile = "/dev/null"

// plainPath is the path of a line --- or +++, behind which a time may stand.
func plainPath(s, prefix string) string {
	s, _, _ = strings.Cut(s, "\t")
	s = strings.TrimRight(s, " \r")
	if name, ok := unquote(s); ok {
		s = name
	}
	return strings.TrimPrefix(s, prefix)
}

// twice is the path in the two of a diff --git line, which differ by their prefix.
func twice(s string) (string, bool) {
	half := len(s) / 2
	if len(s) < 7 || len(s)%2 == 0 || s[half] != ' ' {
		return "", false
	}
	from, ok := unquote(s[:half])
	to, ok2 := unquote(s[half+1:])
	from, ok3 := strings.CutPrefix(from, "a/")
	to, ok4 := strings.CutPrefix(to, "b/")
	return from, ok && ok2 && ok3 && ok4 && from == to && from != ""
}

// closing is the index of the quote that ends s, which begins with one.
func closing(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// unquote reads a path as git writes it: where it holds control characters,
// quotes or, by default, other than ASCII, in double quotes with C's escapes.
func unquote(s string) (string, bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, true
	}
	if closing(s) != len(s)-1 {
		return "", false
	}
	s = s[1 : len(s)-1]
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i >= len(s) {
			return "", false
		}
		if at := strings.IndexByte(`abtnvfr"\`, s[i]); at >= 0 {
			b.WriteByte("\a\b\t\n\v\f\r\"\\"[at])
			continue
		}
		if i+3 > len(s) {
			return "", false
		}
		v := 0
		for _, c := range []byte(s[i : i+3]) {
			if c < '0' || c > '7' {
				return "", false
			}
			v = v*8 + int(c-'0')
		}
		if v > 0xff {
			return "", false
		}
		b.WriteByte(byte(v))
		i += 2
	}
	return b.String(), true
}
