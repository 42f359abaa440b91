package fsck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/task"
)

// indexDamages are what may become of tasks.db, with what a check finds of it.
// Each is mended by tori check --repair and by tori reindex, and nothing is left.
var indexDamages = []struct {
	name, sql string
	damage    func(t *testing.T, base, uuid string)
	want      string
	settles   bool // whoever opens the store mends it
}{
	{name: "deleted", damage: func(t *testing.T, base, _ string) { must(t, os.Remove(filepath.Join(base, "tasks.db"))) }, want: "", settles: true},
	{name: "emptied", damage: func(t *testing.T, base, _ string) { must(t, os.Truncate(filepath.Join(base, "tasks.db"), 0)) }, want: "rows_unreadable", settles: true},
	{name: "no table tasks", sql: `DROP TABLE tasks`, want: "rows_unreadable", settles: true},
	{name: "no table index_meta", sql: `DROP TABLE index_meta`, want: "rows_unreadable", settles: true},
	{name: "no index", sql: `DROP INDEX idx_tasks_id_created`, want: "rows_unreadable", settles: true},
	{name: "no view", sql: `DROP VIEW task_counting`, want: "rows_unreadable", settles: true},
	{name: "no column", sql: `ALTER TABLE tasks DROP COLUMN title`, want: "rows_unreadable"},
	{name: "no versions", sql: `DROP TABLE goose_db_version`, want: "rows_unreadable"},
	{name: "garbage", damage: func(t *testing.T, base, _ string) {
		must(t, os.WriteFile(filepath.Join(base, "tasks.db"), []byte(strings.Repeat("garbage ", 4096)), 0o600))
	}, want: "rows_unreadable"},
	{name: "a pipe", damage: func(t *testing.T, base, _ string) {
		must(t, os.Remove(filepath.Join(base, "tasks.db")))
		must(t, unix.Mkfifo(filepath.Join(base, "tasks.db"), 0o600))
	}, want: "rows_unreadable"},
	{name: "a directory", damage: func(t *testing.T, base, _ string) {
		must(t, os.Remove(filepath.Join(base, "tasks.db")))
		must(t, os.Mkdir(filepath.Join(base, "tasks.db"), 0o700))
	}, want: "rows_unreadable"},
	{name: "no row", sql: `DELETE FROM tasks`, want: "no_row"},
	{name: "a row that differs", sql: `UPDATE tasks SET total_tokens = total_tokens + 1`, want: "row"},
	{name: "a row too many", sql: `INSERT INTO tasks (uuid, task_source, owner, repo, task_type, task_id, status, created_at) VALUES ('x', '', '', '', '', '', 'failed', '')`, want: "stray_row"},
	{name: "not complete", sql: `UPDATE index_meta SET value = '0' WHERE key = 'complete'`, want: "behind", settles: true},
	{name: "a run it was not told of", sql: `DELETE FROM tasks`, damage: func(t *testing.T, base, uuid string) {
		must(t, os.MkdirAll(filepath.Join(base, index.UnindexedDir), 0o700))
		must(t, os.WriteFile(index.Mark(base, uuid), nil, 0o600))
	}, want: "behind", settles: true},
}

func TestCheckRepairAndReindexAgree(t *testing.T) {
	t.Parallel()
	for _, d := range indexDamages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			spoilt := func() (base string, rows map[string]index.Row) {
				base, dir := healthy(t, task.Completed)
				rows = indexed(t, base)
				if d.sql != "" {
					must(t, execIn(filepath.Join(base, "tasks.db"), d.sql))
				}
				if d.damage != nil {
					d.damage(t, base, filepath.Base(dir))
				}
				return base, rows
			}
			clean := func(base, after string, rows map[string]index.Row) {
				t.Helper()
				if r := check(t, base, false); r.Found > 0 {
					t.Errorf("after %s: %v", after, kinds(r))
				}
				if diff := cmp.Diff(rows, indexed(t, base), cmpopts.IgnoreUnexported(index.Row{})); diff != "" {
					t.Errorf("after %s: %s", after, diff)
				}
				if l, err := contextstore.List(t.Context(), base, contextstore.Viewer{Admin: true}, contextstore.Filter{}); err != nil || l.Scanned {
					t.Errorf("after %s: the index is not whole: %v", after, err)
				}
			}
			base, rows := spoilt()
			r := check(t, base, false)
			if got := strings.Join(kinds(r), " "); got != d.want || r.Left != r.Found || d.want == "behind" && r.Found > 0 {
				t.Errorf("check finds %q: %+v", got, r)
			}
			for _, f := range r.Findings {
				if f.Action == "" && !f.Note {
					t.Errorf("check says that %s cannot be mended", f.Kind)
				}
			}
			if d.want != "" {
				if r = check(t, base, true); r.Left > 0 || r.Mended == 0 {
					t.Errorf("repair leaves %v", kinds(r))
				}
				clean(base, "the repair", rows)
			}
			base, rows = spoilt()
			if r, err := Reindex(t.Context(), base, nil); err != nil || r.Rows != r.Contexts {
				t.Errorf("%+v %v", r, err)
			}
			clean(base, "tori reindex", rows)
			if d.settles {
				base, rows = spoilt()
				must(t, errors.Join(open(t, contextstore.Options{BaseDir: base}).Close()))
				clean(base, "the next opening", rows)
			}
		})
	}
}

// Each column is compared by name: a check says which one is wrong.
func TestAWrongColumnIsNamed(t *testing.T) {
	t.Parallel()
	fields := reflect.TypeFor[contextstore.Spending]()
	for n := range fields.NumField() {
		column := fields.Field(n).Tag.Get("json")
		base, _ := healthy(t, task.Completed)
		query(t, base, `UPDATE tasks SET `+column+`=`+column+`+1`)
		r := check(t, base, true)
		if r.Found != 1 || r.Mended != 1 || r.Findings[0].Kind != "row" || fmt.Sprint(r.Findings[0].Args) != "["+column+"]" {
			t.Errorf("%s: %+v", column, r.Findings)
		}
	}
}

// A check of the rows alone finds and mends what is wrong with them, and reads no log.
func TestCheckOfRows(t *testing.T) {
	t.Parallel()
	for _, d := range indexDamages {
		if d.sql == "" || d.damage != nil || d.settles {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			base, dir := healthy(t, task.Completed)
			rows := indexed(t, base)
			must(t, os.WriteFile(filepath.Join(dir, contextstore.Messages), []byte("no JSON\n"), 0o600))
			must(t, execIn(filepath.Join(base, "tasks.db"), d.sql))
			look := func(repair bool) Report {
				r, err := Check(t.Context(), base, Options{Rows: true, Repair: repair})
				must(t, err)
				return r
			}
			if r := look(false); r.Found != 1 || r.Left != 1 || r.Findings[0].Kind != d.want || r.Bytes != 0 {
				t.Errorf("%v, %d bytes read", kinds(r), r.Bytes)
			}
			if r := look(true); r.Mended != 1 || r.Left != 0 {
				t.Errorf("mended: %v", kinds(r))
			}
			if r := look(false); r.Found != 0 {
				t.Errorf("left: %v", kinds(r))
			}
			if diff := cmp.Diff(rows, indexed(t, base), cmpopts.IgnoreUnexported(index.Row{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
