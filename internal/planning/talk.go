package planning

import (
	"errors"

	"toritsugi/internal/contextstore"
)

// talked takes in an answer without a call where work was to be done, and that is
// nothing of what was asked for.
func (l *Lead) talked(m contextstore.Message) {
	if f := l.s.Guard.Said(m.Seq, HashText(m.Content), l.settings.Guard); f.Stage != StageNone {
		l.s.Loop = f
	}
}

// silent reports whether nothing was done for the subtask at hand, and err says
// that its end was talk: what is counted of that goes on with the next one.
func (l *Lead) silent(err error) bool {
	return err != nil && !errors.Is(err, errOther) && len(l.s.Guard.Recent) == 0
}

// circled is what the model is asked where its answers without calls go in
// circles; "" where nothing is to be said of that, or something else comes first.
func (l *Lead) circled() (kind, text string, err error) {
	s := &l.s
	f := s.Loop
	switch {
	case f.Stage == StageNone:
		return "", "", nil
	case f.Stage == StageStop:
		return "", "", &StuckError{Loop: f}
	case l.plan == nil || s.Asked != "" || s.Want != "" && s.Want != askSubtask:
		return "", "", nil
	case f.Stage == StageReplan && s.Current != "" && l.settings.Replan.MaxTotal > 0:
		return askReplan, l.told(l.replanAsk(f.What(l.prompts.Lang))), nil
	}
	if kind, text, err = l.start(""); kind == "" {
		return "", "", err
	}
	return kind, l.prompts.Nudge(NudgeAsk{What: f.What(l.prompts.Lang), Times: f.Count}) + "\n" + text, err
}
