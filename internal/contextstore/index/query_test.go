package index

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/task"
)

// plan is how SQLite means to run a query.
func plan(t *testing.T, i *Index, query string, args ...any) string {
	t.Helper()
	rows, err := reader(i).QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		all = append(all, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "; ")
}

func TestEveryListingHasItsIndex(t *testing.T) {
	t.Parallel()
	i := open(t, t.TempDir())
	day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{}, "SCAN tasks USING INDEX idx_tasks_created_at"},
		{Filter{Since: day}, "idx_tasks_created_at (created_at>?)"},
		{Filter{Status: task.Failed}, "idx_tasks_status_created (status=?"},
		{Filter{Status: task.Completed}, "idx_tasks_status_created (status=?"},
		{Filter{User: "ken"}, "idx_tasks_user_created (user=?"},
		{Filter{User: "ken", Status: task.Failed}, "idx_tasks_user_status (user=? AND status=?"},
		{Filter{User: "ken", Status: task.Completed, Since: day}, "idx_tasks_user_status (user=? AND status=? AND created_at>?)"},
		{Filter{Source: "github"}, "idx_tasks_source_created (task_source=?"},
		{Filter{Owner: "o"}, "idx_tasks_owner_created (owner=?"},
		{Filter{Repo: "r"}, "idx_tasks_repo_created (repo=?"},
		{Filter{ID: "27"}, "idx_tasks_id_created (task_id=?"},
		{Filter{Owner: "o", Repo: "r"}, "idx_tasks_owner_repo (owner=? AND repo=?"},
		{Filter{Source: "github", Owner: "o", Repo: "r"}, "idx_tasks_owner_repo (owner=? AND repo=?"},
		{Filter{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: "27"}, "idx_tasks_id_created (task_id=?"},
		{Filter{Repo: "r", Status: task.Failed, User: "ken"}, "idx_tasks_repo_created (repo=?"},
		{Filter{Source: "github", Status: task.Completed}, "idx_tasks_status_created (status=?"},
	} {
		for _, after := range []string{"", "2024-01-15T10:30:00.123456Z.7"} {
			c.f.After = after
			w, _, err := c.f.page()
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if after != "" { // a search where there was a scan, and one term more where there was none of created_at
				_, want, _ = strings.Cut(strings.TrimSuffix(want, ")"), " INDEX ")
				want = cmp.Or(want, strings.TrimSuffix(strings.Split(c.want, "created_at>")[0], ")"))
			}
			got := plan(t, i, listSQL(w), append(w.args, 5)...)
			if !strings.Contains(got, want) || strings.Contains(got, "TEMP B-TREE") || after != "" && strings.Contains(got, "SCAN") {
				t.Errorf("%+v\nruns as %s\nwant    %s", c.f, got, want)
			}
		}
	}
	for q, want := range map[string]string{
		`SELECT count(*) FROM tasks ` + byOpen + ` WHERE ` + live:                                                     "idx_tasks_open",
		`SELECT uuid FROM tasks WHERE (` + unfinished + `) AND uuid > '' ORDER BY uuid LIMIT 5`:                       "idx_tasks_open (uuid>?)",
		`SELECT uuid FROM tasks WHERE outbox_pending > 0 AND uuid > '' ORDER BY uuid LIMIT 5`:                         "idx_tasks_outbox (uuid>?)",
		`SELECT uuid FROM tasks WHERE task_source=1 AND owner=1 AND repo=1 AND task_type=1 AND task_id=1 AND ` + live: "idx_tasks_live_key",
		seedQueries[1]: "COVERING INDEX idx_tasks_user_status", seedQueries[5]: "COVERING INDEX idx_tasks_completed", seedQueries[6]: "COVERING INDEX idx_tasks_completed",
		cleanUp: "idx_tasks_completed (status=? AND completed_at<?)",
	} {
		if got := plan(t, i, q); !strings.Contains(got, want) || strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("%s\nruns as %s", q, got)
		}
	}
}

// someRow draws a task out of few values, so that they meet.
func someRow(t *rapid.T, n int) Row {
	at := func(label string) jsonl.Time {
		return jsonl.Time{Time: time.Date(2024, 1, 28, 23, 59, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 70).Draw(t, label)).Add(time.Duration(rapid.IntRange(0, 3).Draw(t, label+" s")) * 1001 * time.Microsecond)}
	}
	few := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	r := Row{
		UUID: fmt.Sprintf("%s-%d", few("prefix", "a", "b"), n), CreatedAt: at("created"), User: few("user", "", "ken", "ann"), Title: few("title", "", "a_b", "100%", "x"),
		Key:    task.Key{Source: few("source", "github", "gitlab"), Owner: few("owner", "o", "p"), Repo: few("repo", "r", "s"), Type: few("type", "issue", "chat"), ID: few("id", "1", "2")},
		Status: rapid.SampledFrom(task.Statuses()).Draw(t, "status"), Generation: rapid.Int64Range(0, 2).Draw(t, "generation"),
		LLMCalls: rapid.Int64Range(0, 9).Draw(t, "calls"), Tokens: rapid.Int64Range(0, 1<<40).Draw(t, "tokens"), Bytes: int64(n), MessageCount: 2, ToolCalls: 3, Compressions: 4, Failures: 1,
		Spending: Spending{int64(n), 1, 2, 3, 4, rapid.Int64Range(0, 1<<40).Draw(t, "cost"), rapid.Int64Range(0, 2).Draw(t, "unpriced")},
	}
	if rapid.Bool().Draw(t, "started") {
		r.StartedAt = at("start")
	}
	if r.Status.Final() && rapid.IntRange(0, 5).Draw(t, "ended") > 0 {
		r.CompletedAt = at("end")
	}
	if !r.Status.Final() { // of one key only one may be live
		r.Key.ID += fmt.Sprint("-", n)
	}
	return r
}

func empty(t fataler, i *Index) {
	if _, err := writer(i).Exec(`DELETE FROM tasks`); err != nil {
		t.Fatal(err)
	}
}

// Whatever is written, by us or by a person, the counters say what the rows do.
func TestCountersAreTrue(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		rapid.Check(t, func(t *rapid.T) {
			empty(t, i)
			for n := range rapid.IntRange(1, 25).Draw(t, "steps") {
				r := someRow(t, rapid.IntRange(0, 5).Draw(t, "row"))
				var err error
				switch rapid.IntRange(0, 6).Draw(t, "step") {
				case 0:
					err = i.Insert(t.Context(), r)
				case 1, 2, 3:
					err = i.Put(t.Context(), r)
				case 4:
					_, err = writer(i).Exec(`UPDATE tasks SET status=?, user=?, total_tokens=total_tokens+1 WHERE rowid%2=?`, string(r.Status), database.Null(r.User), n%2)
				case 5:
					_, err = writer(i).Exec(`UPDATE tasks SET completed_at=? WHERE rowid%2=?`, database.Null(r.CompletedAt.String()), n%2)
				case 6:
					err = i.Drop(t.Context(), r.UUID)
				}
				if err != nil && !errors.Is(err, ErrNewerOwner) && !database.IsUnique(err) {
					t.Fatal(err)
				}
				sameCounters(t, i)
			}
			empty(t, i)
			sameCounters(t, i)
		})
	})
}

// takesRow is what a filter takes, said the plain way.
func (f Filter) takesRow(r Row) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return is(string(f.Status), string(r.Status)) && is(f.User, r.User) && is(f.Source, r.Key.Source) && is(f.Owner, r.Key.Owner) && is(f.Repo, r.Key.Repo) &&
		is(f.Type, r.Key.Type) && is(f.ID, r.Key.ID) && (f.Since.IsZero() || !r.CreatedAt.Before(f.Since))
}

// A listing read page by page is what its filter takes, newest first, each row
// once, also if rows are deleted between the pages.
func TestListings(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		rapid.Check(t, func(t *rapid.T) {
			empty(t, i)
			for n := range rapid.IntRange(0, 20).Draw(t, "rows") {
				r := someRow(t, n)
				if err := i.Insert(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			few := func(label string, values ...string) string {
				return rapid.SampledFrom(append(values, "", "", "")).Draw(t, label)
			}
			f := Filter{
				Status: task.Status(few("fstatus", "running", "completed", "failed")), User: few("fuser", "ken"), Source: few("fsource", "github"), Owner: few("fowner", "o"),
				Repo: few("frepo", "r"), Type: few("ftype", "issue"), ID: few("fid", "1", "1-3"), Limit: rapid.IntRange(1, 4).Draw(t, "limit"),
			}
			if rapid.Bool().Draw(t, "since") {
				f.Since = time.Date(2024, 2, rapid.IntRange(1, 40).Draw(t, "from"), 0, 0, 0, 0, time.UTC)
			}
			var want []Row
			for _, r := range rowsIn(t, i) {
				if f.takesRow(r) {
					want = append(want, r)
				}
			}
			slices.SortFunc(want, func(a, b Row) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt.Time), cmp.Compare(b.id, a.id)) })
			remove := rapid.Bool().Draw(t, "remove")
			var got []Row
			for page := f; ; {
				p, err := i.List(t.Context(), page)
				if err != nil {
					t.Fatal(err)
				}
				counted := f == Filter{Status: f.Status, User: f.User, Limit: f.Limit}
				if total := int64(len(want)); counted && p.Total != total && (!remove || p.Total != total-int64(len(got))) || !counted && p.Total != int64(len(p.Rows)) {
					t.Fatalf("total %d of %d, after %d", p.Total, len(want), len(got))
				}
				got = append(got, p.Rows...)
				if p.Next == "" {
					break
				}
				page.After = p.Next
				for _, r := range p.Rows {
					if remove {
						if err := i.Drop(t.Context(), r.UUID); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if d := gocmp.Diff(want, got, sameRow); d != "" {
				t.Fatal(d)
			}
		})
	})
}

func TestCursorsOfStrangers(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		for _, c := range []string{"x", ".", ".1", "2024-01-15T10:30:00.123456Z", "2024-01-15T10:30:00.123456Z.", "2024-01-15T10:30:00.123456Z.x", "2024.1", "'; DROP TABLE tasks; --.1"} {
			if _, err := i.List(t.Context(), Filter{After: c}); err == nil || !strings.Contains(err.Error(), "no place in a listing") {
				t.Errorf("%q: %v", c, err)
			}
		}
	})
}

func TestBatches(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		want := 2*batch + 3
		tx, err := writer(i).Begin()
		if err != nil {
			t.Fatal(err)
		}
		for n := range want {
			r := Row{UUID: fmt.Sprint(n), Key: task.Key{ID: fmt.Sprint(n)}, Status: task.Queued, OutboxPending: 1}
			if n%3 == 0 {
				r.Status, r.Phase = task.Completed, "ending"
			}
			if _, err := tx.Exec(insertSQL, r.values()...); err != nil {
				t.Fatal(err)
			}
		}
		ended := Row{UUID: "ended", Status: task.Completed}
		if _, err := tx.Exec(insertSQL, ended.values()...); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		opened, pending := map[string]bool{}, map[string]bool{}
		err = errors.Join(
			i.Unfinished(t.Context(), func(r Row) error {
				opened[r.UUID] = true
				if len(opened) > 1 {
					return nil
				}
				_, err := i.Generation(t.Context(), r.UUID) // the index can be used meanwhile
				return err
			}),
			i.Pending(t.Context(), func(r Row) error { pending[r.UUID] = true; return nil }))
		if err != nil || len(opened) != want || len(pending) != want || opened["ended"] {
			t.Error(len(opened), len(pending), err)
		}
		stop := errors.New("stop")
		if err := i.Unfinished(t.Context(), func(Row) error { return stop }); !errors.Is(err, stop) {
			t.Error(err)
		}
		p, err := i.List(t.Context(), Filter{Type: "x"})
		if err != nil || p.Total != 0 {
			t.Error(p.Total, err)
		}
	})
}
