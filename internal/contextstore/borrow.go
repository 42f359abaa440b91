package contextstore

import (
	"context"
	"path/filepath"
	"time"

	"toritsugi/internal/task"
)

// Borrow hands f a run that nobody works on, for what the next owner is to find in its files, and
// takes it back: its status stays, and who asks it to stop meanwhile is heeded then. ErrBusy:
// somebody works on it. *OrphansError: children of its dead owner do. ErrEnded: it has ended.
func (s *Store) Borrow(ctx context.Context, uuid string, f func(*Context) error) error {
	if err := s.room(); err != nil {
		return err
	}
	c, repairs, err := s.take(ctx, uuid)
	for _, r := range repairs {
		s.OnRepair(uuid + ": " + r)
	}
	if err != nil {
		return err
	}
	was := c.state
	c.stop, c.flush = make(chan struct{}), time.NewTimer(time.Hour)
	c.done.Go(func() { c.beat(s.Heartbeat) })
	err = c.Checkpoint() // what is noted from here on may be lost with the power
	if err == nil {
		err = f(c)
	}
	asked, ok, berr := c.giveBack(context.WithoutCancel(ctx), was)
	if err == nil {
		err = berr
	}
	if ok && berr == nil {
		if _, cerr := s.Control(context.WithoutCancel(ctx), uuid, asked.Action, asked.By); err == nil {
			err = cerr
		}
	}
	return err
}

// giveBack ends a Borrow: state.json says what it said of the run, and knows what was written. It
// returns what the borrower was asked, taking it for an owner.
func (c *Context) giveBack(ctx context.Context, was State) (asked Request, ok bool, err error) {
	c.mu.Lock()
	c.state.Status, c.state.LastActivity, c.state.ActiveMS = was.Status, was.LastActivity, was.ActiveMS
	if err = c.lost; err == nil {
		err = c.saveState(true)
	}
	if asked, ok = readRequest(c.dir); err == nil && c.state.TaskStatus != task.Running {
		err = c.leave(ctx)
	} else if err == nil {
		if err = c.store.FS.Remove(filepath.Join(c.dir, LockFile)); err == nil {
			err = c.putRow(ctx)
		}
	}
	c.ended = true
	c.mu.Unlock()
	c.shut()
	return asked, ok, err
}
