package planning

import "encoding/json"

// form is the schema of the answer that is asked for once more, because the one
// before could not be used; nil for every other answer. A schema at the first
// try would cost the provider's cache, which has it before the messages, and
// forbid the tools that an answer may need first.
func (l *Lead) form() json.RawMessage {
	if l.s.Form == "" {
		return nil
	}
	return Schema(l.s.Form)
}

// formed is the kind whose form the answer to what is asked now must have: that
// of the answer that could not be used, where it is asked for again and the run
// does not go round in circles with it.
func (l *Lead) formed(kind string) AnswerKind {
	if l.wrong == nil || kind != l.s.Want || l.s.Loop.Stage != StageNone {
		return ""
	}
	return l.wrong.Kind
}
