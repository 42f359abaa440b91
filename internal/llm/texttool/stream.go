package texttool

import "strings"

// stream passes an answer's text on as it comes, up to where a call may begin;
// what follows waits for the end, when it is known what is a call.
type stream struct {
	out  func(string)
	text strings.Builder // what came
	sent int             // how much of it was passed on
	held bool            // a call may have begun
}

func (s *stream) add(piece string) {
	if s.held {
		return
	}
	s.text.WriteString(piece)
	all := s.text.String()
	end := len(all)
	if i := strings.IndexAny(all[s.sent:], "{`<"); i >= 0 {
		end, s.held = s.sent+i, true
	}
	// White space at the end may stand before a block, and goes with it.
	if end = len(strings.TrimRight(all[:end], " \t\r\n")); end > s.sent {
		s.out(all[s.sent:end])
		s.sent = end
	}
}

// end passes on what the answer's text has beyond what was. Where a call was
// repeated midway, its text begins anew.
func (s *stream) end(text string) {
	if s.out == nil {
		return
	}
	if rest, found := strings.CutPrefix(text, s.text.String()[:s.sent]); found {
		text = rest
	}
	if text != "" {
		s.out(text)
	}
}
