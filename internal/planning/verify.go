package planning

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/turn"
)

// Result is what a verification comes to.
type Result struct {
	Again bool     // there is more work, which Run leads
	Open  []string // what remains open, also that nothing was judged; nothing where all is met
	Fails bool     // some of that is more than that nothing shows a criterion, which fails no run

	Criteria []Criterion // as the last verification judged them
}

// Verify has the model judge each success criterion by evidence, once the
// checks have passed. The errors are those of turn.Loop.
func (co *Coordinator) Verify(ctx context.Context, loop *turn.Loop, e Evidence) (Result, error) {
	s := &co.s
	if err := errors.Join(co.noteScan(e), co.vouch(e)); err != nil {
		return Result{}, err
	}
	for co.settings.Verify && !s.judged() && (s.Asked == askVerify || s.Rounds < co.settings.MaxRounds) {
		kind, text := askNudge, s.Told
		if s.Asked != askVerify {
			s.Idle, s.Names = e.idle(), e.names()
			if e.green() {
				for _, c := range e.commands() {
					s.Ran = latest(appendNew(s.Ran, c), maxRan)
				}
			}
			co.enter()
			if err := co.record(); err != nil { // before the answer that is judged by it
				return Result{}, err
			}
			if kind, text = askVerify, co.verification(e); e.green() && e.Shows() {
				kind += "/green"
			}
		}
		if text != "" {
			if err := loop.Ask(ctx, kind, text); err != nil {
				return Result{}, err
			}
		}
		if err := co.turns(ctx, loop); err != nil {
			return Result{}, err
		}
	}
	if co.left() > 0 {
		return Result{Again: true}, nil
	}
	r := Result{Open: co.open()}
	if r.Fails = len(r.Open) > 0; s.Found != nil {
		r.Open = append(r.Open, s.Found.unshown()...)
	}
	last, err := co.history.Latest(func(e *Entry) bool { return e.Verification != nil })
	if last != nil {
		r.Criteria = last.Verification.Criteria
	}
	return r, err
}

// vouch takes the last subtask's word for the verification, where the
// checks are green and ran what tests were added, nothing stands out in the change, and every criterion was shown
// by a command that ended well after the last edit, or by a check.
func (co *Coordinator) vouch(e Evidence) error {
	s := &co.s
	if !co.settings.Verify || s.judged() || s.Asked != "" || s.Want != "" || s.Rounds > 0 || !e.green() || e.idleTests() || len(e.Findings) > 0 || len(co.settings.Earlier.forVerification()) > 0 || len(co.unfinished()) > 0 {
		return nil
	}
	ran := without(s.Ran, e.commands()) // which passed before, and say nothing of what is new
	if e.Shows() {
		ran = slices.Concat(s.Ran, e.commands())
	}
	v := Verification{Phase: PhaseVerification, Passed: true, Issues: []string{}, Placeholder: PlaceholderReport{Locations: []string{}}, Confidence: 1}
	shows := co.shown(ran)
	for i, asked := range co.criteria() {
		shown := outcome(shows[i], ran)
		if shown == "" {
			return nil
		}
		v.Criteria = append(v.Criteria, Criterion{Criterion: asked, Met: true, Evidence: shown})
	}
	co.log.Info("Verification", "passed", true, "by", "the subtask's own report and the checks")
	co.find(findings{Passed: true}, v)
	co.show()
	return co.record()
}

// pair finds for each criterion what is said of it, nil where nothing is: what names it by
// the same words, later words before earlier ones; then what describes one criterion alone
// that is left, and is alone in it; all there is where there is one of each.
func pair(criteria []string, said []Criterion) []*Criterion {
	all, used := make([]*Criterion, len(criteria)), make([]bool, len(said))
	take := func(i, j int) { all[i], used[j] = &said[j], true }
	for i, asked := range criteria {
		for j := range said {
			if plainly(said[j].Criterion) == plainly(asked) || said[j].Criterion == brief(asked, maxIssue) {
				take(i, j)
			}
		}
	}
	if len(criteria) == 1 && all[0] == nil && len(said) > 0 {
		take(0, len(said)-1)
	}
	alike := func(i, j int) bool {
		return all[i] == nil && !used[j] && same(said[j].Criterion, brief(criteria[i], maxIssue))
	}
	for i := range criteria {
		var of []int
		for j := range said {
			if alike(i, j) {
				of = append(of, j)
			}
		}
		if len(of) == 0 || len(of) > 1 && !sameWords(said, of) {
			continue
		}
		j, others := of[len(of)-1], 0
		for k := range criteria {
			if alike(k, j) {
				others++
			}
		}
		if others == 1 {
			take(i, j)
		}
	}
	return all
}

// sameWords reports whether some of what is said is said of one thing, in the same words.
func sameWords(said []Criterion, of []int) bool {
	return !slices.ContainsFunc(of, func(j int) bool { return plainly(said[j].Criterion) != plainly(said[of[0]].Criterion) })
}

// plainly is a text without what its end and its spaces make different.
func plainly(s string) string {
	return strings.TrimRight(strings.Join(strings.Fields(strings.ToLower(s)), " "), ".。 ")
}

var (
	// passes finds a criterion that asks for no more than that the checks pass.
	passes = lazyregexp.New(`(?i)\b(?:exit|exited|pass|passes|passed|passing|green|ok)\b|終了コード|合格|成功|通る|通り`)
	place  = lazyregexp.New(`\w\.\w+:\d+`)
)

func (co *Coordinator) verification(e Evidence) string {
	ask := Ask{Round: co.s.Rounds + 1, MaxRounds: co.settings.MaxRounds, Criteria: co.criteria(), Checks: e.Checks, Changed: e.Changed, Diff: e.Diff, Added: e.Added, Unrun: e.idleTests()}
	ask.Findings = append(co.unfinished(), e.Findings...)
	ask.Unworded, ask.Idle = !isMessage(co.s.Said) && !co.prompts.Proposes, len(co.s.Idle) > 0
	ask.Bodiless = ask.Unworded && co.s.Said != ""
	ask.Criteria = slices.Clone(ask.Criteria)
	for i, shown := range co.shown(co.s.Ran) {
		if shown != "" {
			ask.Criteria[i] += co.prompts.word(" (reported: ", "(報告: ") + shown + co.prompts.word(")", ")")
		}
	}
	if co.s.Found != nil {
		ask.Lessons = co.s.Found.Issues
	}
	ask.Lessons = append(slices.Clip(ask.Lessons), co.settings.Earlier.forVerification()...)
	return co.told(co.prompts.render("verification", ask))
}

// MaxSubject is how long the first line of a commit message is at most, in characters:
// some more than the 72 that are asked for, and less than a paragraph.
const MaxSubject = 100

// isMessage reports whether words are a commit message: a subject, and behind an empty
// line what is to be said of it.
func isMessage(words string) bool {
	subject, body, _ := strings.Cut(strings.ReplaceAll(words, "\r\n", "\n"), "\n\n")
	return strings.TrimSpace(body) != "" && utf8.RuneCountInString(subject) <= MaxSubject
}

// says keeps what the model tells people of the whole; other words take no commit
// message's place.
func (s *state) says(words string) {
	if words = cut(inTree(words), maxSaid); words != "" && (isMessage(words) || !isMessage(s.Said)) {
		s.Said = words
	}
}

// inTree is a text for people with the paths of the workspace as they are in the
// repository.
func inTree(text string) string { return strings.ReplaceAll(text, sandbox.Tree+"/", "") }

// criteria are what the result is judged by: those of the plan, or, where it names none,
// those that reports showed.
func (co *Coordinator) criteria() []string {
	all := co.plan.Goal.SuccessCriteria
	if len(all) == 0 {
		for _, c := range co.s.Shows {
			all = appendNew(all, c.Criterion)
		}
	}
	if len(all) == 0 {
		return []string{i18n.Recorded("criterion")}
	}
	return all[:min(len(all), maxEntries)]
}

// findings are what the last verification came to, in short: the history has all
// of it.
type findings struct {
	Seq    int64    `json:"seq,omitempty"` // the answer
	Passed bool     `json:"passed"`
	Unread bool     `json:"unread,omitempty"` // no verification could be read; the issues are those of the one before
	Issues []string `json:"issues,omitempty"` // at most maxIssues

	Unshown []string `json:"unshown,omitempty"` // criteria for which no evidence is given
}

// unshown says of each criterion without evidence that it has none.
func (f *findings) unshown() (all []string) {
	for _, c := range f.Unshown {
		all = append(all, i18n.Recorded("no_evidence", c))
	}
	return all
}

// How much of what a verification found is kept in mind: issues, and runes of
// each.
const (
	maxIssues = 20
	maxIssue  = 200
)

// judged takes the model's verification.
func (co *Coordinator) judged(c contextstore.ToolCall) error {
	s := &co.s
	given, err := read[struct {
		Verification
		Verdict *bool `json:"verification_passed"`
		Judged  []struct {
			Criterion
			Met *bool `json:"met"`
		} `json:"criteria"`
	}](c, s.Tried > 0)
	if err == nil && given.Verdict == nil {
		err = refusal("verification_passed is missing")
	}
	if err != nil {
		return err
	}
	v := given.Verification
	if !isMessage(s.Said) { // also with what is refused, and given again without
		s.says(v.Comment)
	}
	v.Phase, v.Passed, v.Issues = PhaseVerification, *given.Verdict, slices.DeleteFunc(v.Issues, saysNothing)
	for _, j := range given.Judged {
		j.Criterion.Met = *cmp.Or(j.Met, given.Verdict) // the verdict says so of what it does not
		v.Criteria = append(v.Criteria, j.Criterion)
	}
	if !v.Passed && v.nameless() && s.Tried < maxTries {
		return refusal("%s", co.prompts.word("verification_passed is false; say in issues_found, criteria or additional_actions what is missing", "verification_passedがfalseです。足りないものをissues_found、criteria、additional_actionsのいずれかに書いてください"))
	}
	missing := co.support(&v)
	if len(missing) > 0 && s.Tried < maxTries {
		why, form := "", co.prompts.word("names a file:line, a test of the change, or a command that ended well and its exit code", "file:line、変更に含まれるテスト、または成功したコマンドと終了コード")
		if co.prompts.Proposes {
			form = co.prompts.word("names a file:line of the patch: nothing has run", "パッチのfile:line(何も実行していません)")
		}
		if len(s.Idle) > 0 {
			why = co.prompts.word("; the checks passed before the change as well, and no test was added: they show nothing of it", "。チェックは変更前にも成功しており、テストは追加されていないため、根拠になりません")
		}
		return refusal(co.prompts.word("no evidence is given for: %s%s. criteria is a list of {criterion, met, evidence}; evidence %s", "根拠がありません: %s%s。criteriaは{criterion, met, evidence}のリストで、evidenceには%sを書きます"), line(strings.Join(missing, "; ")), why, form)
	}
	co.resume()
	co.strict(&v)
	f := findings{Passed: v.Passed}
	for _, criterion := range missing[:min(len(missing), maxIssues)] {
		f.Unshown = append(f.Unshown, brief(criterion, maxIssue))
	}
	for _, issue := range v.Issues[:min(len(v.Issues), maxIssues)] {
		f.Issues = append(f.Issues, brief(issue, maxIssue))
	}
	co.find(f, v)
	if !v.Passed && !v.nameless() && s.Rounds < co.settings.MaxRounds {
		if p, more := co.extended(v); more {
			co.alter(i18n.Recorded("verification"), p, nil)
			s.Redone = true
		}
	}
	co.log.Info("Verification", "round", s.Rounds, "passed", v.Passed, "issues", len(v.Issues), "more", co.left())
	return nil
}

// nameless reports that a verification names nothing that is missing.
func (v *Verification) nameless() bool {
	return len(v.Issues)+len(v.Additional) == 0 && !v.unmet()
}

func (v *Verification) unmet() bool {
	return slices.ContainsFunc(v.Criteria, func(c Criterion) bool { return !c.Met })
}

// saysNothing reports that an entry of a list stands for an empty list.
func saysNothing(s string) bool {
	return slices.Contains([]string{"", "-", "none", "no", "nothing", "n/a", "no issues", "なし", "特になし"}, strings.ToLower(strings.Trim(s, " .。")))
}

// find ends a round of verification.
func (co *Coordinator) find(f findings, v Verification) {
	s := &co.s
	f.Seq, s.Found = s.Answer, &f
	s.Rounds++
	s.Names = nil
	co.enter(Entry{Verification: &v})
}

// unjudged is a round without a verification that can be read.
func (co *Coordinator) unjudged() {
	f := findings{Unread: true}
	if was := co.s.Found; was != nil && !was.Passed {
		f.Issues = was.Issues
	}
	co.find(f, Verification{Phase: PhaseVerification, Issues: []string{i18n.Recorded("unread")}, Placeholder: PlaceholderReport{Locations: []string{}}})
}

// support completes the evidence of each criterion of a verification that passes: a
// command's by how it ended, and where the model names nothing that can be looked at by
// what reports showed, a command that the criterion names, and the checks. missing are the
// criteria for which there is none.
func (co *Coordinator) support(v *Verification) (missing []string) {
	if !v.Passed || v.unmet() {
		return nil
	}
	asked, ran := co.criteria(), without(co.s.Ran, co.s.Idle)
	for j := range v.Criteria {
		if e := &v.Criteria[j].Evidence; co.s.evident(*e, ran) {
			*e = inTree(strings.TrimSpace(*e))
			*e = cmp.Or(outcome(*e, ran), *e)
		} else {
			*e = ""
		}
	}
	judged, reported := pair(asked, v.Criteria), co.shown(ran)
	if len(v.Criteria) == len(asked) { // in words of its own, one for each
		for j := range v.Criteria {
			if i := slices.Index(judged, nil); i >= 0 && !slices.Contains(judged, &v.Criteria[j]) {
				judged[i] = &v.Criteria[j]
			}
		}
	}
	var more []Criterion // that it passes over
	for i, criterion := range asked {
		c := judged[i]
		if c == nil {
			more = append(more, Criterion{Met: true})
			c = &more[len(more)-1]
		}
		c.Criterion = cmp.Or(strings.TrimSpace(c.Criterion), criterion)
		c.Evidence = cmp.Or(c.Evidence, outcome(reported[i], ran), reported[i], outcome(criterion, ran))
		if c.Evidence == "" && (co.s.Green && co.s.Tried > 0 || len(co.s.Idle) > 0 && passes().MatchString(criterion)) { // it was asked for, or is all that is wanted
			c.Evidence = i18n.Recorded("checks_passed")
		}
		if c.Evidence == "" {
			missing = append(missing, criterion)
		}
	}
	v.Criteria = append(v.Criteria, more...)
	return missing
}

// strict adds to a verification what it passes over: criteria that are not met, and what it says itself or the subtasks' ends say of work that is not done.
func (co *Coordinator) strict(v *Verification) {
	passed := v.Passed
	object := func(issue string) { v.Issues, v.Passed = append(v.Issues, issue), false }
	for _, c := range v.Criteria {
		if !c.Met && (passed || len(v.Issues) == 0) { // else it is among what it says
			object(i18n.Recorded("unmet", line(c.Criterion)))
		}
	}
	if passed && v.More && v.Passed {
		object(i18n.Recorded("wants_more"))
	}
	if passed && v.Placeholder.Count > 0 {
		object(i18n.Recorded("placeholders", line(strings.Join(v.Placeholder.Locations, ", "))))
	}
	for _, open := range co.unfinished() {
		object(open)
	}
}

// unfinished are the subtasks that did not end well, and for which nothing was
// done since.
func (co *Coordinator) unfinished() (all []string) {
	if co.s.Redone {
		return nil
	}
	for _, id := range co.order {
		if r, over := co.s.Results[id]; over && r.Status != Done && r.Status != Skipped {
			all = append(all, i18n.Recorded(r.Status, id, r.Summary))
		}
	}
	return all
}

// extended is the plan with what the verification still wants done.
func (co *Coordinator) extended(v Verification) (Plan, bool) {
	todo := slices.Clone(v.Additional)
	for i := range todo {
		todo[i].TaskID = ""
	}
	if !slices.ContainsFunc(todo, func(a Action) bool { return strings.TrimSpace(a.Purpose+a.ExpectedOutcome) != "" }) {
		var open []string
		for _, issue := range v.Issues {
			open = append(open, strings.TrimPrefix(issue, i18n.Recorded("unmet", "")))
		}
		todo = []Action{{Purpose: i18n.Recorded("resolve", line(strings.Join(open, "; ")))}}
	}
	p := co.plan.Extend(todo, co.done(), min(co.room(), maxFixes), fixes+"1")
	return p, len(p.Decomposition.Subtasks) > len(co.order)
}

// fixes begins the ids of work that a verification adds.
const fixes = "verification_fix_"

// maxFixes is how many further subtasks one verification may add.
const maxFixes = 10

// open is what remains to be done, or was not judged, after the last round.
func (co *Coordinator) open() []string {
	all := co.unfinished()
	v := co.s.Found
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
