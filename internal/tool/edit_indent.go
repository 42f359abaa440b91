package tool

import (
	"cmp"
	"fmt"
	"strings"
)

// reindent finds the one place whose lines are those of an edit but for white space at
// their ends, and makes the edit one of the file's own indentation, which report tells the
// model. ok is false where there is no such place or several, or where how the new text
// is to be indented does not follow from the old one.
func reindent(content string, a editFileArgs) (e edit, ok bool) {
	lines, want, text := splitLines(content), splitLines(lf(a.Old)), strings.Split(lf(a.New), "\n")
	at := -1
	for i := range len(lines) - len(want) + 1 {
		same := 0
		for same < len(want) && strings.TrimSpace(lines[i+same]) == strings.TrimSpace(want[same]) {
			same++
		}
		if same < len(want) {
			continue
		}
		if at >= 0 {
			return e, false
		}
		at = i
	}
	if at < 0 || strings.TrimSpace(a.Old) == "" {
		return e, false
	}
	m, skip := indentation{}, 0
	first := indentOf(lines[at])
	if len(want) > 1 && indentOf(want[0]) == "" && first != "" { // it may begin within its line
		skip = 1
	}
	for i := skip; i < len(want); i++ {
		if strings.TrimSpace(want[i]) != "" && !m.add(indentOf(want[i]), indentOf(lines[at+i])) {
			return e, false
		}
	}
	for i, line := range text {
		in := indentOf(line)
		if line == in || i == 0 && skip == 1 && in == "" {
			continue
		}
		to, known := m.of(in)
		if !known || i < skip {
			return e, false
		}
		text[i] = to + line[len(in):]
	}
	from := 0
	for _, l := range lines[:at] {
		from += len(l) + 1
	}
	to := from
	for _, l := range lines[at : at+len(want)] {
		to += len(l) + 1
	}
	if !strings.HasSuffix(a.Old, "\n") {
		to -= 1 + len(lines[at+len(want)-1]) - len(trimCR(lines[at+len(want)-1]))
	}
	if to = min(to, len(content)); skip == 1 {
		from += len(first)
	}
	e.new = strings.Join(text, "\n")
	if crlf, bare := lineEnds(content); crlf > 0 && bare == 0 {
		e.new = toCRLF(e.new)
	}
	e.old, e.otherwise, e.reindented = content[from:to], true, true
	e.places = []place{{from, to, e.new}}
	return e, e.old != e.new
}

func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func trimCR(s string) string { return strings.TrimSuffix(s, "\r") }

// indentOf is the white space that a line begins with.
func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// indentation is how deep lines of one text stand in another one: as deep as a line
// through two points says, or, by one point, further in by as much, or in other steps of
// the same depth. Each text indents by one sign.
type indentation struct {
	signs [2]string // of both, "" for none yet
	known [][2]int
}

// add takes a line that both have, by its indentation; false is one that fits no other.
func (m *indentation) add(from, to string) bool {
	point, ok := [2]int{len(from), len(to)}, true
	for i, in := range []string{from, to} {
		if in != "" {
			ok = ok && strings.Count(in, in[:1]) == len(in) && (m.signs[i] == "" || m.signs[i] == in[:1])
			m.signs[i] = in[:1]
		}
	}
	m.known = append(m.known, point)
	n, known := m.depth(point[0])
	return ok && known && n == point[1]
}

// depth is how deep a line stands in the other text.
func (m *indentation) depth(n int) (int, bool) {
	a := m.known[0]
	over, under := 1, 1 // the slope
	b := a
	for _, p := range m.known {
		if p[0] != a[0] {
			b = p
			break
		}
	}
	switch {
	case b != a:
		over, under = b[1]-a[1], b[0]-a[0]
	case m.signs[0] != m.signs[1] && a[0] > 0 && a[1] > 0:
		over, under = a[1], a[0]
	}
	rise := (n - a[0]) * over
	return a[1] + rise/under, over*under > 0 && rise%under == 0 && a[1]+rise/under >= 0
}

// of is the indentation of a line of the new text.
func (m *indentation) of(in string) (string, bool) {
	if len(m.known) == 0 {
		return in, true
	}
	if in != "" && strings.Count(in, in[:1]) != len(in) {
		return "", false
	}
	if in != "" && in[:1] != cmp.Or(m.signs[0], m.signs[1], in[:1]) {
		return in, in[:1] == m.signs[1] // as the file has it
	}
	n, ok := m.depth(len(in))
	if n == 0 || !ok {
		return "", ok
	}
	sign := cmp.Or(m.signs[1], in[:min(1, len(in))])
	return strings.Repeat(sign, n), sign != ""
}

// withTabs is a listing whose lines, behind their numbers, show each tab that they begin
// with as a word.
func withTabs(listing string) string {
	var b strings.Builder
	for line := range strings.Lines(listing) {
		if number, text, ok := strings.Cut(line, "\t"); ok {
			in := indentOf(text)
			line = number + "\t" + strings.ReplaceAll(in, "\t", "<tab>") + text[len(in):]
		}
		b.WriteString(line)
	}
	return b.String()
}

// begins says how a line begins, in words.
func begins(line string) string {
	in := indentOf(line)
	tabs := strings.Count(in, "\t")
	switch spaces := len(in) - tabs; {
	case in == "":
		return "no white space"
	case tabs == 0:
		return counted(spaces, "space")
	case spaces == 0:
		return counted(tabs, "tab")
	default:
		return fmt.Sprintf("%s and %s", counted(tabs, "tab"), counted(spaces, "space"))
	}
}
