package planning

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"toritsugi/internal/checks"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/memory"
)

// Inheritance are the settings of context_inheritance.planning (inherit §10.9),
// and where the histories are.
type Inheritance struct {
	Plans         bool // the plans alone: what was done stays while anything is inherited
	Verifications bool
	Reflections   bool
	MaxPlans      int       // how many earlier plans are looked at, the latest first
	Patterns      bool      // what worked is named, and not only what failed
	Hands         string    // the tool that hands the work in, of whose calls nothing is learned; "" for none
	Lang          i18n.Lang // of what is told of them
	// Refused reports whether what a run handed in was not taken, by its directory; nil where
	// nothing is handed in.
	Refused func(dir string) bool
	// File is HistoryFile's answer for a run.
	File func(uuid string) string
	// Warn hears of what cannot be read and is passed over; may be nil.
	Warn func(uuid string, err error)
}

// EarlierRuns is what earlier runs of a task left of their planning: data without
// authority, of which no text is longer than a line. What people asked and
// answered then is not in it. nil is nothing.
type EarlierRuns struct {
	Runs []EarlierRun `json:"runs,omitempty"` // the latest first; those beyond MaxPlans left what they verified alone

	// Commit is where the work of the latest run that planned ended, Held whether
	// the work of this run starts from there.
	Commit string    `json:"commit,omitempty"`
	Held   bool      `json:"held,omitempty"`
	Lang   i18n.Lang `json:"-"` // that it is told in

	// Hidden is set where the earlier plan does not stand in the conversation:
	// there was no room for it.
	Hidden bool `json:"hidden,omitempty"`
}

// EarlierRun is what one run left.
type EarlierRun struct {
	UUID     string           `json:"uuid"`
	Subtasks []EarlierSubtask `json:"subtasks,omitempty"` // of its plan, in their order
	Lessons  []Lesson         `json:"lessons,omitempty"`
}

// refused is the Status of an EarlierSubtask whose work was handed in and not taken.
const refused = "refused"

// EarlierSubtask is a subtask of an earlier plan and what became of it.
type EarlierSubtask struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Status      string `json:"status,omitempty"` // "" where it did not end
	Summary     string `json:"summary,omitempty"`
	Line        string `json:"line"` // all that, what it came after, and how hard it was taken to be and was
}

// Lesson is a line of what a run showed. The kinds are plan (goal, and what came
// of it), done (a subtask), worked (a call), avoid (what failed in the end),
// recovery, lesson (in the model's own words), plan change, plan change that worked,
// reflection, verification, open, resolved, criterion, placeholder and work added.
type Lesson struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// How much is kept: of a run, of a list in it, and of a text in runes.
const (
	pastKept = 400
	pastList = 8
	pastLine = 240
)

// ReadEarlierRuns reads what runs left of their planning, the latest first. What is
// damaged is passed over. used are those of the runs that it took anything from.
// It reads each file once.
func ReadEarlierRuns(ctx context.Context, runs []memory.Ancestor, o Inheritance) (p *EarlierRuns, used []memory.Ancestor) {
	p = &EarlierRuns{Lang: o.Lang}
	seen := map[string]bool{}
	for _, a := range runs {
		r := &earlierReader{Inheritance: o, clean: a.Words, seen: seen, run: EarlierRun{UUID: a.Metadata.UUID}}
		warn := func(err error) {
			if o.Warn != nil && err != nil {
				o.Warn(r.run.UUID, err)
			}
		}
		warn(ReadHistory(ctx, a.Dir, o.File(r.run.UUID), r.take, warn))
		r.refused = o.Refused != nil && o.Refused(a.Dir)
		if o.Verifications && !r.refused { // what was passed then is not there
			r.verified()
		}
		if r.plan != nil && o.MaxPlans > 0 && (o.Plans || o.Verifications || o.Reflections) {
			if o.MaxPlans--; o.Reflections {
				r.reflected()
			}
			if o.Plans {
				r.planned(a)
			}
			warn(r.called(ctx, a.Dir))
		}
		if len(r.run.Subtasks)+len(r.run.Lessons) > 0 {
			if len(p.Runs) == 0 {
				p.Commit = a.State.Commit
			}
			p.Runs, used = append(p.Runs, r.run), append(used, a)
		}
	}
	if len(used) == 0 {
		return nil, nil
	}
	return p, used
}

// earlierReader puts together what a run left, its latest first, as the runs are
// read: on each subject the latest word counts.
type earlierReader struct {
	Inheritance
	clean func(string) string
	seen  map[string]bool // subjects, of all runs
	run   EarlierRun

	plan    *Plan
	entries []Entry
	refused bool // see Inheritance
}

func (r *earlierReader) take(e Entry) bool {
	if r.plan = cmp.Or(e.plan(), r.plan); e.Checkpoint == nil {
		e.Raw = nil
		r.entries = latest(append(r.entries, e), pastKept)
	}
	return true
}

// note keeps a lesson on a subject; where kind is "" that there was a word on it.
func (r *earlierReader) note(kind, about, text string) {
	if text == "" || r.seen[about] {
		return
	}
	if r.seen[about] = true; kind != "" && len(r.run.Lessons) < pastKept {
		r.run.Lessons = append(r.run.Lessons, Lesson{kind, text})
	}
}

func (r *earlierReader) noteEach(kind, about string, all []string) {
	for _, s := range all[:min(len(all), pastList)] {
		s = r.text(s)
		r.note(kind, about+s, s)
	}
}

// verified notes what verifications found (inherit §10.6): what the last one of
// the task did not find any more is resolved.
func (r *earlierReader) verified() {
	for i, e := range slices.Backward(r.entries) {
		if e.Scan != nil {
			r.noteEach("placeholder", "place ", e.Scan.Placeholders)
		}
		v := e.Verification
		if v == nil {
			continue
		}
		issues := "resolved"
		if !r.seen["a verification"] && !v.Passed {
			issues = "open"
		}
		r.seen["a verification"] = true
		r.note("verification", fmt.Sprint(r.run.UUID, i), r.Lang.T("planning.past_round", contextstore.Short(r.run.UUID), v.Passed))
		r.noteEach(issues, "issue ", v.Issues)
		for _, c := range v.Criteria[:min(len(v.Criteria), pastList)] {
			name := r.text(c.Criterion)
			r.note("criterion", "criterion "+name, r.Lang.T("planning.past_met", name, c.Met, r.text(c.Evidence)))
		}
		r.noteEach("placeholder", "place ", v.Placeholder.Locations)
		for _, a := range v.Additional[:min(len(v.Additional), pastList)] {
			r.noteEach("work added", "work ", []string{a.Purpose})
		}
	}
}

// reflected notes why the plan was changed, and what was drawn from it (inherit
// §10.5.2). A change worked where the next subtask to end is done.
func (r *earlierReader) reflected() {
	kind := "plan change"
	for _, e := range slices.Backward(r.entries) {
		switch {
		case e.Subtask != nil:
			r.noteEach("lesson", "lesson ", e.Subtask.Lessons)
			if kind = "plan change"; e.Subtask.Status == Done && r.Patterns {
				kind = "plan change that worked"
			}
		case e.Revision != nil && e.Revision.Reason != "verification" && e.Revision.Reason != "":
			var did []string
			for _, c := range e.Revision.Changes {
				did = append(did, strings.TrimSpace(c.Type+" "+cmp.Or(c.Details, c.about())))
			}
			r.changed(kind, []string{e.Revision.Reason}, did)
		case e.Reflection != nil && (e.Reflection.Judged.Revise || len(e.Reflection.Judged.Issues) > 0):
			j := e.Reflection.Judged
			r.changed("reflection", append([]string{j.Evaluation}, j.Issues...), []string{j.RootCause})
		case e.Replan != nil && e.Replan.Executed:
			d := e.Replan.Decision.Decision
			r.changed(kind, append([]string{d.Reasoning}, d.Issues...), append([]string{e.Replan.Do}, d.Recommended...))
		}
	}
}

// changed notes what was found, and what followed or was the cause.
func (r *earlierReader) changed(kind string, found, then []string) {
	text := strings.TrimSuffix(r.text(strings.Join(found, "; "))+" → "+r.text(strings.Join(then, "; ")), " → ")
	r.note(kind, "change "+text, text)
}

// planned takes over the plan, and what became of it (inherit §10.4.2).
func (r *earlierReader) planned(a memory.Ancestor) {
	ends, took, last := map[string]*SubtaskRecord{}, map[string]int64{}, int64(0)
	for _, e := range r.entries {
		if e.Subtask != nil {
			ends[e.Subtask.ID] = e.Subtask
			took[e.Subtask.ID] += e.Seq - last
		}
		if e.Subtask != nil || e.Plan != nil {
			last = e.Seq
		}
	}
	done := 0
	for _, id := range r.plan.Order() {
		t, _ := r.plan.Subtask(id)
		s := EarlierSubtask{ID: r.text(id), Description: r.text(t.Description)}
		how, kind := "", ""
		if len(t.Dependencies) > 0 {
			how = r.Lang.T("planning.past_after", r.text(strings.Join(t.Dependencies, ", ")))
		}
		handed := false
		if end := ends[id]; end != nil {
			s.Status, s.Summary, handed = end.Status, r.text(end.Summary), end.Summary == i18n.Recorded("handed_in")
		}
		if handed && r.refused {
			s.Status, s.Summary = refused, i18n.Recorded("handed_back")
		}
		if t.Complexity != "" && took[id] > 0 {
			how += r.Lang.T("planning.past_took", r.text(t.Complexity), took[id])
		}
		ended := s.Status
		switch ended {
		case "", Done, Failed, Blocked, Skipped, refused:
			ended = r.Lang.T("planning.past_" + cmp.Or(ended, "open"))
		}
		s.Line = strings.TrimSuffix(r.Lang.T("planning.past_step", s.ID, ended, how, s.Description)+" → "+r.Lang.Translate(s.Summary), " → ")
		switch s.Status {
		case Done:
			if done++; r.Patterns && !handed { // which tells nothing to learn
				kind = "done"
			}
		case Failed, Blocked:
			kind = "avoid"
		}
		if r.run.Subtasks = append(r.run.Subtasks, s); s.Status != "" {
			r.note(kind, "subtask "+s.Description, strings.TrimSpace(strings.TrimPrefix(s.Line, s.ID))) // an id of that plan may be one of this
		}
	}
	r.note("plan", r.run.UUID, strings.TrimSpace(r.Lang.T("planning.past_whole", r.text(r.plan.Goal.MainObjective), contextstore.Short(r.run.UUID),
		r.Lang.T("planning.past_"+string(a.Status())), a.State.CompletedAt.UTC().Format("2006-01-02"), done, len(r.run.Subtasks))))
}

// called notes which calls of tools worked, which failed, and what worked then
// (inherit §10.4.3, §10.5.1). A check that was red is none that failed: it tells
// of the files as they were, not of the call.
func (r *earlierReader) called(ctx context.Context, dir string) error {
	var tests []string // the commands that the run was checked by
	unread := contextstore.ReadJournal(ctx, dir, contextstore.Checks, func(l contextstore.JournalLine) bool {
		var c contextstore.CheckRun
		if json.Unmarshal(l.Text, &c) == nil && !c.Setup {
			tests = appendNew(tests, r.text(c.Command))
		}
		return len(tests) < pastKept
	})
	type call struct {
		tool, name, text string
		failed, check    bool
	}
	var calls []call
	err := contextstore.ReadJournal(ctx, dir, contextstore.Tools, func(l contextstore.JournalLine) bool {
		run, err := contextstore.DecodeToolRun(l.Text)
		if err != nil || IsTool(run.Tool) || run.Tool == r.Hands && r.Hands != "" {
			return true
		}
		said, tool := cmp.Or(run.Error, run.Result), r.text(run.Tool)
		name := strings.TrimSpace(tool + " " + r.text(subjectOf(run.Args)))
		c := call{tool, name, name + ": " + brief(r.text(said), pastLine/2), run.Status == "error", false}
		if c.failed {
			out := checks.NewParser()
			_, _ = io.WriteString(out, said) // never fails
			c.check = len(out.Summary().Failures) > 0 || slices.ContainsFunc(tests, func(t string) bool { return strings.Contains(name, t) })
		}
		calls = latest(append(calls, c), pastKept)
		return true
	})
	then := r.Lang.T("planning.past_then")
	next, nextOf, ok := "", map[string]string{}, map[string]int{} // that worked after the call at hand: any, of a tool, how often
	for _, c := range slices.Backward(calls) {
		switch {
		case !c.failed:
			if ok[c.name]++; r.Patterns && (c.tool == "shell" || ok[c.name] == 2) {
				r.note("worked", "work of "+c.name, c.text)
			}
			next, nextOf[c.tool] = c.name, c.name
		case ok[c.name] > 0:
			r.note("recovery", "failure of "+c.name, c.text+then+next)
		default:
			if r.seen["work of "+c.name] = true; !c.check {
				r.note("avoid", "failure of "+c.name, strings.TrimSuffix(c.text+then+nextOf[c.tool], then))
			}
		}
	}
	for name := range ok {
		r.seen["failure of "+name] = true
	}
	return errors.Join(unread, err)
}

// subjectOf is what the arguments of a call are about.
func subjectOf(args json.RawMessage) string {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(args, &m) // what is no object is its own subject
	for _, name := range []string{"path", "file_path", "file", "command", "cmd", "script", "pattern", "query", "url", "name"} {
		var s string
		if json.Unmarshal(m[name], &s) == nil && s != "" {
			return s
		}
	}
	return strings.Trim(string(args), "{}")
}

// text is one of another run as it may be repeated: cleaned, then cut. What is
// cleaned is bounded, far beyond what is shown of it, and at the end of a word: a
// part of one might not be known as what it is.
func (r *earlierReader) text(s string) string {
	if most := 8 << 10; len(s) > most {
		s = s[:strings.LastIndexAny(s[:most], " \t\n。")+1]
	}
	return brief(r.clean(s), pastLine)
}
