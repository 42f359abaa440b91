package ops

import (
	"cmp"
	"context"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/planning"
)

// marks tick a subtask by what became of it.
var marks = map[string]string{planning.Done: "[x]", planning.Failed: "[!]", planning.Blocked: "[!]", planning.Skipped: "[-]", "": "[ ]"}

// plan prints the latest plan of a run with what became of it, how it was
// changed, and how the result was judged (plan §2.2).
func plan(p *printer, v contextstore.View, o ShowOptions) error {
	var damaged []error
	a, err := planning.ReadAccount(context.Background(), v.Dir, o.History, func(d error) { damaged = append(damaged, d) })
	if err != nil {
		return err
	}
	if o.JSON {
		p.json(a)
		return p.err
	}
	for _, d := range damaged {
		p.printf("%s\n", clean(d.Error()))
	}
	if a.Plan == nil {
		p.printf("%s\n", o.Lang.T("ops.plan_none"))
		return p.err
	}
	g, l := a.Plan.Goal, o.Lang
	p.printf("%s: %s\n", o.Lang.T("ops.plan_goal"), clean(g.MainObjective))
	p.lines(o.Lang.T("ops.plan_criteria"), g.SuccessCriteria)
	p.lines(o.Lang.T("ops.plan_constraints"), g.Constraints)
	var assumed, unknown []string
	for _, s := range g.Assumptions {
		assumed = append(assumed, s.Value)
	}
	for _, s := range g.Gaps {
		unknown = append(unknown, l.Translate(s.Description))
	}
	var ambiguous []string
	for _, s := range g.Ambiguities {
		ambiguous = append(ambiguous, l.T("ops.plan_taken_as", s.Item, s.Selected))
	}
	p.lines(l.T("ops.plan_deliverables"), g.Deliverables)
	p.lines(l.T("ops.plan_ambiguous"), ambiguous)
	p.lines(l.T("ops.plan_assumed"), assumed)
	p.lines(o.Lang.T("ops.plan_unknown"), unknown)
	p.printf("\n%s:\n", o.Lang.T("ops.plan_subtasks"))
	for _, s := range a.Subtasks {
		t, _ := a.Plan.Subtask(s.ID)
		mark, known := marks[s.Status]
		if !known {
			mark = "[?]"
		}
		p.printf("  %s %s: %s\n", mark, clean(planning.Title(l, s.ID)), clean(l.Translate(t.Description)))
		if s.Status != "" {
			p.printf("      %s\n", strings.TrimSuffix(clean(l.T("progress.subtask_"+s.Status)+": "+l.Translate(s.Summary)), ":"))
		}
	}
	revisions(p, a.Revisions, o)
	decisions(p, a.Replans, o)
	verifications(p, a.Verifications, v.State.Unverified, o)
	return p.err
}

// lines prints a list below a word; nothing where there is none.
func (p *printer) lines(head string, all []string) {
	if len(all) == 0 {
		return
	}
	p.printf("%s:\n", head)
	for _, s := range all {
		p.printf("  - %s\n", clean(s))
	}
}

func revisions(p *printer, all []planning.Entry, o ShowOptions) {
	p.printf("\n%s: %d\n", o.Lang.T("ops.plan_revisions"), len(all))
	for _, e := range all {
		p.printf("  %s  %s\n", stamp(e.Timestamp), clean(o.Lang.Translate(e.Revision.Reason)))
		for _, c := range e.Revision.Changes {
			id, what := c.ID, c.Details
			if c.Subtask != nil {
				id, what = cmp.Or(id, c.Subtask.ID), cmp.Or(what, c.Subtask.Description)
			}
			how := c.Type
			switch how {
			case "add", "remove", "modify":
				how = o.Lang.T("ops.plan_" + how)
			}
			p.printf("    %s\n", clean(how+" "+id+" "+o.Lang.Translate(what)))
		}
	}
}

// decisions prints what was decided about what went wrong.
func decisions(p *printer, all []planning.Entry, o ShowOptions) {
	if len(all) == 0 {
		return
	}
	l := o.Lang
	p.printf("\n%s: %d\n", l.T("ops.plan_decisions"), len(all))
	for _, e := range all {
		r := e.Replan
		p.printf("  %s  %s (%d %%)\n", stamp(e.Timestamp), clean(l.Translate(planning.Doing(r.Do))), r.Percent())
		if why := r.Why(l); why != "" {
			p.printf("    %s\n", clean(l.T("progress.overridden", l.Translate(planning.Doing(r.Wished())), why)))
		}
		if r.Doubtful() {
			p.printf("    ! %s\n", l.T("progress.doubtful"))
		}
		p.printf("    %s\n", clean(r.Decision.Decision.Reasoning))
	}
}

// verifications prints what the model judged; the run may be unverified all
// the same.
func verifications(p *printer, all []planning.Entry, unverified bool, o ShowOptions) {
	p.printf("\n%s: %d\n", o.Lang.T("ops.plan_verifications"), len(all))
	for _, e := range all {
		v := e.Verification
		end := o.Lang.T("ops.plan_not_passed")
		switch {
		case v.Passed && unverified:
			end = o.Lang.T("ops.plan_judged")
		case v.Passed:
			end = o.Lang.T("ops.plan_passed")
		}
		p.printf("  %s  %s\n", stamp(e.Timestamp), end)
		for _, c := range v.Criteria {
			mark := "[ ]"
			if c.Met {
				mark = "[x]"
			}
			p.printf("    %s %s\n", mark, strings.TrimSuffix(clean(o.Lang.Translate(c.Criterion)+" — "+o.Lang.Translate(c.Evidence)), " —"))
		}
		for _, s := range v.Issues {
			p.printf("    ! %s\n", clean(o.Lang.Translate(s)))
		}
	}
}
