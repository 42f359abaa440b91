package turn

import (
	"context"
	"time"

	"toritsugi/internal/contextstore"
)

// Days is the ledger of what all runs of a day take together. *DayBudget is one.
type Days interface {
	// Reserve makes sure that the limits of the day leave room for a call that is
	// thought to take so much, by a run that took what s says.
	Reserve(ctx context.Context, s contextstore.State, next contextstore.Amount) error
}

// DayBudget holds one run to the limits of its day. It is granted what several
// calls take, so that most calls cost nothing here. It is used by one goroutine.
type DayBudget struct {
	Store  *contextstore.Store
	Run    contextstore.DayRun
	Limits contextstore.DayLimits // at least one
	Now    func() time.Time

	grant contextstore.Grant
}

// How much a run is granted: grantCalls calls like the next one, or grantTime. It is
// at most one part in grantShare of each limit, because what a dead run holds is
// missing to the others. Each grant is a synced write of house.db: where that part
// is less than fewCalls calls, the grant is fewCalls calls, and at most one part in
// fewShare.
const (
	grantCalls = 8
	grantTime  = 5 * time.Minute
	grantShare = 50
	fewCalls   = 4
	fewShare   = 10
)

// Reserve implements Days. What the run took since the last grant is settled with
// a new one: when the old one is used up, or its day is over. The error is a
// *contextstore.DayError, or one of house.db.
func (d *DayBudget) Reserve(ctx context.Context, s contextstore.State, next contextstore.Amount) (err error) {
	taken := s.Taken()
	needs := contextstore.Amount{Turns: 1, Tokens: max(next.Tokens, 1), MicroUSD: max(next.MicroUSD, 1), MS: 1}
	if d.grant.Day == contextstore.DayOf(d.Now()) && d.covers(taken, needs) {
		return nil
	}
	d.grant, err = d.Store.ReserveDay(ctx, d.Run, d.Limits, taken, needs, d.wants(needs))
	return err
}

// Settle counts what the run took for its day and gives back what it holds.
// paused says that it waits for another day.
func (d *DayBudget) Settle(ctx context.Context, s contextstore.State, paused bool) error {
	d.grant = contextstore.Grant{}
	if paused {
		return d.Store.SettleDay(ctx, d.Run, s.Taken(), &d.Limits)
	}
	return d.Store.SettleDay(ctx, d.Run, s.Taken(), nil)
}

// covers reports whether the grant has room for a call.
func (d *DayBudget) covers(taken, needs contextstore.Amount) bool {
	at, need, most := d.grant.Taken.Parts(), needs.Parts(), d.grant.Most.Parts()
	user, all := d.Limits.User.Parts(), d.Limits.All.Parts()
	for i, n := range taken.Parts() {
		if (*user[i] > 0 || *all[i] > 0) && *n-*at[i]+*need[i] > *most[i] {
			return false
		}
	}
	return true
}

// wants is the grant that a run asks for.
func (d *DayBudget) wants(needs contextstore.Amount) contextstore.Amount {
	wants := needs
	wants.MS = grantTime.Milliseconds() / grantCalls
	need := needs.Parts()
	for i, n := range wants.Parts() {
		few := *n * fewCalls
		*n *= grantCalls
		for _, limits := range []contextstore.Amount{d.Limits.User, d.Limits.All} {
			if limit := *limits.Parts()[i]; limit > 0 {
				*n = max(min(*n, max(limit/grantShare, min(few, limit/fewShare))), *need[i])
			}
		}
	}
	return wants
}

var _ Days = (*DayBudget)(nil)
