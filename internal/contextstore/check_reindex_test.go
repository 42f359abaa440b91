package contextstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"toritsugi/internal/task"
)

// indexed is every row of an index that nobody has open.
func indexed(t *testing.T, base string) map[string]Row {
	t.Helper()
	s, err := openCheckRows(t.Context(), base, true)
	must(t, err)
	defer func() { _ = s.close() }()
	all := map[string]Row{}
	must(t, s.each(t.Context(), func(uuid string) error {
		r, _, err := s.row(t.Context(), uuid)
		if r.id = 0; r.Status == task.Running {
			r.HeartbeatAt = Time{} // a row may be behind the files of a run that goes on
		}
		all[uuid] = r
		return err
	}))
	return all
}

func TestReindexGivesTheSameRows(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	for n, status := range task.Statuses() {
		k := key
		k.ID = string(status)
		id, err := s.Enqueue(t.Context(), Metadata{TaskKey: k, User: "ken"})
		must(t, err)
		if status == task.Queued {
			continue
		}
		c, _, err := s.Claim(t.Context(), id)
		must(t, err)
		if status == task.Running {
			n = 0 // a row may be behind the files of a run that goes on
		}
		for i := range n {
			_, err = c.Append(Message{Role: "assistant", Usage: spent(i)})
			must(t, err)
		}
		if status == task.Running {
			must(t, c.TurnDone(t.Context()))
			must(t, c.Close())
			continue
		}
		must(t, c.Transition(t.Context(), task.Outcome{Status: status, Reason: "r"}))
	}
	must(t, s.Close())
	want := indexed(t, s.BaseDir)
	for name, spoil := range map[string]func(){
		"rows deleted":  func() { query(t, s.BaseDir, `DELETE FROM tasks`) },
		"rows wrong":    func() { query(t, s.BaseDir, `UPDATE tasks SET status='failed', user='x', cost_micro_usd=7`) },
		"index deleted": func() { must(t, os.Remove(filepath.Join(s.BaseDir, "tasks.db"))) },
		"row too many": func() {
			query(t, s.BaseDir, `INSERT INTO tasks (uuid, task_source, owner, repo, task_type, task_id, status, created_at) VALUES ('x', '', '', '', '', '', '', '')`)
		},
	} {
		spoil()
		var last CheckProgress
		r, err := Reindex(t.Context(), s.BaseDir, func(p CheckProgress) { last = p })
		if err != nil || r.Contexts != int64(len(want)) || r.Rows != r.Contexts || len(r.Damaged)+len(r.SecondLive) > 0 || last.Contexts != r.Contexts {
			t.Errorf("%s: %+v %v", name, r, err)
		}
		if d := cmp.Diff(want, indexed(t, s.BaseDir), cmp.AllowUnexported(Row{})); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestReindexReportsWhatItCannotTake(t *testing.T) {
	t.Parallel()
	base, dir := healthy(t, task.Paused)
	copied := func(d, name string) string {
		to := filepath.Join(base, d, name)
		must(t, os.CopyFS(to, os.DirFS(dir)))
		return to
	}
	copied(dirCompleted, filepath.Base(dir))
	other := copied(dirQueued, "00000000-0000-4000-8000-000000000000")
	edit(t, filepath.Join(other, metadataFile), filepath.Base(dir), filepath.Base(other))
	torn := copied(dirCompleted, "00000000-0000-4000-8000-000000000001")
	must(t, os.Truncate(filepath.Join(torn, metadataFile), 20))
	blank := copied(dirCompleted, "00000000-0000-4000-8000-000000000002")
	edit(t, filepath.Join(blank, metadataFile), filepath.Base(dir), filepath.Base(blank))
	must(t, os.Truncate(filepath.Join(blank, stateFile), 20))
	r, err := Reindex(t.Context(), base, nil)
	if err != nil || r.Contexts != 5 || r.Rows != 2 || len(r.Damaged) != 2 || len(r.SecondLive) != 1 || r.SecondLive[0] != filepath.Base(other) {
		t.Errorf("%+v %v", r, err)
	}
	rows := indexed(t, base)
	if rows[filepath.Base(dir)].Status != "paused" || rows[filepath.Base(blank)].Status != "failed" {
		t.Errorf("%+v", rows)
	}
}

// A base directory in use is refused, and stays as it is.
func TestReindexRefusesABaseInUse(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if _, err := Reindex(t.Context(), s.BaseDir, nil); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "in use") {
		t.Fatal(err)
	}
	must(t, c.TurnDone(t.Context()))
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed}))
	must(t, s.Close())
	if rows := indexed(t, s.BaseDir); rows[c.UUID()].Status != "completed" {
		t.Errorf("%+v", rows)
	}
	// Whoever has the house open holds this lock.
	f, err := os.OpenFile(filepath.Join(s.BaseDir, ".house"), os.O_RDWR, 0)
	must(t, err)
	defer func() { _ = f.Close() }()
	must(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Start: byteHouse, Len: 1}))
	if _, err := Reindex(t.Context(), s.BaseDir, nil); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Reindex(ctx, s.BaseDir, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if rows := indexed(t, s.BaseDir); rows[c.UUID()].Status != "completed" {
		t.Errorf("%+v", rows)
	}
}
