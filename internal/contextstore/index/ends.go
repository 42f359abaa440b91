package index

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/task"
)

// durationBounds are what the durations of runs are told apart by: a run belongs to the first
// that is longer than it, or behind the last.
var durationBounds = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 4 * time.Hour}

// DurationBounds returns the bounds of Ends.Durations.
func DurationBounds() []time.Duration { return append([]time.Duration(nil), durationBounds...) }

// Ends is how runs ended.
type Ends struct {
	Durations []int64   // runs by DurationBounds, of those with a start and an end
	Failures  []Failure // the most frequent first, at most maxReasons
	Others    int64     // failed runs besides
}

// NewEnds is of no run yet.
func NewEnds() Ends { return Ends{Durations: make([]int64, len(durationBounds)+1)} }

// Failure are the runs that failed for one reason.
type Failure struct {
	Reason string // its beginning, "" where none is known
	Tasks  int64
	UUID   string // the latest of them
	At     jsonl.Time
}

// maxReasons is how many reasons are told apart, maxReason how many characters of one.
const (
	maxReasons = 500
	maxReason  = 300
)

// Ends reads the rows that the filter takes.
func (i *Index) Ends(ctx context.Context, f StatsFilter) (e Ends, err error) {
	if err := i.Refresh(ctx); err != nil {
		return e, err
	}
	e = NewEnds()
	var which strings.Builder
	for n, d := range durationBounds {
		fmt.Fprintf(&which, " WHEN ms < %d THEN %d", d.Milliseconds(), n)
	}
	err = i.file.Use(func(h *database.Handles) error {
		const timed, ms = 8, 9 // of rowValues
		q := f.of(rowsEnded, rowValues[timed]+` AS timed, `+rowValues[ms]+` AS ms`)
		err := each(ctx, h.R, query{fmt.Sprintf(`SELECT CASE%s ELSE %d END, count(*) FROM (%s) AS rows WHERE timed=1 GROUP BY 1`, which.String(), len(durationBounds), q.sql), q.args},
			func(rows *sql.Rows) error {
				var n int
				var tasks int64
				err := rows.Scan(&n, &tasks)
				e.Durations[n] = tasks
				return err
			})
		if err != nil || f.Status != "" && f.Status != task.Failed {
			return err
		}
		f.Status = task.Failed
		q = f.of(rowsEnded, fmt.Sprintf(`uuid, completed_at AS at, substr(coalesce(error_message, ''), 1, %d) AS reason`, maxReason))
		return each(ctx, h.R, query{`SELECT reason, count(*), max(coalesce(at, '') || ' ' || uuid) FROM (` + q.sql + `) AS rows GROUP BY reason ORDER BY 2 DESC, 1`, q.args},
			func(rows *sql.Rows) error {
				var x Failure
				var last, at string
				if err := rows.Scan((*anyText)(&x.Reason), &x.Tasks, (*anyText)(&last)); err != nil {
					return err
				}
				at, x.UUID, _ = strings.Cut(last, " ")
				_ = (*moment)(&x.At).Scan(at)
				if len(e.Failures) == maxReasons {
					e.Others += x.Tasks
					return nil
				}
				e.Failures = append(e.Failures, x)
				return nil
			})
	})
	if err != nil {
		return Ends{}, fmt.Errorf("tell how runs ended: %w", err)
	}
	return e, nil
}

// Add counts one run that has ended.
func (e *Ends) Add(r Row) {
	if t := TotalsOf(r); t.Timed == 1 {
		n := 0
		for n < len(durationBounds) && t.DurationMS >= durationBounds[n].Milliseconds() {
			n++
		}
		e.Durations[n]++
	}
	if r.Status != task.Failed {
		return
	}
	reason := r.Error
	if all := []rune(reason); len(all) > maxReason {
		reason = string(all[:maxReason])
	}
	for n := range e.Failures {
		if x := &e.Failures[n]; x.Reason == reason {
			if x.Tasks++; r.CompletedAt.After(x.At.Time) {
				x.UUID, x.At = r.UUID, r.CompletedAt
			}
			return
		}
	}
	if len(e.Failures) == maxReasons {
		e.Others++
		return
	}
	e.Failures = append(e.Failures, Failure{reason, 1, r.UUID, r.CompletedAt})
}

// each calls f with each row of a query.
func each(ctx context.Context, db *sql.DB, q query, f func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, q.sql, q.args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
