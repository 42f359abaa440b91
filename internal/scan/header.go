package scan

import (
	"strings"
)

// gitHeader reads from "diff --git" to what comes before the first hunk
// (git-diff(1), "Generating patch text").
func (p *reader) gitHeader() error {
	p.named = true
	if name, merge := cutAny(p.cur, "diff --cc ", "diff --combined "); merge {
		path, ok := unquote(name)
		if !ok || path == "" {
			return p.wrong("a path")
		}
		p.file = change{old: path, new: path}
	} else {
		old, now, ok := names(strings.TrimPrefix(p.cur, "diff --git "))
		if !ok {
			return p.wrong("two paths, as a/x b/x")
		}
		p.file = change{old: old, new: now}
	}
	for {
		if err := p.advance(); err != nil {
			return err
		}
		done, err := p.extended()
		if done || err != nil {
			return err
		}
	}
}

// extended reads one line of a git header; done reports that the header is over.
func (p *reader) extended() (done bool, err error) {
	key, value, _ := strings.Cut(p.cur, " ")
	set := func(to *string, s string) error {
		path, ok := unquote(s)
		if !ok || path == "" {
			return p.wrong("a path")
		}
		*to = path
		return nil
	}
	switch {
	case p.eof:
		return true, nil
	case strings.HasPrefix(p.cur, "deleted file mode "):
		p.file.deleted = true
	case strings.HasPrefix(p.cur, "new file mode "):
		p.file.created = true
	case strings.HasPrefix(p.cur, "rename from "), strings.HasPrefix(p.cur, "copy from "):
		p.file.moved = true
		return false, set(&p.file.old, value[len("from "):])
	case strings.HasPrefix(p.cur, "rename to "), strings.HasPrefix(p.cur, "copy to "):
		p.file.moved = true
		return false, set(&p.file.new, value[len("to "):])
	case key == "index":
		p.file.submodule = p.file.submodule || strings.HasSuffix(value, " 160000")
	case strings.HasPrefix(p.cur, "old mode "), strings.HasPrefix(p.cur, "new mode "), key == "mode",
		key == "similarity", key == "dissimilarity":
	case key == "---":
		return true, p.fromTo()
	default:
		return true, nil
	}
	p.file.submodule = p.file.submodule || strings.HasSuffix(p.cur, "mode 160000")
	return false, nil
}

// fromTo reads the lines --- and +++, which begin with the current one.
func (p *reader) fromTo() error {
	from, ok := pathOf(p.cur, "--- ", "aicwo")
	if !ok {
		return p.wrong("a path, or /dev/null")
	}
	if err := p.advance(); err != nil {
		return err
	}
	to, ok := pathOf(p.cur, "+++ ", "bwic")
	if !ok || p.eof {
		return p.wrong("+++ and the path of the file after the change")
	}
	if from == "" && to == "" {
		return p.wrong("a path: no file is /dev/null before and after")
	}
	p.file.created, p.file.deleted = p.file.created || from == "", p.file.deleted || to == ""
	if !p.file.moved {
		if from != "" {
			p.file.old = from
		}
		if to != "" {
			p.file.new = to
		}
	}
	return p.advance()
}

// plainHeader reads the header that diff -u writes; a line that only looks like
// one belongs to a message.
func (p *reader) plainHeader() error {
	next, err := p.in.Peek(4)
	if string(next) != "+++ " {
		_ = err // the end, or what the next read tells
		p.after = false
		return p.advance()
	}
	p.close()
	p.named, p.file = true, change{}
	if err := p.fromTo(); err != nil {
		return err
	}
	if p.file.old == "" {
		p.file.old = p.file.new
	}
	if p.file.new == "" {
		p.file.new = p.file.old
	}
	return nil
}

// pathOf is the path of a line --- or +++, "" for no file.
func pathOf(s, prefix, letters string) (string, bool) {
	name, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return "", false
	}
	name = strings.TrimSuffix(name, "\r")
	if !strings.HasPrefix(name, `"`) {
		name, _, _ = strings.Cut(name, "\t") // git ends names with spaces by it, diff writes the time after it
	}
	path, ok := unquote(name)
	if path == "/dev/null" {
		return "", true
	}
	if len(path) > 2 && path[1] == '/' && strings.IndexByte(letters, path[0]) >= 0 {
		path = path[2:]
	}
	return path, ok && path != ""
}

// names are the two paths of a diff --git line, without their prefixes. Paths with
// spaces are not quoted there: then both are the same, or what follows names them.
func names(s string) (old, now string, ok bool) {
	s = strings.TrimSuffix(s, "\r")
	strip := func(path string) string {
		if len(path) > 2 && path[1] == '/' && strings.IndexByte("abicwo", path[0]) >= 0 {
			return path[2:]
		}
		return path
	}
	if strings.HasPrefix(s, `"`) || strings.HasSuffix(s, `"`) {
		var first, second string
		if strings.HasPrefix(s, `"`) {
			end := closing(s)
			if end < 0 || end+1 >= len(s) || s[end+1] != ' ' {
				return "", "", false
			}
			first, second = s[:end+1], s[end+2:]
		} else if first, second, ok = strings.Cut(s, ` "`); ok {
			second = `"` + second
		}
		a, ok1 := unquote(first)
		b, ok2 := unquote(second)
		return strip(a), strip(b), ok1 && ok2 && a != "" && b != ""
	}
	if half := len(s) / 2; len(s)%2 == 1 && s[half] == ' ' && strip(s[:half]) == strip(s[half+1:]) && half > 0 {
		return strip(s[:half]), strip(s[half+1:]), true
	}
	old, now, ok = strings.Cut(s, " ") // a rename: its own lines name the paths
	return strip(old), strip(now), ok && old != "" && now != ""
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
	s = strings.TrimSuffix(s, "\r")
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

func cutAny(s string, prefixes ...string) (string, bool) {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(s, p); ok {
			return rest, true
		}
	}
	return s, false
}
