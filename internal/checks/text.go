package checks

import (
	"cmp"
	"fmt"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// minText is the least limit that Text keeps to, in bytes.
const minText = 256

// Text tells the summary to a model in at most limit bytes (at least 256):
// every failure with its place and reason as far as there is room, those of one
// reason together, then the excerpts, then what was left out; of those that are
// known only their names. Without failures it is the lines that look like the
// reason and the end of the output. The same summary gives the same text.
func (s Summary) Text(limit int) string {
	limit = max(limit, minText)
	if len(s.Failures) == 0 {
		return s.textOfOutput(limit)
	}
	head := s.counts() + "\n"
	room := limit - len(head) - 60 // for the note about what is left out
	groups, known := s.groups()
	last, shown := "", 0
	if len(known) > 0 {
		before := fmt.Sprintf("%d failed before as well", len(known))
		if last = names(before+": ", known, room/4); last == "" {
			last = before + "\n"
		}
		room, shown = room-len(last), len(known)
	}
	heads := make([]string, 0, len(groups))
	used := 0
	for i, g := range groups {
		h := fmt.Sprintf("%d. %s\n", i+1, g.head())
		if used+len(h) > room {
			break
		}
		heads = append(heads, h)
		used, shown = used+len(h), shown+len(g)
	}
	if len(heads) == 0 && len(groups) > 0 {
		heads, used, shown = []string{clip("1. "+groups[0][0].head(), max(room-1, 0)) + "\n"}, max(room, 0), shown+1
	}
	var b strings.Builder
	b.WriteString(head)
	for i, h := range heads {
		b.WriteString(h)
		// What is left is shared by those that are still to come.
		share, excerpt := (room-used)/(len(heads)-i), groups[i][0].Excerpt
		if ex := indent(clipLines(excerpt, max(0, share-2*lines(excerpt)*2)), "    "); ex != "" && len(ex)+1 <= share {
			b.WriteString(ex + "\n")
			used += len(ex) + 1
		}
	}
	b.WriteString(last)
	if left := s.More + len(s.Failures) - shown; left > 0 {
		fmt.Fprintf(&b, "[%d more failures are not shown]\n", left)
	}
	return b.String()
}

// group is failures of one reason.
type group []Failure

// groups are the failures that are not known, those of one reason together in
// the place of the first, and the names of the others.
func (s Summary) groups() (all []group, known []string) {
	at := map[string]int{}
	for _, f := range s.Failures {
		reason := f.reason()
		i, there := at[reason]
		switch {
		case f.Known:
			known = append(known, f.Name)
		case there && reason != "":
			all[i] = append(all[i], f)
		default:
			at[reason] = len(all)
			all = append(all, group{f})
		}
	}
	return all, known
}

// incidental are what differs between failures of one reason, and between two runs:
// addresses, times, line numbers, and where temporary files lie.
var incidental = lazyregexp.New(`0x[0-9a-fA-F]{4,}|\b\d+(?:\.\d+)? ?(?:[mnµ]?s|sec(?:onds?)?)\b|\.\w+:\d+(?::\d+)?\b|\bline \d+|/tmp/(?:[^\s'"()]*/)?`)

// reason is what failures of one reason have in common.
func (f Failure) reason() string {
	return incidental().ReplaceAllString(cmp.Or(f.Message, f.Excerpt), "*")
}

// head is the first failure, and the names of others.
func (g group) head() string {
	if len(g) == 1 {
		return g[0].head()
	}
	var others []string
	for _, f := range g[1:] {
		others = append(others, f.Name)
	}
	return g[0].head() + "\n   " + strings.TrimSuffix(names(fmt.Sprintf("and %d more for the same reason: ", len(others)), others, 2*maxName), "\n")
}

// names is a line of as many names as there is room for in so many bytes, "" for
// none.
func names(line string, all []string, room int) string {
	const more = ", …\n"
	for i, name := range all {
		if i > 0 {
			name = ", " + name
		}
		if len(line)+len(name)+len(more) > room {
			if i == 0 {
				return ""
			}
			return line + more
		}
		line += name
	}
	return line + "\n"
}

// counts is the first line: how many failed, of what.
func (s Summary) counts() string {
	name := s.Framework
	if name == "" {
		name = "tests"
	}
	parts := []string{fmt.Sprintf("%d failed", s.Failed)}
	if s.Passed > 0 {
		parts = append(parts, fmt.Sprintf("%d passed", s.Passed))
	}
	if s.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", s.Skipped))
	}
	return name + ": " + strings.Join(parts, ", ")
}

func (f Failure) head() string {
	h := f.Name
	if f.File != "" && f.Line > 0 {
		h += fmt.Sprintf(" (%s:%d)", f.File, f.Line)
	} else if f.File != "" && !strings.Contains(f.Name, f.File) {
		h += " (" + f.File + ")"
	}
	if f.Message != "" && !strings.HasSuffix(f.Name, f.Message) {
		h += ": " + f.Message
	}
	return h
}

// textOfOutput is for an output without failures: none, or of a kind that is
// not known.
func (s Summary) textOfOutput(limit int) string {
	var b strings.Builder
	if s.Framework != "" {
		b.WriteString(s.counts() + "\n")
	}
	tail := s.Tail
	if s.Cut {
		// The reason may stand before the part of the output that is kept.
		var hidden []string
		size := 0
		for _, t := range s.Telling {
			if !strings.Contains(tail, t) && size+len(t) < limit/3 {
				hidden = append(hidden, t)
				size += len(t) + 1
			}
		}
		if len(hidden) > 0 {
			b.WriteString("[lines from before that may be the reason]\n" + strings.Join(hidden, "\n") + "\n")
		}
	}
	room := limit - b.Len() - len("[…]\n")
	if len(tail) > room {
		tail = tail[len(tail)-max(0, room):]
		if i := strings.IndexByte(tail, '\n'); i >= 0 && i+1 < len(tail) {
			tail = tail[i+1:]
		}
		tail = strings.ToValidUTF8(tail, "")
		b.WriteString("[…]\n")
	} else if s.Cut {
		b.WriteString("[…]\n")
	}
	return b.String() + tail
}

func lines(s string) int { return strings.Count(s, "\n") + 1 }

func indent(s, by string) string {
	if s == "" {
		return ""
	}
	return by + strings.ReplaceAll(s, "\n", "\n"+by)
}

// clip cuts s to at most n bytes, at a rune.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(0, n-len("…"))
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// clipLines cuts s to at most n bytes of whole lines, of which the first ones
// and the last ones stay.
func clipLines(s string, n int) string {
	s = strings.Trim(s, "\n")
	if len(s) <= n {
		return s
	}
	const mark = "[…]"
	if n < len(mark)+40 {
		return ""
	}
	all := strings.Split(s, "\n")
	first, last, size := 0, 0, len(mark)+1
	for first+last < len(all) {
		next := all[first]
		fromEnd := last*2 < first // two of three from the beginning
		if fromEnd {
			next = all[len(all)-1-last]
		}
		if size+len(next)+1 > n {
			break
		}
		size += len(next) + 1
		if fromEnd {
			last++
		} else {
			first++
		}
	}
	if first == 0 {
		return clip(all[0], n-len(mark)-1) + "\n" + mark
	}
	out := append(append(append([]string{}, all[:first]...), mark), all[len(all)-last:]...)
	return strings.Join(out, "\n")
}
