package planning

import (
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/memory"
)

// What is made of an earlier plan (inherit §10.3).
const (
	Continue      = "continue"
	ReferenceOnly = "reference_only"
)

// earlier reports whether a plan of an earlier run stands in the conversation.
func (p *EarlierRuns) earlier() bool {
	return p != nil && !p.Hidden && len(p.Runs) > 0 && len(p.Runs[0].Subtasks) > 0
}

// holds reports whether the files hold what the run of that plan committed.
func (p *EarlierRuns) holds() bool { return p.earlier() && p.Held }

// take settles what a plan says of the earlier one, and returns the subtasks that
// need not be done again. Those are the ones that the model names, in a plan that
// goes on with the earlier one, where that run had done them and the files hold
// what it committed: elsewhere its work is known by words alone, and is done anew.
func (p *EarlierRuns) take(plan *Plan) (done []SubtaskRecord) {
	if !p.earlier() {
		plan.Previous = nil
		return nil
	}
	if plan.Previous == nil || plan.Previous.Use == "" {
		plan.Previous = &Previous{Use: ReferenceOnly, Reasoning: "the plan does not say"}
	}
	for _, s := range p.Runs[0].Subtasks {
		t, known := plan.Subtask(s.ID)
		if known && p.Held && plan.Previous.Use == Continue && s.Status == Done && slices.Contains(plan.Previous.Done, s.ID) && same(t.Description, s.Description) {
			done = append(done, SubtaskRecord{ID: s.ID, Status: Done, Summary: brief(i18n.Recorded("earlier_result", fmt.Sprintf("%.8s", p.Runs[0].UUID), s.Summary), pastLine)})
		}
	}
	return done
}

// told are the lessons of some kinds, in that order, the latest run's first, and so
// many of each at most.
func (p *EarlierRuns) told(each int, kinds ...string) (all []string) {
	if p == nil {
		return nil
	}
	for _, kind := range kinds {
		var some []string
		for _, r := range p.Runs {
			for _, l := range r.Lessons {
				if l.Kind == kind {
					some = append(some, p.Lang.T("planning.lesson_"+kind)+": "+l.Text)
				}
			}
		}
		all = append(all, some[:min(len(some), each)]...)
	}
	return all
}

// forPlan is what is to be known when a plan is made: what worked before what
// failed and what helped (inherit §10.4.2, §10.4.3).
func (p *EarlierRuns) forPlan() []string {
	return p.told(3, "worked", "lesson", "avoid", "recovery", "plan change that worked", "plan change")
}

// forReflection is what plans were changed for, the changes that worked first, and
// what reflections found (inherit §10.5.2).
func (p *EarlierRuns) forReflection() []string {
	return p.told(2, "plan change that worked", "reflection", "plan change")
}

// forVerification is what the verifications of the task found (inherit §10.6).
func (p *EarlierRuns) forVerification() []string {
	return p.told(4, "open", "criterion", "placeholder", "resolved", "work added")
}

// forSubtask is how the like of a subtask went, by its words and by the tools that
// it is to use: what worked first (inherit §10.5.1).
func (p *EarlierRuns) forSubtask(t Subtask) []string {
	words := terms(t.Description + " " + strings.Join(t.RequiredTools, " "))
	like := func(least int, kinds ...string) []string {
		shared := func(s string) int { return common(words, terms(s)) }
		all := slices.DeleteFunc(p.told(pastKept, kinds...), func(s string) bool { return shared(s) < least })
		slices.SortStableFunc(all, func(a, b string) int { return shared(b) - shared(a) })
		return all[:min(len(all), 3)]
	}
	return append(like(2, "done", "worked"), like(1, "avoid", "recovery")...)
}

// Sections are what the inherited message says of p (inherit §10.8).
func (p *EarlierRuns) Sections() memory.Sections {
	if p == nil || len(p.Runs) == 0 {
		return memory.Sections{}
	}
	whole, open := p.told(pastList, "plan"), p.told(1, "plan")
	for _, s := range p.Runs[0].Subtasks {
		if whole = append(whole, s.Line); s.Status != Done {
			open = append(open, s.Line)
		}
	}
	s := memory.Sections{
		Plan: p.section("plan", whole), Outline: p.section("plan", open),
		Tools:    p.section("tools", p.told(6, "worked", "avoid", "recovery", "plan change that worked", "plan change")),
		Verified: p.section("verified", p.told(pastList, "verification", "open", "resolved", "criterion", "placeholder", "work added")),
		Advice:   p.section("advice", p.told(3, "worked", "avoid", "lesson", "open")),
	}
	if len(p.Runs) > 1 {
		q := *p
		q.Runs = p.Runs[:len(p.Runs)-1]
		fewer := q.Sections()
		s.Fewer = &fewer
	}
	return s
}

// section writes a heading and lines; nothing where there are no lines.
func (p *EarlierRuns) section(name string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "## " + p.Lang.T("planning.past_"+name) + "\n- " + strings.Join(lines, "\n- ")
}

// same reports whether two texts describe one thing.
func same(a, b string) bool {
	x, y := terms(a), terms(b)
	return brief(a, pastLine) == b || 2*common(x, y) >= max(len(x), len(y)) && len(x) > 0
}

// terms are what a text is about: words of three letters or more, and pairs of
// signs where words are not set apart.
func terms(s string) map[string]bool {
	all := map[string]bool{}
	for _, w := range wordsOf(s) {
		switch runes := []rune(w); {
		case strings.ContainsFunc(w, func(r rune) bool { return r >= 0x2E80 }):
			for i := range runes[1:] {
				all[string(runes[i:i+2])] = true
			}
		case len(runes) > 2 && !slices.Contains(strings.Fields("the and for with that this not from into are all has"), w):
			all[w] = true
		}
	}
	return all
}

// common is how many terms two texts share.
func common(a, b map[string]bool) (n int) {
	for w := range a {
		if b[w] {
			n++
		}
	}
	return n
}

// brief is a text on one line of at most n runes; it looks at no more of a long one
// than it may need.
func brief(s string, n int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 8*maxEntry)], "\uFFFD")), " ")
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

func appendNew(all []string, s string) []string {
	if s == "" || slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// What is kept of the lessons that a model draws, of a completion and of a run.
const maxLessons = 8

// learn keeps the lessons of a completion in mind, of too many the latest, and
// returns them as they are recorded.
func (co *Coordinator) learn(all []string) (list []string) {
	for _, s := range all[:min(len(all), maxLessons)] {
		s = brief(s, pastLine)
		list = appendNew(list, s)
		co.s.Lessons = appendNew(co.s.Lessons, s)
	}
	co.s.Lessons = latest(co.s.Lessons, maxLessons)
	return list
}

// Lessons are what the model says it learned in the run, in a line each.
func (co *Coordinator) Lessons() []string { return slices.Clone(co.s.Lessons) }

// noteScan records the placeholders that a scan found, before the model is asked
// about the result: the verifications of later runs are told of them. They are
// those found after the last answer; a run that is taken up records them once.
func (co *Coordinator) noteScan(e Evidence) error {
	if s := &co.s; len(e.Placeholders) == 0 || s.judged() || s.Asked == askVerify {
		return nil
	}
	var all []string
	for _, s := range e.Placeholders[:min(len(e.Placeholders), pastList)] {
		all = append(all, brief(s, pastLine))
	}
	_, err := co.history.Append(Entry{Seq: co.s.Answer, Scan: &ScanRecord{Placeholders: all}})
	return err
}
