// Package progress is how far a run is, for the people who watch it: one report of
// bounded size, which forges and folders show as Markdown and terminals in a few
// lines. It is put together from what a run knows; it keeps nothing and posts nothing.
package progress

import (
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
)

// Stage is what a run without a plan, or before it has one, is at.
type Stage string

// The stages.
const (
	Preparing Stage = "preparing"
	Working   Stage = "working"
	Checking  Stage = "checking"
)

// Report is how far one run is. Its texts are masked, on one line each, and cut;
// what a renderer makes of them is nothing but text.
type Report struct {
	UUID     string
	Model    string // PROVIDER/MODEL
	By       string // who asked, as people there are called; "" where nobody knows
	Scripted bool   // no model was called
	Stage    Stage
	Branch   string

	Ended  task.Status // "" while it goes on
	Reason string      // why it ended so

	Unverified bool // it is completed, and not all that it did is verified

	Phase       string // of planning; "" where no plan leads
	Worked      bool   // all subtasks are over
	Passed      bool   // the result was verified, as it is now
	Current     string // id of the subtask at hand
	Goal        string
	Understood  *Understanding // nil before the plan
	Items       []planning.Item
	Verified    *Verified // the latest verification; nil before the first
	Assumptions []string
	Gaps        []string
	Ambiguities []planning.Ambiguity
	Revisions   int
	Replans     int

	Calls, Tools, Tokens int64 // of models, of tools, of both ways
	MicroUSD             int64
	Unpriced             int64 // of Calls, those whose price nobody knows
	Started, Updated     time.Time
	Streamed             int // characters of the answer that is being written; for live views alone

	Notes   []string // of the house, as Markdown: what to do with the run, where it comes from
	History History
}

// Understanding is how the task is understood, in short.
type Understanding struct {
	Type    string // bug_fix, feature … as the model says
	In, Out []string

	Deliverables []string

	Uncertain bool // it may be understood wrongly
	Fallback  bool // the plan is none of the model's
}

// Verified is what a verification came to.
type Verified struct {
	Round  int
	Passed bool
	Unread bool // it could not be read
	Issues []string
}

// How much a report holds of what may be long: characters of a text of the plan,
// and how many of a list.
const (
	maxText = 100
	maxList = 3
)

// State takes over the counts of a run, and the stage that follows from them.
func (r *Report) State(st contextstore.State) {
	r.Calls, r.Tools, r.Tokens, r.MicroUSD, r.Unpriced = st.LLMCallCount, st.ToolCallCount, st.TotalTokensUsed, st.CostMicroUSD, st.UnpricedCalls
	r.Started, r.Stage = st.StartedAt.Time, Preparing
	switch {
	case st.LastActivity == "check":
		r.Stage = Checking
	case st.LLMCallCount > 0:
		r.Stage = Working
	}
}

// Plan takes over how far the plan is; clean masks what must not be seen.
func (r *Report) Plan(v planning.View, clean func(string) string) {
	short := func(s string) string { return Cut(OneLine(clean(s)), maxText) }
	list := func(all []string) (some []string) {
		for _, s := range all[:min(len(all), maxList)] {
			some = append(some, short(s))
		}
		return some
	}
	r.Phase, r.Current, r.Goal, r.Revisions, r.Replans, r.Worked, r.Passed = v.Phase, short(v.Current), short(v.Goal), v.Revisions, v.Replans, v.Worked, v.Verified
	for _, it := range v.Items {
		r.Items = append(r.Items, planning.Item{ID: short(it.ID), Text: short(it.Text), Status: it.Status})
	}
	if v.Rounds > 0 {
		r.Verified = &Verified{Round: v.Rounds, Passed: v.Passed, Unread: v.Unread, Issues: list(v.Issues)}
	}
	if v.Plan == nil {
		return
	}
	g := v.Plan.Goal
	if r.Understood = (&Understanding{Type: short(g.TaskType), Uncertain: v.Uncertain, Fallback: v.Plan.Fallback}); g.Scope != nil {
		r.Understood.In, r.Understood.Out = list(g.Scope.In), list(g.Scope.Out)
	}
	r.Understood.Deliverables = list(g.Deliverables)
	for _, a := range g.Ambiguities[:min(len(g.Ambiguities), maxList)] {
		r.Ambiguities = append(r.Ambiguities, planning.Ambiguity{Item: short(a.Item), Selected: short(a.Selected)})
	}
	for _, a := range g.Assumptions[:min(len(g.Assumptions), maxList)] {
		r.Assumptions = append(r.Assumptions, short(a.Value))
	}
	for _, gap := range g.Gaps[:min(len(g.Gaps), maxList)] {
		r.Gaps = append(r.Gaps, short(gap.Description))
	}
}

// here stands for the status of the subtask at hand.
const here = "here"

// how is how a subtask stands: its status, or here.
func (r *Report) how(it planning.Item) string {
	if it.Status == "" && it.ID == r.Current {
		return here
	}
	return it.Status
}

// done is how many subtasks are over, and how many of them did not end well.
func (r *Report) done() (over, bad int) {
	for _, it := range r.Items {
		switch it.Status {
		case planning.Done, planning.Skipped:
			over++
		case planning.Failed, planning.Blocked:
			over++
			bad++
		}
	}
	return over, bad
}
