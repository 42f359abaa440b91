package openai

import "strings"

// The marks that models put around their thoughts. Servers without a reasoning
// parser (LM Studio, vLLM, llama.cpp by default) leave them in the text.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinking takes the thoughts that a text begins with out of it, as it streams.
// A text that begins otherwise passes unchanged, and at once.
type thinking struct {
	state thinkState
	blank strings.Builder // the white space that the text begins with
	held  string          // not yet told apart
}

const space = " \t\r\n"

type thinkState int

const (
	thinkStart  thinkState = iota // nothing but white space or half a mark came
	thinkInside                   // between the marks
	thinkAfter                    // the white space behind the thoughts
	thinkText
)

// split takes the next piece of the text and returns what it adds to the
// thoughts and to the answer.
func (t *thinking) split(piece string) (thoughts, answer string) {
	if t.state == thinkText {
		return "", piece
	}
	if t.state == thinkStart && t.held == "" { // white space is looked at once, however it comes
		begun := strings.TrimLeft(piece, space)
		t.blank.WriteString(piece[:len(piece)-len(begun)])
		piece = begun
	}
	t.held += piece
	if t.state == thinkStart {
		switch {
		case strings.HasPrefix(t.held, thinkOpen):
			t.state, t.held = thinkInside, t.held[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, t.held):
			return "", ""
		default:
			thoughts, answer = t.end()
			t.state = thinkText
			return thoughts, answer
		}
	}
	if t.state == thinkInside {
		if before, after, found := strings.Cut(t.held, thinkClose); found {
			thoughts, t.held, t.state = before, after, thinkAfter
		} else {
			return t.take(len(t.held) - half(t.held, thinkClose)), ""
		}
	}
	if t.held = strings.TrimLeft(t.held, space); t.held != "" {
		t.state = thinkText
	}
	return thoughts, t.take(len(t.held))
}

// end returns what was held back when the text ended.
func (t *thinking) end() (thoughts, answer string) {
	switch t.state {
	case thinkInside:
		return t.take(len(t.held)), ""
	case thinkStart:
		return "", t.blank.String() + t.take(len(t.held))
	}
	return "", t.take(len(t.held))
}

func (t *thinking) take(n int) string {
	s := t.held[:n]
	t.held = t.held[n:]
	return s
}

// half is the length of the longest end of s that mark begins with.
func half(s, mark string) int {
	for n := min(len(s), len(mark)-1); n > 0; n-- {
		if strings.HasPrefix(mark, s[len(s)-n:]) {
			return n
		}
	}
	return 0
}
