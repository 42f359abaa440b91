package index

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/task"
)

// The queries of store-v3 say the same in both; word for word where no program of ours is between,
// but for the column user, which is whoever is connected there.
func TestTheSeedsQueriesInPostgres(t *testing.T) {
	t.Parallel()
	at := pgtest.URL(t)
	pg, lite := openAt(t, at), open(t, t.TempDir())
	all := someTasks(t, pg, 400)
	for _, r := range all {
		if err := lite.Insert(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	s, err := database.Dial(t.Context(), database.ServerOptions{URL: at})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	i, err := ReadServer(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Close() }()
	same := func(q string, want, got []string) {
		t.Helper()
		slices.Sort(want)
		slices.Sort(got)
		if len(got) == 0 && !strings.Contains(q, "running") || !slices.EqualFunc(want, got, sameCells) {
			t.Errorf("%s:\ngot  %v\nwant %v", q, got, want)
		}
	}
	for n, q := range seedQueries {
		if n == 3 {
			q = strings.Replace(strings.Replace(q, "...", all[7].UUID, 1), "*", columns, 1) // and not what is a column there
		}
		want := driverRows(t, reader(lite), q)
		same(q, want, driverRows(t, reader(i), q))
		if n == 1 || n == 3 {
			q = regexp.MustCompile(`\buser\b`).ReplaceAllString(q, `"user"`)
		}
		rows, err := s.Pool().Query(t.Context(), q)
		if err != nil {
			t.Fatal(q, err)
		}
		var typed []string
		for rows.Next() {
			var cells []string
			for _, raw := range rows.RawValues() {
				cells = append(cells, string(raw))
			}
			typed = append(typed, strings.Join(cells, "|"))
		}
		if err := rows.Err(); err != nil || len(typed) != len(want) {
			t.Errorf("%s: %d rows, want %d, %v", q, len(typed), len(want), err)
		}
	}
	if _, err := writer(pg).Exec(strings.Replace(cleanUp, "-30 days", "-900 days", 1)); err != nil {
		t.Fatal(err)
	}
	sameCounters(t, pg)
}

// A column has the same name, and the same place, in both; what follows from others is not counted.
func TestTheColumnsAreTheSame(t *testing.T) {
	t.Parallel()
	pg, lite := openAt(t, pgtest.URL(t)), open(t, t.TempDir())
	kinds := strings.NewReplacer("|bigint", "|INTEGER", "|text", "|TEXT", "|NO", "|1", "|YES", "|0")
	for _, table := range []string{"tasks", "index_meta", "task_days", "task_months", "task_repo_days", "task_repo_months", "task_sums", "task_repos"} {
		want := driverRows(t, reader(lite), `SELECT name, type, CASE WHEN pk>0 OR "notnull" THEN 1 ELSE 0 END FROM pragma_table_info('`+table+`') ORDER BY cid`)
		got := driverRows(t, reader(pg), `SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema=current_schema() AND table_name='`+table+`'
			AND column_name NOT IN ('rowid', 'took_ms', 'reason') ORDER BY ordinal_position`)
		for n, c := range got {
			got[n] = kinds.Replace(c)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(table, d)
		}
	}
	names := func(i *Index, q string) []string { return driverRows(t, reader(i), q) }
	want := names(lite, `SELECT name FROM sqlite_master WHERE type='index' AND sql IS NOT NULL ORDER BY 1`)
	got := names(pg, `SELECT indexname FROM pg_indexes WHERE schemaname=current_schema() AND indexname ~ '^idx_' ORDER BY 1`)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Runs that end at the same moment, each with the same counters, wait for each other and never in a
// circle; and somebody who deletes or changes many rows at once meanwhile is no trouble.
func TestManyRunsEndAtOnce(t *testing.T) {
	t.Parallel()
	at := pgtest.URL(t)
	const workers, each = 8, 30
	var all []*Index
	for range workers {
		all = append(all, openAt(t, at))
	}
	var done sync.WaitGroup
	for w, i := range all {
		done.Go(func() {
			for n := range each {
				r := aRun()
				r.UUID, r.Key.ID = fmt.Sprintf("%02d-%03d", w, n), fmt.Sprintf("%d-%d", w, n)
				r.User, r.Key.Repo, r.Model = fmt.Sprint("user", (w+n)%3), fmt.Sprint("repo", (w*n)%2), fmt.Sprint("model", n%2)
				put := func(query string, args ...any) { // as Put does, but not again
					if _, err := writer(i).ExecContext(t.Context(), query, args...); err != nil {
						t.Error(err)
					}
				}
				put(insertSQL, r.values()...)
				for _, s := range []task.Status{task.Running, []task.Status{task.Completed, task.Failed}[(n+w)%2], task.Completed} { // and counted anew, under other keys
					r.Tokens, r.Status = r.Tokens+7, s
					if s.Final() {
						r.CompletedAt = r.StartedAt
					}
					put(updateSQL, append(r.changing(), string(r.Status), r.Phase, r.OutboxPending, r.UUID, r.Generation)...)
				}
			}
		})
	}
	for range 2 {
		done.Go(func() {
			for n := range each {
				if _, err := writer(all[0]).ExecContext(t.Context(), `DELETE FROM tasks WHERE status='completed' AND uuid LIKE ?`, fmt.Sprintf("%%%d", n%10)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	sameCounters(t, all[0])
}

// A turn is a small write: no index of the table learns of it.
func TestATurnIsHOT(t *testing.T) {
	t.Parallel()
	i := openAt(t, pgtest.URL(t))
	r := aRun()
	if err := i.Insert(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	tx, err := writer(i).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	r.LLMCalls, r.Tokens, r.MessageCount, r.HeartbeatAt = 9, 99, 9, jsonl.Time{Time: r.HeartbeatAt.Add(time.Second)}
	if _, err := tx.ExecContext(t.Context(), turnSQL, append(r.changing(), r.UUID, r.Generation, string(r.Status), r.Phase, r.OutboxPending)...); err != nil {
		t.Fatal(err)
	}
	var updated, hot int
	err = tx.QueryRowContext(t.Context(), `SELECT pg_stat_get_xact_tuples_updated('tasks'::regclass), pg_stat_get_xact_tuples_hot_updated('tasks'::regclass)`).Scan(&updated, &hot)
	if err != nil || updated != 1 || hot != 1 {
		t.Error(updated, hot, err)
	}
}

// Of many that take up a run at once, each as the next owner, the row is of the last; and of many
// runs of a key one is live.
func TestOwnersAndKeysMeet(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		const workers = 8
		var all []*Index
		for range workers {
			all = append(all, open())
		}
		first := aRun()
		if err := all[0].Insert(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		var mu sync.Mutex
		live, refused := 0, 0
		for w, i := range all {
			done.Go(func() {
				mine, other := first, first
				mine.Generation = int64(w + 2)
				other.UUID, other.Key.ID = fmt.Sprint("w", w), "of all"
				if err := i.Put(t.Context(), mine); err != nil && !errors.Is(err, ErrNewerOwner) {
					t.Error(err)
				}
				err := i.Insert(t.Context(), other)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					live++
				case database.IsUnique(err):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		done.Wait()
		if g, err := all[0].Generation(t.Context(), first.UUID); err != nil || g != workers+1 || live != 1 || refused != workers-1 {
			t.Error(g, live, refused, err)
		}
		late := first
		late.Generation = 3
		if err := all[1].Put(t.Context(), late); !errors.Is(err, ErrNewerOwner) {
			t.Error(err)
		}
	})
}

// An index that is made is filled at once, and only then; a program of before is refused.
func TestOpeningInPostgres(t *testing.T) {
	t.Parallel()
	at := pgtest.URL(t)
	open := func(rows ...Row) (i *Index, err error) {
		s, err := database.Dial(t.Context(), database.ServerOptions{URL: at})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		base, err := s.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(base.Close)
		return Open(t.Context(), "", base, func(_ context.Context, add func(Row) error) (bool, error) {
			for _, r := range rows {
				if err := add(r); err != nil {
					return false, err
				}
			}
			return true, nil
		})
	}
	second := aRun()
	second.UUID = "u2" // live beside another of its key
	var done sync.WaitGroup
	for range 5 {
		done.Go(func() {
			i, err := open(aRun(), second)
			if err != nil {
				t.Error(err)
				return
			}
			defer i.Close()
			if p, err := i.List(t.Context(), Filter{}); err != nil || p.Total != 1 {
				t.Error(p.Total, err)
			}
			if yes, err := i.Complete(t.Context()); err != nil || !yes {
				t.Error("incomplete", err)
			}
		})
	}
	done.Wait()
	i, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if _, err := writer(i).Exec(`INSERT INTO goose_tasks (version_id, is_applied) VALUES (99, true)`); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); !errors.Is(err, database.ErrNewer) || !strings.Contains(err.Error(), "use the newer program") {
		t.Error(err)
	}
}

// Counters of before the durations were counted are brought up to date.
func TestDurationsOfOlderTables(t *testing.T) {
	t.Parallel()
	at := pgtest.URL(t)
	i := openAt(t, at)
	someTasks(t, i, 200)
	for _, c := range counters {
		if _, err := writer(i).Exec(`ALTER TABLE ` + c.table + ` DROP COLUMN ` + strings.Join(endColumns(), `, DROP COLUMN `)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer(i).Exec(`DELETE FROM goose_tasks WHERE version_id=2`); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, at)
	sameCounters(t, again)
	someTasks(t, again, 300)
	sameCounters(t, again)
}
