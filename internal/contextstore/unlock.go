package contextstore

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"toritsugi/internal/task"
)

// Freed is what Unlock found of a run's dead owner, and ended or removed.
type Freed struct {
	Status task.Status // of the run, which an unlock leaves as it is
	Left   bool        // there was something to free or to mend
	Owner  Owner       // that the lock named; the zero one where it named none
	PIDs   []int       // processes of the dead owner that were ended
	Mended []string    // what else was mended
}

// Gone is the owner that died, nil where none is known.
func (f Freed) Gone() *Owner {
	if f.Owner.ProcessID == 0 {
		return nil
	}
	return &f.Owner
}

// Unlock frees what a dead owner left of a run: its processes are ended after
// grace, what it had committed is finished, torn ends of files are cut, its lock
// is removed. The run's status stays, and so does what its owner was asked to
// do: the next owner hears of it. ErrBusy: its owner lives.
func (s *Store) Unlock(ctx context.Context, uuid string, grace time.Duration) (f Freed, err error) {
	dir, err := s.dir(uuid)
	if err != nil {
		return f, err
	}
	f.Left = locked(dir)
	f.Owner, _ = ReadOwner(dir)
	c, mended, err := s.take(ctx, uuid)
	var orphans *OrphansError
	if errors.As(err, &orphans) {
		if f.PIDs, err = s.EndOrphans(ctx, uuid, grace); err != nil {
			return f, err
		}
		c, mended, err = s.take(ctx, uuid)
	}
	f.Mended = mended
	f.Left = f.Left || len(f.PIDs)+len(mended) > 0
	if errors.Is(err, ErrEnded) {
		if dir, err = s.dir(uuid); err != nil {
			return f, err
		}
		st, err := ReadState(dir)
		f.Status = st.TaskStatus
		return f, err
	}
	if err != nil {
		return f, err
	}
	defer c.shut()
	f.Status = c.state.TaskStatus
	if f.Status != task.Running {
		return f, c.leave(ctx)
	}
	if err := s.FS.Remove(filepath.Join(c.dir, LockFile)); err != nil {
		return f, err
	}
	return f, c.putRow(ctx)
}
