package contextstore

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/task"
)

// Waiting is a run that waits to be claimed.
type Waiting struct {
	UUID string
	Key  task.Key
	User string
	// Cursor is where in the queue it stands.
	Cursor string
}

// Queued lists runs that wait to be claimed, the oldest first: at most limit
// behind a cursor, "" for the start. Where there is no index the directories tell.
func (s *Store) Queued(ctx context.Context, after string, limit int) ([]Waiting, error) {
	if s.indexed() {
		all, err := s.index.queued(ctx, after, limit)
		if err == nil {
			return all, nil
		}
		s.tell(err)
	}
	var all []Waiting
	err := walkIn(s.BaseDir, []string{dirQueued}, func(dir string) error {
		v, err := view(dir)
		if err != nil || v.Status() != task.Queued {
			return nil //nolint:nilerr // what cannot be read cannot be claimed
		}
		all = append(all, Waiting{UUID: v.Metadata.UUID, Key: v.Metadata.TaskKey, User: v.Metadata.User, Cursor: v.Metadata.CreatedAt.String() + " " + v.Metadata.UUID})
		return nil
	})
	slices.SortFunc(all, func(a, b Waiting) int { return strings.Compare(a.Cursor, b.Cursor) })
	at, found := slices.BinarySearchFunc(all, after, func(w Waiting, c string) int { return strings.Compare(w.Cursor, c) })
	if found {
		at++
	}
	return all[at:min(at+limit, len(all))], err
}

// queued reads the rows. A cursor is the time of creation and the uuid, so that
// it means the same in the index and in the directories.
func (i *index) queued(ctx context.Context, after string, limit int) (all []Waiting, err error) {
	if err := i.refresh(ctx); err != nil {
		return nil, err
	}
	at, uuid, _ := strings.Cut(after, " ")
	err = i.use(func(h *handles) error {
		rows, err := h.r.QueryContext(ctx, `SELECT uuid, task_source, owner, repo, task_type, task_id, coalesce(user, ''), created_at
			FROM tasks INDEXED BY idx_tasks_status_created WHERE status = 'queued' AND created_at >= ? AND (created_at, uuid) > (?, ?)
			ORDER BY created_at, uuid LIMIT ?`, at, at, uuid, limit)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var w Waiting
			var created string
			if err := rows.Scan(&w.UUID, &w.Key.Source, &w.Key.Owner, &w.Key.Repo, &w.Key.Type, &w.Key.ID, &w.User, &created); err != nil {
				return err
			}
			w.Cursor = created + " " + w.UUID
			all = append(all, w)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list what is queued: %w", err)
	}
	return all, nil
}

// Running calls f for each run in running/: with its owner, and whether that
// one still lives. It reads the directories: the kernel's locks tell, not rows.
func (s *Store) Running(f func(uuid string, o Owner, alive bool)) error {
	return walkIn(s.BaseDir, []string{dirRunning}, func(dir string) error {
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
		p, err := s.index.list(ctx, f)
		if err == nil && len(p.Rows) > 0 {
			v, err := s.View(p.Rows[0].UUID)
			return v, err == nil, err
		}
		if whole, werr := s.index.complete(ctx); err == nil && werr == nil && whole {
			return View{}, false, nil
		}
		s.tell(err)
	}
	l, err := scan(s.BaseDir, 1, Viewer{Admin: true}, f.takes)
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
	dir, err := s.dir(uuid)
	if err != nil {
		return View{}, err
	}
	return view(dir)
}

// Live calls f for the row of each run that has not ended, by uuid. Without an
// index the directories tell.
func (s *Store) Live(ctx context.Context, f func(Row) error) error {
	if s.indexed() {
		err := s.index.open(ctx, func(r Row) error {
			if r.Status.Final() {
				return nil // only the end of its transition is missing
			}
			return f(r)
		})
		return err
	}
	return walkIn(s.BaseDir, liveDirs, func(dir string) error {
		v, err := view(dir)
		if err != nil || v.Status().Final() {
			return nil //nolint:nilerr // what cannot be read cannot be looked after
		}
		v.State.TaskStatus = v.Status()
		return f(rowOf(v.Metadata, v.State))
	})
}

// CountSince counts the runs of a key that were enqueued at or after a time, up
// to most.
func (s *Store) CountSince(ctx context.Context, k task.Key, since time.Time, most int) (int, error) {
	f := Filter{Source: k.Source, Owner: k.Owner, Repo: k.Repo, Type: k.Type, ID: k.ID, Since: since, Limit: most}
	if s.indexed() {
		p, err := s.index.list(ctx, f)
		if err == nil {
			return len(p.Rows), nil
		}
		s.tell(err)
	}
	l, err := scan(s.BaseDir, most, Viewer{Admin: true}, f.takes)
	return len(l.Views), err
}
