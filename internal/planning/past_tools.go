package planning

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sort"
	"strings"

	"toritsugi/internal/checks"
	"toritsugi/internal/contextstore"
)

// PastUse is what came of calls of one tool for one thing.
type PastUse struct {
	Tool    string `json:"tool"`
	Subject string `json:"subject,omitempty"` // a path, a command, what was looked for
	OK      int    `json:"ok,omitempty"`
	Failed  int    `json:"failed,omitempty"`
	Result  string `json:"result,omitempty"`  // the gist of the last that was given
	Error   string `json:"error,omitempty"`   // the same of the last failure
	Instead string `json:"instead,omitempty"` // what worked after it had failed
	Last    bool   `json:"last,omitempty"`    // the last call worked
	Check   bool   `json:"check,omitempty"`   // its failures were of a check: they tell of the files as they were, not of the call
}

// PastTotal counts the calls of a tool.
type PastTotal struct {
	Tool   string `json:"tool"`
	OK     int    `json:"ok"`
	Failed int    `json:"failed"`
}

// How much is kept of the calls of a run.
const (
	pastUses    = 500 // kinds that are counted
	pastKept    = 80  // kinds that are kept in the end: half of them failures, where there are so many
	pastTools   = 40  // names of tools that are counted
	pastPattern = 6   // tools in a subtask's pattern
	pastFollow  = 8   // calls after a failure in which what worked instead is looked for
	pastGist    = 160 // runes
)

// pastTally counts the calls of a run as they come.
type pastTally struct {
	r      *pastReader
	at     map[string]int // by tool and subject, into r.run.Uses
	total  map[string]int // by tool, into r.run.Totals
	failed []pastFailure  // that nothing followed yet
	checks []string       // the commands that the run was checked by
}

// pastFailure is a failed call and what came after it.
type pastFailure struct {
	use     int // in Uses
	age     int // calls since
	between string
}

// used reads the calls of the run, and tells each subtask of its own: those that
// came before its end, by the clock, and after that of the one before.
func (r *pastReader) used(ctx context.Context, find func(id string) *PastSubtask) error {
	t := &pastTally{r: r, at: map[string]int{}, total: map[string]int{}}
	err := contextstore.ReadJournal(ctx, r.a.Dir, contextstore.Checks, func(l contextstore.JournalLine) bool {
		var c contextstore.CheckRun
		if json.Unmarshal(l.Text, &c) == nil && !c.Setup {
			t.checks = appendNew(t.checks, r.text(c.Command))
		}
		return len(t.checks) < pastUses
	})
	err = errors.Join(err, contextstore.ReadJournal(ctx, r.a.Dir, contextstore.Tools, func(l contextstore.JournalLine) bool {
		if run, err := contextstore.DecodeToolRun(l.Text); err == nil && !IsTool(run.Tool) {
			t.count(run)
			if s := r.during(run.Timestamp, find); s != nil {
				s.note(r.a.Words(run.Tool), run.Status == "error")
			}
		}
		return true
	}))
	t.keep()
	return err
}

// during is the subtask that was worked on at a time, nil for none.
func (r *pastReader) during(at contextstore.Time, find func(string) *PastSubtask) *PastSubtask {
	if !at.After(r.began.Time) {
		return nil
	}
	i := sort.Search(len(r.ends), func(i int) bool { return !r.ends[i].at.Before(at.Time) })
	if i == len(r.ends) {
		return nil
	}
	return find(r.ends[i].ID)
}

func (s *PastSubtask) note(tool string, failed bool) {
	s.Calls++
	if failed {
		s.Failed++
		return
	}
	if n := len(s.Tools); n < pastPattern && (n == 0 || s.Tools[n-1] != tool) {
		s.Tools = append(s.Tools, tool)
	}
}

// count takes a call.
func (t *pastTally) count(run contextstore.ToolRun) {
	failed := run.Status == "error"
	name, subject := t.r.text(run.Tool), t.r.text(subjectOf(run.Args))
	if i, ok := t.total[name]; ok || len(t.total) < pastTools {
		if !ok {
			i = len(t.r.run.Totals)
			t.total[name], t.r.run.Totals = i, append(t.r.run.Totals, PastTotal{Tool: name})
		}
		if failed {
			t.r.run.Totals[i].Failed++
		} else {
			t.r.run.Totals[i].OK++
		}
	}
	key := name + "\x00" + subject
	i, ok := t.at[key]
	if !ok {
		if len(t.at) == pastUses {
			return
		}
		i = len(t.r.run.Uses)
		t.at[key], t.r.run.Uses = i, append(t.r.run.Uses, PastUse{Tool: name, Subject: subject})
	}
	u := &t.r.run.Uses[i]
	u.Last = !failed
	if failed {
		u.Failed++
		u.Error = t.r.gist(cmp.Or(run.Error, run.Result))
		u.Check = t.check(subject, cmp.Or(run.Error, run.Result))
	} else {
		u.OK++
		u.Result = t.r.gist(run.Result)
	}
	t.follow(i, failed)
}

// check reports whether a failed call was one of a check: it ran a command that
// the run was checked by, or its output names tests that failed.
func (t *pastTally) check(subject, said string) bool {
	if slices.ContainsFunc(t.checks, func(c string) bool { return strings.Contains(subject, c) }) {
		return true
	}
	out := checks.NewParser()
	_, _ = io.WriteString(out, said) // never fails
	return len(out.Summary().Failures) > 0
}

// follow looks what worked after failures: the same call again after something
// else was done, or another one for the like.
func (t *pastTally) follow(i int, failed bool) {
	uses := t.r.run.Uses
	open := t.failed[:0]
	for _, f := range t.failed {
		if f.age++; f.age > pastFollow || f.use == i && failed {
			continue
		}
		switch {
		case failed:
		case f.use == i:
			uses[i].Instead = cmp.Or(f.between, "the same once more")
			continue
		case alike(uses[f.use], uses[i]):
			uses[f.use].Instead = uses[i].name()
			continue
		default:
			f.between = uses[i].name()
		}
		open = append(open, f)
	}
	if t.failed = open; failed {
		t.failed = append(t.failed, pastFailure{use: i})
	}
}

// alike reports whether one call may have been made in place of another.
func alike(a, b PastUse) bool {
	if a.Tool != b.Tool {
		return a.Subject != "" && a.Subject == b.Subject
	}
	return common(terms(a.Subject), terms(b.Subject)) > 0
}

// keep drops what says least: what worked and failed never, the rarest first.
func (t *pastTally) keep() {
	uses := t.r.run.Uses
	if len(uses) <= pastKept {
		return
	}
	order := make([]int, len(uses))
	for i := range order {
		order[i] = i
	}
	weight := func(i int) int {
		if uses[i].Failed > 0 {
			return 1<<20 + i // the latest failures
		}
		return uses[i].OK
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight(b), weight(a)) })
	failures := 0
	kept := map[int]bool{}
	for _, i := range order {
		if uses[i].Failed > 0 {
			if failures++; failures > pastKept/2 {
				continue
			}
		}
		if len(kept) < pastKept {
			kept[i] = true
		}
	}
	var all []PastUse
	for i, u := range uses {
		if kept[i] {
			all = append(all, u)
		}
	}
	t.r.run.Uses = all
}

// name is a call in short.
func (u PastUse) name() string {
	if u.Subject == "" {
		return u.Tool
	}
	return u.Tool + " " + brief(u.Subject, pastGist)
}

// gist is the first and the last line of what a tool said.
func (r *pastReader) gist(s string) string {
	s = strings.TrimSpace(s)
	first, rest, more := strings.Cut(s, "\n")
	first = brief(r.a.Words(edge(first)), pastGist)
	if !more {
		return first
	}
	last := rest[strings.LastIndexByte(rest, '\n')+1:]
	return brief(brief(first, pastGist/2)+" … "+r.a.Words(edge(last)), pastGist)
}

// subjectOf is what the arguments of a call are about.
func subjectOf(args json.RawMessage) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(args, &m) != nil {
		return ""
	}
	for _, name := range []string{"path", "file_path", "file", "command", "cmd", "script", "pattern", "query", "url", "name"} {
		var s string
		if json.Unmarshal(m[name], &s) == nil && s != "" {
			return s
		}
	}
	var b bytes.Buffer
	if len(args) > pastLine || json.Compact(&b, args) != nil || b.String() == "{}" {
		return ""
	}
	return b.String()
}
