package fsck

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/task"
)

// indexed is every row of an index, by uuid.
func indexed(t *testing.T, base string) map[string]index.Row {
	t.Helper()
	i, err := index.OpenReader(t.Context(), base)
	must(t, err)
	defer func() { _ = i.Close() }()
	all := map[string]index.Row{}
	must(t, i.Each(t.Context(), func(r index.Row) error {
		if r.Status == task.Running {
			r.HeartbeatAt = contextstore.Time{} // a row may be behind the files of a run that goes on
		}
		all[r.UUID] = r
		return nil
	}))
	return all
}

func TestReindexGivesTheSameRows(t *testing.T) {
	t.Parallel()
	s := open(t, contextstore.Options{})
	for n, status := range task.Statuses() {
		k := key
		k.ID = string(status)
		id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: k, User: "ken"})
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
			_, err = c.Append(contextstore.Message{Role: "assistant", Usage: spent(i)})
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
		var last Progress
		r, err := Reindex(t.Context(), s.BaseDir, func(p Progress) { last = p })
		if err != nil || r.Contexts != int64(len(want)) || r.Rows != r.Contexts || len(r.Damaged)+len(r.SecondLive) > 0 || last.Contexts != r.Contexts {
			t.Errorf("%s: %+v %v", name, r, err)
		}
		if d := cmp.Diff(want, indexed(t, s.BaseDir), cmpopts.IgnoreUnexported(index.Row{})); d != "" {
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
	copied(contextstore.DirCompleted, filepath.Base(dir))
	other := copied(contextstore.DirQueued, "00000000-0000-4000-8000-000000000000")
	edit(t, filepath.Join(other, contextstore.MetadataFile), filepath.Base(dir), filepath.Base(other))
	torn := copied(contextstore.DirCompleted, "00000000-0000-4000-8000-000000000001")
	must(t, os.Truncate(filepath.Join(torn, contextstore.MetadataFile), 20))
	blank := copied(contextstore.DirCompleted, "00000000-0000-4000-8000-000000000002")
	edit(t, filepath.Join(blank, contextstore.MetadataFile), filepath.Base(dir), filepath.Base(blank))
	must(t, os.Truncate(filepath.Join(blank, contextstore.StateFile), 20))
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
	s := open(t, contextstore.Options{})
	c := begin(t, s)
	if _, err := Reindex(t.Context(), s.BaseDir, nil); !errors.Is(err, contextstore.ErrBusy) || !strings.Contains(err.Error(), "in use") {
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
	must(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Start: 0, Len: 1}))
	if _, err := Reindex(t.Context(), s.BaseDir, nil); !errors.Is(err, contextstore.ErrBusy) {
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
