package planning

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/memory"
)

// Inheritance are the settings of context_inheritance.planning (inherit §10.9),
// and where the histories are.
type Inheritance struct {
	Plans         bool // the plans alone: what was done stays while anything is inherited
	Verifications bool
	Reflections   bool
	MaxPlans      int  // how many earlier plans are looked at, the latest first
	Patterns      bool // what worked is named, and not only what failed
	// File is HistoryFile's answer for a run.
	File func(uuid string) string
	// Warn hears of what cannot be read and is passed over; may be nil.
	Warn func(uuid string, err error)
}

// Past is what earlier runs of a task left of their planning: data without
// authority, of which no text is longer than a line. What people asked and
// answered then is not in it. nil is nothing.
type Past struct {
	Runs     []PastRun   `json:"runs,omitempty"`     // that planned, the latest first
	Verified []PastRound `json:"verified,omitempty"` // of all runs of the task, the latest first
	Scanned  []string    `json:"scanned,omitempty"`  // placeholders that a scan found in them
	Patterns bool        `json:"patterns,omitempty"`

	// Commit is where the work of the latest of Runs ended, Held whether the work
	// of this run starts from there.
	Commit string `json:"commit,omitempty"`
	Held   bool   `json:"held,omitempty"`
	// Hidden is set where the earlier plan does not stand in the conversation:
	// there was no room for it.
	Hidden bool `json:"hidden,omitempty"`
}

// PastRun is how an earlier run was led.
type PastRun struct {
	UUID     string            `json:"uuid"`
	Status   string            `json:"status"` // completed or stopped
	Ended    contextstore.Time `json:"completed_at"`
	Goal     string            `json:"goal,omitempty"`
	Subtasks []PastSubtask     `json:"subtasks,omitempty"` // in their order
	Changes  []PastChange      `json:"changes,omitempty"`  // of the plan, and what was found about it, the oldest first
	Uses     []PastUse         `json:"uses,omitempty"`     // of tools, each kind once, the latest last
	Totals   []PastTotal       `json:"totals,omitempty"`   // by tool
	Lessons  []string          `json:"lessons,omitempty"`  // that the model drew at its end
}

// PastSubtask is a subtask of an earlier plan and what became of it.
type PastSubtask struct {
	ID          string   `json:"id"`
	Description string   `json:"description"`
	After       []string `json:"after,omitempty"`
	Estimated   string   `json:"estimated,omitempty"` // low, medium or high
	Status      string   `json:"status,omitempty"`    // "" where it did not end
	Summary     string   `json:"summary,omitempty"`
	Calls       int      `json:"calls,omitempty"`
	Failed      int      `json:"failed,omitempty"` // of Calls
	Missed      int      `json:"missed,omitempty"` // how often it ended as neither done nor skipped
	Tools       []string `json:"tools,omitempty"`  // in the order of their use
}

// PastChange is a reflection, a revision or a decision to plan anew.
type PastChange struct {
	Kind   string   `json:"kind"` // RecordReflection, RecordRevision or RecordReplan
	Why    string   `json:"why"`
	Issues []string `json:"issues,omitempty"`
	Cause  string   `json:"cause,omitempty"`
	Did    string   `json:"did,omitempty"`    // what was changed
	Worked bool     `json:"worked,omitempty"` // the next subtask to end was done
}

// PastRound is a round of verification.
type PastRound struct {
	UUID     string      `json:"uuid"`
	Passed   bool        `json:"passed"`
	Criteria []Criterion `json:"criteria,omitempty"`
	Issues   []string    `json:"issues,omitempty"`
	Places   []string    `json:"placeholders,omitempty"` // where something looked unfinished
	More     []string    `json:"additional,omitempty"`   // work that it added
}

// How much of the past is kept: of a run, and of all verifications together.
const (
	pastSubtasks = 40
	pastChanges  = 20
	pastList     = 8
	pastRounds   = 20
	pastLine     = 240 // runes
)

// ReadPast reads what runs left of their planning. What is damaged is passed over.
// used are those of the runs that it took anything from. It reads each file once,
// and holds one line of it at a time.
func ReadPast(ctx context.Context, runs []memory.Ancestor, o Inheritance) (p *Past, used []memory.Ancestor) {
	p = &Past{Patterns: o.Patterns}
	for _, a := range runs {
		r := &pastReader{a: a, o: o, run: PastRun{UUID: a.Metadata.UUID, Status: string(a.Status()), Ended: a.State.CompletedAt}}
		warn := func(err error) {
			if o.Warn != nil {
				o.Warn(a.Metadata.UUID, err)
			}
		}
		err := ReadHistory(ctx, a.Dir, o.File(a.Metadata.UUID), func(e Entry) bool { r.take(e); return true },
			func(d Damage) { warn(errors.New(d.String())) })
		if err != nil {
			warn(err)
		}
		took := false
		if o.Verifications && len(p.Verified) < pastRounds {
			slices.Reverse(r.rounds)
			p.Verified = append(p.Verified, r.rounds[:min(len(r.rounds), pastRounds-len(p.Verified))]...)
			took = len(r.rounds) > 0
		}
		if o.Verifications && len(r.scanned) > 0 {
			p.Scanned, took = append(p.Scanned, r.scanned[:min(len(r.scanned), pastRounds-min(len(p.Scanned), pastRounds))]...), true
		}
		if (o.Plans || o.Verifications || o.Reflections) && r.plan != nil && len(p.Runs) < o.MaxPlans {
			if err := r.finish(ctx); err != nil {
				warn(err)
			}
			if len(p.Runs) == 0 {
				p.Commit = a.State.Commit
			}
			p.Runs, took = append(p.Runs, r.run), true
		}
		if took {
			used = append(used, a)
		}
	}
	if len(used) == 0 {
		return nil, nil
	}
	return p, used
}

// pastReader puts the history of a run together.
type pastReader struct {
	a       memory.Ancestor
	o       Inheritance
	run     PastRun
	plan    *Plan
	began   contextstore.Time // the plan
	ends    []pastEnd         // of subtasks, in time
	pending []int             // changes since the last end of a subtask
	rounds  []PastRound
	scanned []string
}

type pastEnd struct {
	at contextstore.Time
	SubtaskRecord
}

// take takes an entry; it keeps no more than will be said.
func (r *pastReader) take(e Entry) {
	if p := e.plan(); p != nil {
		if r.plan == nil {
			r.began = e.Timestamp
		}
		r.plan = p
	}
	switch {
	case e.Subtask != nil && e.Subtask.Status != "started":
		r.ended(e)
	case e.Revision != nil && e.Revision.Reason != "verification" && e.Revision.Reason != "":
		var did []string
		for _, c := range e.Revision.Changes {
			did = append(did, strings.TrimSpace(c.Type+" "+cmp.Or(c.Details, c.about())))
		}
		r.changed(PastChange{Kind: RecordRevision, Why: r.text(e.Revision.Reason), Did: r.text(strings.Join(did, "; "))})
	case e.Reflection != nil && (e.Reflection.Judged.Revise || len(e.Reflection.Judged.Issues) > 0):
		j := e.Reflection.Judged
		r.changed(PastChange{Kind: RecordReflection, Why: r.text(j.Evaluation), Issues: r.texts(j.Issues), Cause: r.text(j.RootCause)})
	case e.Replan != nil && e.Replan.Executed:
		d := e.Replan.Decision.Decision
		r.changed(PastChange{Kind: RecordReplan, Why: r.text(d.Reasoning), Issues: r.texts(d.Issues), Did: r.text(strings.Join(append([]string{string(e.Replan.Do)}, d.Recommended...), "; "))})
	case e.Verification != nil:
		r.verified(e.Verification)
	case e.Scan != nil:
		for _, s := range r.texts(e.Scan.Placeholders) {
			r.scanned = appendNew(r.scanned, s)
		}
	}
}

func (r *pastReader) ended(e Entry) {
	if len(r.ends) < 4*pastSubtasks {
		r.ends = append(r.ends, pastEnd{e.Timestamp, *e.Subtask})
	}
	for _, s := range r.texts(e.Subtask.Lessons) {
		if r.o.Reflections && len(r.run.Lessons) < pastList {
			r.run.Lessons = appendNew(r.run.Lessons, s)
		}
	}
	if e.Subtask.Status == Done {
		for _, i := range r.pending {
			r.run.Changes[i].Worked = true
		}
	}
	r.pending = nil
}

func (r *pastReader) changed(c PastChange) {
	if !r.o.Reflections || len(r.run.Changes) >= pastChanges {
		return
	}
	if c.Kind != RecordReflection {
		r.pending = append(r.pending, len(r.run.Changes))
	}
	r.run.Changes = append(r.run.Changes, c)
}

func (r *pastReader) verified(v *Verification) {
	round := PastRound{UUID: r.run.UUID, Passed: v.Passed, Issues: r.texts(v.Issues), Places: r.texts(v.Placeholder.Locations)}
	for _, c := range v.Criteria[:min(len(v.Criteria), pastList)] {
		round.Criteria = append(round.Criteria, Criterion{Criterion: r.text(c.Criterion), Met: c.Met, Evidence: r.text(c.Evidence)})
	}
	for _, a := range v.Additional[:min(len(v.Additional), pastList)] {
		round.More = append(round.More, r.text(a.Purpose))
	}
	if r.rounds = append(r.rounds, round); len(r.rounds) > pastRounds {
		r.rounds = r.rounds[1:]
	}
}

// finish makes the run of what was read, and reads its calls of tools.
func (r *pastReader) finish(ctx context.Context) error {
	at := map[string]int{}
	if r.o.Plans {
		r.planned(at)
	}
	return r.used(ctx, func(id string) *PastSubtask {
		if i, ok := at[id]; ok {
			return &r.run.Subtasks[i]
		}
		return nil
	})
}

// planned takes the plan over, and what became of it; at is filled with where
// each subtask stands.
func (r *pastReader) planned(at map[string]int) {
	r.run.Goal = r.text(r.plan.Goal.MainObjective)
	for _, id := range r.plan.Order() {
		t, ok := r.plan.Subtask(id)
		if !ok || len(r.run.Subtasks) == pastSubtasks {
			continue
		}
		at[id] = len(r.run.Subtasks)
		r.run.Subtasks = append(r.run.Subtasks, PastSubtask{ID: r.text(id), Description: r.text(t.Description), After: r.texts(t.Dependencies), Estimated: t.Complexity})
	}
	for _, e := range r.ends {
		i, ok := at[e.ID]
		if !ok {
			continue
		}
		s := &r.run.Subtasks[i]
		s.Status, s.Summary = e.Status, r.text(e.Summary)
		if e.Status != Done && e.Status != Skipped {
			s.Missed++
		}
	}
}

// text is one of another run as it may be repeated: cleaned whole, then cut.
func (r *pastReader) text(s string) string {
	if strings.TrimSpace(s) == "" {
		return ""
	}
	return brief(r.a.Words(edge(s)), pastLine)
}

func (r *pastReader) texts(all []string) (list []string) {
	for _, s := range all[:min(len(all), pastList)] {
		if s = r.text(s); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// edge bounds what is cleaned, far beyond what is shown of it, and without cutting
// a word, which might not be known as what it is then.
func edge(s string) string {
	const most = 8 << 10
	if len(s) <= most {
		return s
	}
	s = s[:most]
	if i := strings.LastIndexAny(s, " \t\n"); i > 0 {
		return s[:i]
	}
	return s
}

// brief is a text on one line of at most n runes.
func brief(s string, n int) string {
	s = line(s)
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}
