package planning

import (
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
)

// Whoever watches a history hears each line once, as it was written: masked, with
// its time, and not again where it is recorded again.
func TestAHistoryIsHeard(t *testing.T) {
	t.Parallel()
	c := begin(t, ledger(t, t.TempDir(), nil))
	var heard []Entry
	h, _, err := OpenHistory(c, HistoryOptions{File: HistoryFile("", "", c.UUID()), Now: clock, Heard: func(e Entry) { heard = append(heard, e) }})
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	done := Entry{Seq: 7, Subtask: &SubtaskRecord{ID: "one", Status: Done, Summary: "hunter2hunter2"}}
	record(t, h, 2, done, Entry{Seq: 7, Assumption: &Assumption{Value: "decimal"}})
	record(t, h, 0, done)
	if len(heard) != 2 || heard[0].Subtask == nil || heard[0].Subtask.Summary != "[SECRET]" || !heard[0].Timestamp.Equal(clock()) || heard[1].Assumption == nil {
		t.Errorf("%+v", heard)
	}
}

// A number stands for the id that the program, or a model that counts, gave a subtask.
func TestTitle(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"task_1": "Subtask 1", "2": "Subtask 2", "Step-3": "Subtask 3", "verification_fix_4": "After verification, part 4", "parser": "parser", "task_1a": "task_1a"} {
		if got := Title(i18n.English, id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	if got := Title(i18n.Japanese, "task_1"); got != "サブタスク 1" {
		t.Error(got)
	}
}

// Every kind of message that asks the model for something begins a phase; others
// begin none.
func TestPhaseOf(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string][]string{
		askPlan: {PhasePlanning, ""}, askSubtask + "/a/b": {PhaseExecution, "a/b"}, askReflect: {PhaseReflection, ""}, askRevise: {PhaseReflection, ""},
		askReplan: {PhaseReplan, ""}, askVerify: {PhaseVerification, ""}, askNudge: {"", ""}, askRemark: {"", ""}, "": {"", ""},
	} {
		if phase, id := PhaseOf(kind); !slices.Equal([]string{phase, id}, want) {
			t.Errorf("%s: %s, %s", kind, phase, id)
		}
	}
}

// The phase is what the run is in: nothing counts as verified, or as the end, that
// no verification said.
func TestPhases(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"straight, dependencies before the order of execution": "verification worked; completion worked verified",
		"a verification does not pass to the end":              "verification worked; verification worked; verification worked",
		"no usable plan": "verification worked; verification worked",
		"a verification that cannot be read is none, also after one that passed": "verification worked; verification worked; verification worked",
		"the checks fail when the plan is done":                                  "verification worked; execution; verification worked; completion worked verified",
		"a failed subtask asks, and goes on with the answer":                     "execution; verification worked; completion worked verified",
		"a plan asks, and people answer":                                         "planning; verification worked; completion worked verified",
		"no replanning at all":                                                   "verification worked; verification worked",
		"retries are spent: one level higher, then stop":                         "execution",
		"the last turn is the handover":                                          "execution",
		"the last turn of a verification is the handover":                        "verification worked; verification worked",
		"round and round: nudge, replan, stop":                                   "execution",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, newStore(t), scenes()[name])
			s.watch = true
			s.live()
			defer s.close()
			if got := strings.Join(s.seen, "; "); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// A line of the history that an older build wrote is read: what follows from other
// fields is in it, and is passed over.
func TestAStateOfAnOlderBuild(t *testing.T) {
	t.Parallel()
	c := begin(t, ledger(t, t.TempDir(), nil))
	h, _, err := OpenHistory(c, HistoryOptions{File: HistoryFile("", "", c.UUID()), Now: clock})
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	_, err = h.Append(Entry{Seq: 9, Checkpoint: []byte(`{"seq":9,"offset":0,"answer":9,"noted":9,"want":"verify","again":"verify","tried":1,"posed":5,"judged":true,"verified":true,"found":{"passed":true},"ends":{"a":"done"},"guard":{},"loop":{"kind":"","stage":0,"count":0,"tools":null},"replans":{"total":1}}`)})
	must(t, err)
	l := &Coordinator{history: h}
	must(t, l.recall())
	if s := &l.s; s.Want != "" || s.judged() || s.Results["a"].Status != Done || s.Counts.Total != 1 || l.recorded != 9 {
		t.Errorf("%+v", *s)
	}
}
