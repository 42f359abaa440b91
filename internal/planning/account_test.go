package planning

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"toritsugi/internal/disk"
)

// get_latest_plan and get_revision_history, with what became of each subtask.
func TestAccount(t *testing.T) {
	t.Parallel()
	c := begin(t, ledger(t, t.TempDir(), &disk.FS{}))
	h := history(t, c, nil)
	read := func() (a Account) {
		a, err := ReadAccount(t.Context(), c.Dir(), HistoryFile("", "", c.UUID()), nil)
		must(t, err)
		return a
	}
	ended := func(a Account) (all []string) {
		for _, s := range a.Subtasks {
			all = append(all, s.ID+"="+s.Status+" "+s.Summary)
		}
		return all
	}
	if a := read(); a.Plan != nil || len(a.Subtasks)+len(a.Revisions)+len(a.Verifications) > 0 {
		t.Errorf("of no plan: %+v", a)
	}
	record(t, h, 2, Entry{Seq: 1, Plan: plan("a")}, Entry{Seq: 3, Subtask: &SubtaskRecord{ID: "zz", Status: Done}})
	if got := ended(read()); !slices.Equal(got, []string{"a= "}) {
		t.Errorf("begun: %q", got)
	}
	record(t, h, 2, Entry{Seq: 4, Revision: &Revision{Reason: "1", Plan: plan("a", "b")}}, Entry{Seq: 5, Subtask: &SubtaskRecord{ID: "a", Status: Done, Summary: "a.go"}})
	record(t, h, 2, Entry{Seq: 6, Revision: &Revision{Reason: "2", Plan: plan()}}, Entry{Seq: 7, Revision: &Revision{Reason: "3"}}) // a plan of nothing is none
	record(t, h, 2, Entry{Seq: 8, Subtask: &SubtaskRecord{ID: "b", Status: Failed, Summary: "no"}}, Entry{Seq: 8, Verification: &Verification{Passed: true}})
	a := read()
	if got := ended(a); !slices.Equal(got, []string{"a=done a.go", "b=failed no"}) || len(a.Verifications) != 1 {
		t.Errorf("%q %+v", got, a.Verifications)
	}
	// What is tried again is open, as the run's own state has it.
	record(t, h, 1, Entry{Seq: 9, Checkpoint: json.RawMessage(`{"ends":{"a":"done"}}`)})
	if got := ended(read()); !slices.Equal(got, []string{"a=done a.go", "b= "}) {
		t.Errorf("tried again: %q", got)
	}
	for i := range MaxRevisions {
		record(t, h, 1, Entry{Seq: int64(10 + i), Revision: &Revision{Reason: fmt.Sprint(i), Plan: plan("a", "b")}})
	}
	all := read().Revisions
	if len(all) != MaxRevisions || all[0].Revision.Reason != "0" || all[MaxRevisions-1].Revision.Reason != fmt.Sprint(MaxRevisions-1) {
		t.Errorf("%d revisions, %s to %s", len(all), all[0].Revision.Reason, all[len(all)-1].Revision.Reason)
	}
}
