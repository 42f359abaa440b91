package planning

import (
	"cmp"
	"context"
	"encoding/json"
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
	Diff     string   // of the change, bounded by whoever made it

	Placeholders []string // of Findings, those of work that was not done
}

// green reports whether there were checks, and all passed.
func (e Evidence) green() bool {
	return len(e.Checks) > 0 && !slices.ContainsFunc(e.Checks, func(c CheckEvidence) bool { return c.ExitCode != 0 || c.TimedOut })
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
	if err := l.vouch(e); err != nil {
		return Result{}, err
	}
	for l.settings.Verify && !s.Judged && (s.Asked == askVerify || s.Rounds < l.settings.MaxRounds) {
		if s.Asked != askVerify {
			kind := askVerify
			if e.green() {
				kind += "/green"
			}
			if err := l.loop.Ask(ctx, kind, l.verification(e)); err != nil {
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

// vouch takes the word of a plan's only subtask for the verification, where the
// checks are green, nothing stands out in the change, and every criterion was shown
// by a command that ended well after the last edit, or by a check.
func (l *Lead) vouch(e Evidence) error {
	s := &l.s
	if !l.settings.Verify || s.Judged || s.Asked != "" || s.Want != "" || s.Rounds > 0 || len(l.order) != 1 || !e.green() || len(e.Findings) > 0 || len(l.settings.Past.forVerification()) > 0 || len(l.unfinished()) > 0 {
		return nil
	}
	ran := slices.Clone(s.Ran)
	for _, c := range e.Checks {
		ran = append(ran, brief(c.Command, maxIssue))
	}
	v := Verification{Phase: PhaseVerification, Passed: true, Issues: []string{}, Placeholder: PlaceholderReport{Locations: []string{}}, Confidence: 1}
	for _, asked := range l.criteria() {
		shown := l.shown(asked)
		if !slices.ContainsFunc(ran, func(c string) bool { return strings.Contains(shown, c) }) {
			return nil
		}
		v.Criteria = append(v.Criteria, Criterion{Criterion: asked, Met: true, Evidence: shown})
	}
	s.Found, s.Verified, s.Judged = &findings{Passed: true}, true, true
	s.Rounds++
	l.log.Info("Verification", "passed", true, "by", "the subtask's own report and the checks")
	return l.note(s.Seq, Entry{Verification: &v})
}

// shown is the evidence that reports gave for a criterion, "" for none.
func (l *Lead) shown(criterion string) string {
	for _, c := range l.s.Shows {
		if same(c.Criterion, brief(criterion, maxIssue)) || len(l.criteria()) == 1 {
			return c.Evidence
		}
	}
	return ""
}

func (l *Lead) verification(e Evidence) string {
	if l.s.Again == askVerify {
		return l.prompts.Retry(RetryAsk{Tool: ToolVerify})
	}
	ask := VerificationAsk{Round: l.s.Rounds + 1, MaxRounds: l.settings.MaxRounds, Criteria: l.criteria(), Checks: e.Checks, Changed: e.Changed, Diff: e.Diff}
	ask.Findings = append(l.unfinished(), e.Findings...)
	for i, c := range ask.Criteria {
		if shown := l.shown(c); shown != "" {
			ask.Criteria = slices.Clone(ask.Criteria)
			ask.Criteria[i] = c + l.prompts.word(" (reported: ", "(報告: ") + shown + l.prompts.word(")", ")")
		}
	}
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
	return []string{i18n.Recorded("criterion")}
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
func (l *Lead) judged(c contextstore.ToolCall) (string, error) {
	s := &l.s
	type given struct {
		Verification
		Verdict *bool `json:"verification_passed"`
		Met     []struct {
			Met *bool `json:"met"`
		} `json:"criteria"`
	}
	g, err := read[given](c, s.Tried > 0)
	if err == nil && g.Verdict == nil {
		err = &ContractError{[]string{"verification_passed is missing"}}
	}
	if err != nil {
		return l.unjudged(err)
	}
	v := g.Verification
	_ = decodeLoosely(json.RawMessage(c.Arguments), &v)
	for i := range min(len(v.Criteria), len(g.Met)) {
		if g.Met[i].Met == nil { // then the verdict says so
			v.Criteria[i].Met = v.Passed
		}
	}
	v.Phase = PhaseVerification
	if missing := l.support(&v); len(missing) > 0 && l.again() {
		return "", l.refused(ToolVerify, fmt.Errorf(l.prompts.word("no evidence is given for: %s", "根拠がありません: %s"), line(strings.Join(missing, "; "))))
	}
	s.Asked, s.Want, s.Why, s.Tried, s.Judged = "", "", "", 0, true
	s.Rounds++
	l.strict(&v)
	s.Found, s.Verified = &findings{Passed: v.Passed}, v.Passed
	for _, issue := range v.Issues[:min(len(v.Issues), maxIssues)] {
		issue = line(issue)
		if r := []rune(issue); len(r) > maxIssue {
			issue = string(r[:maxIssue]) + "…"
		}
		s.Found.Issues = append(s.Found.Issues, issue)
	}
	l.enter(Entry{Verification: &v})
	if !v.Passed && s.Rounds < l.settings.MaxRounds {
		if p, more := l.extended(v); more {
			l.enter(l.altered(i18n.Recorded("verification"), p, nil))
			s.Redone = true
		}
	}
	l.log.Info("Verification", "round", s.Rounds, "passed", v.Passed, "issues", len(v.Issues), "more", l.left())
	return l.noted(), nil
}

// unjudged is what is done where no verification comes that can be read.
func (l *Lead) unjudged(err error) (string, error) {
	s := &l.s
	if l.again() {
		if err == nil {
			return "", nil
		}
		return "", l.refused(ToolVerify, err)
	}
	s.Asked, s.Want, s.Why, s.Judged = "", "", "", true
	s.Rounds++
	l.log.Warn("No verification came: the result is not judged", "error", err)
	f := &findings{Unread: true}
	if s.Found != nil && !s.Found.Passed {
		f.Issues = s.Found.Issues
	}
	s.Found = f
	l.enter(Entry{Verification: &Verification{Phase: PhaseVerification, Issues: []string{i18n.Recorded("unread")}, Placeholder: PlaceholderReport{Locations: []string{}}}})
	return l.noted(), nil
}

// support gives each criterion of a verification that passes the evidence that is
// there, where the model names none: what reports showed, and the checks. missing
// are the criteria for which there is none.
func (l *Lead) support(v *Verification) (missing []string) {
	if !v.Passed {
		return nil
	}
	asked := l.criteria()
	for i, criterion := range asked {
		at := slices.IndexFunc(v.Criteria, func(c Criterion) bool { return same(c.Criterion, criterion) })
		if at < 0 && len(v.Criteria) == len(asked) {
			at = i
		}
		if at < 0 {
			at, v.Criteria = len(v.Criteria), append(v.Criteria, Criterion{Met: true})
		}
		c := &v.Criteria[at]
		c.Criterion = cmp.Or(strings.TrimSpace(c.Criterion), criterion)
		if c.Met && strings.TrimSpace(c.Evidence) == "" {
			if c.Evidence = l.shown(criterion); c.Evidence == "" && l.s.Green {
				c.Evidence = i18n.Recorded("checks_passed")
			}
			if c.Evidence == "" {
				missing = append(missing, criterion)
			}
		}
	}
	return missing
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
