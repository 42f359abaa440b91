package planning

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// errOther says that a result is of another subtask than the one at hand.
var errOther = errors.New("the result is of another subtask")

// result is the result of the subtask at hand that an answer gives. The word that
// everything is done counts for this subtask alone: what else is open has no
// result yet. errOther comes with the result that it is about.
func (l *Lead) result(text string) (SubtaskResult, error) {
	s := &l.s
	r, err := Parse[SubtaskResult](KindSubtask, text)
	c, cerr := Parse[Completion](KindCompletion, text)
	done := cerr == nil && c.Done
	switch {
	case err == nil && r.ID != "" && r.ID != s.Current:
		return r, errOther
	case err != nil && !done:
		return r, err
	case err != nil:
		r = SubtaskResult{Status: Done, Summary: c.words()}
		if c.Summary != nil && slices.Contains(c.Summary.TasksFailed, s.Current) {
			r.Status = Failed
		}
	}
	if l.drawn = nil; done && c.Summary != nil {
		l.drawn = lessonsOf(c.Summary.Lessons)
	}
	if r.ID = s.Current; done && l.left() == 1 {
		s.Said = c.words()
	}
	return r, nil
}

// worked takes an answer that ends a subtask, or should.
func (l *Lead) worked(m contextstore.Message) error {
	s := &l.s
	r, err := l.result(m.Content)
	if err != nil && !errors.Is(err, errOther) {
		l.talked(m)
	}
	silent, guard := l.silent(err), s.Guard
	switch {
	case err == nil:
	case errors.Is(err, errOther):
		if s.Tried++; s.Tried <= maxTries {
			s.Asked, s.Want, s.Why = "", askSubtask, fmt.Sprintf(l.prompts.word("That was the result of %s; the subtask at hand is %s.", "それは %s の結果です。手元のサブタスクは %s です。"), line(r.ID), s.Current)
			return nil
		}
		if _, other := l.plan.Subtask(r.ID); other {
			r.Status, r.Summary = Failed, i18n.Recorded("other_result", r.ID, r.Summary)
		}
		r.ID = s.Current
	case l.again(askSubtask, err):
		return nil
	case slices.Contains(Detect(m.Content), KindSubtask), isObject(m.Content):
		l.log.Warn("The result of "+s.Current+" cannot be read", "error", err)
		r = SubtaskResult{ID: s.Current, Status: Failed, Summary: i18n.Recorded("no_result")}
	default: // it does not say it in our words: its own count
		r = SubtaskResult{ID: s.Current, Status: Done, Summary: m.Content}
	}
	e := l.end(r)
	if silent {
		s.Guard = guard
	}
	return l.record(m, e)
}

// isObject reports whether a text begins as an object, in a fence or not: then it
// is no report in words.
func isObject(text string) bool {
	text = strings.TrimSpace(text)
	if fence, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(fence, "```") {
		text = strings.TrimSpace(rest)
	}
	return strings.HasPrefix(text, "{")
}

// end notes how the subtask at hand ended, and has the model decide about one
// that did not end well.
func (l *Lead) end(r SubtaskResult) Entry {
	s := &l.s
	r.Summary = line(r.Summary)
	s.Results[r.ID] = r
	s.Asked, s.Under, s.Current, s.Want, s.Why, s.Tried, s.Fresh = "", "", "", "", "", 0, false
	s.Guard = Guard{Turn: s.Guard.Turn}
	l.log.Info("Subtask "+r.ID+": "+r.Status, "left", l.left())
	switch r.Status {
	case Done:
		s.Counts = s.Counts.Done(r.ID)
	case Skipped:
	default:
		s.Redone = false
		if l.settings.Replan.MaxTotal > 0 {
			s.Want, s.Where, s.Why = askReplan, r.ID, l.prompts.Lang.Retold(i18n.Recorded(r.Status, r.ID, r.Summary))
		}
	}
	l.learn(l.drawn)
	return Entry{Subtask: &SubtaskRecord{ID: r.ID, Status: r.Status, Summary: r.Summary, Lessons: l.drawn}}
}

// words are what a completion tells people.
func (c Completion) words() string {
	if c.Summary == nil {
		return cut(c.Comment)
	}
	return cut(strings.TrimSpace(c.Comment + "\n\n" + strings.Join(c.Summary.KeyOutcomes, "\n")))
}

// Words are what the model told people of the result: at its end, where a budget
// ended it to whoever goes on, or of each subtask; for readers of a language where
// the program says it for the model.
func (l *Lead) Words(lang i18n.Lang) string {
	if l.s.Left != "" {
		return l.s.Left
	}
	if l.s.Said != "" {
		return l.s.Said
	}
	var b strings.Builder
	for _, id := range l.order {
		if r := l.s.Results[id]; r.Summary != "" {
			fmt.Fprintf(&b, "- %s: %s\n", id, lang.Retold(r.Summary))
		}
	}
	return b.String()
}

// maxSaid is how much of the model's last words is kept, in bytes.
const maxSaid = 4000

func cut(s string) string {
	if s = strings.TrimSpace(s); len(s) > maxSaid {
		s = strings.ToValidUTF8(s[:maxSaid], "") + "…"
	}
	return s
}
