package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// pauseLook is how often the signal file is looked for.
const pauseLook = 2 * time.Second

// The mark of the runs that the signal file paused.
const signalScope, signalName = "house", "paused_by_signal_file"

// pauses pauses everything while the signal file is there, and lets what it
// paused go on when it is gone (ancestor pause_resume).
func (d *daemon) pauses(ctx context.Context) {
	var said channel.Throttle
	every(ctx, pauseLook, func(ctx context.Context) {
		if err := d.signalled(ctx); err != nil && ctx.Err() == nil && said.Due(d.env.Now(), time.Minute) {
			d.log.Error("pause_resume.signal_file: " + err.Error())
		}
	})
}

// signalled looks for the signal file and does what its presence asks for.
func (d *daemon) signalled(ctx context.Context) error {
	if !d.cfg.PauseResume.Enabled {
		return nil
	}
	_, err := os.Stat(d.cfg.PauseResume.SignalFile)
	mark, merr := d.store.Mark(ctx, signalScope, signalName)
	switch {
	case merr != nil:
		return merr
	case err == nil:
		return d.hold(ctx, mark)
	case errors.Is(err, fs.ErrNotExist):
		return d.release(ctx, mark)
	}
	return err // it cannot be told: what was so stays so
}

// hold pauses what is worked on, or puts it back into the queue of several machines. Which runs that are is kept first: one that is
// paused and not known for it would never go on.
func (d *daemon) hold(ctx context.Context, mark string) error {
	if d.queue != nil { // processes of other machines go on with it
		d.pool.Hold(agent.ErrShutdown)
		return nil
	}
	cause := agent.PauseFor(i18n.Lang(d.cfg.Language).T("dispatch.signal"))
	known := strings.Fields(mark)
	all := known
	for _, uuid := range d.pool.Close(cause) {
		if !slices.Contains(known, uuid) {
			all = append(all, uuid)
		}
	}
	if len(all) > len(known) {
		if err := d.store.SetMark(ctx, signalScope, signalName, strings.Join(all, " ")); err != nil {
			return err
		}
	}
	d.pool.Hold(cause)
	return nil
}

// release lets the pool begin again, and what was paused go on.
func (d *daemon) release(ctx context.Context, mark string) error {
	d.pool.Release()
	if mark == "" {
		return nil
	}
	var pausing []string // still on their way
	for _, uuid := range strings.Fields(mark) {
		if d.pool.Ending(uuid) {
			pausing = append(pausing, uuid)
			continue
		}
		v, err := d.store.View(uuid)
		if err != nil || v.Status() != task.Paused {
			continue
		}
		if _, err := d.store.Control(ctx, uuid, contextstore.Resume, "pause_resume.signal_file"); err != nil && !errors.Is(err, task.ErrIllegalTransition) {
			return err
		}
	}
	d.pool.Wake()
	d.deliverer.Wake()
	return d.store.SetMark(ctx, signalScope, signalName, strings.Join(pausing, " "))
}
