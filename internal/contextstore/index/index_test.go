package index

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/task"
)

var key = task.Key{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: "1"}

// open opens the index of a base directory without runs.
func open(t testing.TB, dir string) *Index {
	t.Helper()
	return openWith(t, dir, func() []Row { return nil })
}

// engines runs a test on each of the databases that an index may lie in. What opens an empty one
// is given to it.
func engines(t *testing.T, f func(t *testing.T, open func() *Index)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		f(t, func() *Index { return open(t, dir) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at := pgtest.URL(t)
		f(t, func() *Index { return openAt(t, at) })
	})
}

// openAt opens the index of a schema of PostgreSQL.
func openAt(t testing.TB, at string) *Index {
	t.Helper()
	s, err := database.Dial(t.Context(), database.ServerOptions{URL: at})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	base, err := s.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return openBase(t, "", base, func() []Row { return nil })
}

// openWith opens the index of a base directory with runs that have not ended.
func openWith(t testing.TB, dir string, runs func() []Row) *Index {
	t.Helper()
	base, err := database.Enter(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return openBase(t, dir, base, runs)
}

func openBase(t testing.TB, dir string, base *database.Base, runs func() []Row) *Index {
	t.Helper()
	i, err := Open(t.Context(), dir, base, func(_ context.Context, add func(Row) error) (bool, error) {
		for _, r := range runs() {
			if err := add(r); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = i.Close()
		base.Close()
	})
	return i
}

// aRun is a run that is under way.
func aRun() Row {
	now := jsonl.Time{Time: time.Now()}.Written()
	return Row{UUID: "u1", Key: key, Status: task.Running, CreatedAt: now, StartedAt: now, HeartbeatAt: now, Generation: 1, Hostname: "h", ProcessID: 7}
}

// writer and reader are the connections of an index.
func writer(i *Index) (w *sql.DB) {
	_ = i.file.Use(func(h *database.Handles) error { w = h.W; return nil })
	return w
}

func reader(i *Index) (r *sql.DB) {
	_ = i.file.Use(func(h *database.Handles) error { r = h.R; return nil })
	return r
}

func isPostgres(i *Index) (yes bool) {
	_ = i.file.Use(func(h *database.Handles) error { yes = h.Postgres; return nil })
	return yes
}

func TestOddValuesOfAPersonDoNotHideAListing(t *testing.T) {
	t.Parallel()
	i := open(t, t.TempDir())
	someTasks(t, i, 3)
	if _, err := writer(i).Exec(`UPDATE tasks SET total_tokens='many', created_at='yesterday', process_id=x'ff', hostname=7, context_length=1.5`); err != nil {
		t.Fatal(err)
	}
	p, err := i.List(t.Context(), Filter{})
	if err != nil || len(p.Rows) != 3 || p.Rows[0].Hostname != "7" || !p.Rows[0].CreatedAt.IsZero() {
		t.Error(p, err)
	}
}

// A turn writes its row and nothing else, no counter for one.
func TestATurnTouchesOneRow(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		r := aRun()
		ended := r
		ended.UUID, ended.Status, ended.CompletedAt = "u0", task.Completed, r.StartedAt
		if err := errors.Join(i.Insert(t.Context(), r), i.Insert(t.Context(), ended)); err != nil {
			t.Fatal(err)
		}
		written := func() string {
			if isPostgres(i) { // which transaction wrote each row of a counter last
				var all []string
				for _, c := range counters {
					all = append(all, driverRows(t, writer(i), `SELECT xmin::text, ctid::text FROM `+c.table)...)
				}
				return strings.Join(all, " ")
			}
			return driverRows(t, writer(i), `SELECT total_changes()`)[0]
		}
		before := written()
		r.LLMCalls, r.Tokens, r.MessageCount, r.Bytes = 9, 99, 9, 999
		r.Spending = Spending{1, 2, 3, 4, 5, 6, 7}
		if err := i.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(before); err == nil {
			before = strconv.Itoa(n + 1)
		}
		if after := written(); after != before {
			t.Errorf("%s, want %s", after, before)
		}
		r.Status, r.CompletedAt = task.Completed, r.StartedAt
		if err := i.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		sameCounters(t, i)
	})
}

func TestPathsWithOddCharacters(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b?c#d%41&e=1;'\"日本\\", "line\nbreak", "bad\xffutf8", "?mode=memory", "file:x"} {
		base := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(base, 0o700); err != nil {
			t.Fatal(err)
		}
		i := open(t, base)
		someTasks(t, i, 3)
		r, err := OpenReader(t.Context(), base)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []*Index{i, r} {
			if p, err := i.List(t.Context(), Filter{}); err != nil || p.Total != 3 {
				t.Errorf("%q: %d %v", name, p.Total, err)
			}
		}
		if err := errors.Join(r.Close(), i.Close()); err != nil {
			t.Error(err)
		}
		if st, err := os.Stat(filepath.Join(base, "tasks.db")); err != nil || st.Size() < 4096 {
			t.Errorf("%q: the database lies elsewhere: %v", name, err)
		}
	}
}

// A WAL whose database was deleted is not replayed into the new one.
func TestAnOrphanedWAL(t *testing.T) {
	t.Parallel()
	i := open(t, t.TempDir())
	someTasks(t, i, 200)
	if err := os.Remove(i.Path()); err != nil {
		t.Fatal(err)
	}
	other := open(t, i.dir)
	if p, err := other.List(t.Context(), Filter{}); err != nil || p.Total != 0 {
		t.Errorf("%d rows, %v", p.Total, err)
	}
	if reopened, err := i.Check(t.Context()); err != nil || !reopened {
		t.Error(reopened, err)
	}
	var ok string
	if err := writer(other).QueryRow(`PRAGMA integrity_check`).Scan(&ok); err != nil || ok != "ok" {
		t.Error(ok, err)
	}
}

// While it is deleted again and again nobody gets an error, and what is written
// after the last check stays.
func TestDeletedAgainAndAgain(t *testing.T) {
	t.Parallel()
	r := aRun()
	runs := func() []Row { return []Row{r} }
	i := openWith(t, t.TempDir(), runs)
	done, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for done.Err() == nil {
				if err := i.Put(t.Context(), r); err != nil {
					t.Error("put:", err)
				}
				if _, err := i.Live(t.Context(), key); err != nil {
					t.Error("live:", err)
				}
			}
		})
	}
	for range 20 {
		removeIndex(t, i)
		if reopened, err := i.Check(t.Context()); err != nil || !reopened {
			t.Error(reopened, err)
		}
		if _, err := i.List(t.Context(), Filter{}); err != nil {
			t.Error("list:", err)
		}
	}
	stop()
	wg.Wait()
	if err := i.Put(t.Context(), r); err != nil {
		t.Error(err)
	}
	if p, err := openWith(t, i.dir, runs).List(t.Context(), Filter{}); err != nil || p.Total != 1 {
		t.Error(p.Total, err)
	}
}

func TestDeletedWhileInUse(t *testing.T) {
	t.Parallel()
	var runs []Row
	i := openWith(t, t.TempDir(), func() []Row { return runs })
	other := openWith(t, i.dir, func() []Row { return runs })
	if yes, err := i.Complete(t.Context()); err != nil || !yes {
		t.Errorf("an index of nothing is incomplete: %v", err)
	}
	r := aRun()
	runs = []Row{r}
	if err := i.Insert(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if reopened, err := i.Check(t.Context()); err != nil || reopened {
		t.Fatal(reopened, err)
	}
	removeIndex(t, i)
	// Whoever lists makes it anew; who owns contexts is told by check all the same.
	if p, err := other.List(t.Context(), Filter{}); err != nil || p.Total != 1 || p.Rows[0].UUID != r.UUID {
		t.Fatalf("the live run is missing: %+v %v", p, err)
	}
	if reopened, err := other.Check(t.Context()); err != nil || !reopened {
		t.Fatal(reopened, err)
	}
	if reopened, err := i.Check(t.Context()); err != nil || !reopened {
		t.Fatal(reopened, err)
	}
	if reopened, err := i.Check(t.Context()); err != nil || reopened {
		t.Fatal("told twice", err)
	}
	if yes, err := i.Complete(t.Context()); err != nil || yes {
		t.Errorf("complete beside contexts that it may lack: %v", err)
	}
	r.LLMCalls = 7
	if err := i.Put(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if p, err := other.List(t.Context(), Filter{}); err != nil || p.Rows[0].LLMCalls != 7 {
		t.Errorf("the two see different files: %+v %v", p, err)
	}
}

func removeIndex(t *testing.T, i *Index) {
	t.Helper()
	for _, f := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(i.Path() + f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func rowIn(t *testing.T, i *Index, uuid string) Row {
	t.Helper()
	rows, err := rowsOf(t.Context(), writer(i), `SELECT rowid, `+columns+` FROM tasks WHERE uuid=?`, uuid)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows of %s, %v", len(rows), uuid, err)
	}
	return rows[0]
}

var sameRow = cmp.Options{cmpopts.IgnoreUnexported(Row{})}

// BenchmarkPut is the cost of the one row update of a turn, and of a run's row from its begin to its
// end.
func BenchmarkPut(b *testing.B) {
	for engine, open := range map[string]func(b *testing.B) *Index{
		"sqlite":   func(b *testing.B) *Index { return open(b, b.TempDir()) },
		"postgres": func(b *testing.B) *Index { return openAt(b, pgtest.URL(b)) },
	} {
		b.Run("turn/"+engine, func(b *testing.B) {
			i, r := open(b), aRun()
			if err := i.Insert(b.Context(), r); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for range b.N {
				r.LLMCalls++
				r.ToolCalls += 2
				r.Tokens += 1234
				r.HeartbeatAt = jsonl.Time{Time: r.HeartbeatAt.Add(time.Second)}
				if err := i.Put(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("run/"+engine, func(b *testing.B) {
			i, r := open(b), aRun()
			b.ResetTimer()
			for n := range b.N {
				r.UUID, r.Status, r.CompletedAt = strconv.Itoa(n), task.Running, jsonl.Time{}
				err := i.Insert(b.Context(), r)
				r.Status, r.CompletedAt = task.Completed, r.StartedAt
				if err = errors.Join(err, i.Put(b.Context(), r)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The names of the columns are those of the fields, in one order.
func TestSpendingColumns(t *testing.T) {
	t.Parallel()
	var names []string
	var s Spending
	v := reflect.ValueOf(&s).Elem()
	for i, n := range s.sums() {
		names = append(names, v.Type().Field(i).Tag.Get("json"))
		if v.Field(i).Addr().Interface() != any(n) {
			t.Errorf("sum %d is not field %d", i, i)
		}
	}
	if want := strings.Join(names, ", "); want != spendingColumns || v.NumField() != len(s.sums()) ||
		spendingSet != strings.Join(names, "=?, ")+"=?" {
		t.Errorf("%s\n%s\n%s", want, spendingColumns, spendingSet)
	}
}
