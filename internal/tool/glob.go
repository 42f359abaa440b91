package tool

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// glob is a compiled pattern for paths: * and ? within a name, ** across
// directories, classes [a-z] and [!a-z], alternatives {a,b}, \ before a
// character that is meant as it is.
type glob struct {
	re       *regexp.Regexp
	suffix   string // of a pattern that is a star and then plain text; "" for others
	nameOnly bool   // there was no slash: only the last part of a path is compared
}

// newGlob compiles pattern; the error is a sentence for the model.
func newGlob(pattern string) (*glob, error) {
	p := strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	var b strings.Builder
	b.WriteString(`^(?s:`)
	depth := 0
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case strings.HasPrefix(p[i:], "**/") && (i == 0 || p[i-1] == '/'):
			b.WriteString(`(?:.*/)?`)
			i += 2
		case strings.HasPrefix(p[i:], "**"):
			b.WriteString(`.*`)
			i++
		case c == '*':
			b.WriteString(`[^/]*`)
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			n := classLen(p[i:])
			if n == 0 {
				return nil, fmt.Errorf("the glob %q has a [ without its ]", pattern)
			}
			b.WriteString(class(p[i+1 : i+n-1]))
			i += n - 1
		case c == '{':
			depth++
			b.WriteString(`(?:`)
		case c == '}' && depth > 0:
			depth--
			b.WriteString(`)`)
		case c == ',' && depth > 0:
			b.WriteString(`|`)
		case c == '\\' && i+1 < len(p):
			i++
			b.WriteString(regexp.QuoteMeta(p[i : i+1]))
		case c < 0x80:
			b.WriteString(regexp.QuoteMeta(p[i : i+1]))
		default:
			b.WriteByte(c)
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("the glob %q has a { without its }", pattern)
	}
	b.WriteString(`)$`)
	re, _, problem := compile(b.String())
	if problem != "" {
		return nil, fmt.Errorf("the glob %q cannot be used: %s", clip(pattern, 200), strings.TrimSuffix(problem, "."))
	}
	g := &glob{re: re, nameOnly: !strings.Contains(p, "/")}
	if g.nameOnly && strings.HasPrefix(p, "*") && !strings.ContainsAny(p[1:], `*?[{}\,`) {
		g.suffix = p[1:]
	}
	return g, nil
}

// classLen returns the length of the class at the start of p, brackets
// included, or 0 where it does not end. A ] that comes first is a member.
func classLen(p string) int {
	i := 1
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		i++
	}
	if i < len(p) && p[i] == ']' {
		i++
	}
	end := strings.IndexByte(p[min(i, len(p)):], ']')
	if end < 0 {
		return 0
	}
	return i + end + 1
}

// class turns the inside of a glob's class into a regexp's. A slash never matches.
func class(in string) string {
	not := strings.HasPrefix(in, "!") || strings.HasPrefix(in, "^")
	if not {
		in = in[1:]
	}
	in = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `&`, `\&`, `~`, `\~`).Replace(in)
	if not {
		return "[^/" + in + "]"
	}
	return "[" + in + "]"
}

// match reports whether rel, a path with slashes, is meant.
func (g *glob) match(rel string) bool {
	if g.nameOnly {
		rel = path.Base(rel)
	}
	if g.suffix != "" {
		return strings.HasSuffix(rel, g.suffix)
	}
	return g.re.MatchString(rel)
}
