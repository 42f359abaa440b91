package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// Intake looks at the watched forges: for work that is asked for, for what people say of
// the work that goes on, and for work that is no longer wanted. It is run by one
// process at a time for a base directory; a second one would find everything
// begun already.
type Intake struct {
	Store         *contextstore.Store
	Watches       []*Watch
	Mailbox       *Mailbox
	Interval      time.Duration // between two looks for work
	CommentsEvery time.Duration // between two looks at the comments on runs
	Lang          i18n.Lang     // of what is posted
	Log           *slog.Logger
	Now           func() time.Time
	Wake          func() // there is something to claim or to deliver
	Stats         *Stats
	Approvals     *approval.Jobs // that comments decide about; nil for none
	Called        bool           // it looks when Round says so, and not at intervals of its own
}

// Round has each watched forge looked at, once it is not looked at any more.
func (i *Intake) Round() {
	for _, w := range i.Watches {
		w.made(&w.round).ring()
	}
}

// Run looks until ctx ends, at each forge by itself: one that hangs keeps no other waiting.
// Trouble with a forge is logged and tried again.
func (i *Intake) Run(ctx context.Context) {
	i.each(func(w *Watch) { i.watch(ctx, w) })
}

// watch looks at one forge until ctx ends.
func (i *Intake) watch(ctx context.Context, w *Watch) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.made(&w.rings):
			i.answer(ctx, w)
			continue
		case <-w.made(&w.round):
		case <-t.C:
		}
		i.revisit(ctx, w)
		i.look(ctx, w)
		if !i.Called {
			t.Reset(i.Every())
		}
	}
}

// Every is the time between two looks of any kind.
func (i *Intake) Every() time.Duration { return min(i.Interval, i.CommentsEvery) }

// each calls f for all watched forges, side by side, and waits for it.
func (i *Intake) each(f func(*Watch)) {
	var all sync.WaitGroup
	for _, w := range i.Watches {
		all.Go(func() { f(w) })
	}
	all.Wait()
}

// look looks once at a watched forge: at all of it where that is due, or only at what goes on
// behind it. A look for work that did not come about stays due; only one that
// did says that the forge was reached, as the other may have asked for nothing.
func (i *Intake) look(ctx context.Context, w *Watch) {
	began := i.Now()
	if began.Before(w.heldUntil()) {
		return
	}
	all := w.looked.IsZero() || began.Sub(w.looked) >= i.Interval
	err := i.Poll(ctx, w, all)
	if ctx.Err() != nil {
		return
	}
	if all && err == nil {
		w.looked = began
	}
	if all || err != nil {
		i.Stats.polled(w.Host.Source(), began, i.Now(), err)
	}
	if err != nil {
		i.Log.Warn("Cannot look for work at " + w.Host.Source() + ": " + err.Error())
	}
}

// PollAll looks once at every watched forge, with all also for new work, else only at the runs that go
// on and at what is asked for there. It returns what went wrong.
func (i *Intake) PollAll(ctx context.Context, all bool) error {
	var mu sync.Mutex
	var errs error
	i.each(func(w *Watch) {
		if !all && i.Now().Before(w.heldUntil()) {
			return
		}
		if err := i.Poll(ctx, w, all); ctx.Err() == nil { // who is told to end has no trouble
			mu.Lock()
			defer mu.Unlock()
			errs = errors.Join(errs, err)
		}
	})
	return errs
}

// inRow is how many repositories, or items of one, may fail one after the other
// before it is the forge that seems to be down.
const inRow = 3

// Poll looks once at a watched forge: with all, also for new work in every repository.
// It returns the first error that concerns the forge as a whole; what concerns
// one repository is logged. A round begins where the last one broke off.
func (i *Intake) Poll(ctx context.Context, w *Watch, all bool) error {
	repos, err := w.repositories(ctx, i.Now(), i.Log)
	if err != nil {
		w.holdOff(err, i.Now())
		return err
	}
	live, err := i.live(ctx, w)
	if err != nil {
		return err
	}
	i.clearMailbox(ctx, w)
	if all {
		w.due(live)
	}
	down, err := i.round(ctx, w, repos, live, all)
	switch {
	case err != nil:
		return err
	case down != nil:
		w.holdOff(down, i.Now())
		return down
	case all:
		i.label(ctx, w, repos)
	}
	return nil
}

// round looks at one repository after the other. down is why the forge seems to be
// down, err what ended the round at once.
func (i *Intake) round(ctx context.Context, w *Watch, watched []forge.Repository, live map[forge.Repo][]contextstore.Row, all bool) (down, err error) {
	repos, others := withOthers(watched, live)
	first := max(0, slices.IndexFunc(repos, func(r forge.Repository) bool { return lower(r.Repo) == w.next }))
	w.next = forge.Repo{}
	looked, row := 0, 0
	for n := range repos {
		r := repos[(first+n)%len(repos)].Repo
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		i.answer(ctx, w) // who calls does not wait for the end of the round
		runs := live[lower(r)]
		if !all && !running(runs) || w.failing.waits(r.String(), i.Now()) {
			continue
		}
		// One is looked at each time: that nothing comes may be because the forge is down.
		if must := all && n == len(repos)-1 && looked == 0; !must && i.leaves(w, r, all) {
			continue
		}
		looked++
		err := i.lookAt(ctx, w, r, runs, all, all && !others[lower(r)])
		if err == nil {
			w.failing.worked(r.String())
			i.lookedAt(w, r, all)
			row = 0
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if refusesAll(err) {
			w.next = lower(r)
			return err, nil
		}
		i.Log.Warn("Cannot look at "+r.String()+": "+err.Error(), "repository", r.String(), "next_try_in", w.backOff(r.String(), i.Now()))
		if !passing(err) && !atLarge(err) {
			continue
		}
		down = err
		if row++; row >= inRow {
			w.next = lower(repos[(first+n+1)%len(repos)].Repo)
			break
		}
	}
	if row < inRow && row < looked || row == 0 {
		return nil, nil
	}
	if row == looked { // not one of them answers: it is no fault of theirs
		w.failing = retries{}
	}
	return down, nil
}

// withOthers adds the repositories that only runs know: one that was renamed or
// given away while it is worked on, or left out of the settings, is answered for
// by its former name, but no work is begun there.
func withOthers(repos []forge.Repository, live map[forge.Repo][]contextstore.Row) (all []forge.Repository, others map[forge.Repo]bool) {
	known := namesOf(repos)
	all, others = slices.Clone(repos), map[forge.Repo]bool{}
	for name, runs := range live {
		if !known[name] {
			others[name] = true
			all = append(all, forge.Repository{Repo: forge.RepoOf(runs[0].Key)})
		}
	}
	slices.SortFunc(all[len(repos):], func(a, b forge.Repository) int { return strings.Compare(a.String(), b.String()) })
	return all, others
}

// unsure are those of a repository's runs whose items are to be read: people may want
// them no more, or have answered what they ask.
func (w *Watch) unsure(runs []contextstore.Row, all bool) (some []contextstore.Row) {
	for _, r := range runs {
		if r.Status == task.Running || all && (w.queued[r.UUID] || r.Status == task.AwaitingApproval) {
			some = append(some, r)
		}
	}
	return some
}

// repository looks at one repository: commands and comments before new work, so
// that a /stop is not overtaken. Without fresh no new work is looked for. Of the runs it
// is made sure that they are still wanted. done tells that nothing that was said or asked
// for is left for the next look.
func (i *Intake) repository(ctx context.Context, w *Watch, r forge.Repo, runs []contextstore.Row, fresh bool) (done bool, err error) {
	heard, err := i.comments(ctx, w, r)
	if err != nil {
		return false, err
	}
	if err := i.followMissed(ctx, w, r); err != nil {
		return false, err
	}
	var t trouble
	for _, run := range runs {
		var err error
		what := "Cannot tell whether a run is still wanted: "
		if run.Status == task.AwaitingApproval {
			what, err = "Cannot tell whether a question is answered: ", i.signed(ctx, w, run)
		} else {
			err = i.stopUnwanted(ctx, w, run)
		}
		if t.ends(err) {
			return false, err
		}
		if err != nil {
			i.Log.Warn(what+err.Error(), "uuid", run.UUID, "task", run.Key.String())
		}
	}
	if !fresh {
		return false, nil
	}
	items, err := w.triggered(ctx, r)
	if forge.Is(err, forge.Invalid) { // the others are there
		i.Log.Warn("Not all that may ask for work can be read: "+err.Error(), "repository", r.String())
	} else if err != nil {
		return false, err
	}
	done = heard && err == nil && len(items) == 0
	for _, it := range items {
		if w.failing.waits(it.Key.String(), i.Now()) || w.passes(it.Key.Item().Type, it.Key.ID) {
			continue
		}
		err := i.asked(ctx, w, it)
		if t.ends(err) {
			return false, err
		}
		if err != nil {
			i.Log.Warn("Cannot look into "+it.Key.String()+": "+err.Error(), "task", it.Key.String(), "next_try_in", w.backOff(it.Key.String(), i.Now()))
			continue
		}
		w.failing.worked(it.Key.String())
	}
	return done, nil
}

// triggered lists the items that ask for something. A pull request that asks for a review has
// the key of that.
func (w *Watch) triggered(ctx context.Context, r forge.Repo) ([]forge.Item, error) {
	items, err := w.Host.Triggered(ctx, r, w.trigger())
	if w.Host.Labels.Review == "" || err != nil && !forge.Is(err, forge.Invalid) {
		return items, err
	}
	pulls, perr := w.Host.Triggered(ctx, r, forge.Trigger{Label: w.Host.Labels.Review})
	for _, it := range pulls {
		if it.Pull != nil {
			it.Key = it.Key.Review()
			items = append(items, it)
		}
	}
	return items, cmp.Or(perr, err)
}

// trouble counts the items of a repository that fail in a row.
type trouble struct{ row int }

// ends reports whether an item's error keeps the others from being looked at.
func (t *trouble) ends(err error) bool {
	if err == nil || !passing(err) {
		t.row = 0
		return err != nil && atLarge(err)
	}
	t.row++
	return t.row >= inRow
}

// asked looks into an item that bears the trigger.
func (i *Intake) asked(ctx context.Context, w *Watch, it forge.Item) error {
	if last, ok, err := i.latest(ctx, it.Key); err != nil {
		return err
	} else if ok && !last.Status().Final() && last.Status() != task.Paused {
		return nil // in hand
	}
	asks, err := i.asks(ctx, w, it)
	if err != nil {
		return err
	}
	// The last one first; who may not ask takes nothing from who may.
	if len(asks) == 2 && asks[0].Before(asks[1]) {
		slices.Reverse(asks)
	}
	for _, a := range asks {
		if v, err := i.consider(ctx, w, candidate{it.Key, it, a}); v != Refused || err != nil {
			return err
		}
	}
	return nil
}

// asks are the acts that an item's label and its assignment come from.
func (i *Intake) asks(ctx context.Context, w *Watch, it forge.Item) (all []order.Act, err error) {
	for _, how := range []string{order.ByLabel, order.ByAssignment} {
		label, review := w.Label, it.Key.Type == task.TypeReview
		if review {
			label = w.Host.Labels.Review
		}
		t, on := forge.Trigger{Label: label}, it.Has(label)
		if how == order.ByAssignment {
			t, on = forge.Trigger{Assignee: w.self}, w.Assignment && !review && it.AssignedTo(w.self)
		}
		if !on {
			continue
		}
		who, err := w.Host.Asked(ctx, it.Key.Item(), t)
		if errors.Is(err, forge.ErrNotAsked) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, order.Act{By: who.By, At: who.At, Event: who.Event, How: how})
	}
	return all, nil
}

// atLarge reports whether an error is about more than the one item: about the
// forge as a whole, or the house.
func atLarge(err error) bool {
	return !errors.As(err, new(*unreadable)) && (!errors.As(err, new(*forge.Error)) || refusesAll(err))
}

// unreadable is the error of one context that cannot be read. It says nothing of
// others, and somebody may mend it.
type unreadable struct{ error }

func (u *unreadable) Unwrap() error { return u.error }

// latest is the newest run of a task, also where it goes on as that of a draft; its errors are
// of that task alone.
func (i *Intake) latest(ctx context.Context, k task.Key) (contextstore.View, bool, error) {
	v, ok, err := delivery.Newest(ctx, i.Store, k)
	if err != nil && ctx.Err() == nil {
		err = &unreadable{fmt.Errorf("the newest run of %s cannot be read: %w", k, err)}
	}
	return v, ok, err
}

// refusesAll reports whether the forge as a whole takes no calls now.
func refusesAll(err error) bool {
	return forge.Is(err, forge.RateLimited) || forge.Is(err, forge.Unauthorized)
}

// passing reports a temporary error, perhaps of this one item: several in a row mean that
// the forge is down.
func passing(err error) bool {
	var e *forge.Error
	return errors.As(err, &e) && e.Kind.Passing() && e.Kind != forge.RateLimited
}

// live lists the runs of a watched forge that have not ended, by repository.
func (i *Intake) live(ctx context.Context, w *Watch) (map[forge.Repo][]contextstore.Row, error) {
	all := map[forge.Repo][]contextstore.Row{}
	err := i.Store.Live(ctx, func(r contextstore.Row) error {
		if w.serves(i.Store, r.Key.Source, r.UUID) {
			repo := lower(forge.RepoOf(r.Key))
			all[repo] = append(all[repo], r)
		}
		return nil
	})
	return all, err
}

func running(rows []contextstore.Row) bool {
	return slices.ContainsFunc(rows, func(r contextstore.Row) bool { return r.Status == task.Running })
}

// lower is a repository as it is compared: its names are the same in any case.
func lower(r forge.Repo) forge.Repo {
	return forge.Repo{Owner: strings.ToLower(r.Owner), Name: strings.ToLower(r.Name)}
}

// namesOf are the names of repositories as they are compared.
func namesOf(repos []forge.Repository) map[forge.Repo]bool {
	names := make(map[forge.Repo]bool, len(repos))
	for _, r := range repos {
		names[lower(r.Repo)] = true
	}
	return names
}

// mostQueued bounds the queued runs that a look for work asks the forge about.
const mostQueued = 20

// due chooses the queued runs whose items the next look reads, in turn: those
// that are worked on are looked at each time, what waits is only to be gone by
// its turn, and what is paused is for people to stop.
func (w *Watch) due(live map[forge.Repo][]contextstore.Row) {
	var queued []string
	for _, rows := range live {
		for _, r := range rows {
			if r.Status == task.Queued {
				queued = append(queued, r.UUID)
			}
		}
	}
	slices.Sort(queued)
	n, found := slices.BinarySearch(queued, w.lastQueued)
	if found {
		n++
	}
	w.queued = map[string]bool{}
	for range min(len(queued), mostQueued) {
		w.lastQueued = queued[n%len(queued)]
		w.queued[w.lastQueued] = true
		n++
	}
}

// items are where a run is spoken of; see order.Order.Items.
func (i *Intake) items(r contextstore.Row) []task.Key {
	if !r.Key.Proposed() {
		return []task.Key{r.Key}
	}
	m, err := i.Store.Metadata(r.UUID)
	if err != nil {
		return []task.Key{r.Key} // it moved on meanwhile
	}
	o, _ := order.Parse(m) // one that cannot be read names no other
	return o.Items(r.Key)
}
