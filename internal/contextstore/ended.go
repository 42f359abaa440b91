package contextstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/task"
)

// ErrUnreachable marks an error of tasks.db that may be gone a moment later.
var ErrUnreachable = database.ErrUnreachable

// LastEnded returns the run of a key that was completed or stopped last, at or
// after a time; false where there is none. The view is that of its directory,
// which may tell otherwise than the row that named it: an error where the
// directory is missing or cannot be read. An error of tasks.db wraps
// ErrUnreachable where trying again may help. Where tasks.db does not hold every
// context the directories tell. Source: inherit §4.1.
func (s *Store) LastEnded(ctx context.Context, k task.Key, since time.Time) (View, bool, error) {
	if s.indexed() {
		rows, err := s.index.Ended(ctx, k, since, 1)
		if err != nil {
			return View{}, false, err
		}
		if len(rows) > 0 {
			v, err := s.View(rows[0].UUID)
			return v, true, err
		}
		if whole, err := s.index.Complete(ctx); err != nil || whole {
			return View{}, false, database.Unreachable(err)
		}
	}
	all, err := s.scanEnded(k, since, 1)
	if len(all) == 0 {
		return View{}, false, err
	}
	return all[0], true, err
}

// Ended returns the runs of a key that were completed or stopped at or after a
// time, as their directories tell, the latest first, at most so many; see
// LastEnded. Those that cannot be read are left out.
func (s *Store) Ended(ctx context.Context, k task.Key, since time.Time, most int) (all []View, err error) {
	if s.indexed() {
		rows, err := s.index.Ended(ctx, k, since, most)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if v, err := s.View(r.UUID); err == nil {
				all = append(all, v)
			}
		}
		if whole, err := s.index.Complete(ctx); err != nil || whole {
			return all, database.Unreachable(err)
		}
	}
	return s.scanEnded(k, since, most)
}

// scanEnded is Ended by the directories alone.
func (s *Store) scanEnded(k task.Key, since time.Time, most int) (all []View, err error) {
	err = Walk(s.BaseDir, []string{DirCompleted}, func(dir string) error {
		v, err := ReadView(dir)
		if err != nil || v.Metadata.TaskKey != k {
			return nil //nolint:nilerr // whose it is nobody can tell
		}
		if st := v.Status(); st != task.Completed && st != task.Stopped || v.State.CompletedAt.Before(since) {
			return nil
		}
		at, _ := slices.BinarySearchFunc(all, v, func(a, b View) int { return b.State.CompletedAt.Compare(a.State.CompletedAt.Time) })
		if all = slices.Insert(all, at, v); len(all) > most {
			all = all[:most]
		}
		return nil
	})
	return all, err
}

// maxFinal is the longest line of a final summary that is read, in bytes.
const maxFinal = 1 << 20

// ErrDamaged says that a file of a run that is over does not end as it was written.
var ErrDamaged = errors.New("damaged")

// LastFinal returns the final summary of a run that is over: the last line of
// summaries.jsonl, nil where there is no such line or where it is not final. A
// last line that is torn, no summary or longer than 1 MiB is an error that wraps
// ErrDamaged: what stands before it may be of an attempt to end that failed.
func (v View) LastFinal() (*Summary, error) {
	f, err := openExisting(v.Dir, Summaries)
	if f == nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return nil, err
	}
	buf := make([]byte, min(st.Size(), maxFinal))
	if _, err := f.ReadAt(buf, st.Size()-int64(len(buf))); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	line, whole := bytes.CutSuffix(buf, []byte("\n"))
	at := bytes.LastIndexByte(line, '\n')
	if !whole || at < 0 && st.Size() > int64(len(buf)) {
		return nil, fmt.Errorf("the last line of %s is torn or too long: %w", f.Name(), ErrDamaged)
	}
	s, err := DecodeSummary(line[at+1:])
	if err != nil {
		return nil, fmt.Errorf("the last line of %s: %w: %w", f.Name(), ErrDamaged, err)
	}
	if !s.Final {
		return nil, nil
	}
	return &s, nil
}

// IsAnswer reports whether a message is the answer to a call of a model. What an
// assistant says as second message, before anybody asked, was inherited (inherit
// §4.3).
func (m *Message) IsAnswer() bool {
	return m.Role == "assistant" && (m.Seq != 2 || m.Usage != nil || len(m.ToolCalls) > 0)
}
