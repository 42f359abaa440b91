package contextstore

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/task"
)

// A listing is the same with the index, without it, and by the directories.
func TestListingIsTheSameWithoutTheIndex(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	for i, status := range task.Statuses() {
		putKey(t, s, task.Key{Source: "folder", Owner: "o", Repo: fmt.Sprint("r", i%2), Type: "issue", ID: fmt.Sprint(i)}, status)
	}
	gone := putKey(t, s, task.Key{ID: "gone"}, task.Completed)
	if err := kernel.RemoveAll(s.BaseDir + "/completed/" + gone); err != nil { // by hand; its row stays
		t.Fatal(err)
	}
	admin := Viewer{Admin: true}
	for _, f := range []Filter{{}, {Limit: 3}, {Status: task.Completed}, {Status: task.Running}, {Repo: "r1"}, {ID: "4"}, {User: "nobody"}} {
		limit := f.Limit
		if limit == 0 {
			limit = index.DefaultLimit
		}
		want, err := scan(s.BaseDir, limit, admin, func(v View) bool { return takes(f, v) })
		if err != nil {
			t.Fatal(err)
		}
		got, err := List(t.Context(), s.BaseDir, admin, f)
		if err != nil || got.Scanned {
			t.Fatal(got.Scanned, err)
		}
		shown := cmp.Transformer("shown", func(v View) string {
			return fmt.Sprint(v.Metadata.UUID, v.Metadata.TaskKey, v.Metadata.CreatedAt, v.Status(), v.Interrupted(), v.Dir, v.State.LLMCallCount, v.State.Spending, v.State.Error)
		})
		if d := cmp.Diff(want.Views, got.Views, shown, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%+v: %s", f, d)
		}
	}
	removeIndex(t, s)
	if l, err := List(t.Context(), s.BaseDir, admin, Filter{}); err != nil || !l.Scanned || len(l.Views) != len(task.Statuses()) {
		t.Errorf("%d %v", len(l.Views), err)
	}
	if l, err := List(t.Context(), s.BaseDir, Viewer{User: "ken"}, Filter{}); err != nil || len(l.Views) != 0 {
		t.Errorf("what is nobody's: %d %v", len(l.Views), err)
	}
}
