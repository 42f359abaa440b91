package planning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// Evidence is what is known about the work from others than the model.
type Evidence struct {
	Checks   []CheckEvidence
	Changed  []string // files
	Findings []string // of the scan of the change

	Placeholders []string // of Findings, those of work that was not done
}

// Result is what a verification comes to.
type Result struct {
	Again bool     // there is more work, which Run leads
	Open  []string // what remains open, also that nothing was judged; nothing where all is met

	Criteria []Criterion // as the last verification judged them
}

// Verify has the model judge each success criterion by evidence, once the
// checks have passed. The errors are those of turn.Loop.
func (l *Lead) Verify(ctx context.Context, e Evidence) (Result, error) {
	s := &l.s
	if err := l.noteScan(e); err != nil {
		return Result{}, err
	}
	for l.settings.Verify && !s.Judged && (s.Asked == askVerify || s.Rounds < l.settings.MaxRounds) {
		if s.Asked != askVerify {
			if err := l.loop.Ask(ctx, askVerify, l.verification(e)); err != nil {
				return Result{}, err
			}
		}
		if err := l.turns(ctx); err != nil {
			return Result{}, err
		}
	}
	s.Judged = false // what is done after this is to be judged anew
	if l.left() > 0 {
		return Result{Again: true}, nil
	}
	last, err := l.history.Latest(func(e *Entry) bool { return e.Verification != nil })
	if err != nil || last == nil {
		return Result{Open: l.open()}, err
	}
	return Result{Open: l.open(), Criteria: last.Verification.Criteria}, nil
}

func (l *Lead) verification(e Evidence) string {
	if l.wrong != nil {
		return l.prompts.Retry(l.wrong)
	}
	ask := VerificationAsk{Round: l.s.Rounds + 1, MaxRounds: l.settings.MaxRounds, Criteria: l.criteria(), Checks: e.Checks, Changed: e.Changed}
	ask.Findings = append(l.unfinished(), e.Findings...)
	if l.s.Found != nil {
		ask.Earlier = l.s.Found.Issues
	}
	ask.Earlier = append(slices.Clip(ask.Earlier), l.settings.Past.forVerification()...)
	return l.told(l.prompts.Verification(ask))
}

// criteria are what the result is judged by.
func (l *Lead) criteria() []string {
	g := l.plan.Goal
	if len(g.SuccessCriteria) > 0 {
		return g.SuccessCriteria[:min(len(g.SuccessCriteria), maxEntries)]
	}
	return []string{cmp.Or(strings.TrimSpace(g.MainObjective), l.request, i18n.Recorded("criterion"))}
}

// findings are what the last verification came to, in short: the history has all
// of it.
type findings struct {
	Passed bool     `json:"passed"`
	Unread bool     `json:"unread,omitempty"` // no verification could be read; the issues are those of the one before
	Issues []string `json:"issues,omitempty"` // at most maxIssues
}

// How much of what a verification found is kept in mind: issues, and runes of
// each.
const (
	maxIssues = 20
	maxIssue  = 200
)

// judged takes the model's verification.
func (l *Lead) judged(m contextstore.Message) error {
	s := &l.s
	v, err := Parse[Verification](KindVerification, m.Content)
	if asked := len(l.criteria()); err == nil && len(v.Criteria) < asked {
		err = &ContractError{Kind: KindVerification, Violations: []Violation{{"$.criteria", fmt.Sprintf("expected each of the %d criteria, found %d", asked, len(v.Criteria))}}}
	}
	if err != nil && l.again(askVerify, err) {
		return nil
	}
	s.Asked, s.Want, s.Why, s.Tried, s.Judged = "", "", "", 0, true
	s.Rounds++
	if err != nil {
		l.log.Warn("No verification came: the result is not judged", "error", err)
		f := &findings{Unread: true}
		if s.Found != nil && !s.Found.Passed {
			f.Issues = s.Found.Issues
		}
		s.Found = f
		return l.record(m, Entry{Verification: &Verification{Phase: PhaseVerification, Issues: []string{i18n.Recorded("unread")}, Placeholder: PlaceholderReport{Locations: []string{}}}})
	}
	l.strict(&v)
	s.Found, s.Verified = &findings{Passed: v.Passed}, v.Passed
	for _, issue := range v.Issues[:min(len(v.Issues), maxIssues)] {
		issue = line(issue)
		if r := []rune(issue); len(r) > maxIssue {
			issue = string(r[:maxIssue]) + "…"
		}
		s.Found.Issues = append(s.Found.Issues, issue)
	}
	entries := []Entry{{Verification: &v}}
	if !v.Passed && s.Rounds < l.settings.MaxRounds {
		if p, more := l.extended(v); more {
			entries = append(entries, l.altered(i18n.Recorded("verification"), p, nil))
			s.Redone = true
		}
	}
	l.log.Info("Verification", "round", s.Rounds, "passed", v.Passed, "issues", len(v.Issues), "more", l.left())
	return l.record(m, entries...)
}

// strict adds to a verification what it passes over: criteria without evidence,
// and what it says itself or the subtasks' ends say of work that is not done.
func (l *Lead) strict(v *Verification) {
	passed := v.Passed
	object := func(issue string) { v.Issues, v.Passed = append(v.Issues, issue), false }
	for _, c := range v.Criteria {
		switch {
		case !c.Met && !passed && len(v.Issues) > 0: // among what it says
		case !c.Met:
			object(i18n.Recorded("unmet", line(c.Criterion)))
		case strings.TrimSpace(c.Evidence) == "":
			object(i18n.Recorded("no_evidence", line(c.Criterion)))
		}
	}
	if passed && v.More && v.Passed {
		object(i18n.Recorded("wants_more"))
	}
	if passed && v.Placeholder.Count > 0 {
		object(i18n.Recorded("placeholders", line(strings.Join(v.Placeholder.Locations, ", "))))
	}
	for _, open := range l.unfinished() {
		object(open)
	}
}

// unfinished are the subtasks that did not end well, and for which nothing was
// done since.
func (l *Lead) unfinished() (all []string) {
	if l.s.Redone {
		return nil
	}
	for _, id := range l.order {
		if r, over := l.s.Results[id]; over && r.Status != Done && r.Status != Skipped {
			all = append(all, i18n.Recorded(r.Status, id, r.Summary))
		}
	}
	return all
}

// extended is the plan with what the verification still wants done.
func (l *Lead) extended(v Verification) (Plan, bool) {
	room := min(l.room(), maxFixes)
	todo := slices.DeleteFunc(slices.Clone(v.Additional), func(a Action) bool { return strings.TrimSpace(a.Purpose+a.ExpectedOutcome) == "" })
	todo = todo[:min(len(todo), room)]
	if len(todo) == 0 && room > 0 {
		todo = []Action{{Purpose: i18n.Recorded("resolve", line(strings.Join(v.Issues, "; ")))}}
	}
	taken := map[string]bool{}
	for i := range todo {
		todo[i].TaskID = l.plan.freeID("verification_fix_1", taken)
		taken[todo[i].TaskID] = true
	}
	p := l.plan.Extend(todo, l.done())
	return p, len(p.Decomposition.Subtasks) > len(l.plan.Decomposition.Subtasks)
}

// maxFixes is how many further subtasks one verification may add.
const maxFixes = 10

// open is what remains to be done, or was not judged, after the last round.
func (l *Lead) open() []string {
	all := l.unfinished()
	v := l.s.Found
	switch {
	case v == nil || v.Passed:
		return all
	case v.Unread:
		all = append(all, i18n.Recorded("unread"))
	case len(v.Issues) == 0:
		return append(all, i18n.Recorded("not_passed"))
	}
	for _, issue := range v.Issues {
		if !slices.ContainsFunc(all, func(known string) bool { return strings.HasPrefix(known, strings.TrimSuffix(issue, "…")) }) {
			all = append(all, issue)
		}
	}
	return all
}
