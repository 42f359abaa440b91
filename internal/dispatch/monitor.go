package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Monitor looks after runs whose owner is gone (store-v2 §5.4). Its fields are
// set once.
type Monitor struct {
	Store       *contextstore.Store
	Sources     map[string]bool // of tasks that go on here, once their owner died
	Every       time.Duration
	Stale       time.Duration // age of a heartbeat at which an owner seems to hang
	MaxAttempts int           // deaths of owners after which a run fails
	Fail        bool          // at the first death (recovery.mode: fail)
	Lang        i18n.Lang
	Log         *slog.Logger
	Now         func() time.Time
	Wake        func() // there is something to claim or to deliver
	Stats       *Stats
	// Left hears once of each run whose owner died and that nobody takes up unless a
	// person does; nil where nobody listens.
	Left func(v contextstore.View)
	// GaveUp hears of each run that is failed because its owners died.
	GaveUp func(v contextstore.View)
	// Permitted reports whether a paused run waited for its forge to let it hand
	// over, and can now; nil where none does.
	Permitted func(ctx context.Context, v contextstore.View) (bool, error)
	// Overdue reports whether a run that waits for an answer is to go on without;
	// nil where none does.
	Overdue func(ctx context.Context, v contextstore.View) (bool, error)
	// Settle has done what follows from decisions about proposals, and from time that is
	// over for them; nil where nothing waits for one.
	Settle func(ctx context.Context) error
	// Renewed reports whether a paused run waited for the budget of another day, and
	// can go on; nil where none does.
	Renewed func(ctx context.Context, v contextstore.View) (bool, error)

	recovering sync.Mutex
	left       map[string]bool // uuids that Left heard of
	lanes      lanes           // forges are asked whether runs can go on
}

// Run looks at once and then every so often, until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	t := time.NewTicker(m.Every)
	defer t.Stop()
	defer m.lanes.wait()
	for {
		m.Round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Round looks once, and logs what goes wrong. What forges are asked for goes on behind it.
func (m *Monitor) Round(ctx context.Context) {
	if err := m.look(ctx); err != nil && ctx.Err() == nil {
		m.Log.Error("Cannot look after the runs: " + err.Error())
	}
}

// Look puts runs whose owner died back into the queue, and fails those whose
// owners died too often: it is what they do that kills them.
func (m *Monitor) Look(ctx context.Context) error {
	defer m.lanes.wait()
	return m.look(ctx)
}

func (m *Monitor) look(ctx context.Context) error {
	err := errors.Join(m.Dead(ctx, ""), m.goOn(ctx))
	if m.Settle != nil {
		err = errors.Join(err, m.Settle(ctx))
	}
	m.Room()
	return err
}

// Room looks whether there is room on the disk for runs.
func (m *Monitor) Room() {
	free, err := m.Store.Room()
	m.Stats.space(free, err != nil)
	if err != nil {
		m.Log.Error("Nothing is claimed: " + err.Error())
	}
}

// Dead looks after the runs of every source whose owner died, but for one that
// its caller sees to.
func (m *Monitor) Dead(ctx context.Context, but string) error {
	m.recovering.Lock() // a death counts once
	defer m.recovering.Unlock()
	var dead []string
	stale := 0
	err := m.Store.Running(func(uuid string, o contextstore.Owner, alive bool) {
		if !alive {
			dead = append(dead, uuid)
			return
		}
		if age := o.Silent(m.Now()); age > m.Stale {
			stale++
			m.Log.Warn("The owner of a run lives and shows no sign of it", "uuid", uuid, "pid", o.ProcessID, "heartbeat_age", age.Round(time.Second))
		}
	})
	m.Stats.staled(stale)
	for _, uuid := range dead {
		if uuid != but {
			err = errors.Join(err, m.recover(ctx, uuid))
		}
	}
	return err
}

func (m *Monitor) recover(ctx context.Context, uuid string) error {
	v, err := m.Store.View(uuid)
	if errors.Is(err, contextstore.ErrNotFound) {
		return nil // it moved on meanwhile
	}
	if err != nil {
		return err
	}
	deaths := v.State.Recoveries + 1
	giveUp := func(reason string) {
		if err = m.Store.GiveUp(ctx, uuid, reason); err == nil && m.GaveUp != nil {
			m.GaveUp(v)
		}
	}
	switch {
	case m.Fail:
		giveUp(m.Lang.T("dispatch.died"))
	case deaths > int64(m.MaxAttempts):
		giveUp(m.Lang.T("dispatch.poisoned", deaths))
	case !served(m.Store, m.Sources, v.Metadata.TaskKey.Source, uuid):
		m.leave(v)
		return nil
	default:
		_, err = m.Store.Control(ctx, uuid, contextstore.Resume, "monitor")
	}
	if errors.Is(err, contextstore.ErrBusy) || errors.Is(err, contextstore.ErrEnded) {
		return nil
	}
	if err == nil {
		m.Stats.recovered()
		m.Log.Warn("The owner of a run died", "uuid", uuid, "task", v.Metadata.TaskKey.String(), "deaths", deaths)
		m.Wake()
	}
	return err
}

// leave tells that a run waits for somebody to take it up.
func (m *Monitor) leave(v contextstore.View) {
	if m.left[v.Metadata.UUID] {
		return
	}
	if m.left == nil {
		m.left = map[string]bool{}
	}
	m.left[v.Metadata.UUID] = true
	if m.Left != nil {
		m.Left(v)
	}
}

// wait is something that a run may wait for, and what is logged when that is over.
type wait struct {
	over func(context.Context, contextstore.View) (bool, error) // nil where nothing waits for it
	says string
}

// goOn lets runs go on whose waiting is over: those that were paused because they
// might not hand over or because a day's budget was used up, and those that nobody
// answers.
func (m *Monitor) goOn(ctx context.Context) error {
	waiting := map[task.Status][]wait{
		task.Paused:           {{m.Permitted, "The forge takes the branch now; the run goes on"}, {m.Renewed, "There is a new budget; the run goes on"}},
		task.AwaitingApproval: {{m.Overdue, "Nobody answered in time; the run goes on"}},
	}
	all := map[string][]string{} // by source
	err := m.Store.Live(ctx, func(r contextstore.Row) error {
		if waiting[r.Status] != nil && served(m.Store, m.Sources, r.Key.Source, r.UUID) {
			all[r.Key.Source] = append(all[r.Key.Source], r.UUID)
		}
		return nil
	})
	for source, uuids := range all {
		m.lanes.start(source, func(func() bool) {
			for _, uuid := range uuids {
				if v, verr := m.Store.View(uuid); verr == nil && ctx.Err() == nil {
					m.letGoOn(ctx, v, m.over(ctx, v, waiting[v.Status()]))
				}
			}
		}, func() {})
	}
	return err
}

// letGoOn lets a run go on whose waiting is over, as says tells; "" where it is not.
func (m *Monitor) letGoOn(ctx context.Context, v contextstore.View, says string) {
	if says == "" {
		return
	}
	uuid := v.Metadata.UUID
	if _, err := m.Store.Control(ctx, uuid, contextstore.Resume, "monitor"); err != nil {
		m.Log.Error("A run cannot go on: "+err.Error(), "uuid", uuid)
		return
	}
	m.Log.Info(says, "uuid", uuid, "task", v.Metadata.TaskKey.String())
	m.Wake()
}

// over is what to say of the first of the things that a run may wait for and that
// is over; "" for none.
func (m *Monitor) over(ctx context.Context, v contextstore.View, waits []wait) string {
	for _, w := range waits {
		if w.over == nil {
			continue
		}
		over, err := w.over(ctx, v)
		if err != nil {
			m.Log.Warn("Cannot tell whether a waiting run can go on: "+err.Error(), "uuid", v.Metadata.UUID)
		}
		if over {
			return w.says
		}
	}
	return ""
}
