package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/i18n"
	"toritsugi/internal/queue"
)

// openQueue opens the queue that wakes who works on runs, where queue.driver is postgres.
func (s *system) openQueue(ctx context.Context) (err error) {
	if s.cfg.Queue.Driver != "postgres" {
		return nil
	}
	var rounds []queue.Round
	if s.rounds != nil {
		rounds = s.rounds()
	}
	s.queue, err = queue.Open(ctx, database.ServerOf(s.store.BaseDir), s.store.Turn, rounds, s.log)
	return err
}

// offerTime is how long a run may keep waiting who put it into the queue.
const offerTime = 10 * time.Second

// offer has somebody woken for a run that waits. Where that fails, the round "missed" makes up for it.
func (s *system) offer(uuid string) {
	if s.queue == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), offerTime)
	defer cancel()
	if err := s.queue.Offer(ctx, uuid); err != nil {
		s.log.Warn("Nobody is woken for a run yet: "+err.Error(), "uuid", uuid)
	}
}

// missedEvery is how often it is looked for runs whose owner died, and for those that nobody was
// woken for.
const missedEvery = 30 * time.Second

// rounds is the work that comes round in a cluster, done by whoever is at the doors.
func (d *daemon) rounds() []queue.Round {
	poll := min(d.cfg.Scheduling.Interval, d.cfg.Scheduling.CommentsInterval)
	return []queue.Round{
		{Name: "poll", Every: time.Duration(poll) * time.Second},
		{Name: "missed", Every: missedEvery},
		{Name: "monitor", Every: time.Duration(d.cfg.Monitor.IntervalMinutes) * time.Minute},
		{Name: "night", Every: digestEvery},
	}
}

// A standby asks so often whether the doors are free, and whoever is at them whether they are still theirs.
const (
	standby  = 2 * time.Second
	stillOur = time.Second
)

// lead waits until no other tori serve is at the doors, and is there then until ctx ends. An error:
// another one took the place meanwhile, as this process did not run, or could not reach the database for a while.
func (d *daemon) lead(ctx context.Context) error {
	var alone *contextstore.Alone
	if !d.await(ctx, "Another tori serve is at the doors; this one works on runs, takes webhooks, and stands by", func() (err error) {
		alone, err = d.store.Alone("serve")
		return err
	}) {
		return nil
	}
	defer alone.Release()
	if d.inbox != nil {
		// Its lease may end later than that of the doors.
		if !d.await(ctx, "What came in is another process's still; this one waits for it", func() error { return d.inbox.Take(ctx) }) {
			return nil
		}
		defer d.inbox.Close() // before the doors are free
		d.join()
	}
	// A run that the one before was killed in queueing may lack the row that keeps a second one of its task away.
	if !d.await(ctx, "", func() error { return d.store.Recover(ctx) }) {
		return nil
	}
	d.aside.Store(false)
	d.log.Info("This process is at the doors")
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	lost := i18n.E("app.doors_lost", d.store.BaseDir)
	var all sync.WaitGroup
	for _, run := range append(d.atDoors(), d.speak, func(ctx context.Context) {
		every(ctx, stillOur, func(context.Context) {
			if !alone.Held() {
				lose(lost)
			}
		})
	}) {
		all.Go(func() { run(ctx) })
	}
	night := d.night()
	failed := d.queue.Lead(ctx, map[string]func(context.Context){
		"poll": func(context.Context) { d.intake.Round() },
		"missed": func(ctx context.Context) {
			if err := errors.Join(d.monitor.Dead(ctx, ""), d.pool.OfferMissed(ctx)); err != nil && ctx.Err() == nil {
				d.log.Error("Runs that nobody works on: " + err.Error())
			}
		},
		"monitor": d.monitor.Round,
		"night":   func(ctx context.Context) { d.tonight(ctx, night) },
	})
	if failed != nil {
		lose(failed)
	}
	all.Wait()
	if err := context.Cause(ctx); errors.Is(err, lost) || failed != nil {
		return err
	}
	return nil
}

// await tries again until take takes what may be another's, and tells once why it waits; false where ctx
// ended first.
func (d *daemon) await(ctx context.Context, says string, take func() error) bool {
	for last := ""; ; {
		err := take()
		if err == nil {
			return true
		}
		if errors.Is(err, contextstore.ErrBusy) {
			if last != says {
				d.log.Info(says)
			}
			last = says
		} else if why := err.Error(); last != why && ctx.Err() == nil { // as where its disk is full
			d.log.Error("The doors cannot be taken yet: " + why)
			last = why
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(standby):
		}
	}
}
