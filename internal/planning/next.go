package planning

import (
	"cmp"
	"fmt"
	"strings"

	"toritsugi/internal/turn"
)

// next is what the model is asked now, with the results of its calls or after an
// answer without one: nothing where it still owes an answer, or all is done.
func (co *Coordinator) next() (kind, text string) {
	s := &co.s
	found := s.Loop.Stage != turn.StageNone
	switch {
	case co.stuck() || s.Want == askPeople:
		return "", ""
	case s.Want != "" && (!found || s.Want != askSubtask):
		return co.askOutOfTurn()
	case s.Told != "" && s.Asked != "" && (!found || s.Asked != askSubtask):
		return askNudge, s.Told
	case found && (s.Asked != "" || co.plan != nil):
		return co.circled()
	case co.plan == nil && s.Asked == "":
		return askPlan, co.planAsk()
	case s.Asked == "":
		return co.start("")
	case s.Without != "":
		return askNudge, co.prompts.render("without", Ask{Tool: s.Without, Times: s.Missed[s.Without]})
	case s.Asked == askSubtask && co.settings.Reflect:
		return co.reflection()
	}
	return "", ""
}

// circled is what the model is asked where it goes round in circles.
func (co *Coordinator) circled() (kind, text string) {
	s := &co.s
	what := s.Loop.What(co.prompts.Lang)
	if working := s.Asked == askSubtask || s.Asked == "" && s.Current != ""; s.Loop.Stage == turn.StageReplan && working && co.settings.Replan.MaxTotal > 0 {
		return askReplan, co.told(co.replanAsk(what))
	}
	nudge := co.prompts.render("nudge", Ask{What: what, Times: s.Loop.Count})
	if s.Asked != "" {
		return askNudge, nudge
	}
	if kind, text = co.start(""); kind != "" {
		text = nudge + "\n" + text
	}
	return kind, text
}

// reflection asks how it goes, where something failed or it was not asked for long.
// A command that has just ended well needs no reflection, nor does a small plan
// before it is in trouble.
func (co *Coordinator) reflection() (kind, text string) {
	s := &co.s
	erred := s.Erred != "" && co.settings.ReflectOnError
	due := co.settings.ReflectionInterval > 0 && s.Since >= co.settings.ReflectionInterval && !s.Well
	if co.small() {
		erred, due = erred && s.Trouble > 1, false
	}
	if !erred && !due {
		return "", ""
	}
	ask := Ask{OnError: erred, Action: s.Erred, Actions: s.Since, Lessons: co.settings.Earlier.forReflection()}
	return askReflect, co.told(co.prompts.render("reflection", ask))
}

// small reports whether the plan is one subtask that the model finds easy: then it
// works as without a plan.
func (co *Coordinator) small() bool {
	return len(co.order) == 1 && strings.EqualFold(strings.TrimSpace(co.plan.Decomposition.Subtasks[0].Complexity), "low")
}

// start is how work on the next subtask begins, or goes on; why is said first.
func (co *Coordinator) start(why string) (kind, text string) {
	id := cmp.Or(co.s.Current, co.pick())
	if id == "" {
		return "", ""
	}
	t, _ := co.plan.Subtask(id)
	left := co.left()
	ask := Ask{K: len(co.order) - left + 1, N: len(co.order), Subtask: t, Last: left == 1, Small: co.small() && co.s.Counts.Total == 0}
	ask.Lessons = co.settings.Earlier.forSubtask(t)
	if co.s.Fresh {
		ask.Uncertain, ask.Gaps = co.settings.Pre.uncertain(&co.plan.Goal), co.gaps()
	}
	text = co.prompts.render("subtask", ask)
	if why != "" {
		text = line(why) + "\n\n" + text
	}
	return askSubtask + "/" + id, co.told(text)
}

// askOutOfTurn is what is to be asked out of turn.
func (co *Coordinator) askOutOfTurn() (kind, text string) {
	s := &co.s
	switch kind = s.Want; kind {
	case askPlan:
		text = co.planAsk()
	case askRevise:
		left := co.settings.MaxRevisions - s.Revisions - 1
		if s.Replanned {
			left = co.settings.Replan.MaxTotal - s.Counts.Total
		}
		done, open := co.parts()
		text = co.prompts.render("revision", Ask{Reason: s.Why, Done: done, Open: open, Left: max(left, 0)})
	case askReplan:
		text = co.replanAsk(s.Why)
	default:
		return co.start(s.Why)
	}
	return kind, co.told(text)
}

// planAsk asks for the plan, at first with what earlier runs left; or for another one,
// with why and what stays.
func (co *Coordinator) planAsk() string {
	ask, past := Ask{}, co.settings.Earlier
	switch {
	case co.plan != nil:
		ask.Lessons = []string{co.prompts.word("why a new plan is asked for: ", "新しい計画を求める理由: ") + co.s.Why}
		done, _ := co.parts()
		for _, t := range done {
			ask.Lessons = append(ask.Lessons, fmt.Sprintf(co.prompts.word("%s is done and stays so: %s", "%s は完了しており、そのまま残ります: %s"), t.ID, co.prompts.Lang.Translate(co.s.Results[t.ID].Summary)))
		}
	case co.s.Want == "":
		ask.Earlier, ask.Held, ask.Lessons = past.earlier(), past.holds(), past.forPlan()
	}
	return co.prompts.render("plan", co.settings.Pre.of(ask))
}

func (co *Coordinator) replanAsk(what string) string {
	done, open := co.parts()
	return co.prompts.render("replan", Ask{Where: cmp.Or(co.s.Where, co.s.Current), Errors: append([]string{what}, co.s.Errors...), Done: done, Open: open, Left: max(co.settings.Replan.MaxTotal-co.s.Counts.Total-1, 0)})
}
