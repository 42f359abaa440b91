package contextstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
)

// indexed reports whether the index can be asked: there is one, and it was told
// of every run since it was made.
func (s *Store) indexed() bool { return s.index != nil && !s.index.Behind() }

// insertRow adds the row of a new context.
func (s *Store) insertRow(ctx context.Context, m Metadata, st State) error {
	if s.index == nil {
		return nil
	}
	r, err := s.houseDB.Row(ctx, m, st)
	return errors.Join(err, s.index.Insert(ctx, r))
}

// putRow brings the row of a context in line with its state. An error other than
// ErrNotOwner was told, and left a mark.
func (s *Store) putRow(ctx context.Context, m Metadata, st State) error {
	var err error
	if s.index != nil {
		var r Row
		r, err = s.houseDB.Row(ctx, m, st)
		err = errors.Join(err, s.index.Put(ctx, r))
	}
	if errors.Is(err, index.ErrNewerOwner) {
		return fmt.Errorf("%w: %w", ErrNotOwner, err)
	}
	s.rowDone(m.UUID, err)
	return err
}

// rowDone tells of an error of the index with a run's row and marks the run, or
// removes the mark that an earlier one left. Of a second live run of a key it
// tells once.
func (s *Store) rowDone(uuid string, err error) {
	mark := index.Mark(s.BaseDir, uuid)
	if !database.IsUnique(err) || !disk.Exists(mark) {
		s.tell(err)
	}
	switch {
	case (err != nil || s.index == nil) == disk.Exists(mark):
		return
	case disk.Exists(mark):
		err = s.FS.Remove(mark)
	default:
		if err = s.FS.MkdirAll(filepath.Dir(mark)); err == nil {
			err = s.FS.Replace(mark, nil, !s.NoSync)
		}
	}
	s.tell(err)
}

// syncRows makes the rows so far durable, before a run leaves the directories that
// recover walks: where a power cut takes the row of its end, there is one from before
// it that names the run, and recover mends that.
func (s *Store) syncRows() {
	if s.index == nil || s.NoSync {
		return
	}
	if err := s.FS.SyncFile(s.index.Path() + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		s.tell(err)
	}
}

// catchUp tells the index of the runs that it could not be told of, until it
// cannot again. Those that have an owner are the owner's to tell.
func (s *Store) catchUp(ctx context.Context) error {
	if s.index == nil {
		return nil
	}
	uuids, err := index.Unindexed(s.BaseDir, -1)
	for _, id := range uuids {
		if err != nil {
			break
		}
		dir, gone := s.dir(id)
		if gone == nil {
			if _, verr := ReadView(dir); verr == nil || !disk.Exists(dir) { // or it was moved just now
				if err = s.recoverOne(ctx, dir); database.IsUnique(err) {
					err = nil // the other live run of its key has the place
				}
				continue
			}
		} else {
			err = s.index.Drop(ctx, id)
		}
		if err == nil { // it can have no row
			err = s.FS.Remove(index.Mark(s.BaseDir, id))
		}
	}
	return err
}

// FillIndex gives an index that was made anew beside many runs their rows, beside
// whatever else goes on. It returns when the index holds every run, or cannot.
func (s *Store) FillIndex(ctx context.Context) { s.tell(s.fillIndex(ctx, math.MaxInt)) }

// fillIndex gives an index that does not hold every run the rows of those that
// have ended, if they are no more than most. The rows of the others are there.
func (s *Store) fillIndex(ctx context.Context, most int) error {
	if !s.indexed() {
		return nil
	}
	if whole, err := s.index.Complete(ctx); err != nil || whole {
		return err
	}
	if n, err := s.countEnded(most); err != nil || n > most {
		return err
	}
	err := Walk(s.BaseDir, []string{DirCompleted}, func(dir string) error {
		return cmp.Or(ctx.Err(), s.recoverOne(ctx, dir))
	})
	if err != nil {
		return err
	}
	rows, err := s.index.CountEnded(ctx)
	if err != nil {
		return err
	}
	if n, err := s.countEnded(rows); err != nil || n < rows { // rows that have no directory, which tori check finds
		return err
	}
	return s.index.SetComplete(ctx, true)
}

// countEnded counts the runs that have ended, up to one more than most.
func (s *Store) countEnded(most int) (n int, err error) {
	err = Walk(s.BaseDir, []string{DirCompleted}, func(string) error {
		if n++; n > most {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return n, err
}
