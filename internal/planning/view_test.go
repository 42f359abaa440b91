package planning

import (
	"slices"
	"testing"
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
