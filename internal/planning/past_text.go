package planning

import (
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/memory"
)

// How long lists of the inherited message and of lessons are.
const (
	shownUses    = 8
	shownChanges = 8
	shownIssues  = 10
	shownAdvice  = 4
	shownLessons = 16
	shownLike    = 6
)

// Sections are what the inherited message says of p (inherit §10.8).
func (p *Past) Sections() memory.Sections {
	if p == nil {
		return memory.Sections{}
	}
	s := memory.Sections{Plan: p.planText(true), Outline: p.planText(false), Tools: p.doneText(), Verified: p.verifiedText(), Advice: p.adviceText()}
	if q := p.withoutOldest(); q != nil {
		fewer := q.Sections()
		s.Fewer = &fewer
	}
	return s
}

// withoutOldest is p without what the oldest of its runs left, nil where there is
// one run alone. Placeholders of scans are of no run, and stay.
func (p *Past) withoutOldest() *Past {
	var runs []string
	for _, r := range p.Runs {
		runs = appendNew(runs, r.UUID)
	}
	for _, v := range p.Verified { // further back than Runs go
		runs = appendNew(runs, v.UUID)
	}
	if len(runs) < 2 {
		return nil
	}
	oldest := runs[len(runs)-1]
	q := *p
	q.Runs = slices.DeleteFunc(slices.Clone(p.Runs), func(r PastRun) bool { return r.UUID == oldest })
	q.Verified = slices.DeleteFunc(slices.Clone(p.Verified), func(v PastRound) bool { return v.UUID == oldest })
	return &q
}

// section writes a heading and lines; nothing where there are no lines.
func section(heading string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "## " + heading + "\n" + strings.Join(lines, "\n")
}

// listed puts lines under a word that says what they are, most of them at most.
func listed(head string, all []string, most int) (lines []string) {
	if len(all) == 0 {
		return nil
	}
	lines = append(lines, head+":")
	for _, s := range all[:min(len(all), most)] {
		lines = append(lines, "- "+s)
	}
	if more := len(all) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("- (%d more)", more))
	}
	return lines
}

func (r PastRun) name() string {
	return fmt.Sprintf("run %s, %s on %s", r.UUID[:min(8, len(r.UUID))], r.Status, r.Ended.UTC().Format("2006-01-02"))
}

func (r PastRun) done() (n int) {
	for _, s := range r.Subtasks {
		if s.Status == Done {
			n++
		}
	}
	return n
}

// state is how a subtask ended, in a word.
func (s PastSubtask) state() string {
	if s.Status == "" {
		return "not done"
	}
	return s.Status
}

// ended is what became of a plan.
func (p *Past) ended(r PastRun) string {
	text := fmt.Sprintf("%d of %d subtasks done", r.done(), len(r.Subtasks))
	i := slices.IndexFunc(p.Verified, func(v PastRound) bool { return v.UUID == r.UUID })
	switch {
	case i < 0:
		return text
	case p.Verified[i].Passed:
		return text + "; the last verification passed"
	}
	return text + "; the last verification did not pass"
}

// planText is the section on plans; where it is not to be whole, of the latest one
// alone, and of that only what is open.
func (p *Past) planText(whole bool) string {
	var lines []string
	for i, r := range p.Runs {
		if len(r.Subtasks) == 0 || i > 0 && !whole {
			continue
		}
		if i > 0 {
			lines = append(lines, fmt.Sprintf("Before that, %s: %s (%s)", r.name(), r.Goal, p.ended(r)))
			continue
		}
		lines = append(lines, "Of "+r.name())
		if strings.TrimSpace(r.Goal) != "" { // a plan may have named none
			lines = append(lines, "Goal: "+r.Goal)
		}
		lines = append(lines, "Completion status: "+p.ended(r))
		if whole {
			lines = append(lines, "Subtasks:")
		}
		for _, s := range r.Subtasks {
			if !whole && s.Status == Done {
				continue
			}
			after := ""
			if len(s.After) > 0 {
				after = " (after " + strings.Join(s.After, ", ") + ")"
			}
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("- %s [%s]%s: %s → %s", s.ID, s.state(), after, s.Description, s.Summary), " → "))
		}
	}
	return section("Previous Plan Summary", lines)
}

// doneText is the section on what was done.
func (p *Past) doneText() string {
	var totals []string
	if len(p.Runs) > 0 {
		for _, t := range p.Runs[0].Totals {
			totals = append(totals, fmt.Sprintf("%s %d ok, %d failed", t.Tool, t.OK, t.Failed))
		}
	}
	var lines []string
	if len(totals) > 0 {
		lines = append(lines, "Calls: "+brief(strings.Join(totals, "; "), 2*pastLine))
	}
	lines = append(lines, listed("Successful actions", p.worked(), shownUses)...)
	lines = append(lines, listed("Failed actions", append(p.failed(), p.recovered()...), shownUses)...)
	lines = append(lines, listed("Key failures", append(p.missed(), p.troubles()...), shownChanges)...)
	return section("Execution History", lines)
}

// verifiedText is the section on verifications.
func (p *Past) verifiedText() string {
	if len(p.Verified) == 0 {
		return section("Verification History", listed("Placeholders were found at", p.places(), shownIssues))
	}
	runs := map[string]bool{}
	for _, v := range p.Verified {
		runs[v.UUID] = true
	}
	last := "did not pass"
	if p.Verified[0].Passed {
		last = "passed"
	}
	open, resolved := p.issues()
	lines := []string{fmt.Sprintf("Verification rounds: %d in %d runs; the last one %s", len(p.Verified), len(runs), last)}
	lines = append(lines, listed("Issues open", open, shownIssues)...)
	lines = append(lines, listed("Issues found and resolved", resolved, shownIssues)...)
	lines = append(lines, listed("Criteria", p.criteria(), shownIssues)...)
	lines = append(lines, listed("Placeholders were found at", p.places(), shownIssues)...)
	lines = append(lines, listed("Work that verifications added", p.added(), shownIssues)...)
	return section("Verification History", lines)
}

// adviceText is the section on what follows: what worked first.
func (p *Past) adviceText() string {
	lines := listed("Use first what worked", p.worked(), shownAdvice)
	lines = append(lines, listed("Avoid what is known to fail", append(p.failed(), p.missed()...), shownAdvice)...)
	lines = append(lines, listed("Lessons learned", p.lessons(), shownAdvice)...)
	open, _ := p.issues()
	if len(p.Runs) > 0 {
		for _, s := range p.Runs[0].Subtasks {
			if s.Status != Done && s.Status != Skipped {
				open = append(open, fmt.Sprintf("%s [%s]: %s", s.ID, s.state(), s.Description))
			}
		}
	}
	lines = append(lines, listed("Still open", open, shownIssues)...)
	return section("Recommendations for Current Processing", lines)
}

// worked are the actions that worked, those that look like a pattern: commands
// and what was done more than once, then which tools a subtask was done with. Of
// the latest run first.
func (p *Past) worked() (all []string) {
	if !p.Patterns {
		return nil
	}
	for _, r := range p.Runs {
		for _, u := range r.Uses {
			if u.OK > 0 && u.Last && (u.Tool == "shell" || u.OK > 1) && len(all) < shownUses/2 {
				all = appendNew(all, repeated(u.name(), u.OK))
			}
		}
	}
	for _, r := range p.Runs {
		for _, s := range r.Subtasks {
			if s.Status == Done && len(s.Tools) > 1 {
				all = appendNew(all, fmt.Sprintf("%s, for: %s", strings.Join(s.Tools, " → "), brief(s.Description, pastGist)))
			}
		}
	}
	return all
}

// failed are the actions that did not work in the end, with what worked instead.
// A check that was red is none of them: what was wrong is what it looked at.
func (p *Past) failed() []string { return p.trouble(false) }

// recovered are the actions that failed and were got to work, with what was done
// for that.
func (p *Past) recovered() []string { return p.trouble(true) }

func (p *Past) trouble(mended bool) (all []string) {
	for _, r := range p.Runs {
		for _, u := range r.Uses {
			if u.Failed > 0 && u.Last == mended && (mended || !u.Check) && !p.better(u) {
				all = appendNew(all, u.trouble())
			}
		}
	}
	return all
}

// better reports whether a later run did without failure what failed in this one.
func (p *Past) better(u PastUse) bool {
	for _, r := range p.Runs {
		for _, o := range r.Uses {
			if o.Tool == u.Tool && o.Subject == u.Subject {
				return o.Failed == 0 // of the latest run that did it
			}
		}
	}
	return false
}

// trouble is a failed action, its error, and what helped.
func (u PastUse) trouble() string {
	text := repeated(u.name()+" failed", u.Failed) + ": " + u.Error
	switch {
	case u.Instead == "":
		return text
	case u.Last:
		return text + "; it worked after: " + u.Instead
	}
	return text + "; worked instead: " + u.Instead
}

func repeated(s string, n int) string {
	if n == 1 {
		return s
	}
	return fmt.Sprintf("%s (%d times)", s, n)
}

// missed are the subtasks that were not done, then or by a later run.
func (p *Past) missed() (all []string) {
	done := map[string]bool{}
	for _, r := range p.Runs {
		for _, s := range r.Subtasks {
			if s.Status == Done {
				done[s.Description] = true
			}
			if (s.Status == Failed || s.Status == Blocked) && !done[s.Description] {
				all = appendNew(all, fmt.Sprintf("the subtask %q ended as %s: %s", brief(s.Description, pastGist), s.Status, s.Summary))
			}
		}
	}
	return all
}

// troubles are what plans were changed for.
func (p *Past) troubles() (all []string) {
	for _, r := range p.Runs {
		for _, c := range r.Changes {
			if c.Kind != RecordReflection {
				all = appendNew(all, c.text())
			}
		}
	}
	return all
}

// text is a change with its reason and what came of it.
func (c PastChange) text() string {
	var text string
	switch c.Kind {
	case RecordRevision:
		text = "the plan was revised: " + c.Why
	case RecordReplan:
		text = "it was planned anew: " + c.Why
	default:
		text = "a reflection found: " + c.Why
	}
	if len(c.Issues) > 0 {
		text += "; found: " + strings.Join(c.Issues, ", ")
	}
	if c.Cause != "" {
		text += "; root cause: " + c.Cause
	}
	if c.Did != "" {
		text += "; done about it: " + c.Did
		if c.Worked {
			text += " (that worked)"
		}
	}
	return brief(text, 2*pastLine)
}

// issues are what verifications found: what the last one of the task left open,
// and what it found no more.
func (p *Past) issues() (open, resolved []string) {
	for i, v := range p.Verified {
		for _, s := range v.Issues {
			switch {
			case i == 0 && !v.Passed:
				open = appendNew(open, s)
			case !slices.Contains(open, s):
				resolved = appendNew(resolved, s)
			}
		}
	}
	return open, resolved
}

// criteria are those that the work was judged by, as they were judged last.
func (p *Past) criteria() (all []string) {
	seen := map[string]bool{}
	for _, v := range p.Verified {
		for _, c := range v.Criteria {
			if seen[c.Criterion] {
				continue
			}
			seen[c.Criterion] = true
			met := "met"
			if !c.Met {
				met = "not met"
			}
			all = append(all, strings.TrimSuffix(fmt.Sprintf("%s [%s] %s", c.Criterion, met, c.Evidence), " "))
		}
	}
	return all
}

// places are where something looked unfinished.
func (p *Past) places() (all []string) {
	for _, v := range p.Verified {
		for _, s := range v.Places {
			all = appendNew(all, s)
		}
	}
	for _, s := range p.Scanned {
		all = appendNew(all, s)
	}
	return all
}

// lessons are what earlier runs said they learned.
func (p *Past) lessons() (all []string) {
	for _, r := range p.Runs {
		for _, s := range r.Lessons {
			all = appendNew(all, s)
		}
	}
	return all
}

// added is the work that verifications found to be left.
func (p *Past) added() (all []string) {
	for _, v := range p.Verified {
		for _, s := range v.More {
			all = appendNew(all, s)
		}
	}
	return all
}

func appendNew(all []string, s string) []string {
	if s == "" || slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}
