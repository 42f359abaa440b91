package planning

import (
	"cmp"
	"fmt"

	"toritsugi/internal/turn"
)

// next is what the model is asked now, with the results of its calls or after an
// answer without one: nothing where it still owes an answer, or all is done.
func (l *Coordinator) next() (kind, text string) {
	s := &l.s
	found := s.Loop.Stage != turn.StageNone
	switch {
	case l.stuck() || s.Want == askPeople:
		return "", ""
	case s.Want != "" && (!found || s.Want != askSubtask):
		return l.wanted()
	case s.Told != "" && s.Asked != "" && (!found || s.Asked != askSubtask):
		return askNudge, s.Told
	case found && (s.Asked != "" || l.plan != nil):
		return l.circled()
	case l.plan == nil && s.Asked == "":
		return askPlan, l.planAsk()
	case s.Asked == "":
		return l.start("")
	case s.Without != "":
		return askNudge, l.prompts.render("without", Ask{Tool: s.Without, Times: s.Missed[s.Without]})
	case s.Asked == askSubtask && l.settings.Reflect:
		return l.reflection()
	}
	return "", ""
}

// circled is what the model is asked where it goes round in circles.
func (l *Coordinator) circled() (kind, text string) {
	s := &l.s
	what := s.Loop.What(l.prompts.Lang)
	if working := s.Asked == askSubtask || s.Asked == "" && s.Current != ""; s.Loop.Stage == turn.StageReplan && working && l.settings.Replan.MaxTotal > 0 {
		return askReplan, l.told(l.replanAsk(what))
	}
	nudge := l.prompts.render("nudge", Ask{What: what, Times: s.Loop.Count})
	if s.Asked != "" {
		return askNudge, nudge
	}
	if kind, text = l.start(""); kind != "" {
		text = nudge + "\n" + text
	}
	return kind, text
}

// reflection asks how it goes, where something failed or it was not asked for long.
// A command that has just ended well needs no reflection, nor does a small plan
// before it is in trouble.
func (l *Coordinator) reflection() (kind, text string) {
	s := &l.s
	erred := s.Erred != "" && l.settings.ReflectOnError
	due := l.settings.ReflectionInterval > 0 && s.Since >= l.settings.ReflectionInterval && !s.Well
	if l.small() {
		erred, due = erred && s.Trouble > 1, false
	}
	if !erred && !due {
		return "", ""
	}
	ask := Ask{OnError: erred, Action: s.Erred, Actions: s.Since, Lessons: l.settings.Past.forReflection()}
	return askReflect, l.told(l.prompts.render("reflection", ask))
}

// small reports whether the plan is one subtask that the model finds easy: then it
// works as without a plan.
func (l *Coordinator) small() bool {
	return len(l.order) == 1 && l.plan.Decomposition.Subtasks[0].Complexity == "low"
}

// start is how work on the next subtask begins, or goes on; why is said first.
func (l *Coordinator) start(why string) (kind, text string) {
	id := cmp.Or(l.s.Current, l.pick())
	if id == "" {
		return "", ""
	}
	t, _ := l.plan.Subtask(id)
	left := l.left()
	ask := Ask{K: len(l.order) - left + 1, N: len(l.order), Subtask: t, Last: left == 1, Small: l.small() && l.s.Counts.Total == 0}
	ask.Lessons = l.settings.Past.forSubtask(t)
	if l.s.Fresh {
		ask.Uncertain, ask.Gaps = l.settings.Pre.uncertain(&l.plan.Goal), l.gaps()
	}
	text = l.prompts.render("subtask", ask)
	if why != "" {
		text = line(why) + "\n\n" + text
	}
	return askSubtask + "/" + id, l.told(text)
}

// wanted is what is to be asked out of turn.
func (l *Coordinator) wanted() (kind, text string) {
	s := &l.s
	switch kind = s.Want; kind {
	case askPlan:
		text = l.planAsk()
	case askRevise:
		left := l.settings.MaxRevisions - s.Revisions - 1
		if s.Replanned {
			left = l.settings.Replan.MaxTotal - s.Counts.Total
		}
		done, open := l.parts()
		text = l.prompts.render("revision", Ask{Reason: s.Why, Done: done, Open: open, Left: max(left, 0)})
	case askReplan:
		text = l.replanAsk(s.Why)
	default:
		return l.start(s.Why)
	}
	return kind, l.told(text)
}

// planAsk asks for the plan, at first with what earlier runs left; or for another one,
// with why and what stays.
func (l *Coordinator) planAsk() string {
	ask, past := Ask{Facts: l.settings.Facts}, l.settings.Past
	switch {
	case l.plan != nil:
		ask.Lessons = []string{l.prompts.word("why a new plan is asked for: ", "新しい計画を求める理由: ") + l.s.Why}
		done, _ := l.parts()
		for _, t := range done {
			ask.Lessons = append(ask.Lessons, fmt.Sprintf(l.prompts.word("%s is done and stays so: %s", "%s は完了しており、そのまま残ります: %s"), t.ID, l.prompts.Lang.Retold(l.s.Results[t.ID].Summary)))
		}
	case l.s.Want == "":
		ask.Earlier, ask.Held, ask.Lessons = past.earlier(), past.holds(), past.forPlan()
	}
	return l.prompts.render("plan", l.settings.Pre.of(ask))
}

func (l *Coordinator) replanAsk(what string) string {
	done, open := l.parts()
	return l.prompts.render("replan", Ask{Where: cmp.Or(l.s.Where, l.s.Current), Errors: append([]string{what}, l.s.Errors...), Done: done, Open: open, Left: max(l.settings.Replan.MaxTotal-l.s.Counts.Total-1, 0)})
}
