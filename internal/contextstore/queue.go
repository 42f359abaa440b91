package contextstore

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/task"
)

// Queued lists runs that wait to be claimed, the oldest first: at most limit
// behind a cursor, "" for the start. Where there is no index the directories tell.
func (s *Store) Queued(ctx context.Context, after string, limit int) ([]Waiting, error) {
	if s.indexed() {
		all, err := s.index.Queued(ctx, after, limit)
		if err == nil {
			return all, nil
		}
		s.tell(err)
	}
	var all []Waiting
	err := Walk(s.BaseDir, []string{DirQueued}, func(dir string) error {
		v, err := ReadView(dir)
		if err != nil || v.Status() != task.Queued {
			return nil //nolint:nilerr // what cannot be read cannot be claimed
		}
		all = append(all, v.waiting())
		return nil
	})
	slices.SortFunc(all, func(a, b Waiting) int { return strings.Compare(a.Cursor, b.Cursor) })
	at, found := slices.BinarySearchFunc(all, after, func(w Waiting, c string) int { return strings.Compare(w.Cursor, c) })
	if found {
		at++
	}
	return all[at:min(at+limit, len(all))], err
}

func (v View) waiting() Waiting {
	return Waiting{UUID: v.Metadata.UUID, Key: v.Metadata.TaskKey, User: v.Metadata.User, Cursor: v.Metadata.CreatedAt.String() + " " + v.Metadata.UUID}
}

// Waits returns a run as it stands in the queue; false where it does not wait to be claimed.
func (s *Store) Waits(uuid string) (w Waiting, waits bool, err error) {
	v, err := s.View(uuid)
	if errors.Is(err, ErrNotFound) {
		return w, false, nil
	}
	return v.waiting(), err == nil && v.Status() == task.Queued, err
}

// Working returns the rows of the runs that are worked on, by whomever, as far as there is an index.
func (s *Store) Working(ctx context.Context) (all []Row, err error) {
	if s.index == nil {
		return nil, nil
	}
	for f := (Filter{Status: task.Running, Limit: 1000}); ; {
		p, err := s.index.List(ctx, f)
		if all = append(all, p.Rows...); err != nil || p.Next == "" {
			return all, err
		}
		f.After = p.Next
	}
}

// Turn waits for a short turn among all processes at the base directory. release ends it.
func (s *Store) Turn(ctx context.Context) (release func(), err error) { return s.base.Turn(ctx) }

// Running calls f for each run in running/: with its owner, and whether that
// one still lives. It reads the directories: the kernel's locks tell, not rows.
func (s *Store) Running(f func(uuid string, o Owner, alive bool)) error {
	return Walk(s.BaseDir, []string{DirRunning}, func(dir string) error {
		o, held := ReadOwner(dir)
		f(filepath.Base(dir), o, held)
		return nil
	})
}

// Latest returns the newest run of a key, whatever became of it; false where
// there is none.
func (s *Store) Latest(ctx context.Context, k task.Key) (View, bool, error) {
	f := Filter{Source: k.Source, Owner: k.Owner, Repo: k.Repo, Type: k.Type, ID: k.ID, Limit: 1}
	if s.indexed() {
		p, err := s.index.List(ctx, f)
		if err == nil && len(p.Rows) > 0 {
			v, err := s.View(p.Rows[0].UUID)
			return v, err == nil, err
		}
		if whole, werr := s.index.Complete(ctx); err == nil && werr == nil && whole {
			return View{}, false, nil
		}
		s.tell(err)
	}
	l, err := scan(s.BaseDir, 1, Viewer{Admin: true}, func(v View) bool { return takes(f, v) })
	if err != nil || len(l.Views) == 0 {
		return View{}, false, err
	}
	return l.Views[0], true, nil
}

// Before returns the newest runs of a key besides one of them, at most so many,
// the newest first.
func (s *Store) Before(ctx context.Context, k task.Key, uuid string, most int) (all []View, err error) {
	l, err := List(ctx, s.BaseDir, Viewer{Admin: true}, Filter{Source: k.Source, Owner: k.Owner, Repo: k.Repo, Type: k.Type, ID: k.ID, Limit: most + 1})
	if err != nil {
		return nil, err
	}
	for _, v := range l.Views {
		if v.Metadata.UUID == uuid || len(all) == most {
			continue
		}
		if v, err = s.View(v.Metadata.UUID); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// View reads metadata and state of a whole uuid's context, whoever owns it.
func (s *Store) View(uuid string) (View, error) {
	return InDir(s.BaseDir, uuid, ReadView)
}

// Live calls f for the row of each run that has not ended, by uuid. Without an
// index the directories tell.
func (s *Store) Live(ctx context.Context, f func(Row) error) error {
	if s.indexed() {
		return s.index.Unfinished(ctx, func(r Row) error {
			if r.Status.Final() {
				return nil // only the end of its transition is missing
			}
			return f(r)
		})
	}
	return Walk(s.BaseDir, liveDirs, func(dir string) error {
		v, err := ReadView(dir)
		if err != nil || v.Status().Final() {
			return nil //nolint:nilerr // what cannot be read cannot be looked after
		}
		v.State.TaskStatus = v.Status()
		return f(RowOf(v.Metadata, v.State))
	})
}

// EndedFrom sums, by status, the runs that ended on a day of the universal time (DayOf) or later.
func (s *Store) EndedFrom(ctx context.Context, day string) (map[task.Status]Tally, error) {
	if s.index == nil {
		return nil, errors.New("count what ended: there is no index of the runs (tasks.db)")
	}
	return s.index.EndedFrom(ctx, day)
}

// CountSince counts the runs of a key that were enqueued at or after a time, up
// to most.
func (s *Store) CountSince(ctx context.Context, k task.Key, since time.Time, most int) (int, error) {
	f := Filter{Source: k.Source, Owner: k.Owner, Repo: k.Repo, Type: k.Type, ID: k.ID, Since: since, Limit: most}
	if s.indexed() {
		p, err := s.index.List(ctx, f)
		if err == nil {
			return len(p.Rows), nil
		}
		s.tell(err)
	}
	l, err := scan(s.BaseDir, most, Viewer{Admin: true}, func(v View) bool { return takes(f, v) })
	return len(l.Views), err
}
