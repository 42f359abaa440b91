package contextstore

import (
	"encoding/json"
	"math"
)

// How many bytes, and how many messages, seek goes through line by line.
const (
	nearEnough = 4 << 10
	fewLines   = 4
)

// seek returns where the first message begins whose number is at least seq,
// r.end if there is none. It narrows down the bytes between two lines: a probe
// lands anywhere, passes to the next line, and reads the number at its head.
// What a probe passes lies behind the bytes that later ones look at, so that
// long lines and damaged stretches are passed once.
func seek(r *lineReader, seq int64) (int64, error) {
	if seq <= 1 {
		return 0, nil
	}
	s := search{hi: r.end, seq: seq}
	found := r.end // the first line from hi on that is not too low
	at, err := r.lastLine()
	if err != nil {
		return 0, err
	}
	for s.lo < s.hi {
		probe := at
		if probe < 0 {
			probe = s.probe()
		}
		at = -1
		line, n, err := firstNumber(r, probe, s.hi)
		switch {
		case err != nil:
			return 0, err
		case n == 0:
			s.hi = probe
		case n < seq:
			s.lo, s.below = line+1, n
		default:
			s.hi, s.above, found = probe, n, line
		}
	}
	return found, nil
}

// search is where a number may be: lines that begin before lo are too low, and
// the first that begins at hi or later is not.
type search struct {
	seq          int64
	lo, hi       int64 // bytes
	below, above int64 // the numbers around; above is 0 while it is unknown
	step         int
	span         int64 // hi-lo at the latest step 0
	walked       int
}

// probe says where to look next. The numbers tell about where the line is:
// first a little before it, then a little behind it, by how far lines of
// differing length stray from an even spread. When these two leave more than
// half, as where lines are longer in one part of the file, the middle is next.
func (s *search) probe() int64 {
	size, known := s.hi-s.lo, s.above > s.below
	n, k := float64(s.above-s.below), float64(s.seq-s.below)
	if size <= nearEnough {
		return s.lo
	}
	if known && n <= fewLines && s.walked < 2*fewLines { // not on and on where one number stands many times
		s.walked++
		return s.lo
	}
	if !known || s.step == 2 && size > s.span/2 {
		s.step = 0
		return s.lo + size/2
	}
	if s.step == 2 {
		s.step = 0
	}
	line := float64(size) / n
	stray := 1.25 * line * math.Sqrt(max(k*(n-k)/n, 0))
	if s.step == 0 {
		s.span = size
		stray = -stray
	}
	s.step++
	return s.lo + min(max(int64(k*line+stray), 0), size-1)
}

// firstNumber returns the first message that begins in from <= at < to, and its
// number; number 0 if there is none.
func firstNumber(r *lineReader, from, to int64) (at, n int64, err error) {
	at = from
	if from > 0 {
		at, err = r.behind(from-1, to)
	}
	for at < to && err == nil {
		if n, err = number(r, at); n > 0 {
			break
		}
		if err == nil {
			at, err = r.behind(at, to)
		}
	}
	return at, n, err
}

// number reads the number of the message at off, 0 where there is none. A line
// that begins with it is believed without being read to its end.
func number(r *lineReader, off int64) (int64, error) {
	var head [32]byte
	n, err := r.begin(off, head[:])
	if err != nil || n == 0 {
		return 0, err
	}
	if seq := leadingSeq(head[:n]); seq > 0 {
		return seq, nil
	}
	if !candidate(head[0]) {
		return 0, nil
	}
	line, _, err := r.line(off)
	if err != nil {
		return 0, err
	}
	m, err := DecodeMessage(line)
	if err != nil {
		return 0, nil
	}
	return m.Seq, nil
}

// leadingSeq reads the number of a line that begins with its seq, with or
// without the blanks that other writers put there; 0 if it does not.
func leadingSeq(b []byte) (n int64) {
	for _, word := range []string{`{`, `"seq"`, `:`} {
		if len(b) < len(word) || string(b[:len(word)]) != word {
			return 0
		}
		b = b[len(word):]
		if len(b) > 0 && b[0] == ' ' {
			b = b[1:]
		}
	}
	for i, d := range b {
		switch {
		case '0' <= d && d <= '9' && i < 18:
			n = 10*n + int64(d-'0')
		case d == ',' && b[0] != '0':
			return n
		default:
			return 0
		}
	}
	return 0
}

// totalBefore is the running total before the first message whose number is at least
// seq, that of all where there is none. It is not ok where the line carries none.
func (l *MessageLog) totalBefore(r *lineReader, seq int64) (total int64, ok bool, err error) {
	off, err := seek(r, seq)
	if err != nil {
		return 0, false, err
	}
	found, own := false, int64(0)
	take := func(m Message, line []byte) bool {
		total, own, found, ok = m.Sum, int64(m.Tokens), true, m.Sum > 0
		if !ok { // a total of 0, or none
			var s struct{ Sum *int64 }
			ok = json.Unmarshal(line, &s) == nil && s.Sum != nil
		}
		return false
	}
	if err = l.forward(r, off, take); err != nil || found {
		return total - own, ok, err
	}
	err = l.backward(r, r.end, take)
	return total, ok, err
}

// tokens is the sum of the tokens of the messages numbered from to to, both included. It
// follows from the running totals around them: what a line that was damaged later had
// counts too. Where lines carry no total (store-v2, other hands) they are read one by one.
func (l *MessageLog) tokens(r *lineReader, from, to int64) (int64, error) {
	if from > to {
		return 0, nil
	}
	before, known, err := l.totalBefore(r, from)
	if err != nil {
		return 0, err
	}
	after, ok, err := l.totalBefore(r, to+1)
	if err != nil || known && ok && after >= before {
		return after - before, err
	}
	tokens := int64(0)
	err = l.rangeOf(r, from, to, func(m Message, _ []byte) bool { tokens += int64(m.Tokens); return true })
	return tokens, err
}
