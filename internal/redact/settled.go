package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxNumber is more than a telephone or card number takes with what divides it, in bytes.
	maxNumber = 48
	// unspaced is the first character of the scripts that put no blanks between words.
	unspaced = 0x3000
)

// ends are what may follow a text and make what stands at its end a secret, where it has
// the beginning; of a key its lines may be all that is left.
var ends = [...]struct{ begin, end string }{{`"`, `"`}, {"'", "'"}, {"`", "`"}, {"", "\n-----END PRIVATE KEY-----"}}

// Settled returns how many bytes of s, the beginning of a text that still grows, may be
// masked by themselves and shown: whole words, up to what may become a secret with what
// follows, as half of a card number or of a known value does.
func (z *Sanitizer) Settled(s string) int {
	s = s[:wholeWords(s)]
	if i := strings.LastIndex(s, pemEnd); i >= 0 && len(s)-i < maxSeam && !strings.Contains(s[i+len(pemEnd):], "-----") {
		s = s[:i] // half a line that closes a key
	}
	n := len(s)
	if known := z.values(); known != nil {
		n = min(n, known.begun(s))
	}
	if z.numbers {
		n = min(n, numberBegun(s))
	}
	return z.apart(s, n)
}

// wholeWords returns where the last word of s ends that is whole.
func wholeWords(s string) int {
	n := strings.LastIndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r >= unspaced })
	if n < 0 {
		return 0
	}
	_, size := utf8.DecodeRuneInString(s[n:])
	return n + size
}

// numberBegun returns where the digits begin that s ends with; len(s) where it ends with none.
func numberBegun(s string) int {
	least, at := len(s)-maxNumber, len(s)
	for i := len(s); i > max(least, 0) && (is(s[i-1], digit) || strings.IndexByte(" +-()", s[i-1]) >= 0); i-- {
		if s[i-1] != ' ' && s[i-1] != '-' {
			at = i - 1
		}
	}
	return at
}

// apart returns where to cut s at n or before: within no word, and within nothing that is a
// secret, or would be should one of ends follow.
func (z *Sanitizer) apart(s string, n int) int {
	from := max(0, len(s)-margin)
	if line := strings.IndexByte(s[from:], '\n'); from > 0 && line >= 0 {
		from += line + 1
	}
	tail := s[from:]
	now := settle(z.find(tail, true), tail)
	for _, e := range ends {
		if !strings.Contains(tail, e.begin) {
			continue
		}
		for _, p := range settle(z.find(tail+e.end, true), tail+e.end) {
			inside := func(q span) bool { return q.start <= p.start && min(p.end, len(tail)) <= q.end }
			if p.start < len(tail) && !slices.ContainsFunc(now, inside) {
				n = min(n, from+p.start)
			}
		}
	}
	n = wholeWords(s[:n])
	for _, p := range slices.Backward(now) {
		if from+p.start < n && n < from+p.end {
			n = wholeWords(s[:from+p.start])
		}
	}
	return n
}

// begun returns where s begins to hold a value of which it has not all yet, in one piece or
// several; len(s) where it does not.
func (m *matcher) begun(s string) int {
	for at := max(0, len(s)-m.longest-maxPieces); at < len(s); at++ {
		head := s[at:min(len(s), at+quad)]
		i, _ := slices.BinarySearch(m.values, head)
		for ; i < len(m.values) && strings.HasPrefix(m.values[i], head); i++ {
			if unfinished(s, at, m.values[i]) {
				return at
			}
		}
	}
	return len(s)
}

// unfinished reports whether s ends within the value v, of which written finds all.
func unfinished(s string, start int, v string) bool {
	at := start
	for i := range len(v) {
		if at < len(s) && s[at] == v[i] {
			at++
			continue
		}
		if at == len(s) {
			return true
		}
		if i < quad || at-start > len(v)+maxPieces {
			return false
		}
		next, _ := Seam(s, at)
		if next == 0 || next == len(s) { // as far as is known yet, a seam
			return len(s)-at < maxSeam && strings.IndexFunc(s[at:], func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) < 0
		}
		if s[next] != v[i] {
			return false
		}
		at = next + 1
	}
	return false
}
