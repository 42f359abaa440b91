package redact

import "strings"

// Bounds of what is read behind the first piece of a secret, in bytes. Together
// they are less than a Writer's margin.
const (
	maxSeam   = 80
	maxPieces = 1 << 10
)

// Seam says what stands between two pieces of one text at s[i], where the first
// ends: the end of a line and what marks the next, or two quotes and what joins
// strings in a program ("a" + "b", 'a' . 'b', "a" "b", s += "b"), also within a
// JSON string. It returns where the next piece begins, and whether that is in
// quotes; 0 where there is no seam.
func Seam(s string, i int) (next int, quoted bool) {
	quotes, open, broken := 0, 0, false
	slashes, escaped := 0, 0 // before the next quote, and before the first
	for j, stop := i, min(len(s), i+maxSeam); j < stop; j++ {
		if s[j] != '\\' && !isQuote(s[j]) {
			slashes = 0
		}
		switch b := s[j]; {
		case b == ' ' || b == '\t' || b == '\r':
		case b == '\n':
			broken = true
		case b == '\\':
			if slashes++; j+1 < len(s) && strings.IndexByte("nrt", s[j+1]) >= 0 {
				j++
				slashes, broken = 0, broken || s[j] == 'n'
			}
		case isQuote(b):
			if quotes++; quotes == 2 && slashes == escaped {
				return j + 1, true
			} else if quotes == 2 {
				return 0, false
			}
			open, slashes, escaped = j, 0, slashes
		case quotes == 1 && strings.IndexByte("+.&<>|~();$@", b) >= 0:
		case quotes == 0 && broken && strings.IndexByte(">|*+#/-", b) >= 0:
		case quotes == 0 && broken:
			return j, false
		case quotes == 1:
			// The letters of b"…", or the name of what is added to.
			end := run(s, j, word)
			if at := blanks(s, end); broken && at+1 < len(s) && s[at+1] == '=' && (s[at] == '+' || s[at] == '.') {
				j = at + 1
			} else if open+1 == j || end > j+2 || end >= len(s) || !isQuote(s[end]) && s[end] != '\\' || strings.IndexByte("bfrulBFRUL", b) < 0 {
				return 0, false
			} else {
				j = end - 1
			}
		default:
			return 0, false
		}
	}
	return 0, false
}

func isQuote(b byte) bool { return b == '"' || b == '\'' || b == '`' }

// grow returns where a secret ends of which a piece of class ends at s[end]: at
// the end of the last string that is added to it, or of the last line behind it
// that holds nothing but a part of a secret. What is full, in bytes, long goes on
// in no further line.
func grow(s string, start, end int, class uint8, full int) int {
	last, length := end, end-start
	for at := end; at-end < maxPieces; {
		next, quoted := Seam(s, at)
		if next == 0 || !quoted && length >= full {
			break
		}
		at = run(s, next, class)
		switch {
		case quoted && (at == len(s) || isQuote(s[at]) || s[at] == '\\'):
			if at > next {
				last = at
			}
		case !quoted && at > next && (at == len(s) || isQuote(s[at]) || strings.IndexByte("\r\n\\", s[at]) >= 0):
			if piece := s[next:at]; run(piece, 0, upper|lower|under|dash) < len(piece) || flips(piece, upper) > 1 {
				last = at // no word, as those between it and the last one may be
			}
		default:
			return last
		}
		length += at - next
	}
	return last
}

// sum returns the value of a name whose first piece, in quotes, is s[start:end],
// with the strings that are added to it, and where the last of them ends.
func sum(s string, start, end int) (text string, stop int) {
	text = s[start:end]
	for end-start < maxPieces {
		next, quoted := Seam(s, end)
		if !quoted {
			break
		}
		open := next - 1
		for open > 0 && s[open-1] == '\\' {
			open--
		}
		stop := closing(s, next, s[next-1], next-1-open)
		if stop == 0 {
			break
		}
		text, end = text+s[next:stop], stop
	}
	return text, end
}
