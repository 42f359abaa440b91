package contextstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/task"
)

// cleanUp is the query of store-v3 §8.3.
const cleanUp = `DELETE FROM tasks
WHERE status = 'completed'
  AND completed_at < datetime('now', '-30 days');`

// someTasks gives a store's index a few hundred rows.
func someTasks(t *testing.T, s *Store, n int) []Row {
	t.Helper()
	rnd := rand.New(rand.NewPCG(3, 4))
	var all []Row
	for k := range n {
		m, st := aTask(rnd, k, n)
		if err := s.index.insert(t.Context(), m, st); err != nil {
			t.Fatal(err)
		}
		all = append(all, rowOf(m, st))
	}
	return all
}

func driverRows(t *testing.T, db *sql.DB, q string) (out []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	for rows.Next() {
		row := make([]any, len(columns))
		at := make([]any, len(columns))
		for i := range row {
			at[i] = &row[i]
		}
		if err := rows.Scan(at...); err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, v := range row {
			texts = append(texts, plain(v))
		}
		out = append(out, strings.Join(texts, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// The seeds' queries run as they are written, in the program that people type
// them into and in ours, while the store is open, and say the same.
func TestTheSeedsQueries(t *testing.T) {
	t.Parallel()
	bin, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("the program sqlite3 is not installed: run scripts/setup.sh")
	}
	s := open(t, Options{})
	all := someTasks(t, s, 400)
	typed := func(q string) []string {
		out, err := exec.CommandContext(t.Context(), bin, filepath.Join(s.BaseDir, "tasks.db"), q).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", q, err, out)
		}
		if len(out) == 0 {
			return nil
		}
		return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	}
	queries := slices.Clone(seedQueries)
	queries[3] = strings.Replace(queries[3], "...", all[7].UUID, 1)
	for _, q := range queries {
		a, b := typed(q), driverRows(t, s.index.h.r, q)
		slices.Sort(a) // rows without an order may come in any
		slices.Sort(b)
		if !slices.EqualFunc(a, b, sameCells) {
			t.Errorf("%s:\n%v\n%v", q, a, b)
		}
		if len(a) == 0 && !strings.Contains(q, "running") {
			t.Errorf("%s finds nothing", q)
		}
	}
	if n := typed(seedQueries[4]); len(n) < 4 {
		t.Errorf("by status: %v", n)
	}
	// A clean-up by hand is followed by the counters.
	if _, err := s.index.h.w.Exec(`UPDATE tasks SET completed_at=strftime('%Y-%m-%dT%H:%M:%S', 'now', '-5 days')||'.000000Z' WHERE rowid%10=0 AND status='completed'`); err != nil {
		t.Fatal(err)
	}
	typed(cleanUp)
	p, err := s.index.list(t.Context(), Filter{Status: task.Completed, Limit: 1})
	if err != nil || p.Total < 20 || p.Total > 60 {
		t.Errorf("%d are left, %v", p.Total, err)
	}
	sameCounters(t, s.index)
}

func sameCells(a, b string) bool {
	return slices.EqualFunc(strings.Split(a, "|"), strings.Split(b, "|"), func(a, b string) bool {
		x, err := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		return a == b || err == nil && err2 == nil && math.Abs(x-y) <= 1e-9*math.Abs(x)
	})
}

func TestTheCleanUpOfTheDriver(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	someTasks(t, s, 50)
	r, err := s.index.h.w.Exec(cleanUp)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := r.RowsAffected(); n < 30 {
		t.Errorf("%d rows deleted", n)
	}
	sameCounters(t, s.index)
}

// counted are what the counters should be, by day, user and status.
func countedRows(rows []Row) map[string]Totals {
	all := map[string]Totals{}
	for _, r := range rows {
		if !r.Status.Final() {
			continue
		}
		day := r.CompletedAt.String()
		k := fmt.Sprint(day[:min(10, len(day))], "|", r.User, "|", r.Status)
		t := all[k]
		t.add(totalsOf(r))
		all[k] = t
	}
	return all
}

func totalsOf(r Row) Totals {
	t := Totals{Tasks: 1, LLMCalls: r.LLMCalls, ToolCalls: r.ToolCalls, Tokens: r.Tokens, Compressions: r.Compressions, Failures: r.Failures, Messages: r.MessageCount, Bytes: r.Bytes, Spending: r.Spending}
	if r.Status.Final() && !r.StartedAt.IsZero() && !r.CompletedAt.IsZero() {
		t.Timed = 1
		t.DurationMS = r.CompletedAt.Truncate(time.Millisecond).Sub(r.StartedAt.Truncate(time.Millisecond)).Milliseconds()
	}
	return t
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func rowsIn(t fataler, i *index) []Row {
	t.Helper()
	rows, err := rowsOf(context.Background(), i.h.w, `SELECT rowid, `+columns+` FROM tasks`)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// sameCounters fails where the counters do not say what the rows do.
func sameCounters(t fataler, i *index) {
	t.Helper()
	want := countedRows(rowsIn(t, i))
	months := map[string]Totals{}
	for k, v := range want {
		day, rest, _ := strings.Cut(k, "|")
		m := months[day[:min(7, len(day))]+"|"+rest]
		m.add(v)
		months[day[:min(7, len(day))]+"|"+rest] = m
	}
	for table, want := range map[string]map[string]Totals{"task_days": want, "task_months": months} {
		got := countersIn(t, i, table)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s:\ngot  %v\nwant %v", table, got, want)
		}
	}
}

func countersIn(t fataler, i *index, table string) map[string]Totals {
	t.Helper()
	rows, err := i.h.w.Query(`SELECT * FROM ` + table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]Totals{}
	for rows.Next() {
		var day, user, status string
		var c Totals
		if err := rows.Scan(append([]any{&day, &user, &status, &c.Tasks, &c.LLMCalls, &c.ToolCalls, &c.Tokens, &c.Compressions, &c.Failures, &c.Messages, &c.Bytes, &c.Timed, &c.DurationMS}, c.fields()...)...); err != nil {
			t.Fatal(err)
		}
		all[day+"|"+user+"|"+status] = c
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
