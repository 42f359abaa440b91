package dispatch

import (
	"context"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
)

// Queue wakes pools for runs that wait, in whatever process they are. That a run waits, and who
// owns it, stands in the ledger alone.
type Queue interface {
	// Offer has a pool woken that has a place for each of the runs.
	Offer(ctx context.Context, uuids ...string) error
	// Offered are the runs that a pool will be woken for.
	Offered(ctx context.Context) (map[string]bool, error)
	// Run calls work for each run that this process is woken for, so many side by side, until
	// ctx ends, and waits for it. work returns after how long the run is to be offered again, 0 for
	// not.
	Run(ctx context.Context, places int, work func(uuid string) (again time.Duration)) error
	// Take says whether this process is to be woken for runs, as it is at first.
	Take(take bool)
}

// heldScope has a mark for each run that a limit holds back, by where it stands in the queue:
// whoever ends a run offers the first of them that may begin then.
const heldScope = "held"

// restart is the pause before a queue is run again that could not be.
const restart = 5 * time.Second

// woken works on what the queue wakes this pool for until ctx ends; work outlives that.
func (p *Pool) woken(ctx, work context.Context) {
	for ctx.Err() == nil {
		if err := p.Queue.Run(ctx, p.Limits.Max, func(uuid string) time.Duration { return p.offered(work, uuid) }); err != nil && ctx.Err() == nil {
			p.Log.Error("Cannot be woken for work: " + err.Error())
			select {
			case <-ctx.Done():
			case <-time.After(restart):
			}
		}
	}
}

// mostSnooze is how long a run is kept from the other pools that this one leaves alone for longer: they
// may be able to begin it.
const mostSnooze = 30 * time.Second

// offered works on a run that this pool was woken for, if it may begin.
func (p *Pool) offered(work context.Context, uuid string) (again time.Duration) {
	defer func() { again = min(again, mostSnooze) }()
	w, waits, err := p.Store.Waits(uuid)
	switch {
	case err != nil:
		p.Log.Error("Cannot be begun: "+err.Error(), "uuid", uuid)
		return retryClaim
	case !waits || !served(p.Store, p.Sources, w.Key.Source, uuid):
		return 0
	case work.Err() != nil || p.full():
		return look // of another process, too
	}
	p.mu.Lock()
	here, rests := p.busy[uuid] != nil, p.resting.left(uuid, p.Now())
	p.mu.Unlock()
	if here { // it is not claimed yet, or was put into the queue just now
		return time.Second
	}
	if rests > 0 {
		return rests
	}
	w, run, claimed, err := p.place(work, w)
	if err != nil {
		p.Log.Error("Cannot be begun: "+err.Error(), "uuid", uuid)
		return retryClaim
	}
	if run == nil { // whoever ends a run offers it again
		return 0
	}
	p.running.Add(1)
	defer p.running.Done()
	if again = p.run(run, w, claimed); work.Err() == nil {
		p.offerHeld(context.WithoutCancel(work))
	}
	if w.UUID != uuid { // that one was offered anew
		return 0
	}
	return again
}

// place takes a place among all pools for a run, or for an older one that may begin and nobody was
// woken for yet; then this one is offered again. The place is that run's once claimed was called, and no
// pool takes another until then. run is nil where a limit holds it back.
func (p *Pool) place(work context.Context, w contextstore.Waiting) (first contextstore.Waiting, run context.Context, claimed func(), err error) {
	claimed, err = p.Store.Turn(work)
	if err != nil {
		return w, nil, nil, err
	}
	others, err := p.others(work)
	var before []contextstore.Waiting
	if err == nil && p.limited() {
		before, err = p.before(work, w)
	}
	if err != nil {
		claimed()
		return w, nil, nil, err
	}
	for _, first := range append(before, w) {
		run, ok := p.reserve(work, first, others)
		if !ok {
			continue
		}
		if first.UUID != w.UUID {
			err = p.Queue.Offer(work, w.UUID) // else it is missed, and offered later
		}
		if err != nil {
			p.Log.Warn("Nobody is woken for a run yet: "+err.Error(), "uuid", w.UUID)
		}
		return first, run, claimed, nil
	}
	err = p.Store.SetMark(work, heldScope, w.Cursor, w.UUID)
	claimed()
	if err == nil {
		p.offerHeld(work) // what held it back may have ended before the mark was there
	}
	return w, nil, nil, err
}

// before are the runs that wait for longer than one, as many as are read at once.
func (p *Pool) before(ctx context.Context, w contextstore.Waiting) ([]contextstore.Waiting, error) {
	all, err := p.Store.Queued(ctx, "", page)
	for i := range all {
		if all[i].Cursor >= w.Cursor {
			return all[:i:i], err
		}
	}
	return all, err
}

// limited reports whether some runs may have to wait though there is a place.
func (p *Pool) limited() bool {
	return p.Limits.PerSource > 0 || p.Limits.PerRepository > 0 || p.Limits.PerUser > 0
}

// others are the runs that all pools work on.
func (p *Pool) others(ctx context.Context) (all []slot, err error) {
	if p.Limits.PerRepository == 0 && p.Limits.PerUser == 0 {
		return nil, nil
	}
	rows, err := p.Store.Working(ctx)
	for _, r := range rows {
		w := contextstore.Waiting{UUID: r.UUID, Key: r.Key, User: r.User}
		all = append(all, slot{waiting: w, repository: repository(p.Store, w)})
	}
	return all, err
}

// offerHeld offers the runs that limits held back and may begin now, the oldest first, as many as
// this pool has places.
func (p *Pool) offerHeld(ctx context.Context) {
	held, err := p.Store.Marks(ctx, heldScope)
	if err == nil && len(held) > 0 {
		err = p.release(ctx, held)
	}
	if err != nil && ctx.Err() == nil {
		p.Log.Error("What waits for others to end: " + err.Error())
	}
}

// release offers of the runs that are held back by these marks those that may begin.
func (p *Pool) release(ctx context.Context, held []string) error {
	others, err := p.others(ctx)
	if err != nil {
		return err
	}
	offered := 0
	for _, cursor := range held {
		uuid := uuidAt(cursor)
		w, waits, err := p.Store.Waits(uuid)
		if err != nil {
			return err
		}
		repository := repository(p.Store, w)
		p.mu.Lock()
		may := p.allows(w, repository, others)
		p.mu.Unlock()
		if waits && !may {
			continue
		}
		// First the mark: who is woken may find that the limit holds it back again, and set one. Without
		// either it is missed, and offered later.
		if err = p.Store.SetMark(ctx, heldScope, cursor, ""); err == nil && waits {
			err = p.Queue.Offer(ctx, uuid)
			others = append(others, slot{waiting: w, repository: repository})
			offered++
		}
		if err != nil || offered == max(p.Limits.Max, 1) {
			return err
		}
	}
	return nil
}

// uuidAt is the run at a place in the queue.
func uuidAt(cursor string) string { return cursor[strings.LastIndexByte(cursor, ' ')+1:] }

// OfferMissed offers what waits and no pool would be woken for: whoever put it into the queue died
// before it was offered.
func (p *Pool) OfferMissed(ctx context.Context) error {
	known, err := p.Queue.Offered(ctx)
	if err != nil {
		return err
	}
	held, err := p.Store.Marks(ctx, heldScope)
	if err != nil {
		return err
	}
	for _, cursor := range held {
		known[uuidAt(cursor)] = true
	}
	for after := ""; ; {
		waiting, err := p.Store.Queued(ctx, after, page)
		if err != nil {
			return err
		}
		var missed []string
		for _, w := range waiting {
			after = w.Cursor
			if !known[w.UUID] && served(p.Store, p.Sources, w.Key.Source, w.UUID) {
				missed = append(missed, w.UUID)
			}
		}
		if err := p.Queue.Offer(ctx, missed...); err != nil {
			return err
		}
		if len(waiting) < page {
			break
		}
	}
	if len(held) > 0 {
		return p.release(ctx, held)
	}
	return nil
}
