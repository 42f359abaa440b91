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

// maxReasons is how many reasons are told apart, maxReason how many characters of one: those that
// the column reason has.
const (
	maxReasons = 500
	maxReason  = 300
)

// endColumns are columns of the counters: how many runs took less than each of durationBounds.
func endColumns() (names []string) {
	for _, d := range durationBounds {
		names = append(names, fmt.Sprintf("under_%dm", int(d.Minutes())))
	}
	return names
}

// endValues are what a row counts there.
func endValues() (values []string) {
	for _, d := range durationBounds {
		values = append(values, fmt.Sprintf(`CASE WHEN took_ms < %d THEN 1 ELSE 0 END`, d.Milliseconds()))
	}
	return values
}

// Ends tells how the runs ended that the filter takes: from the counters, and why they failed from an
// index of the failed ones.
func (i *Index) Ends(ctx context.Context, f StatsFilter) (e Ends, err error) {
	if err := i.Refresh(ctx); err != nil {
		return e, err
	}
	e = NewEnds()
	err = i.file.Use(func(h *database.Handles) error {
		q := f.from("")
		err := database.Each(ctx, h.R, func(rows *sql.Rows) error {
			into := make([]any, len(e.Durations))
			for n := range into {
				into[n] = (*anyNumber)(&e.Durations[n])
			}
			err := rows.Scan(into...)
			for n := len(into) - 1; n > 0; n-- { // less than a bound, and not than the one before
				e.Durations[n] -= e.Durations[n-1]
			}
			return err
		}, `SELECT `+sumsOf(strings.Join(endColumns(), ", ")+", timed")+` FROM (`+q.sql+`) AS rows`, q.args...)
		if err != nil || f.Status != "" && f.Status != task.Failed {
			return err
		}
		f.Status = task.Failed
		q = f.of(rowsFailed, `uuid, completed_at AS at, reason`)
		return database.Each(ctx, h.R, func(rows *sql.Rows) error {
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
		}, `SELECT reason, count(*), max(coalesce(at, '') || ' ' || uuid) FROM (`+q.sql+`) AS rows GROUP BY reason ORDER BY 2 DESC, 1`, q.args...)
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
