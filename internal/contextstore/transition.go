package contextstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"toritsugi/internal/disk"
	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/jsonl"
)

// Transition ends this owner's hold on the task: it writes the final summary
// where the outcome is final, commits status and outward effects, moves the
// directory, updates the row and releases the lock (PROTOCOL "End, pause,
// wait"). On an error before the commit point nothing has changed and the
// context is still open; a later one is an *UnfinishedError: the outcome
// stands, and the next opener finishes what is left.
func (c *Context) Transition(ctx context.Context, o task.Outcome, effects ...Effect) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if err := task.CheckTransition(c.state.TaskStatus, o.Status); err != nil {
		return fmt.Errorf("run %s: %w", c.meta.UUID, err)
	}
	if err := c.commit(ctx, o, effects); err != nil {
		return err
	}
	c.ended = true
	err := c.finish(ctx)
	if err == nil {
		err = c.leave(ctx)
	}
	c.mu.Unlock()
	c.shut()
	if o.Status == task.Queued {
		c.store.Offer(c.meta.UUID)
	}
	c.mu.Lock()
	if err != nil && !errors.Is(err, ErrNotOwner) {
		return &UnfinishedError{c.meta.UUID, err}
	}
	return err
}

// commit writes the state that makes the outcome stand.
func (c *Context) commit(ctx context.Context, o task.Outcome, effects []Effect) error {
	before := c.state
	if o.Status.Final() {
		if o.Summary == "" {
			o.Summary = fmt.Sprintf("Outcome: %s. %s\n", o.Status, o.Reason)
		}
		if err := c.finalSummary(o); err != nil {
			return fmt.Errorf("final summary of %s: %w", c.meta.UUID, err)
		}
		c.state.CompletedAt = c.store.now()
		if c.state.CompletedAt.Before(c.state.StartedAt.Time) {
			c.state.CompletedAt = c.state.StartedAt // the clock was set back: nothing ends before it starts
		}
	}
	c.state.TaskStatus, c.state.Status, c.state.Phase = o.Status, string(o.Status), phaseEnding
	c.state.Unverified = o.Unverified && o.Status == task.Completed
	if o.TimedOut && o.Status == task.Failed {
		c.state.Status = Timeout
	}
	c.state.LastActivity, c.state.Error = "transition", nil // an earlier reason is over
	if o.Status != task.Completed && o.Reason != "" {
		reason := c.store.Redact(o.Reason)
		c.state.Error = &reason
	}
	c.state.Outbox = append(c.undelivered(ctx), c.store.redactEffects(effects)...)
	if err := c.saveState(true); err != nil {
		c.state = before
		return fmt.Errorf("commit %s of %s: %w", o.Status, c.meta.UUID, err)
	}
	return nil
}

// undelivered is what earlier transitions left in the outbox. Where that cannot
// be told, all of it stays: a delivery that is made twice is one in effect.
func (c *Context) undelivered(ctx context.Context) []Effect {
	if len(c.state.Outbox) == 0 {
		return nil
	}
	acked, err := c.store.houseDB.acked(ctx, c.meta.UUID)
	if err != nil {
		c.store.tell(err)
	}
	return slices.DeleteFunc(slices.Clone(c.state.Outbox), func(e Effect) bool { _, done := acked[e.Key]; return done })
}

func (s *Store) redactEffects(effects []Effect) []Effect {
	out := make([]Effect, len(effects))
	for i, e := range effects {
		e.Data = s.redactArgs(e.Data)
		out[i] = e
	}
	return out
}

// UnfinishedError says that a transition was committed, so that its outcome
// stands, and that a later step of it is left to the next opener.
type UnfinishedError struct {
	UUID string
	Err  error
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("finish the end of %s: %v", e.UUID, e.Err)
}
func (e *UnfinishedError) Unwrap() error { return e.Err }

// finish does what follows the commit point, up to the removal of the locks;
// every step can be done again.
func (c *Context) finish(ctx context.Context) error {
	to := filepath.Join(c.store.BaseDir, DirOf(c.state.TaskStatus), c.meta.UUID)
	if c.dir != to {
		if c.state.TaskStatus.Final() {
			c.store.syncRows()
		}
		if err := c.store.FS.Rename(c.dir, to); err != nil {
			return fmt.Errorf("move %s to %s: %w", c.meta.UUID, filepath.Dir(to), err)
		}
		c.dir = to
	}
	c.store.checkIndex(ctx)
	if err := c.putRow(ctx); err != nil { // with the phase: the opener that finds the row goes on from here
		return err
	}
	c.state.Phase = ""
	b, err := jsonl.Append(nil, c.state)
	if err != nil {
		return err
	}
	return c.store.FS.Replace(filepath.Join(c.dir, StateFile), b, !c.store.NoSync)
}

// leave removes what means nothing without an owner, the lock last and while
// it is held, and tells the row that nothing is left to do. A work.lock stays
// while there may be a next owner: a child of this one may still hold it.
func (c *Context) leave(ctx context.Context) error {
	files := []string{keptFile}
	if left := "." + keptFile + ".tmp"; disk.Exists(filepath.Join(c.dir, left)) { // an owner was killed at it
		files = append(files, left)
	}
	if r, ok := readRequest(c.dir); !ok || r.Action != Stop || c.state.TaskStatus != task.Paused {
		files = append(files, requestFile)
	} // else it came too late for this owner, who still has to do it: Pending
	if c.state.TaskStatus.Final() {
		if err := c.removeWork(); err != nil {
			return err
		}
	}
	for _, name := range append(files, LockFile) {
		if err := c.store.FS.Remove(filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	err := c.putRow(ctx)
	if c.state.TaskStatus.Final() {
		c.store.textsChanged(c.meta.UUID)
	}
	return err
}

// removeWork removes the work.lock of a run that is over.
func (c *Context) removeWork() error {
	path := workPath(c.dir)
	err := c.store.FS.Remove(path)
	if dir := filepath.Dir(path); dir != c.dir {
		err = errors.Join(err, c.store.FS.Remove(dir))
	}
	return err
}

// finishHalf completes a transition whose commit point was passed, and says
// whether there was anything to do.
func (c *Context) finishHalf(ctx context.Context) (did bool, err error) {
	// There is no later owner while the lock is ours: a row that knows of one
	// knows of a state.json that was lost.
	g, err := c.store.index.Generation(ctx, c.meta.UUID)
	c.store.tell(err)
	c.state.Generation = max(c.state.Generation, g)
	dir := filepath.Base(filepath.Dir(c.dir))
	if c.state.Phase != phaseEnding && dir == DirOf(c.state.TaskStatus) {
		return false, nil
	}
	if err := c.finish(ctx); err != nil {
		return false, fmt.Errorf("finish the end of %s: %w", c.meta.UUID, err)
	}
	return true, nil
}
