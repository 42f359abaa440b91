package contextstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"toritsugi/internal/task"
)

// StatsFilter says which runs statistics are about. Since and Until name days,
// UTC, both included; their time of day is not looked at. A run that has ended
// counts on the day it ended, another on the day it was made.
type StatsFilter struct {
	Since time.Time
	Until time.Time
	User  string
}

// Totals are sums over runs.
type Totals struct {
	Tasks        int64
	LLMCalls     int64
	ToolCalls    int64
	Tokens       int64
	Compressions int64
	Failures     int64 // compressions that failed
	Messages     int64
	Bytes        int64
	Timed        int64 // runs that DurationMS is the sum of: those with a start and an end
	DurationMS   int64

	Spending
}

func (t *Totals) add(o Totals) {
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
	t.plus(o.Spending)
}

// Duration is the average time from start to end, 0 where no run has both.
func (t Totals) Duration() time.Duration {
	if t.Timed == 0 {
		return 0
	}
	return time.Duration(t.DurationMS/t.Timed) * time.Millisecond
}

// Average returns a sum divided by the number of runs, 0 for none.
func (t Totals) Average(sum int64) float64 {
	if t.Tasks == 0 {
		return 0
	}
	return float64(sum) / float64(t.Tasks)
}

// Stats are the figures of store-v2 §9.2.
type Stats struct {
	Totals
	ByStatus map[task.Status]Totals
	ByUser   map[string]Totals // "" for nobody
}

// sums are the counters' columns in the order of Totals.
const sums = `sum(tasks), sum(llm_calls), sum(tool_calls), sum(tokens), sum(compressions), sum(compression_failures),
	sum(messages), sum(bytes), sum(timed), sum(duration_ms), ` + spendingSums

// liveSums are the same of rows that have not ended.
const liveSums = `count(*), sum(coalesce(llm_call_count, 0)), sum(coalesce(tool_call_count, 0)), sum(coalesce(total_tokens, 0)),
	sum(coalesce(compression_count, 0)), sum(compression_failures), sum(message_count), sum(bytes), 0, 0, ` + spendingSums

// stats sums up the runs of a filter: those that have ended from the counters,
// which the database itself keeps, the others from their rows.
func (i *index) stats(ctx context.Context, f StatsFilter) (Stats, error) {
	s := Stats{ByStatus: map[task.Status]Totals{}, ByUser: map[string]Totals{}}
	if err := i.refresh(ctx); err != nil {
		return Stats{}, err
	}
	err := i.use(func(h *handles) error {
		tx, err := h.r.BeginTx(ctx, nil) // so that no run is seen twice, or not at all, while it ends
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		for _, p := range f.parts() {
			if err := s.sum(ctx, tx, p.query, p.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Stats{}, fmt.Errorf("sum up the index: %w", err)
	}
	return s, nil
}

// part is a query of user, status and the sums of Totals.
type part struct {
	query string
	args  []any
}

// The format of a counter's key.
const (
	dayLayout   = "2006-01-02"
	monthLayout = "2006-01"
)

// parts splits a range into whole months and the days before and after them, so
// that what is read does not grow with its length as days do.
func (f StatsFilter) parts() []part {
	from, to := "0000-00-00", "9999-99-99"
	if !f.Since.IsZero() {
		from = f.Since.UTC().Format(dayLayout)
	}
	if !f.Until.IsZero() {
		to = f.Until.UTC().Format(dayLayout)
	}
	going := &where{}
	going.add(live)
	going.add("created_at>=? AND created_at<?", from, to+"U") // U follows the T between day and time
	if f.User != "" {
		going.add("user=?", f.User)
	}
	all := []part{{`SELECT coalesce(user, ''), status, ` + liveSums + ` FROM tasks ` + byOpen + ` WHERE ` + going.String() + ` GROUP BY 1, 2`, going.args}}
	counters := func(table, column, from, to string) {
		w := &where{}
		w.add(column+">=? AND "+column+"<=?", from, to)
		if f.User != "" {
			w.add("user=?", f.User)
		}
		all = append(all, part{`SELECT user, status, ` + sums + ` FROM ` + table + ` WHERE ` + w.String() + ` GROUP BY user, status`, w.args})
	}
	if f.Since.IsZero() && f.Until.IsZero() {
		counters("task_months", "month", "", "9999-99") // also those without a day
		return all
	}
	first, last := from[:7], to[:7] // the whole months
	if !f.Since.IsZero() && f.Since.UTC().Day() > 1 {
		first = f.Since.UTC().AddDate(0, 1, 1-f.Since.UTC().Day()).Format(monthLayout)
	}
	if !f.Until.IsZero() && f.Until.UTC().AddDate(0, 0, 1).Day() > 1 {
		last = f.Until.UTC().AddDate(0, 0, -f.Until.UTC().Day()).Format(monthLayout)
	}
	if first > last { // none
		counters("task_days", "day", from, to)
		return all
	}
	counters("task_months", "month", first, last)
	if from < first {
		counters("task_days", "day", from, first) // a month sorts before its days
	}
	if after := last + "-99"; after < to {
		counters("task_days", "day", after, to)
	}
	return all
}

func (s *Stats) sum(ctx context.Context, tx *sql.Tx, query string, args ...any) (err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var user, status string
		var t Totals
		if err := rows.Scan(append([]any{(*anyText)(&user), (*anyText)(&status), (*anyNumber)(&t.Tasks), (*anyNumber)(&t.LLMCalls), (*anyNumber)(&t.ToolCalls),
			(*anyNumber)(&t.Tokens), (*anyNumber)(&t.Compressions), (*anyNumber)(&t.Failures), (*anyNumber)(&t.Messages), (*anyNumber)(&t.Bytes),
			(*anyNumber)(&t.Timed), (*anyNumber)(&t.DurationMS)}, t.fields()...)...); err != nil {
			return err
		}
		s.add(t)
		byStatus, byUser := s.ByStatus[task.Status(status)], s.ByUser[user]
		byStatus.add(t)
		byUser.add(t)
		s.ByStatus[task.Status(status)], s.ByUser[user] = byStatus, byUser
	}
	return rows.Err()
}
