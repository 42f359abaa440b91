package broker

import (
	"strings"

	"toritsugi/internal/lazyregexp"
)

var marker = lazyregexp.New(`(?i)<!--+\s*tori\s*:`)

// markers keeps a text from holding what looks like our own hidden marker, by
// which a delivery knows that it was made: in code as well, since who looks for
// it reads no Markdown.
func markers(_ *Filter, _ Format, s string) (edits []edit) {
	for _, m := range marker().FindAllStringIndex(s, -1) {
		edits = append(edits, edit{m[0], m[0] + 1, "‹", FoundMarker})
	}
	return edits
}

// tags takes HTML comments out and makes tags plain text: whatever they would
// have hidden is seen.
func tags(f *Filter, format Format, s string) (edits []edit) {
	if !format.markdown() || !strings.Contains(s, "<") {
		return nil
	}
	code := codeOf(format, s)
	last := strings.LastIndex(s, "-->")
	for i := 0; i < len(s); i++ {
		if s[i] != '<' || i+1 == len(s) || code.has(i) {
			continue
		}
		c := s[i+1]
		switch {
		case strings.HasPrefix(s[i:], "<!--"):
			if n := strings.Index(s[i+4:max(i+4, last+3)], "-->"); n >= 0 {
				edits = append(edits, edit{i, i + 4 + n + 3, "[…]", FoundHidden})
				i += 4 + n + 2
				continue
			}
			edits = append(edits, edit{i, i + 1, "&lt;", FoundHidden})
		case c == '!' || c == '?' || c == '/' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if f.autolink(s[i:]) || i > 0 && s[i-1] == '\\' && !doubled(s, i) {
				continue
			}
			edits = append(edits, edit{i, i + 1, "&lt;", FoundHTML})
		}
	}
	return edits
}

// doubled reports whether the backslash before s[i] is itself escaped.
func doubled(s string, i int) bool {
	n := 0
	for n < i && s[i-1-n] == '\\' {
		n++
	}
	return n%2 == 0
}

var angle = lazyregexp.New(`^<(https?://[A-Za-z0-9._~/?#\[\]!$&'()*+,;=%:-]+)>`)

// autolink reports whether s begins with a link in angle brackets that may stay.
func (f *Filter) autolink(s string) bool {
	m := angle().FindStringSubmatch(s[:min(len(s), maxURL)])
	return m != nil && f.allowed(m[1])
}

var (
	inline     = lazyregexp.New(`^[ \t]*<?([A-Za-z0-9._~/?#!$&'*+,;=%:@-]*)>?[ \t]*\)`)
	definition = lazyregexp.New(`^[ \t]+<?([A-Za-z0-9._~/?#!$&'*+,;=%:@-]+)>?[ \t]*(?:\n|$)`)
	scheme     = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*:`)
)

// links makes images links, and links to places that are not allowed text, so
// that the address is seen. Titles that show when the mouse is over a link go
// the same way.
func links(f *Filter, format Format, s string) (edits []edit) {
	if !format.markdown() {
		return nil
	}
	code := codeOf(format, s)
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '!' && !code.has(i):
			j := i
			for j < len(s) && s[j] == '!' {
				j++
			}
			if j < len(s) && s[j] == '[' {
				edits = append(edits, edit{i, j, "", FoundImage})
			}
			i = j - 1
		case s[i] == ']' && i+1 < len(s) && !code.has(i):
			var m []string
			rest := s[i+2 : min(len(s), i+2+maxURL)]
			switch s[i+1] {
			case '(':
				m = inline().FindStringSubmatch(rest)
			case ':':
				m = definition().FindStringSubmatch(rest)
			default:
				continue
			}
			if m == nil || !f.destination(m[1]) {
				edits = append(edits, edit{i + 1, i + 1, " ", FoundLink})
			}
		}
	}
	return edits
}

// destination reports whether a link may lead there: to a host on the list, or
// to a place beside the text.
func (f *Filter) destination(d string) bool {
	if strings.Contains(d, "&") && reference().MatchString(d) {
		return false
	}
	switch {
	case f.allowed(d):
		return true
	case strings.HasPrefix(d, "//") || scheme().MatchString(d):
		return false
	}
	before, _, _ := strings.Cut(d, "#")
	before, _, _ = strings.Cut(before, "?")
	return !strings.Contains(before, ":") && !strings.Contains(before, "//") && !strings.Contains(before, "%")
}

var color = lazyregexp.New(`\\(?:text|f|cell|row)?color(?:box)?\b|\\[hv]?phantom\b|\\(?:href|url|includegraphics|style|class|cssId|html[A-Za-z]*|unicode|require|def|gdef|let|newcommand|renewcommand|tiny|scriptsize|transparent)\b`)

// styles takes the power from TeX commands that hide a text, paint it in the
// colour of the page, or fetch something.
func styles(_ *Filter, format Format, s string) (edits []edit) {
	if !format.markdown() || !strings.Contains(s, "$") || !strings.Contains(s, "\\") {
		return nil
	}
	code := codeOf(format, s)
	for _, m := range color().FindAllStringIndex(s, -1) {
		if !code.has(m[0]) {
			edits = append(edits, edit{m[0], m[0] + 1, "", FoundStyle})
		}
	}
	return edits
}
