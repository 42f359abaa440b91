package index

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"toritsugi/internal/task"
)

// cleanUp is the query of store-v3 §8.3.
const cleanUp = `DELETE FROM tasks
WHERE status = 'completed'
  AND completed_at < datetime('now', '-30 days');`

// someTasks gives an index a few hundred rows.
func someTasks(t *testing.T, i *Index, n int) []Row {
	t.Helper()
	rnd := rand.New(rand.NewPCG(3, 4))
	var all []Row
	for k := range n {
		r := aTask(rnd, k, n)
		if err := i.Insert(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func driverRows(t testing.TB, db *sql.DB, q string) (out []string) {
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
			texts = append(texts, text(v))
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
	i := open(t, t.TempDir())
	all := someTasks(t, i, 400)
	typed := func(q string) []string {
		out, err := exec.CommandContext(t.Context(), bin, i.Path(), q).CombinedOutput()
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
		a, b := typed(q), driverRows(t, reader(i), q)
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
	if _, err := writer(i).Exec(`UPDATE tasks SET completed_at=strftime('%Y-%m-%dT%H:%M:%S', 'now', '-5 days')||'.000000Z' WHERE rowid%10=0 AND status='completed'`); err != nil {
		t.Fatal(err)
	}
	typed(cleanUp)
	p, err := i.List(t.Context(), Filter{Status: task.Completed, Limit: 1})
	if err != nil || p.Total < 20 || p.Total > 60 {
		t.Errorf("%d are left, %v", p.Total, err)
	}
	sameCounters(t, i)
}

func sameCells(a, b string) bool {
	return slices.EqualFunc(strings.Split(a, "|"), strings.Split(b, "|"), func(a, b string) bool {
		x, err := strconv.ParseFloat(a, 64)
		y, err2 := strconv.ParseFloat(b, 64)
		return a == b || err == nil && err2 == nil && math.Abs(x-y) <= 1e-9*math.Abs(x)
	})
}

func TestTheCleanUpOfTheDriver(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		someTasks(t, i, 50)
		r, err := writer(i).Exec(cleanUp)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := r.RowsAffected(); n < 30 {
			t.Errorf("%d rows deleted", n)
		}
		sameCounters(t, i)
	})
}

// counts are what a row of a counter holds.
type counts struct {
	Totals
	under [6]int64 // by DurationBounds
}

func countsOf(r Row) counts {
	c := counts{Totals: TotalsOf(r)}
	for n, d := range DurationBounds() {
		if c.Timed == 1 && c.DurationMS < d.Milliseconds() {
			c.under[n] = 1
		}
	}
	return c
}

func (c *counts) add(o counts) {
	c.Plus(o.Totals)
	for n := range c.under {
		c.under[n] += o.under[n]
	}
}

// countedRows are what the counters should be, by day, user and status.
func countedRows(rows []Row) map[string]counts {
	all := map[string]counts{}
	for _, r := range rows {
		if !r.Status.Final() {
			continue
		}
		day := r.CompletedAt.String()
		k := fmt.Sprint(day[:min(10, len(day))], "|", r.User, "|", r.Status)
		t := all[k]
		t.add(countsOf(r))
		all[k] = t
	}
	return all
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func rowsIn(t fataler, i *Index) []Row {
	t.Helper()
	rows, err := rowsOf(context.Background(), writer(i), `SELECT rowid, `+columns+` FROM tasks ORDER BY rowid`)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// sameCounters fails where the counters do not say what the rows do.
func sameCounters(t fataler, i *Index) {
	t.Helper()
	want := countedRows(rowsIn(t, i))
	months := map[string]counts{}
	for k, v := range want {
		day, rest, _ := strings.Cut(k, "|")
		m := months[day[:min(7, len(day))]+"|"+rest]
		m.add(v)
		months[day[:min(7, len(day))]+"|"+rest] = m
	}
	repos := map[string]map[string]counts{"task_repo_days": {}, "task_repo_months": {}, "task_sums": {}, "task_repos": {}}
	for _, r := range rowsIn(t, i) {
		if !r.Status.Final() {
			continue
		}
		day, repo := r.CompletedAt.String(), strings.TrimPrefix(r.Key.Owner+"/"+r.Key.Repo, "/")
		for table, first := range map[string]string{"task_repo_days": day[:min(10, len(day))], "task_repo_months": day[:min(7, len(day))], "task_sums": r.User, "task_repos": ""} {
			k := first + "|" + repo + "|" + r.Model + "|" + string(r.Status)
			switch table {
			case "task_sums":
				k = first + "|" + string(r.Status) + "|" + repo + "|" + r.Model
			case "task_repos":
				k = k[1:]
			}
			m := repos[table][k]
			m.add(countsOf(r))
			repos[table][k] = m
		}
	}
	repos["task_days"], repos["task_months"] = want, months
	for table, want := range repos {
		got := countersIn(t, i, table)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s:\ngot  %v\nwant %v", table, got, want)
		}
	}
}

func countersIn(t fataler, i *Index, table string) map[string]counts {
	t.Helper()
	rows, err := writer(i).Query(`SELECT * FROM ` + table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]counts{}
	for rows.Next() {
		cols, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		var c counts
		key := make([]string, slices.Index(cols, "tasks"))
		var into []any
		for k := range key {
			into = append(into, &key[k])
		}
		into = append(into, c.fields()...)
		for n := range c.under {
			into = append(into, &c.under[n])
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		all[strings.Join(key, "|")] = c
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
