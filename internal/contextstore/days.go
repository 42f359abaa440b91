package contextstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"toritsugi/internal/contextstore/database"
)

// Amount is what runs take, or may take.
type Amount struct {
	Turns    int64 // calls to models
	Tokens   int64 // sent and received
	MicroUSD int64 // millionths of a US dollar, of the calls whose price is known
	MS       int64 // milliseconds in an owner's hands
}

// Taken is what a run took so far, over all its interruptions.
func (s State) Taken() Amount {
	return Amount{s.LLMCallCount, s.TotalTokensUsed, s.CostMicroUSD, s.ActiveMS}
}

// amountKeys are the settings that limit the parts of an Amount.
var amountKeys = [...]string{"max_turns", "max_tokens", "max_cost_usd", "max_minutes"}

// Parts are the fields in the order of amountKeys.
func (a *Amount) Parts() [len(amountKeys)]*int64 {
	return [...]*int64{&a.Turns, &a.Tokens, &a.MicroUSD, &a.MS}
}

// with is the sum, or whatever f makes of each part.
func (a Amount) with(b Amount, f func(a, b int64) int64) Amount {
	of := b.Parts()
	for i, n := range a.Parts() {
		*n = f(*n, *of[i])
	}
	return a
}

func (a Amount) plus(b Amount) Amount {
	return a.with(b, func(a, b int64) int64 { return a + b })
}

// since is what was taken since it was b, nothing where that is less.
func (a Amount) since(b Amount) Amount {
	return a.with(b, func(a, b int64) int64 { return max(a-b, 0) })
}

// shown is a part of an Amount as people read it.
func shown(part int, n int64) string {
	switch amountKeys[part] {
	case "max_cost_usd":
		return Dollars(n)
	case "max_minutes":
		return (time.Duration(n) * time.Millisecond).Round(time.Second).String()
	}
	return fmt.Sprint(n)
}

// DayLimits are the most that runs may take within a day; a part that is 0 is no
// limit.
type DayLimits struct {
	User Amount // all runs of one user together: budget.user_day
	All  Amount // all runs together: budget.day
}

// None reports that nothing is limited.
func (l DayLimits) None() bool { return l == DayLimits{} }

// scopes are the limits with the sections of the settings that they stand in.
func (l DayLimits) scopes() [2]struct {
	section string
	limit   Amount
} {
	return [...]struct {
		section string
		limit   Amount
	}{{"budget.user_day", l.User}, {"budget.day", l.All}}
}

// DayRun is a run as the ledger of days knows it.
type DayRun struct {
	UUID, User string
	// Settled is what counts as settled of its totals where nothing is known of
	// it: what it took before there were limits counts for no day.
	Settled Amount
}

// Grant is what a run may take before it asks again.
type Grant struct {
	Day   string // that it holds for
	Taken Amount // the run's totals when it was given
	Most  Amount // beyond them
}

// DayError says that a limit of a day leaves no room for another call.
type DayError struct {
	Key   string    // the setting
	Limit string    // and the others, as people read them
	Taken string    // on that day
	Held  string    // that runs under way may still take; "" for nothing
	Needs string    // what the next call is thought to take; "" where none fits
	Until time.Time // when the day ends
}

func (e *DayError) Error() string {
	return fmt.Sprintf("the budget of the day is used up: %s of %s are taken and %s held (%s), until %s", e.Taken, e.Limit, cmp.Or(e.Held, "0"), e.Key, e.Until.Format(time.RFC3339))
}

// DayOf is the day of a time. Days are those of the universal time, so that all
// processes of a base directory agree on them.
func DayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// keepDays is how long what was taken on a day is known.
const keepDays = 35

// ReserveDay settles what a run took, and reserves what it may take from now on:
// as much as it wants where the limits leave room for that, at least what it
// needs. A *DayError says that they do not; the run then holds nothing, and is
// noted as one that waits (see DayOver), whatever becomes of it. taken are its
// totals. It is one transaction, and durable: however many processes ask at
// once, what is taken and what is held stay within the limits together.
func (s *Store) ReserveDay(ctx context.Context, r DayRun, l DayLimits, taken, needs, wants Amount) (g Grant, err error) {
	now := s.now()
	var refused *DayError
	rolled := false
	err = s.inHouse(ctx, func(tx *sql.Tx) error {
		was, err := settleDay(ctx, tx, r, taken, DayOf(now.Time))
		if err != nil {
			return err
		}
		g, refused = Grant{Day: DayOf(now.Time), Taken: taken, Most: wants}, nil
		if g.Most, refused, err = room(ctx, tx, was.user, l, needs, wants, now.Time); err != nil {
			return err
		}
		if rolled, err = firstOf(ctx, tx, now.Time); err != nil {
			return err
		}
		if refused != nil { // what was settled stays so
			_, err = tx.ExecContext(ctx, `UPDATE day_runs SET waits=? WHERE uuid=?`, waiting{l, needs}.String(), r.UUID)
			return err
		}
		m := g.Most
		_, err = tx.ExecContext(ctx, `UPDATE day_runs SET held_turns=?, held_tokens=?, held_cost_micro_usd=?, held_active_ms=? WHERE uuid=?`, m.Turns, m.Tokens, m.MicroUSD, m.MS, r.UUID)
		return err
	})
	if err != nil {
		return Grant{}, fmt.Errorf("reserve what %s may take: %w", r.UUID, err)
	}
	if rolled {
		s.forgetRuns(ctx)
	}
	if refused != nil {
		return Grant{}, refused
	}
	return g, nil
}

// firstOf reports whether nothing is known of a day yet, and then removes what was
// taken on those that are long over.
func firstOf(ctx context.Context, tx *sql.Tx, now time.Time) (first bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM day_budgets WHERE day=?)`, DayOf(now)).Scan(&first)
	if err == nil && first {
		_, err = tx.ExecContext(ctx, `DELETE FROM day_budgets WHERE day<?`, lastKept(now))
	}
	return first, err
}

// SettleDay counts what a run took since it was last settled for the day that
// this was reserved on, and gives back what it holds. Done again it changes
// nothing. waits are the limits that it is paused by, nil where it is not; what was
// noted as ReserveDay refused it goes before them, and the day stays that one.
func (s *Store) SettleDay(ctx context.Context, r DayRun, taken Amount, waits *DayLimits) error {
	err := s.inHouse(ctx, func(tx *sql.Tx) error {
		was, err := settleDay(ctx, tx, r, taken, "")
		if err == nil && waits != nil {
			_, err = tx.ExecContext(ctx, `UPDATE day_runs SET waits=? WHERE uuid=?`, cmp.Or(was.waits, waiting{Limits: *waits}.String()), r.UUID)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("settle what %s took: %w", r.UUID, err)
	}
	return nil
}

// waiting is what a run waits for: room for what it needs within the limits.
type waiting struct {
	Limits DayLimits
	Needs  Amount
}

// String is how it stands in house.db.
func (w waiting) String() string { return fmt.Sprint(w.Limits, w.Needs) }

// parseWaiting reads what String wrote.
func parseWaiting(text string) (w waiting, ok bool) {
	var at []any
	for _, a := range []*Amount{&w.Limits.User, &w.Limits.All, &w.Needs} {
		for _, n := range a.Parts() {
			at = append(at, n)
		}
	}
	_, err := fmt.Sscanf(text, "{{%d %d %d %d} {%d %d %d %d}} {%d %d %d %d}", at...)
	return w, err == nil
}

// DayOver reports whether a run that limits of a day paused may try again: on
// another day, where the limits are others, or where they leave room now for what
// it needed, because others gave back what they held.
func (s *Store) DayOver(ctx context.Context, uuid string, l DayLimits) (over bool, err error) {
	err = s.houseDB.use(ctx, func(h *database.Handles) error {
		tx, err := h.R.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		over, err = s.waited(ctx, tx, uuid, l)
		return errors.Join(err, tx.Rollback())
	})
	if err != nil {
		return false, fmt.Errorf("read what %s waits for: %w", uuid, err)
	}
	return over, nil
}

// waited is DayOver in a transaction that only reads.
func (s *Store) waited(ctx context.Context, tx *sql.Tx, uuid string, l DayLimits) (over bool, err error) {
	var user, day, waits string
	err = tx.QueryRowContext(ctx, `SELECT user, day, waits FROM day_runs WHERE uuid=?`, uuid).Scan(&user, &day, &waits)
	if errors.Is(err, sql.ErrNoRows) || err == nil && waits == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now := s.now().Time
	w, known := parseWaiting(waits)
	if !known || day != DayOf(now) || w.Limits != l {
		return true, nil
	}
	_, refused, err := room(ctx, tx, user, l, w.Needs, w.Needs, now)
	return err == nil && refused == nil, err
}

// StayPaused forgets that a run waits for another day: somebody wants it paused.
func (s *Store) StayPaused(ctx context.Context, uuid string) error {
	if err := s.exec(ctx, `UPDATE day_runs SET waits='' WHERE uuid=? AND waits<>''`, uuid); err != nil {
		return fmt.Errorf("keep %s paused: %w", uuid, err)
	}
	return nil
}

// inHouse runs f in a transaction that waits for those of other processes.
func (s *Store) inHouse(ctx context.Context, f func(tx *sql.Tx) error) error {
	if _, err := s.houseDB.file.Check(ctx); err != nil {
		return err
	}
	return s.houseDB.file.Write(func(h *database.Handles) error {
		return database.Retry(ctx, func() error {
			tx, err := h.Begin(ctx)
			if err != nil {
				return err
			}
			if err := f(tx); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return tx.Commit()
		})
	})
}

// exec changes house.db by one statement.
func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	return s.inHouse(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
}

// settled is what was known of a run before it was settled.
type settled struct{ user, day, waits string }

// settleDay counts what a run took since it was last settled for the day that is
// noted with it, and notes another one for what it takes from now on; "" leaves
// the day as it is. The run holds nothing, and waits for nothing, after that.
func settleDay(ctx context.Context, tx *sql.Tx, r DayRun, taken Amount, day string) (was settled, err error) {
	known := r.Settled
	was = settled{user: r.User, day: day}
	err = tx.QueryRowContext(ctx, `SELECT user, day, waits, turns, tokens, cost_micro_usd, active_ms FROM day_runs WHERE uuid=?`, r.UUID).
		Scan(&was.user, &was.day, &was.waits, &known.Turns, &known.Tokens, &known.MicroUSD, &known.MS)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
		if day == "" {
			return was, nil // it was never granted anything
		}
	}
	if err != nil {
		return was, err
	}
	if d := taken.since(known); d != (Amount{}) {
		if _, err = tx.ExecContext(ctx, `INSERT INTO day_budgets (day, user, turns, tokens, cost_micro_usd, active_ms) VALUES (?,?,?,?,?,?)
			ON CONFLICT(day, user) DO UPDATE SET turns=day_budgets.turns+excluded.turns, tokens=day_budgets.tokens+excluded.tokens,
			cost_micro_usd=day_budgets.cost_micro_usd+excluded.cost_micro_usd, active_ms=day_budgets.active_ms+excluded.active_ms`,
			was.day, was.user, d.Turns, d.Tokens, d.MicroUSD, d.MS); err != nil {
			return was, err
		}
		known = known.plus(d)
	}
	if day == "" {
		day = was.day
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO day_runs (uuid, user, day, turns, tokens, cost_micro_usd, active_ms,
		held_turns, held_tokens, held_cost_micro_usd, held_active_ms, waits) VALUES (?,?,?,?,?,?,?,0,0,0,0,'')
		ON CONFLICT(uuid) DO UPDATE SET day=excluded.day, turns=excluded.turns, tokens=excluded.tokens, cost_micro_usd=excluded.cost_micro_usd,
		active_ms=excluded.active_ms, held_turns=0, held_tokens=0, held_cost_micro_usd=0, held_active_ms=0, waits=''`,
		r.UUID, was.user, day, known.Turns, known.Tokens, known.MicroUSD, known.MS)
	return was, err
}

// room is how much of what a run wants the limits of a day leave, or the one that
// leaves less than it needs.
func room(ctx context.Context, tx *sql.Tx, user string, l DayLimits, needs, wants Amount, now time.Time) (most Amount, refused *DayError, err error) {
	most = wants
	for i, scope := range l.scopes() {
		if scope.limit == (Amount{}) {
			continue
		}
		spent, held, err := daySums(ctx, tx, DayOf(now), user, i > 0)
		if err != nil {
			return Amount{}, nil, err
		}
		taken, keeps, need, part := spent.Parts(), held.Parts(), needs.Parts(), most.Parts()
		for k, limit := range scope.limit.Parts() {
			if *limit <= 0 {
				continue
			}
			left := *limit - *taken[k] - *keeps[k]
			if left < max(*need[k], 1) {
				e := &DayError{Key: scope.section + "." + amountKeys[k], Limit: shown(k, *limit), Taken: shown(k, *taken[k]),
					Until: now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)}
				if *keeps[k] > 0 {
					e.Held = shown(k, *keeps[k])
				}
				if left > 0 && *need[k] > 1 {
					e.Needs = shown(k, *need[k])
				}
				return Amount{}, e, nil
			}
			*part[k] = min(*part[k], left)
		}
	}
	return most, nil, nil
}

// daySums are what was taken on a day and what runs hold for it, of a user or of
// all.
func daySums(ctx context.Context, tx *sql.Tx, day, user string, all bool) (spent, held Amount, err error) {
	one := ` AND user=?`
	args := []any{day, user}
	if all {
		one, args = ``, args[:1]
	}
	sum := func(into *Amount, query string) error {
		p := into.Parts()
		return tx.QueryRowContext(ctx, query+one, args...).Scan(p[0], p[1], p[2], p[3])
	}
	err = errors.Join(
		sum(&spent, `SELECT coalesce(sum(turns),0), coalesce(sum(tokens),0), coalesce(sum(cost_micro_usd),0), coalesce(sum(active_ms),0) FROM day_budgets WHERE day=?`),
		sum(&held, `SELECT coalesce(sum(held_turns),0), coalesce(sum(held_tokens),0), coalesce(sum(held_cost_micro_usd),0), coalesce(sum(held_active_ms),0) FROM day_runs WHERE day=?`))
	return spent, held, err
}

// DayUse is how much of one limit of a day is taken.
type DayUse struct {
	Key          string // the setting
	User         string // whose limit it is, "" for that of all
	Taken, Limit string // as people read them
}

// NearLimits are the limits of the day of a time of which at least a share is taken, the house's own
// first. What runs hold counts as not taken.
func (d *HouseDB) NearLimits(ctx context.Context, l DayLimits, share float64, now time.Time) (near []DayUse, err error) {
	add := func(key, user string, limit, taken Amount) {
		of := taken.Parts()
		for k, most := range limit.Parts() {
			if *most > 0 && float64(*of[k]) >= share*float64(*most) {
				near = append(near, DayUse{Key: key + "." + amountKeys[k], User: user, Taken: shown(k, *of[k]), Limit: shown(k, *most)})
			}
		}
	}
	type use struct {
		user  string
		taken Amount
	}
	users, err := list(ctx, d, func(rows *sql.Rows) (u use, err error) {
		p := u.taken.Parts()
		return u, rows.Scan(&u.user, p[0], p[1], p[2], p[3])
	}, `SELECT user, turns, tokens, cost_micro_usd, active_ms FROM day_budgets WHERE day=? ORDER BY user`, DayOf(now))
	if err != nil {
		return nil, fmt.Errorf("read what the day took: %w", err)
	}
	all, scopes := Amount{}, l.scopes()
	for _, u := range users {
		all = all.plus(u.taken)
	}
	add(scopes[1].section, "", scopes[1].limit, all)
	for _, u := range users {
		add(scopes[0].section, u.user, scopes[0].limit, u.taken)
	}
	return near, nil
}

// NearLimits is HouseDB.NearLimits.
func (s *Store) NearLimits(ctx context.Context, l DayLimits, share float64, now time.Time) ([]DayUse, error) {
	return s.houseDB.NearLimits(ctx, l, share, now)
}

func lastKept(now time.Time) string { return DayOf(now.AddDate(0, 0, -keepDays)) }

// forgetRuns removes what is known of runs that ended long ago. One that is
// paused keeps what was settled of it, however long that lasts. What is left of them,
// another day removes.
func (s *Store) forgetRuns(ctx context.Context) {
	old, _ := list(ctx, s.houseDB, database.Text, `SELECT uuid FROM day_runs WHERE day<?`, lastKept(s.Now()))
	for _, uuid := range old {
		if v, verr := s.View(uuid); !errors.Is(verr, ErrNotFound) && (verr != nil || !v.Status().Final()) {
			continue
		}
		_ = s.exec(ctx, `DELETE FROM day_runs WHERE uuid=?`, uuid)
	}
}
