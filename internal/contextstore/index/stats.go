package index

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/task"
)

// Totals are sums over runs.
type Totals struct {
	Tasks        int64 `json:"tasks"`
	LLMCalls     int64 `json:"llm_calls"`
	ToolCalls    int64 `json:"tool_calls"`
	Tokens       int64 `json:"tokens"`
	Compressions int64 `json:"compressions"`
	Failures     int64 `json:"compression_failures"`
	Messages     int64 `json:"messages"`
	Bytes        int64 `json:"bytes"` // of the logs, before they are compressed
	Timed        int64 `json:"timed"` // runs that DurationMS is the sum of: those with a start and an end
	DurationMS   int64 `json:"duration_ms"`

	Spending
}

// totalColumns are columns of the counters in the order of Totals.fields.
const totalColumns = `tasks, llm_calls, tool_calls, tokens, compressions, compression_failures, messages, bytes, timed, duration_ms, ` + spendingColumns

// rowRepo is a row's repository as the counters name it.
const rowRepo = `owner || CASE owner WHEN '' THEN '' ELSE '/' END || repo`

// counterColumns are all columns of the counters; those of endColumns follow from durationBounds.
var counterColumns = totalColumns + `, ` + strings.Join(endColumns(), `, `)

// rowValues are what a row counts, in the order of counterColumns.
var rowValues = append([]string{
	`1`, `coalesce(llm_call_count, 0)`, `coalesce(tool_call_count, 0)`, `coalesce(total_tokens, 0)`, `coalesce(compression_count, 0)`,
	`compression_failures`, `message_count`, `bytes`, `CASE WHEN took_ms IS NULL THEN 0 ELSE 1 END`, `coalesce(took_ms, 0)`,
	`prompt_tokens`, `cached_tokens`, `cache_write_tokens`, `completion_tokens`, `reasoning_tokens`, `cost_micro_usd`, `unpriced_calls`,
}, endValues()...)

// counters are the tables of counters, with what they are told apart by and how that follows from
// a row as StatsFilter.rows has it.
var counters = []struct{ table, keys, of string }{
	{"task_days", `day, user, status`, `day, user, status`},
	{"task_months", `month, user, status`, `substr(day, 1, 7), user, status`},
	{"task_repo_days", `day, repo, model, status`, `day, repo, model, status`},
	{"task_repo_months", `month, repo, model, status`, `substr(day, 1, 7), repo, model, status`},
	{"task_sums", `user, status, repo, model`, `user, status, repo, model`},
	{"task_repos", `repo, model, status`, `repo, model, status`},
}

// byKeys are the first columns of a query, by how many commas are between the keys of a counter.
var byKeys = map[int]string{2: "1, 2, 3", 3: "1, 2, 3, 4"}

// sqlOf is the text of tasks.sql and sqlite.sql with what the counters have in common.
func sqlOf(text string) string {
	names := strings.Split(counterColumns, ", ")
	sums, add, values := make([]string, len(names)), make([]string, len(names)), make([]string, len(names))
	ofRow := strings.NewReplacer("owner", "NEW.owner", "repo", "NEW.repo", "coalesce(llm", "coalesce(NEW.llm", "coalesce(tool", "coalesce(NEW.tool",
		"coalesce(total", "coalesce(NEW.total", "coalesce(compression", "coalesce(NEW.compression", "took_ms", "NEW.took_ms")
	for i, n := range names {
		sums[i], add[i] = n+" INTEGER NOT NULL", n+" = "+n+" + excluded."+n
		switch v := ofRow.Replace(rowValues[i]); v {
		case "1":
			values[i] = "NEW.sign"
		case rowValues[i]: // the column alone
			values[i] = "NEW.sign * NEW." + v
		default:
			values[i] = "NEW.sign * " + v
		}
	}
	return strings.NewReplacer("{sums}", strings.Join(sums, ",\n    "), "{add}", "ON CONFLICT DO UPDATE SET\n        "+strings.Join(add, ",\n        "),
		"{values}", strings.Join(values, ",\n        "), "{repo}", ofRow.Replace(rowRepo), "{counted}", countedColumns, "{counted NEW}", prefixed("NEW.", countedColumns),
		"{counted OLD}", prefixed("OLD.", countedColumns), "{sums NEW}", prefixed("NEW.", counterColumns), "{sums -OLD}", prefixed("-OLD.", counterColumns)).Replace(text)
}

// prefixed are columns with something before each.
func prefixed(before, columns string) string {
	return before + strings.ReplaceAll(columns, ", ", ", "+before)
}

// countersSQL makes the counters of the rows that there are. Those of months follow by a trigger in
// SQLite, others from those of days.
func countersSQL(postgres bool) []string {
	sums := sumsOf(counterColumns)
	rows := `(` + StatsFilter{}.rows(rowsEnded).sql + `) AS rows`
	var all []string
	for n, from := range []string{rows, `task_days`, rows, `task_repo_days`, rows, `task_repo_months`} {
		c := counters[n]
		if c.table == "task_months" && !postgres {
			continue
		}
		by := byKeys[strings.Count(c.keys, ",")]
		all = append(all, `INSERT INTO `+c.table+` SELECT `+c.of+`, `+sums+` FROM `+from+` GROUP BY `+by)
	}
	return all
}

func (t *Totals) fields() []any {
	return append([]any{
		&t.Tasks, &t.LLMCalls, &t.ToolCalls, &t.Tokens, &t.Compressions, &t.Failures, &t.Messages, &t.Bytes, &t.Timed, &t.DurationMS,
	}, t.Spending.fields()...)
}

// Plus adds what other runs took.
func (t *Totals) Plus(o Totals) {
	t.Tasks += o.Tasks
	t.LLMCalls += o.LLMCalls
	t.ToolCalls += o.ToolCalls
	t.Tokens += o.Tokens
	t.Compressions += o.Compressions
	t.Failures += o.Failures
	t.Messages += o.Messages
	t.Bytes += o.Bytes
	t.Timed += o.Timed
	t.DurationMS += o.DurationMS
	t.Add(o.Spending)
}

// TotalsOf is what one row counts.
func TotalsOf(r Row) Totals {
	t := Totals{Tasks: 1, LLMCalls: r.LLMCalls, ToolCalls: r.ToolCalls, Tokens: r.Tokens, Compressions: r.Compressions, Failures: r.Failures,
		Messages: r.MessageCount, Bytes: r.Bytes, Spending: r.Spending}
	if r.Status.Final() && !r.StartedAt.IsZero() && !r.CompletedAt.IsZero() {
		t.Timed = 1
		t.DurationMS = r.CompletedAt.Truncate(time.Millisecond).Sub(r.StartedAt.Truncate(time.Millisecond)).Milliseconds()
	}
	return t
}

// StatsFilter says which runs are counted; a zero field asks nothing.
type StatsFilter struct {
	User   string
	Status task.Status
	Repo   string // owner/name, or the name alone
	Model  string
	// The days of the universal time on which runs ended, "2026-05-30", both counted.
	// With one of them runs that have not ended are left out.
	From, To string
}

// Group is what the runs of one user, repository, model, day or status took.
type Group struct {
	Name   string
	Status task.Status
	Totals

	model string // of a repository's runs, until they are joined
}

// joined are the groups by another name.
func joined(all []Group, name func(Group) string) (out []Group) {
	at := map[Group]int{}
	for _, g := range all {
		k := Group{Name: name(g), Status: g.Status}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, k)
		}
		out[i].Plus(g.Totals)
	}
	return out
}

// Stats sums runs by what they have in common.
type Stats struct {
	Statuses []Group
	Users    []Group
	Repos    []Group
	Models   []Group
	Days     []Group // of what ended
}

// Stats sums the runs that a filter takes from counters; days from since on alone. Where a user
// is asked for together with days and repositories or models, it reads the rows of that user.
func (i *Index) Stats(ctx context.Context, f StatsFilter, since string) (s Stats, err error) {
	if err := i.Refresh(ctx); err != nil {
		return s, err
	}
	days := f
	days.From = max(f.From, since)
	err = i.file.Use(func(h *database.Handles) (err error) {
		var users, repos [2][]Group // what ended, and what did not
		users[0], err = groups(ctx, h.R, f.query("user", "''"))
		if err == nil {
			repos[0], err = groups(ctx, h.R, f.query("repo", "model"))
		}
		if err == nil {
			s.Days, err = days.byDay(ctx, h.R)
		}
		if err == nil && f.From == "" && f.To == "" && !f.Status.Final() {
			if users[1], err = groups(ctx, h.R, summed("user", "''", f.rows(rowsOpen))); err == nil {
				repos[1], err = groups(ctx, h.R, summed("repo", "model", f.rows(rowsOpen)))
			}
		}
		all := slices.Concat(repos[0], repos[1])
		s.Users = slices.Concat(users[0], users[1])
		s.Repos = joined(all, func(g Group) string { return g.Name })
		s.Models = joined(all, func(g Group) string { return g.model })
		s.Statuses = joined(all, func(g Group) string { return string(g.Status) })
		return err
	})
	if err != nil {
		return Stats{}, fmt.Errorf("sum up the runs: %w", err)
	}
	return s, nil
}

type query struct {
	sql  string
	args []any
}

func groups(ctx context.Context, db *sql.DB, q query) (all []Group, err error) {
	return database.Read(ctx, db, func(rows *sql.Rows) (g Group, err error) {
		err = rows.Scan(append([]any{(*anyText)(&g.Name), (*anyText)(&g.model), (*anyText)(&g.Status)}, g.fields()...)...)
		return g, err
	}, q.sql, q.args...)
}

func sumsOf(columns string) string {
	return "sum(" + strings.ReplaceAll(columns, ", ", "), sum(") + ")"
}

// query sums by one column or two, and by status.
func (f StatsFilter) query(by, and string) query { return summed(by, and, f.from(by)) }

// from are the smallest counters that know what is asked, by a column.
func (f StatsFilter) from(by string) query {
	dated := by == "day" || f.From != "" || f.To != ""
	user, repo := by == "user" || f.User != "", by == "repo" || f.Repo != "" || f.Model != ""
	switch {
	case dated && user && repo:
		return f.rows(rowsEnded)
	case dated && repo:
		return f.span("task_repo_days", "task_repo_months", by == "day")
	case repo:
		table := "task_repos"
		if user {
			table = "task_sums"
		}
		w := f.where(user, true)
		return query{`SELECT * FROM ` + table + ` WHERE ` + w.String(), w.args}
	}
	return f.span("task_days", "task_months", by == "day")
}

func summed(by, and string, from query) query {
	group := by + `, status`
	if and != "''" { // a constant keeps SQLite from reading in the order of a key
		group += `, ` + and
	}
	return query{`SELECT ` + by + `, ` + and + `, status, ` + sumsOf(totalColumns) + ` FROM (` + from.sql + `) AS rows GROUP BY ` + group, from.args}
}

// byDay sums the days of what ended, of each status alone: then the keys of the counters, which
// begin with the day, have the order of the groups, and nothing is sorted.
func (f StatsFilter) byDay(ctx context.Context, db *sql.DB) (all []Group, err error) {
	for _, s := range []task.Status{task.Completed, task.Stopped, task.Failed} {
		if f.Status != "" && f.Status != s {
			continue
		}
		one := f
		one.Status = s
		some, err := groups(ctx, db, one.query("day", "''"))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// where is the condition on columns user, repo, model and status, as far as there are such.
func (f StatsFilter) where(user, repo bool) *where {
	w := &where{}
	if f.Status != "" {
		w.add("status=?", string(f.Status))
	}
	if user && f.User != "" {
		w.add("user=?", f.User)
	}
	if repo && f.Repo != "" {
		w.add("(repo=? OR substr(repo, length(repo)-length(?)+1)=?)", f.Repo, "/"+f.Repo, "/"+f.Repo)
	}
	if repo && f.Model != "" {
		w.add("model=?", f.Model)
	}
	return w
}

// span reads the days of the filter: whole months from months, unless each day is asked for.
func (f StatsFilter) span(days, months string, each bool) query {
	own := f.where(days == "task_days", days != "task_days")
	var q query
	part := func(table, column, from, to string) {
		w := &where{terms: append([]string(nil), own.terms...), args: append([]any(nil), own.args...)}
		if from != "" {
			w.add(column+">=?", from)
		}
		if to != "" {
			w.add(column+"<=? AND "+column+"<>''", to)
		}
		if q.sql != "" {
			q.sql += ` UNION ALL `
		}
		q.sql += `SELECT * FROM ` + table + ` WHERE ` + w.String()
		q.args = append(q.args, w.args...)
	}
	if each {
		part(days, "day", f.From, f.To)
		return q
	}
	first, last := f.From, f.To // of the whole months
	if first != "" {
		if t, err := time.Parse(time.DateOnly, first); err == nil && t.Day() > 1 {
			t = t.AddDate(0, 1, 1-t.Day())
			end := t.AddDate(0, 0, -1).Format(time.DateOnly)
			if last != "" {
				end = min(end, last)
			}
			part(days, "day", f.From, end)
			first = t.Format(time.DateOnly)
		}
		first = first[:len("2006-01")]
	}
	if last != "" {
		if t, err := time.Parse(time.DateOnly, last); err == nil && t.AddDate(0, 0, 1).Day() > 1 {
			t = t.AddDate(0, 0, 1-t.Day())
			if begin := max(f.From, t.Format(time.DateOnly)); first <= begin[:len("2006-01")] {
				part(days, "day", begin, f.To)
			}
			last = t.AddDate(0, 0, -1).Format(time.DateOnly)
		}
		last = last[:len("2006-01")]
	}
	if first == "" || last == "" || first <= last {
		part(months, "month", first, last)
	}
	return q
}

// Which rows are read: those that ended, or those that did not.
const (
	ended      = `status IN ('completed', 'stopped', 'failed')`
	rowsEnded  = `tasks WHERE ` + ended
	rowsFailed = `tasks INDEXED BY idx_tasks_failed WHERE status = 'failed'`
	rowsOpen   = `tasks ` + byOpen + ` WHERE ` + live
)

// rows are the rows that the filter takes, as counters.
func (f StatsFilter) rows(which string) query { return f.of(which, rowColumns()) }

// rowColumns are what a row counts, by the names of the counters.
func rowColumns() string {
	names := strings.Split(counterColumns, ", ")
	for i, n := range names {
		names[i] = rowValues[i] + " AS " + n
	}
	return strings.Join(names, ", ")
}

// of are some columns of the rows that the filter takes.
func (f StatsFilter) of(which, columns string) query {
	w := f.where(true, true)
	if f.From != "" {
		w.add("day>=?", f.From)
	}
	if f.To != "" {
		w.add("day<=? AND day<>''", f.To)
	}
	if which == rowsEnded && f.User != "" {
		which = strings.Replace(which, "tasks WHERE", "tasks INDEXED BY idx_tasks_user_created WHERE user=? AND", 1)
		w.args = append([]any{f.User}, w.args...)
	}
	return query{`SELECT * FROM (SELECT coalesce(substr(completed_at, 1, 10), '') AS day, coalesce(user, '') AS user, ` + rowRepo + ` AS repo,
		coalesce(model, '') AS model, status, ` + columns + ` FROM ` + which + `) AS rows WHERE ` + w.String(), w.args}
}
