package planning

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"toritsugi/internal/i18n"
)

// earlier reports whether a plan of an earlier run stands in the conversation.
func (p *Past) earlier() bool {
	return p != nil && !p.Hidden && len(p.Runs) > 0 && len(p.Runs[0].Subtasks) > 0
}

// holds reports whether the files hold what the run of that plan committed.
func (p *Past) holds() bool { return p.earlier() && p.Held }

// take settles what a plan says of the earlier one, and returns the subtasks that
// need not be done again. Those are the ones that the model names, in a plan that
// goes on with the earlier one, where that run had done them and the files hold
// what it committed: elsewhere its work is known by words alone, and is done anew.
func (p *Past) take(plan *Plan) (done []SubtaskResult) {
	if !p.earlier() {
		plan.Previous = nil
		return nil
	}
	if plan.Previous == nil || plan.Previous.Use == "" {
		plan.Previous = &Previous{Use: ReferenceOnly, Reasoning: "the plan does not say"}
	}
	if plan.Previous.Use != Continue || !p.Held {
		return nil
	}
	last := p.Runs[0]
	for _, s := range last.Subtasks {
		t, ok := plan.Subtask(s.ID)
		if ok && s.Status == Done && slices.Contains(plan.Previous.Done, s.ID) && same(t.Description, s.Description) {
			done = append(done, SubtaskResult{ID: s.ID, Status: Done, Summary: brief(i18n.Recorded("earlier_result", last.UUID[:min(8, len(last.UUID))], s.Summary), pastLine)})
		}
	}
	return done
}

// What is made of an earlier plan (inherit §10.3).
const (
	Continue      = "continue"
	ReferenceOnly = "reference_only"
)

// same reports whether two texts describe one subtask.
func same(a, b string) bool {
	x, y := terms(a), terms(b)
	return brief(a, pastLine) == b || 2*common(x, y) >= max(len(x), len(y)) && len(x) > 0
}

// forPlan is what is to be known when a plan is made: what worked first, then
// dependencies and complexity, then what failed and what helped (inherit §10.4.2, §10.4.3).
func (p *Past) forPlan() (all []string) {
	if p == nil {
		return nil
	}
	add := func(head string, list []string, most int) {
		for _, s := range list[:min(len(list), most)] {
			all = append(all, head+s)
		}
	}
	add("worked: ", p.worked(), shownAdvice)
	add("lesson: ", p.lessons(), shownAdvice)
	add("dependency: ", p.dependencies(), shownAdvice)
	add("complexity: ", p.complexities(), shownAdvice)
	add("avoid: ", p.failed(), shownAdvice)
	add("avoid: ", p.missed(), shownAdvice)
	add("recovery: ", p.recovered(), shownAdvice)
	add("", p.troubles(), 3)
	return all[:min(len(all), shownLessons)]
}

// dependencies are those that earlier plans had in the end.
func (p *Past) dependencies() (all []string) {
	for _, r := range p.Runs {
		text := map[string]string{}
		for _, s := range r.Subtasks {
			text[s.ID] = brief(s.Description, pastGist/2)
		}
		for _, s := range r.Subtasks {
			for _, on := range s.After {
				if text[on] != "" {
					all = appendNew(all, fmt.Sprintf("%q came after %q", text[s.ID], text[on]))
				}
			}
		}
	}
	return all
}

// complexities are the estimates that the work did not bear out.
func (p *Past) complexities() (all []string) {
	for _, r := range p.Runs {
		for _, s := range r.Subtasks {
			if was := s.measured(); was != "" && s.Estimated != "" && was != s.Estimated {
				all = appendNew(all, fmt.Sprintf("%q was estimated %s and was %s: %d calls, %d of them failed", brief(s.Description, pastGist), s.Estimated, was, s.Calls, s.Failed))
			}
		}
	}
	return all
}

// measured is how hard a subtask was by what it took, "" where that is not known.
func (s PastSubtask) measured() string {
	switch {
	case s.Calls == 0 && s.Missed == 0 || s.Status == "":
		return ""
	case s.Missed > 1 || s.Calls > 25 || s.Failed > 5:
		return "high"
	case s.Missed > 0 || s.Calls > 8 || s.Failed > 1:
		return "medium"
	}
	return "low"
}

// forSubtask is how the like of a subtask went, by the tools it is to use and by
// paths and words (inherit §10.5.1): what worked first.
func (p *Past) forSubtask(t Subtask, actions []Action) []string {
	if p == nil {
		return nil
	}
	words, tools := terms(t.Description), map[string]bool{}
	for _, name := range t.RequiredTools {
		tools[name] = true
	}
	for _, a := range actions {
		tools[a.Tool] = true
		maps.Copy(words, terms(a.Purpose+" "+subjectOf(a.Parameters)))
	}
	var good, bad likes
	for i, r := range p.Runs {
		for _, s := range r.Subtasks {
			n := 2 * common(words, terms(s.Description))
			switch {
			case n < 4 || s.Status == "":
			case s.Status == Done:
				how := ""
				if len(s.Tools) > 0 {
					how = " with " + strings.Join(s.Tools, " → ")
				}
				good.add(n, i, fmt.Sprintf("%q was done%s: %s", brief(s.Description, pastGist), how, s.Summary))
			default:
				bad.add(n, i, fmt.Sprintf("avoid: %q ended as %s: %s", brief(s.Description, pastGist), s.Status, s.Summary))
			}
		}
		for _, u := range r.Uses {
			n := 2 * common(words, terms(u.Subject))
			if n > 0 && tools[u.Tool] {
				n++
			}
			switch {
			case u.Check && !u.Last:
			case n == 0 && (!tools[u.Tool] || u.Failed == 0): // errors of a tool that is to be used are worth a word
			case u.Failed > 0:
				head := ""
				if !u.Last {
					head = "avoid: "
				}
				bad.add(n, i, head+u.trouble())
			case u.OK > 0 && u.Last:
				good.add(n, i, repeated(u.name()+" worked", u.OK)+strings.TrimSuffix(": "+u.Result, ": "))
			}
		}
	}
	if !p.Patterns {
		good = nil
	}
	fails := bad.best(shownLike)
	return append(good.best(max(shownLike-len(fails), shownLike/2)), fails[:min(len(fails), shownLike/2)]...)
}

// likes are lines by how much they are about the same, and of which run.
type likes []struct {
	score, run int
	text       string
}

func (l *likes) add(score, run int, text string) {
	for _, o := range *l {
		if o.text == text {
			return
		}
	}
	*l = append(*l, struct {
		score, run int
		text       string
	}{score, run, text})
}

// best are the n lines that are most alike; of those, the latest run's first.
func (l likes) best(n int) (all []string) {
	slices.SortStableFunc(l, func(a, b struct {
		score, run int
		text       string
	}) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.run, b.run))
	})
	for _, o := range l[:min(len(l), n)] {
		all = append(all, o.text)
	}
	return all
}

// forReflection is what earlier reflections found, what plans were changed for,
// and which changes worked (inherit §10.5.2): those first.
func (p *Past) forReflection() (all []string) {
	if p == nil {
		return nil
	}
	for _, worked := range []bool{true, false} {
		for _, r := range p.Runs {
			for _, c := range r.Changes {
				if c.Worked == worked && (p.Patterns || !worked) {
					all = appendNew(all, c.text())
				}
			}
		}
	}
	return all[:min(len(all), shownLike)]
}

// forVerification is what the verifications of the task found so far (inherit
// §10.6): by which criteria, which placeholders, what was open, and what work they
// added.
func (p *Past) forVerification() (all []string) {
	if p == nil {
		return nil
	}
	add := func(head string, list []string, most int) {
		for _, s := range list[:min(len(list), most)] {
			all = append(all, head+s)
		}
	}
	open, resolved := p.issues()
	add("open in the last run: ", open, shownLike)
	add("a criterion of earlier runs: ", p.criteria(), shownLike)
	add("a placeholder was found at ", p.places(), shownLike)
	add("found earlier, and resolved then: ", resolved, shownLike)
	add("work that verifications added: ", p.added(), shownAdvice)
	return all[:min(len(all), shownLessons)]
}

// terms are what a text is about: words of three letters or more, paths with
// their last part, and pairs of signs where words are not set apart.
func terms(s string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._/-", c)
	}) {
		if w = strings.Trim(w, "./-_"); len(w) < 3 || commonWords[w] {
			continue
		}
		if runes := []rune(w); runes[0] >= 0x2E80 || runes[len(runes)-1] >= 0x2E80 {
			for i := range len(runes) - 1 {
				all[string(runes[i:i+2])] = true
			}
			continue
		}
		all[w] = true
		if base := path.Base(w); len(base) >= 3 {
			all[base] = true
		}
	}
	return all
}

// commonWords say nothing of what a text is about.
var commonWords = map[string]bool{"the": true, "and": true, "for": true, "with": true, "that": true, "this": true, "not": true, "from": true, "into": true, "are": true, "all": true, "has": true}

// common is how many terms two texts share.
func common(a, b map[string]bool) (n int) {
	for w := range a {
		if b[w] {
			n++
		}
	}
	return n
}
