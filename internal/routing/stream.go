package routing

import "strings"

// Stream lets through of an answer, while it is written, what can be no part of a
// delegation or a proposal. What it holds back to the end is in the answer that the
// parsers return. It is for one goroutine.
type Stream struct {
	show    func(delta string)
	pending string // not shown yet
	midLine bool   // pending goes on with a line of which something was shown
	held    bool   // pending begins with what may be a proposal
	over    bool   // nothing more is shown
}

// maxHeld is how much of an object is held back until it must name itself a proposal.
const maxHeld = 2000

// NewStream returns a Stream that calls show with what may be seen.
func NewStream(show func(delta string)) *Stream { return &Stream{show: show} }

// Write takes the next piece of the answer.
func (s *Stream) Write(delta string) {
	s.pending += delta
	for s.pending != "" && !s.over && s.step() {
	}
	switch {
	case s.over:
		s.pending = ""
	case len(s.pending) > 2*maxHeld:
		s.held = false
		s.out(len(s.pending)) // blanks, or a line that begins like a fence: no directive is so long
	}
}

// out shows the first n bytes of what is pending.
func (s *Stream) out(n int) bool {
	if n > 0 {
		s.show(s.pending[:n])
		s.midLine = s.pending[n-1] != '\n'
		s.pending = s.pending[n:]
	}
	return n > 0
}

// step shows or judges what is pending; false where that takes more of the answer.
func (s *Stream) step() bool {
	line, more := s.pending, false
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line, more = line[:i+1], true
	}
	if _, _, _, is := directive(line); is {
		s.out(max(0, inLine(line)))
		s.over = true
		return false
	}
	start := strings.TrimLeft(line, decoration+"\n")
	opens := strings.HasPrefix(start, "{") || fence(line)
	switch {
	case s.held:
		return s.release()
	case s.midLine:
		return s.out(safe(line, more))
	case opens && fence(line) && !more:
		return false // which language it is in
	case opens && fence(line) && !strings.Contains(strings.ToLower(line), "json"):
		return s.plainFence(len(line))
	case opens:
		s.held = true
		return true
	case !more && (start == "" || mayDelegate(start)):
		return false
	}
	return s.out(safe(line, more))
}

// mayDelegate reports whether the beginning of a line may become one of a directive.
func mayDelegate(start string) bool {
	const word = "delegate"
	start = strings.ToLower(halfWidth(start))
	n := min(len(start), len(word))
	return start[:n] == word[:n]
}

// plainFence shows the line that opens or closes a fence, the first n bytes, once it is
// known that neither an object nor a directive follows.
func (s *Stream) plainFence(n int) bool {
	next := strings.TrimLeft(s.pending[n:], " \t\n")
	line, _, whole := strings.Cut(next, "\n")
	_, _, _, is := directive(line)
	switch start := strings.TrimLeft(line, decoration); {
	case strings.HasPrefix(next, "{"):
		s.held = true
		return true
	case is:
		s.over = true
		return false
	case start == "" || !whole && mayDelegate(start):
		return false
	}
	return s.out(n)
}

// release shows what was held once it is no proposal.
func (s *Stream) release() bool {
	switch {
	case strings.Contains(s.pending, proposalKey):
		s.over = true
		return false
	case len(s.pending) > maxHeld || strings.Contains(s.pending, "}\n"):
		s.held = false
		i := strings.IndexByte(s.pending, '\n')
		return s.out(max(i+1, min(len(s.pending), 1)))
	}
	return false
}

// capitals are the words that begin a directive within a line.
var capitals = []string{"DELEGATE", "ＤＥＬＥＧＡＴＥ"}

// inLine is where a line has the first of capitals, -1 where it has none.
func inLine(line string) int {
	for _, w := range capitals {
		if i := strings.Index(line, w); i >= 0 {
			return i
		}
	}
	return -1
}

// safe is how much of a line may be shown: all of it where it is whole, else up to what
// may become a directive.
func safe(line string, whole bool) int {
	if whole {
		return len(line)
	}
	if i := inLine(line); i >= 0 && len(line)-i < len(capitals[1])+20 {
		return i
	}
	for _, w := range capitals {
		for n := min(len(w)-1, len(line)); n > 0; n-- {
			if strings.HasSuffix(line, w[:n]) {
				return len(line) - n
			}
		}
	}
	return len(line)
}
