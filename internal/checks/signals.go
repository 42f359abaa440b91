package checks

import (
	"slices"
	"sync"
)

// marks are what readers look for while they follow nothing, or nothing that has
// room for more, in lower case; "\n" is the beginning of a line. A line without
// any of them, and without any of the stems, changes nothing then: see
// Parser.Write. Case does not count, so that a few lines more are looked at than
// must be.
var marks = []string{
	"===", "--- ", "data race", "\n# ", "\nok", "\npass", "\nexit status ", "\ncoverage: ", "\ngo: downloading ", // go test
	"\n{\"",                               // go test -json
	"::", " in ", ".py:", "\n___", "\ne ", // pytest
	"\nsummary", "\ntests:", "\n  ●", "\n  ✓", "\n  ✕", "js:", "ts:", "sx:", // jest
	" tests ", "❯", "\n⎯⎯", "\n test files ", // vitest
	"\ntest ", "\n---- ", // cargo
	"\x1b", "\r", // what is shown is not what is written
}

// scanner finds strings of a set in one look at each byte (Aho and Corasick),
// ASCII letters in either case. "\n" at the beginning of one is the beginning of
// a line.
type scanner struct {
	class [256]uint8 // of bytes that mean the same to it
	width int        // number of classes
	next  []uint16   // state and class to state
	hit   []bool     // by state: one of the strings ends here
	start uint16     // the state at the beginning of a line
}

// tellingScanner finds stems, dullScanner what makes a line worth a look.
var (
	tellingScanner = sync.OnceValue(func() *scanner { return newScanner(stems) })
	dullScanner    = sync.OnceValue(func() *scanner { return newScanner(slices.Concat(stems, marks)) })
)

func newScanner(words []string) *scanner {
	s := &scanner{width: 2} // 0 is every other byte, 1 a line's end
	s.class['\n'] = 1
	for _, w := range words {
		for i := range len(w) {
			if s.class[w[i]] == 0 {
				s.class[w[i]] = uint8(s.width) //nolint:gosec // there are at most 256
				s.width++
			}
		}
	}
	for c := 'a'; c <= 'z'; c++ {
		s.class[c-'a'+'A'] = s.class[c]
	}
	// A tree of the words; 0 is its root, and stands for no child as well.
	grow := func() int {
		s.next, s.hit = append(s.next, make([]uint16, s.width)...), append(s.hit, false)
		return len(s.hit) - 1
	}
	grow()
	s.start = uint16(grow()) //nolint:gosec // 1
	s.next[1] = s.start
	for _, w := range words {
		at := 0
		for i := range len(w) {
			edge := at*s.width + int(s.class[w[i]])
			if s.next[edge] == 0 {
				n := grow()
				s.next[edge] = uint16(n) //nolint:gosec // some hundreds
			}
			at = int(s.next[edge])
		}
		s.hit[at] = true
	}
	// Breadth first: where a state has no child, it goes where the longest end
	// of it that is a beginning goes.
	fall := make([]uint16, len(s.hit))
	queue := []int{}
	for c := range s.width {
		if n := int(s.next[c]); n != 0 {
			queue = append(queue, n)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		s.hit[at] = s.hit[at] || s.hit[fall[at]]
		for c := range s.width {
			edge, back := at*s.width+c, s.next[int(fall[at])*s.width+c]
			if n := int(s.next[edge]); n != 0 {
				fall[n] = back
				queue = append(queue, n)
			} else {
				s.next[edge] = back
			}
		}
	}
	return s
}

// in reports whether one of the strings is in a line.
func (s *scanner) in(line string) bool {
	at := s.start
	for i := range len(line) {
		if at = s.next[int(at)*s.width+int(s.class[line[i]])]; s.hit[at] {
			return true
		}
	}
	return false
}

// before returns how many bytes of b, which begins a line, are whole lines before
// the first one with one of the strings. A carriage return before a line's end
// is none of them.
func (s *scanner) before(b []byte) int {
	at, lines := s.start, 0
	for i, c := range b {
		at = s.next[int(at)*s.width+int(s.class[c])]
		if c == '\n' {
			lines = i + 1
		} else if s.hit[at] && (c != '\r' || i+1 < len(b) && b[i+1] != '\n') {
			return lines
		}
	}
	return lines
}
