package planning

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/task"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func clock() time.Time { return time.Date(2024, 1, 15, 10, 30, 0, 0, time.UTC) }

// ledger is a store whose secret word is hunter2hunter2.
func ledger(t *testing.T, base string, fs *disk.FS) *contextstore.Store {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, FS: fs, Now: clock,
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2hunter2", "[SECRET]") }})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func begin(t *testing.T, s *contextstore.Store) *contextstore.Context {
	t.Helper()
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "folder", Owner: "abc", Repo: "demo", Type: "issue", ID: "42"}, User: "ken"})
	must(t, err)
	c, _, err := s.Claim(t.Context(), id)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func history(t *testing.T, c *contextstore.Context, warn func(error)) *History {
	t.Helper()
	h, _, err := OpenHistory(c, HistoryOptions{File: HistoryFile("", "", c.UUID()), Now: clock, Warn: warn})
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func record(t *testing.T, h *History, want int, e ...Entry) {
	t.Helper()
	if n, err := h.Append(e...); err != nil || n != want {
		t.Fatalf("%d written, want %d: %v", n, want, err)
	}
}

// eachOf calls f for every entry, oldest first, until f returns false.
func eachOf(h *History, f func(Entry) bool) error {
	var all []Entry
	_, err := h.Latest(func(e *Entry) bool { all = append(all, *e); return false })
	slices.Reverse(all)
	for _, e := range all {
		if !f(e) {
			break
		}
	}
	return err
}

// plan is one with a subtask of each id.
func plan(ids ...string) *Plan {
	p := &Plan{Phase: PhasePlanning, Goal: Goal{MainObjective: "a < b", SuccessCriteria: []string{}, Constraints: []string{}}}
	for _, id := range ids {
		p.Decomposition.Subtasks = append(p.Decomposition.Subtasks, Subtask{ID: id, Dependencies: []string{}, Complexity: "low"})
	}
	return p
}

func TestHistoryFile(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"planning/u.jsonl":               HistoryFile("/base", "", "u"),
		"/base/planning_history/u.jsonl": HistoryFile("/base", "planning_history", "u"),
		"/plans/u.jsonl":                 HistoryFile("/base", "/plans", "u"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The lines are the specified ones: fields, their order, time, compact.
func TestLinesOfAHistory(t *testing.T) {
	t.Parallel()
	c := begin(t, ledger(t, t.TempDir(), &disk.FS{}))
	h := history(t, c, nil)
	d := ReplanDecision{Decision: Replan{Needed: true, Confidence: 0.4, Reasoning: "why", Type: DoRetry, Level: 1}}
	wished := Decide(d, "task_2", Counts{}, defaultLimits())
	entries := []Entry{
		{Seq: 3, Plan: plan("task_1")},
		{Seq: 5, Subtask: &SubtaskRecord{ID: "task_1", Status: "done", Summary: "uses hunter2hunter2"}},
		{Seq: 7, Reflection: &Reflection{Phase: PhaseReflection, Judged: Judgement{Status: "failure", Evaluation: "no"}}},
		{Seq: 7, Revision: &Revision{Reason: "r", Changes: []Change{{Type: "remove", ID: "task_1"}}, Plan: plan("task_2")}},
		{Seq: 9, Replan: &wished},
		{Seq: 9, Question: &Question{ID: "q1", Questions: []string{"which?"}, AskedAt: contextstore.Time{Time: clock()}}},
		{Seq: 11, Answer: &Answer{ID: "q1", By: "ken", Text: "this"}},
		{Seq: 11, Assumption: &Assumption{ID: "i1", Value: "x"}},
		{Seq: 13, Verification: &Verification{Phase: PhaseVerification, Issues: []string{"open"}, Placeholder: PlaceholderReport{Locations: []string{}}}},
		{Seq: 15, Subtask: &SubtaskRecord{ID: "task_2", Status: "done", Summary: "s", Lessons: []string{"not again"}}},
		{Seq: 15, Scan: &ScanRecord{Placeholders: []string{"a.go:1: TODO"}}},
		{Checkpoint: json.RawMessage(`{"actions": 3}`)},
	}
	record(t, h, len(entries), entries...)
	got, err := os.ReadFile(filepath.Join(c.Dir(), "planning", c.UUID()+".jsonl"))
	must(t, err)
	head := func(kind string) string {
		return `{"type":"` + kind + `","timestamp":"2024-01-15T10:30:00.000000Z","issue_id":"42","task_uuid":"` + c.UUID() + `",`
	}
	subtask := func(id string) string {
		return `"goal_understanding":{"main_objective":"a < b","success_criteria":[],"constraints":[]},"task_decomposition":{"reasoning":"","subtasks":[{"id":"` + id + `","description":"","dependencies":[],"complexity":"low"}]},"action_plan":{"execution_order":null,"actions":null}}`
	}
	want := []string{
		head("plan") + `"plan":{"phase":"planning",` + subtask("task_1") + `,"seq":3}`,
		head("subtask") + `"task_id":"task_1","status":"done","summary":"uses [SECRET]","seq":5}`,
		head("reflection") + `"evaluation":{"phase":"reflection","reflection":{"status":"failure","evaluation":"no","plan_revision_needed":false}},"seq":7}`,
		head("revision") + `"reason":"r","changes":[{"type":"remove","task_id":"task_1"}],"updated_plan":{"phase":"planning",` + subtask("task_2") + `,"seq":7}`,
		head("replan_decision") + `"phase":"execution","llm_decision":{"replan_decision":{"replan_needed":true,"confidence":0.4,"reasoning":"why","replan_type":"retry","replan_level":1}},"confidence":0.4,"executed":true,` +
			`"override_reason":"needs_confirmation","replan_counts":{"total":0,"clarifications":1,"partial_replans":0,"plan_revisions":0,"regenerations":0,"redecompositions":0,"restarts":0},"executed_type":"ask","seq":9}`,
		head("question") + `"question_id":"q1","questions":["which?"],"asked_at":"2024-01-15T10:30:00.000000Z","deadline":null,"seq":9}`,
		head("answer") + `"question_id":"q1","by":"ken","answer":"this","seq":11}`,
		head("assumption") + `"assumption":{"info_id":"i1","assumed_value":"x"},"seq":11}`,
		head("verification") + `"verification_result":{"phase":"verification","verification_passed":false,"issues_found":["open"],"placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":0},"seq":13}`,
		head("subtask") + `"task_id":"task_2","status":"done","summary":"s","lessons_learned":["not again"],"seq":15}`,
		head("scan") + `"placeholders_found":["a.go:1: TODO"],"seq":15}`,
		head("checkpoint") + `"state":{"actions":3}}`,
	}
	if lines := strings.Split(strings.TrimSpace(string(got)), "\n"); !slices.Equal(lines, want) {
		for i := range max(len(lines), len(want)) {
			if i >= len(lines) || i >= len(want) || lines[i] != want[i] {
				t.Errorf("line %d:\n%s, want\n%s", i+1, slices.Concat(lines, want)[i], slices.Concat(want, lines)[i])
			}
		}
	}

	// What is read is what was written.
	i := 0
	must(t, eachOf(h, func(e Entry) bool {
		in := entries[i]
		if in.Subtask != nil && in.Subtask.ID == "task_1" {
			in.Subtask.Summary = "uses [SECRET]"
		}
		if in.Checkpoint != nil {
			in.Checkpoint = json.RawMessage(`{"actions":3}`)
		}
		in.Type, in.Timestamp, in.IssueID, in.TaskUUID, in.Raw = e.Type, contextstore.Time{Time: clock()}, "42", c.UUID(), e.Raw
		if got, want := encode(e), encode(in); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		i++
		return true
	}))
	if i != len(entries) {
		t.Errorf("%d entries", i)
	}
}

func TestEntriesThatAreNone(t *testing.T) {
	t.Parallel()
	h := history(t, begin(t, ledger(t, t.TempDir(), &disk.FS{})), nil)
	for name, e := range map[string]Entry{
		"nothing":      {},
		"two":          {Plan: plan("a"), Answer: &Answer{}},
		"another type": {Type: RecordPlan, Answer: &Answer{}},
		"no JSON":      {Checkpoint: json.RawMessage(`{`)},
	} {
		if n, err := h.Append(Entry{Answer: &Answer{}}, e); err == nil || n != 0 {
			t.Errorf("%s: %d written, %v", name, n, err)
		}
	}
	must(t, eachOf(h, func(e Entry) bool { t.Errorf("%+v", e); return true }))
}

// A run that was killed takes its last answers once more: nothing is recorded twice.
func TestRecordingIsIdempotent(t *testing.T) {
	t.Parallel()
	s := ledger(t, t.TempDir(), &disk.FS{})
	c := begin(t, s)
	h := history(t, c, nil)
	first := []Entry{
		{Seq: 3, Plan: plan("a")},
		{Seq: 5, Reflection: &Reflection{}},
		{Seq: 5, Revision: &Revision{Plan: plan("b")}},
		{Seq: 5, Assumption: &Assumption{Value: "hunter2hunter2"}},
		{Seq: 5, Assumption: &Assumption{Value: "y"}},
		{Seq: 5, Subtask: &SubtaskRecord{ID: "a", Status: "started"}},
		{Seq: 5, Subtask: &SubtaskRecord{ID: "a", Status: "done"}},
	}
	record(t, h, len(first), append(slices.Clone(first), first...)...)
	record(t, h, 0, first...)
	must(t, h.Close())
	h = history(t, c, nil)
	record(t, h, 1, append(slices.Clone(first), Entry{Seq: 7, Reflection: &Reflection{}})...)
	record(t, h, 2, Entry{Checkpoint: json.RawMessage(`{}`)}, Entry{Checkpoint: json.RawMessage(`{}`)}) // of no answer
	n := 0
	must(t, eachOf(h, func(Entry) bool { n++; return true }))
	if n != len(first)+3 {
		t.Errorf("%d entries", n)
	}
}

// What opening, recording and looking back costs does not grow with the history.
func TestALongHistory(t *testing.T) {
	t.Parallel()
	s := ledger(t, t.TempDir(), &disk.FS{})
	c := begin(t, s)
	dir := filepath.Join(c.Dir(), "planning")
	must(t, os.Mkdir(dir, 0o700))
	line := []byte(`{"type":"reflection","timestamp":"2024-01-15T10:30:00Z","issue_id":"42","task_uuid":"u","evaluation":{"reflection":{"status":"success","evaluation":"` + strings.Repeat("x", 1000) + `"}},"seq":4}` + "\n")
	text := append([]byte("who reads this reads everything\n"), bytes.Repeat(line, 20000)...)
	must(t, os.WriteFile(filepath.Join(dir, c.UUID()+".jsonl"), text, 0o600))
	h := history(t, c, func(d error) { t.Error(d) })
	if n := len(h.seen); n > openLines || n == 0 {
		t.Errorf("%d entries were read", n)
	}
	var batch []Entry
	for i := range 2 * openLines {
		batch = append(batch, Entry{Seq: int64(i + 5), Reflection: &Reflection{}})
	}
	for b := range slices.Chunk(batch, 64) {
		record(t, h, 64, b...)
	}
	if n := len(h.seen); n != openLines {
		t.Errorf("%d entries are kept", n)
	}
	if last, err := h.Latest(func(*Entry) bool { return true }); err != nil || last == nil || last.Seq != 2*openLines+4 {
		t.Errorf("%+v: %v", last, err)
	}
}

// Damage costs the damaged lines, and somebody hears of it.
func TestADamagedHistory(t *testing.T) {
	t.Parallel()
	var told []error
	s := ledger(t, t.TempDir(), &disk.FS{})
	c := begin(t, s)
	h := history(t, c, nil)
	record(t, h, 2, Entry{Seq: 1, Plan: plan("a")}, Entry{Seq: 2, Plan: plan("b")})
	must(t, h.Close())
	path := filepath.Join(c.Dir(), "planning", c.UUID()+".jsonl")
	good, err := os.ReadFile(path)
	must(t, err)
	lines := bytes.SplitAfter(good, []byte("\n"))
	within := []string{"\x00\x00\x00\n", "{}\n", "\n", `{"type":"plan","plan":"none"}` + "\n", `{"type":"later","x":1}` + "\n", "\xff{\n"}
	text := string(lines[0]) + strings.Join(within, "") + string(lines[1]) + `{"type":"pl`
	must(t, os.WriteFile(path, []byte(text), 0o600))

	// Of another run, as it lies there.
	var kinds []string
	must(t, ReadHistory(t.Context(), c.Dir(), HistoryFile("", "", c.UUID()), func(e Entry) bool { kinds = append(kinds, e.Type); return true }, func(d error) { told = append(told, d) }))
	if !slices.Equal(kinds, []string{"plan", "later", "plan"}) || len(told) != 4 || !strings.Contains(told[0].Error(), fmt.Sprintf(" line 2 (byte %d): ", len(lines[0]))) || !strings.Contains(told[3].Error(), " line 7 ") {
		t.Errorf("%q %v", kinds, told)
	}

	// By its owner, who mends the end.
	told = nil
	h, fixed, err := OpenHistory(c, HistoryOptions{File: HistoryFile("", "", c.UUID()), Now: clock, Warn: func(d error) { told = append(told, d) }})
	must(t, err)
	defer func() { _ = h.Close() }()
	if len(fixed) != 1 || !strings.Contains(fixed[0], "11 bytes") || len(told) != 4 {
		t.Errorf("mended %q, told %v", fixed, told)
	}
	record(t, h, 1, Entry{Seq: 3, Reflection: &Reflection{}})
	kinds = nil
	must(t, eachOf(h, func(e Entry) bool { kinds = append(kinds, e.Type); return true }))
	a, err := ReadAccount(t.Context(), c.Dir(), HistoryFile("", "", c.UUID()), nil)
	if err != nil || a.Subtasks[0].ID != "b" || !slices.Equal(kinds, []string{"plan", "later", "plan", "reflection"}) {
		t.Errorf("%q %v", kinds, err)
	}
}

// A history of the ancestor, as its lines are known, plain and compressed.
func TestAnAncestorsHistory(t *testing.T) {
	t.Parallel()
	text := strings.Join([]string{
		`{"type": "plan", "timestamp": "2024-01-15T10:30:00Z", "issue_id": 7, "task_uuid": "u", "plan": {"phase": "planning", "goal_understanding": {"main_objective": "m", "success_criteria": [], "constraints": []}, "task_decomposition": {"reasoning": "r", "subtasks": [{"id": "task_1", "description": "d", "dependencies": [], "estimated_complexity": "low"}]}, "action_plan": {"execution_order": ["task_1"], "actions": [{"task_id": "task_1", "action_type": "tool_call", "tool": "t", "parameters": {"a": 1}, "purpose": "p"}]}}}`,
		`{"type":"reflection","timestamp":"2024-01-15T10:35:01.123456","evaluation":{"status":"failure","evaluation":"e"}}`,
		`{"type":"revision","timestamp":"soon","reason":"エラー回復","changes":[{"type":"remove_action","details":"x"}],"updated_plan":{"action_plan":{"execution_order":["task_1"],"actions":[{"task_id":"task_1","tool":"u"}]}}}`,
		`{"type":"revision","timestamp":"2024-01-15T10:36:00Z","reason":"emptied","changes":["x"],"updated_plan":{"phase":"reflection"}}`,
		`{"type":"replan_decision","timestamp":"2024-01-15T10:37:00Z","phase":"execution","llm_decision":{"replan_decision":{"replan_needed":true,"replan_type":"retry","confidence":0.9}},"confidence":0.9,"executed":false,"override_reason":"","replan_counts":{"execution":{"action_retries":1}}}`,
		`{"type":"verification","timestamp":"2024-01-15T10:38:00Z","verification_result":{"verification_passed":false,"issues_found":["i"],"placeholder_detected":{"count":1,"locations":["a.py:3"]}}}`,
	}, "\n")
	for _, name := range []string{"u.jsonl", "u.jsonl.gz"} {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "planning"), 0o700))
		var b bytes.Buffer
		if strings.HasSuffix(name, ".gz") {
			z := gzip.NewWriter(&b)
			_, err := z.Write([]byte(text))
			must(t, errors.Join(err, z.Close()))
		} else {
			b.WriteString(text)
		}
		must(t, os.WriteFile(filepath.Join(dir, "planning", name), b.Bytes(), 0o400))
		var all []Entry
		must(t, ReadHistory(t.Context(), dir, HistoryFile("", "", "u"), func(e Entry) bool { all = append(all, e); return true }, func(d error) { t.Error(d) }))
		if len(all) != 6 {
			t.Fatalf("%s: %d entries", name, len(all))
		}
		if e := all[0]; e.IssueID != "7" || e.Plan.Goal.MainObjective != "m" || len(e.Plan.Actions.Actions) != 1 || e.Seq != 0 {
			t.Errorf("%+v", e)
		}
		if e := all[1]; e.Reflection.Judged.Status != "failure" || e.Timestamp.String() != "2024-01-15T10:35:01.123456Z" {
			t.Errorf("%+v", e)
		}
		if e := all[2]; e.Revision.Reason != "エラー回復" || len(e.Revision.Changes) != 1 || !e.Timestamp.IsZero() {
			t.Errorf("%+v", e.Revision)
		}
		if e := all[4]; e.Replan.Executed || e.Replan.Decision.Decision.Type != DoRetry || e.Replan.Confidence != 0.9 {
			t.Errorf("%+v", e.Replan)
		}
		if e := all[5]; e.Verification.Placeholder.Count != 1 {
			t.Errorf("%+v", e.Verification)
		}
		a, err := ReadAccount(t.Context(), dir, HistoryFile("", "", "u"), nil)
		if p := a.Plan; err != nil || len(p.Actions.Actions) != 1 || p.Actions.Actions[0].Tool != "u" {
			t.Errorf("%+v %v", a, err)
		}
	}
	if a, err := ReadAccount(t.Context(), t.TempDir(), HistoryFile("", "", "u"), nil); a.Plan != nil || err != nil {
		t.Errorf("of a run that never planned: %v %v", a, err)
	}
	if err := ReadHistory(t.Context(), filepath.Join(t.TempDir(), "gone"), HistoryFile("", "", "u"), nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a run that is gone: %v", err)
	}
}

// The history goes where its context goes, and lies where it was told to lie;
// tori check reads it in both places.
func TestWhereAHistoryLies(t *testing.T) {
	t.Parallel()
	for _, directory := range []string{"", "planning_history"} {
		base := t.TempDir()
		s := ledger(t, base, &disk.FS{})
		c := begin(t, s)
		file := HistoryFile(base, directory, c.UUID())
		h, _, err := OpenHistory(c, HistoryOptions{File: file, Now: clock})
		must(t, err)
		record(t, h, 1, Entry{Seq: 1, Plan: plan("a")})
		must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed}))
		if _, err := h.Append(Entry{Seq: 2, Plan: plan("b")}); !errors.Is(err, contextstore.ErrEnded) {
			t.Errorf("recorded after the end: %v", err)
		}
		must(t, h.Close())
		v, err := contextstore.Find(base, c.UUID(), contextstore.Viewer{Admin: true})
		must(t, err)
		if a, err := ReadAccount(t.Context(), v.Dir, file, nil); err != nil || a.Plan == nil || a.Subtasks[0].ID != "a" {
			t.Errorf("%q: %+v %v", directory, a, err)
		}
		must(t, s.Close())
		o := fsck.Options{}
		path := filepath.Join(v.Dir, file)
		if directory != "" {
			o.Plans, path = filepath.Join(base, directory), file
		}
		r, err := fsck.Check(t.Context(), base, o)
		if err != nil || r.Found > 0 {
			t.Errorf("%q: %+v %v", directory, r.Findings, err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteString("{")
		must(t, errors.Join(err, f.Close()))
		if r, err := fsck.Check(t.Context(), base, o); err != nil || r.Found != 1 || r.Findings[0].Kind != "torn" {
			t.Errorf("%q: %+v %v", directory, r.Findings, err)
		}
	}
}

// A run is killed at each call that touches its history and goes on: every
// entry is there once, in its order, with what the files around it promise.
func TestAHistorySurvivesItsRun(t *testing.T) {
	t.Parallel()
	entries := []Entry{
		{Seq: 1, Plan: plan("a")},
		{Seq: 3, Reflection: &Reflection{}},
		{Seq: 3, Revision: &Revision{Plan: plan("b")}},
		{Seq: 5, Replan: &ReplanRecord{Counts: Counts{Total: 1}}},
	}
	life := func(c *contextstore.Context) (err error) {
		h, _, err := OpenHistory(c, HistoryOptions{File: HistoryFile("", "", c.UUID()), Now: clock})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.Close()) }()
		for _, e := range [][]Entry{entries[:1], entries[1:3], entries[3:]} {
			if _, err := h.Append(e...); err != nil {
				return err
			}
		}
		return nil
	}
	killed := 0
	for at := 1; ; at++ {
		for _, torn := range []bool{false, true} {
			var stop *disktest.Stopper // set once the run is under way
			fs := &disk.FS{Flush: disktest.NoFlush, Before: func(op disk.Op) error {
				if stop == nil || !strings.Contains(op.Path, "planning") && op.Kind != disk.Mkdir {
					return nil
				}
				return stop.Before(op)
			}}
			c := begin(t, ledger(t, t.TempDir(), fs))
			stop = &disktest.Stopper{At: at, Torn: torn}
			err := life(c)
			hit := stop.Hit()
			stop = nil
			if hit.Kind == "" {
				if err != nil || killed < 10 {
					t.Fatalf("%d kills: %v", killed, err)
				}
				return
			}
			killed++
			if err == nil {
				t.Fatalf("stop at %d (%v): it went on", at, hit)
			}
			must(t, life(c)) // takes everything once more
			var got []string
			must(t, ReadHistory(t.Context(), c.Dir(), HistoryFile("", "", c.UUID()), func(e Entry) bool { got = append(got, fmt.Sprint(e.Type, e.Seq)); return true },
				func(d error) { t.Errorf("stop at %d (%v): %v", at, hit, d) }))
			if !slices.Equal(got, []string{"plan1", "reflection3", "revision3", "replan_decision5"}) {
				t.Errorf("stop at %d (%v, torn %v): %q", at, hit, torn, got)
			}
			must(t, c.Close())
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	for _, s := range []string{`{"type":"plan","plan":{}}`, `{"type":"revision","updated_plan":null}`, `{"type":"replan_decision","llm_decision":{"replan_decision":{}},"replan_counts":1}`,
		`{"type":"assumption","assumption":{"info_id":"\u0000"},"seq":-1}`, `{"type":1,"timestamp":{},"issue_id":[]}`, `{"type":"checkpoint","state":{}}`, "\x00", `{"type":"question"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := DecodeEntry(line)
		_ = e.plan()
		_ = e.key()
		if err != nil {
			return
		}
		if slices.ContainsFunc(e.parts(), func(p part) bool { return p.held }) {
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatalf("%s is read and cannot be written: %v", line, err)
			}
			again, err := DecodeEntry(b)
			if err != nil || again.Type != e.Type || again.Seq != e.Seq && e.Seq > 0 {
				t.Fatalf("%s became %s: %v", line, b, err)
			}
		}
	})
}
