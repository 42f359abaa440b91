package contextstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/jsonl"
)

// Action is what a person asks of a run that others may be working on.
type Action string

// The actions of tori pause, resume and stop.
const (
	Pause  Action = "pause"
	Resume Action = "resume"
	Stop   Action = "stop"

	giveUp Action = "fail" // of the house itself
)

// Request is request.json: what somebody who does not own the run asks its
// owner to do. The owner looks twice a second, also in the middle of a call.
type Request struct {
	Action Action `json:"action"` // pause or stop
	By     string `json:"by"`
	At     Time   `json:"at"`
}

// Request returns what the owner of the context is asked to do; ok is false
// where nobody asks anything. It costs one stat.
func (c *Context) Request() (Request, bool) { return readRequest(c.Dir()) }

// Pending returns what the last owner of a run was asked and did not see in
// time: a stop that came while it paused. Who gives a paused run up looks for it
// once the locks are released: whoever asks later finds no owner and does it.
func (s *Store) Pending(uuid string) (Request, bool) {
	dir, err := s.dir(uuid)
	if err != nil {
		return Request{}, false
	}
	return readRequest(dir)
}

func readRequest(dir string) (r Request, ok bool) {
	path := filepath.Join(dir, requestFile)
	if !disk.Exists(path) {
		return r, false
	}
	// One that cannot be read was written by nobody we know.
	return r, readJSON(path, &r) == nil && (r.Action == Pause || r.Action == Stop)
}

// ControlResult is what came of an Ask.
type ControlResult struct {
	Status task.Status // of the run now
	Asked  bool        // its owner was asked, and does it soon
	Owner  Owner       // where Asked
	PIDs   []int       // processes of a dead owner that were ended
}

// Control pauses, resumes or stops a run. Where a live process owns it, the request
// is left for that process; else the transition is made here. A change that the
// run's status does not allow is an error wrapping task.ErrIllegalTransition.
// Processes that a dead owner left behind are ended first.
func (s *Store) Control(ctx context.Context, uuid string, do Action, by string) (ControlResult, error) {
	return s.ask(ctx, uuid, do, by, endWords{})
}

// StopFor is Ask for a Stop whose reason people read in place of who asked, and whose final
// summary is known.
func (s *Store) StopFor(ctx context.Context, uuid, by, reason, summary string) (ControlResult, error) {
	return s.ask(ctx, uuid, Stop, by, endWords{reason, summary})
}

// endWords are what is known of why a run ends, "" where the store has to say it.
type endWords struct{ reason, summary string }

// GiveUp fails a run that nobody works on, for a reason that people read.
// ErrBusy: somebody works on it after all.
func (s *Store) GiveUp(ctx context.Context, uuid, reason string) error {
	_, err := s.ask(ctx, uuid, giveUp, "", endWords{reason: reason})
	return err
}

func (s *Store) ask(ctx context.Context, uuid string, do Action, by string, why endWords) (ControlResult, error) {
	for n := 1; ; n++ {
		a, err := s.change(ctx, uuid, do, by, why)
		var orphans *OrphansError
		switch {
		case errors.As(err, &orphans):
			pids, err := s.EndOrphans(ctx, uuid, time.Second)
			if err != nil {
				return ControlResult{PIDs: pids}, err
			}
			a, err = s.change(ctx, uuid, do, by, why)
			a.PIDs = pids
			return a, err
		case !errors.Is(err, ErrBusy) || do == giveUp:
			return a, err
		}
		a, err = s.request(uuid, do, by)
		if (errors.Is(err, os.ErrNotExist) || errors.Is(err, errUnowned)) && n < moves {
			continue // it was moved or given up meanwhile
		}
		return a, err
	}
}

var errUnowned = errors.New("no owner any more")

// request leaves a request for the owner of a context, or takes it back.
func (s *Store) request(uuid string, do Action, by string) (ControlResult, error) {
	dir, err := s.dir(uuid)
	if err != nil {
		return ControlResult{}, err
	}
	path := filepath.Join(dir, requestFile)
	a := ControlResult{Status: task.Running, Asked: true}
	if do == Resume {
		err = s.FS.Remove(path)
	} else {
		var b []byte
		if b, err = jsonl.Append(nil, Request{do, s.Redact(by), s.now()}); err == nil {
			err = s.FS.Replace(path, b, !s.NoSync)
		}
	}
	if err != nil {
		return a, fmt.Errorf("ask %s to %s: %w", uuid, do, err)
	}
	var held bool
	if a.Owner, held = ReadOwner(dir); !held {
		return a, errUnowned
	}
	return a, nil
}

// target is where an action takes a run that nobody works on, and whether it
// is there already.
func target(do Action, now task.Status) (to task.Status, there bool) {
	switch do {
	case Pause:
		return task.Paused, now == task.Paused
	case Resume:
		return task.Queued, now == task.Queued
	case giveUp:
		return task.Failed, now == task.Failed
	}
	return task.Stopped, now == task.Stopped
}

// change makes the transition of a run that has no owner.
func (s *Store) change(ctx context.Context, uuid string, do Action, by string, why endWords) (ControlResult, error) {
	c, repairs, err := s.take(ctx, uuid)
	for _, r := range repairs {
		s.OnRepair(uuid + ": " + r)
	}
	if errors.Is(err, ErrEnded) {
		dir, derr := s.dir(uuid)
		st, serr := ReadState(dir)
		if err := errors.Join(derr, serr); err != nil {
			return ControlResult{}, err
		}
		if _, there := target(do, st.TaskStatus); there {
			return ControlResult{Status: st.TaskStatus}, nil
		}
		return ControlResult{Status: st.TaskStatus}, i18n.E("contextstore.had_ended", uuid, st.TaskStatus).Of(task.ErrIllegalTransition)
	}
	if err != nil {
		return ControlResult{}, err
	}
	defer c.shut()
	unlock, err := LockState(ctx, c.dir, s.StateLockTimeout)
	if err != nil {
		return ControlResult{}, err
	}
	defer unlock()
	from := c.state.TaskStatus
	to, there := target(do, from)
	if err := task.CheckTransition(from, to); err != nil && !there {
		err = i18n.E("contextstore.not_now", uuid, from, string(do)).Of(err)
		if from != task.Running {
			err = errors.Join(err, c.leave(ctx))
		}
		return ControlResult{Status: from}, err
	}
	// What a former owner was asked is overtaken by this.
	if err := s.FS.Remove(filepath.Join(c.dir, requestFile)); err != nil {
		return ControlResult{Status: from}, err
	}
	if there {
		return ControlResult{Status: from}, c.leave(ctx)
	}
	c.begin()
	o := task.Outcome{Status: to, Reason: fmt.Sprintf("%s by %s", to, s.Redact(by))}
	switch {
	case to == task.Queued:
		o.Reason = ""
		if c.state.Recoveries++; from != task.Running {
			c.state.Recoveries = 0
		}
	case why.reason != "":
		o.Reason = why.reason
	case s.Reason != nil:
		o.Reason = s.Reason(do, s.Redact(by))
	}
	var effects []Effect
	if s.Changed != nil {
		if o.Summary, effects, err = s.Changed(ctx, View{Dir: c.dir, Metadata: c.meta, State: c.state}, o); err != nil {
			return ControlResult{Status: from}, fmt.Errorf("final summary of %s: %w", uuid, err)
		}
	}
	o.Summary = cmp.Or(why.summary, o.Summary)
	err = c.Transition(ctx, o, effects...)
	if unfinished := (*UnfinishedError)(nil); errors.As(err, &unfinished) {
		s.OnRepair(err.Error() + "; the next opener does it")
	} else if err != nil {
		return ControlResult{Status: from}, err
	}
	return ControlResult{Status: to}, nil
}

// StateLockTimeout is how long to wait for .state.lock (store-v2 §5.3).
const StateLockTimeout = 5 * time.Second

// LockState locks the .state.lock of a context until release is called: whoever changes a
// state.json without running its context holds it.
func LockState(ctx context.Context, dir string, timeout time.Duration) (release func(), err error) {
	path := filepath.Join(dir, stateLockFile)
	release, err = filelock.OpenWait(ctx, path, timeout)
	if errors.Is(err, filelock.ErrLocked) {
		err = i18n.E("contextstore.state_lock", path, timeout).Of(err)
	}
	return release, err
}
