package scan

import "strings"

// guessLines is how far into a hunk is looked to guess where it begins.
const guessLines = 400

// guess says whether a piece from the middle of a file begins in a comment or a
// literal of several lines: what closes before it opened does.
func guess(l *language, lines []string) state {
	lines = lines[:min(len(lines), guessLines)]
	best, at := state{}, len(lines)*maxLine+1
	position := func(i, col int) int { return i*maxLine + col }
	for _, b := range l.block {
		for i, s := range lines {
			opened, closed := strings.Index(s, b[0]), closes(s, b[1])
			if closed >= 0 && (opened < 0 || closed < opened) {
				if p := position(i, closed); p < at {
					best, at = state{in: comment, open: b[0], end: b[1], depth: 1}, p
				}
			}
			if opened >= 0 || closed >= 0 {
				break
			}
		}
		if b[1] == "*/" && at > len(lines)*maxLine && starred(lines) {
			return state{in: comment, open: b[0], end: b[1], depth: 1}
		}
	}
	for _, r := range l.raw {
		if r[0] != r[1] {
			continue
		}
		before := "" // the last line that is not blank
		for i, s := range lines {
			if col := strings.Index(s, r[0]); col >= 0 {
				if p := position(i, col); p < at && endsLiteral(s, col, len(r[0]), before, odd(lines[i:], r[0])) {
					best, at = state{in: literal, end: r[1], depth: 1, plain: !l.escapes}, p
				}
				break
			}
			if strings.TrimSpace(s) != "" {
				before = s
			}
		}
	}
	return best
}

// closes finds the end of a comment where it is likely to be one, as */ in a
// pattern of paths is not.
func closes(s, end string) int {
	i := strings.Index(s, end)
	if i < 0 {
		return -1
	}
	if after := s[i+len(end):]; after != "" && strings.IndexByte(" \t;,)}", after[0]) < 0 {
		return -1
	}
	return i
}

// starred reports whether lines begin as those within a /** comment do.
func starred(lines []string) bool {
	n := 0
	for _, s := range lines {
		s = strings.TrimSpace(s)
		if s != "*" && !strings.HasPrefix(s, "* ") {
			break
		}
		n++
	}
	return n >= 2
}

// endsLiteral guesses whether the first delimiter of a piece ends a literal. before
// is the line above it; odd tells that their number is.
func endsLiteral(s string, col, n int, before string, odd bool) bool {
	left, right := strings.TrimSpace(s[:col]), strings.TrimSpace(s[col+n:])
	if left != "" && (strings.IndexByte("=(,:[{+?%", left[len(left)-1]) >= 0 || strings.HasSuffix(left, "return") || strings.HasSuffix(left, "case") || strings.HasSuffix(left, "<-")) {
		return false
	}
	if strings.Contains(right, s[col:col+n]) { // both on a line
		return false
	}
	if right != "" {
		return strings.IndexByte("),;].}+%", right[0]) >= 0
	}
	if left != "" { // words, and the delimiter at the end of the line
		return true
	}
	b := strings.TrimSpace(before)
	opens := b != "" && strings.IndexByte("=(,:[{", b[len(b)-1]) >= 0
	return odd && !opens
}

// odd reports whether a delimiter stands an odd number of times.
func odd(lines []string, delimiter string) bool {
	n := 0
	for _, s := range lines {
		n += strings.Count(s, delimiter)
	}
	return n%2 == 1
}
