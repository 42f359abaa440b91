package tool

import "strings"

// What wildmatch found. An abort says that no later start can match either,
// which keeps the search for one star's end from starting again and again.
type wild uint8

const (
	wildMatch wild = iota
	wildNo
	wildAbort       // the text is at its end
	wildAbortToStar // only a ** before this can match
)

// wildSteps is how many steps one comparison may take: a hostile pattern has
// no match rather than a machine of its own.
const wildSteps = 50_000

// wildmatch reports whether text matches pattern as git's wildmatch.c has it.
// With slashes (WM_PATHNAME) * and ? stop at a slash and ** does not; without,
// nothing stops. It also says how many steps that took.
func wildmatch(pattern, text string, slashes bool) (matches bool, steps int) {
	w := wilder{slashes: slashes, left: wildSteps}
	matches = w.match(pattern, text) == wildMatch
	return matches, wildSteps - w.left
}

type wilder struct {
	slashes bool
	left    int
}

// byteAt is s[i], or 0 at its end, as C has it.
func byteAt(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

func (w *wilder) match(p, t string) wild {
	i := 0
	for j := 0; j < len(p); i, j = i+1, j+1 {
		if w.left--; w.left < 0 {
			return wildAbort
		}
		c := byteAt(t, i)
		if c == 0 && p[j] != '*' {
			return wildAbort
		}
		switch p[j] {
		case '?':
			if w.slashes && c == '/' {
				return wildNo
			}
		case '*':
			text, pattern, result := w.star(p, t, i, j)
			if pattern == 0 {
				return result
			}
			// A star before a slash took the text up to its next slash.
			i, j = text, pattern
		case '[':
			next, matched, bad := class1(p, j, c)
			if bad {
				return wildAbort
			}
			if !matched || w.slashes && c == '/' {
				return wildNo
			}
			w.left -= next - j
			j = next
		case '\\':
			j++
			if c != byteAt(p, j) {
				return wildNo
			}
		default:
			if c != p[j] {
				return wildNo
			}
		}
	}
	if i < len(t) {
		return wildNo
	}
	return wildMatch
}

// star compares from the star at p[j] on. Where it stands before a slash, it
// returns where in text and pattern the slashes are that both go on from; else
// pattern is 0.
func (w *wilder) star(p, t string, i, j int) (text, pattern int, result wild) {
	through := !w.slashes
	k := j + 1
	if byteAt(p, k) == '*' {
		for byteAt(p, k) == '*' {
			k++
		}
		alone := (j == 0 || p[j-1] == '/') && (k == len(p) || p[k] == '/' || p[k] == '\\' && byteAt(p, k+1) == '/')
		switch {
		case !w.slashes:
		case alone:
			if byteAt(p, k) == '/' && w.match(p[k+1:], t[i:]) == wildMatch {
				return 0, 0, wildMatch
			}
			through = true
		default:
			through = false
		}
	}
	if k == len(p) {
		if !through && strings.IndexByte(t[i:], '/') >= 0 {
			return 0, 0, wildNo
		}
		return 0, 0, wildMatch
	}
	if !through && p[k] == '/' {
		slash := strings.IndexByte(t[i:], '/')
		if slash < 0 {
			return 0, 0, wildNo
		}
		return i + slash, k, 0
	}
	return 0, 0, w.search(p[k:], t, i, through)
}

// search looks for a place of t, from i on, where the rest of a pattern after
// a star matches.
func (w *wilder) search(rest, t string, i int, through bool) wild {
	literal := !strings.ContainsRune(`*?[\`, rune(rest[0]))
	for ; i < len(t); i++ {
		if literal {
			for i < len(t) && t[i] != rest[0] && (through || t[i] != '/') {
				i++
				w.left--
			}
			if byteAt(t, i) != rest[0] {
				return wildNo
			}
		}
		switch m := w.match(rest, t[i:]); {
		case m != wildNo && (!through || m != wildAbortToStar):
			return m
		case m == wildNo && !through && t[i] == '/':
			return wildAbortToStar
		}
	}
	return wildAbort
}

// class1 compares c with the class at p[j], which is a [, and returns where
// its ] stands. bad says that the class has no end, or names no known class.
func class1(p string, j int, c byte) (end int, matched, bad bool) {
	j++
	negated := byteAt(p, j) == '!' || byteAt(p, j) == '^'
	if negated {
		j++
	}
	var before byte
	for first := true; first || byteAt(p, j) != ']'; first = false {
		now := byteAt(p, j)
		switch {
		case now == 0:
			return 0, false, true
		case now == '\\':
			j++
			if now = byteAt(p, j); now == 0 {
				return 0, false, true
			}
			matched = matched || c == now
		case now == '-' && before != 0 && byteAt(p, j+1) != 0 && byteAt(p, j+1) != ']':
			j++
			if now = p[j]; now == '\\' {
				j++
				if now = byteAt(p, j); now == 0 {
					return 0, false, true
				}
			}
			matched = matched || before <= c && c <= now
			now = 0 // the end of a range begins none
		case now == '[' && byteAt(p, j+1) == ':':
			size := strings.IndexByte(p[j+2:], ']')
			if size < 0 {
				return 0, false, true
			}
			name, ended := strings.CutSuffix(p[j+2:j+2+size], ":")
			if !ended {
				matched = matched || c == '['
				break
			}
			in, known := inNamedClass(name, c)
			if !known {
				return 0, false, true
			}
			matched = matched || in
			j += 2 + size
			now = 0
		default:
			matched = matched || c == now
		}
		before = now
		j++
	}
	return j, matched != negated, false
}

func inNamedClass(name string, c byte) (in, known bool) {
	upper, lower, digit := 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9'
	graph := ' ' < c && c < 0x7f
	switch name {
	case "alnum":
		in = upper || lower || digit
	case "alpha":
		in = upper || lower
	case "blank":
		in = c == ' ' || c == '\t'
	case "cntrl":
		in = c < ' ' || c == 0x7f
	case "digit":
		in = digit
	case "graph":
		in = graph
	case "lower":
		in = lower
	case "print":
		in = graph || c == ' '
	case "punct":
		in = graph && !upper && !lower && !digit
	case "space":
		in = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
	case "upper":
		in = upper
	case "xdigit":
		in = digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	default:
		return false, false
	}
	return in, true
}
