package routing

// Delegation is what Chat hands over to a route (spec/chat §4).
type Delegation struct {
	Route Route  // never Chat
	Task  string // "" where Chat gave none: it is asked for once
}

// ParseDelegation finds the first DELEGATE in an answer of Chat's: a line of its own, with
// prefaces before it, in a fence, in any case, with full-width letters. rest is what else
// the answer says to the user, without any trace of it; the whole answer where there is
// none. A DELEGATE to no known route is taken out, too, and found is false.
func ParseDelegation(answer string) (d Delegation, rest string, found bool) {
	return Delegation{}, answer, false
}

// Proposal is what Chat proposes at the end of its answer (route §3.4).
type Proposal struct {
	Next       bool // propose_next_loop
	Route      Route
	Reason     string
	Confidence float64 // 0 to 1
}

// ParseProposal takes the proposal out of an answer of Chat's: its last fenced JSON object
// with propose_next_loop, or one at its very end without a fence. rest is the answer
// without it, also where it is no valid one and ok is false.
func ParseProposal(answer string) (p Proposal, rest string, ok bool) {
	return Proposal{}, answer, false
}

// Stream lets through of an answer, while it is written, what can be no part of a
// delegation or a proposal. What it holds back to the end is in the answer that the
// parsers return.
type Stream struct {
	show func(delta string)
}

// NewStream returns a Stream that calls show with what may be seen.
func NewStream(show func(delta string)) *Stream { return &Stream{show: show} }

// Write takes the next piece of the answer.
func (s *Stream) Write(delta string) {}
