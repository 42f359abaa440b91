package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Call says that something happened in a repository, as a webhook does. It is believed only
// so far that a look there is due: what is done follows from what the forge says then.
type Call struct {
	Repo forge.Repo `json:"repository"`
	// Changed are the items that are other than they were; without any there is only
	// something said.
	Changed []Changed `json:"changed,omitempty"`
}

// Changed is an item that is other than it was.
type Changed struct {
	Type string `json:"type,omitempty"` // of its task; "" where the number tells
	ID   string `json:"id"`             // its number
}

// tells reports whether a call tells of an item.
func (c Call) tells(k task.Key) bool {
	return slices.ContainsFunc(c.Changed, func(i Changed) bool { return i.ID == k.ID && (i.Type == "" || i.Type == k.Item().Type) })
}

// call is a Call that somebody waits for.
type call struct {
	Call
	done chan error // gets one
}

// Call has a watched forge looked at where a call says, as soon as what is being looked at
// is done, and returns then: with an error where it could not be looked at, which a later
// call may mend. Calls that come meanwhile share a look. Of repositories that are not watched, and
// have no run, nothing is looked at.
func (i *Intake) Call(ctx context.Context, w *Watch, c Call) error {
	waiting := &call{c, make(chan error, 1)}
	w.mu.Lock()
	w.calls = append(w.calls, waiting)
	w.mu.Unlock()
	w.made(&w.rings).ring()
	select {
	case err := <-waiting.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// made is a bell of a watch.
func (w *Watch) made(b *bell) bell {
	w.mu.Lock()
	defer w.mu.Unlock()
	if *b == nil {
		*b = newBell()
	}
	return *b
}

// answer looks where it is called to at a forge, at each repository once.
func (i *Intake) answer(ctx context.Context, w *Watch) {
	w.mu.Lock()
	all := w.calls
	w.calls = nil
	w.mu.Unlock()
	repos := map[forge.Repo][]*call{}
	for _, c := range all {
		repos[lower(c.Repo)] = append(repos[lower(c.Repo)], c)
	}
	for _, c := range all { // as they came
		calls := repos[lower(c.Repo)]
		delete(repos, lower(c.Repo))
		if len(calls) == 0 {
			continue
		}
		one := Call{Repo: c.Repo}
		for _, c := range calls {
			one.Changed = append(one.Changed, c.Changed...)
		}
		err := i.visit(ctx, w, one, false)
		for _, c := range calls {
			c.done <- err
		}
	}
}

// errHeld says that a forge wants to be left alone for now.
var errHeld = errors.New("the forge asked for patience, or could not be reached")

// visit looks where a call says.
func (i *Intake) visit(ctx context.Context, w *Watch, c Call, again bool) error {
	if i.Now().Before(w.heldUntil()) {
		return errHeld
	}
	r, watched, err := w.find(ctx, c.Repo, i)
	if err != nil {
		w.holdOff(err, i.Now())
		return err
	}
	all, err := i.live(ctx, w)
	if err != nil {
		return err
	}
	runs := all[lower(c.Repo)]
	if !watched && len(runs) == 0 {
		return nil
	}
	w.heard(r, c, i.Now(), again)
	runs = slices.DeleteFunc(slices.Clone(runs), func(r contextstore.Row) bool { return !slices.ContainsFunc(i.items(r), c.tells) })
	_, err = i.repository(ctx, w, r, runs, watched && len(c.Changed) > 0)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case atLarge(err), passing(err):
		w.holdOff(err, i.Now())
		return err
	}
	i.Log.Warn("Cannot look at "+r.String()+", where a webhook called: "+err.Error(), "repository", r.String())
	return nil // the next look at all finds it, once somebody has mended that
}

// Look looks once at Only of a watch, at what was said there and whether it asks for work, and
// returns what keeps it from being looked at.
func (i *Intake) Look(ctx context.Context, w *Watch) error {
	repos, err := w.repositories(ctx, i.Now(), i.Log)
	if err != nil {
		return err
	}
	live, err := i.live(ctx, w)
	if err != nil {
		return err
	}
	for _, r := range repos {
		if _, err := i.repository(ctx, w, r.Repo, w.unsure(live[lower(r.Repo)], true), true); err != nil {
			return err
		}
	}
	i.label(ctx, w, repos)
	return nil
}

// find is a repository as it is watched. One that may be new is looked for.
func (w *Watch) find(ctx context.Context, name forge.Repo, i *Intake) (r forge.Repo, watched bool, err error) {
	for range 2 {
		repos, err := w.repositories(ctx, i.Now(), i.Log)
		if err != nil {
			return name, false, err
		}
		for _, r := range repos {
			if lower(r.Repo) == lower(name) {
				return r.Repo, true, nil
			}
		}
		if !w.named(name) || i.Now().Sub(w.sought) < againList {
			break
		}
		w.sought, w.listed = i.Now(), time.Time{}
	}
	return name, false, nil
}

// named reports whether one of the patterns may mean a repository.
func (w *Watch) named(r forge.Repo) bool {
	name := lower(r).String()
	return slices.ContainsFunc(w.Patterns, func(p string) bool {
		p = strings.ToLower(p)
		owner, all := strings.CutSuffix(p, "*")
		return p == name || all && strings.HasPrefix(name, owner)
	})
}

// name notes the names of what is watched.
func (w *Watch) name() {
	known := namesOf(w.repos)
	maps.DeleteFunc(w.quiet, func(r forge.Repo, _ quiet) bool { return !known[r] })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = known
}

// Watches reports whether work may be taken from a repository, as far as is known without asking.
// It is safe for concurrent use, as Own is.
func (w *Watch) Watches(r forge.Repo) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[lower(r)] || w.named(r)
}

// Own reports whether a person is the account that the forge is spoken to as; false as
// long as that is not known.
func (w *Watch) Own(p forge.Person) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.account.ID != 0 {
		return p.ID == w.account.ID
	}
	return w.account.Login != "" && strings.EqualFold(p.Login, w.account.Login)
}

// hooksFactor is how many times as long the time between two looks is where webhooks come.
const hooksFactor = 4

// hooked is what is known of a repository whose webhooks come.
type hooked struct {
	heard  time.Time    // when one last came
	looked [2]time.Time // when it was last looked at: at comments, at all
	again  *Call        // is looked at once more
}

// heard notes that a webhook came. Forges tell of a change before all their lists show it: what
// they tell of is looked at again with the next look at comments.
func (w *Watch) heard(r forge.Repo, c Call, now time.Time, again bool) {
	if w.hooked == nil {
		w.hooked = map[forge.Repo]*hooked{}
	}
	h := w.hooked[lower(r)]
	if h == nil {
		h = &hooked{}
		w.hooked[lower(r)] = h
	}
	if again {
		return
	}
	if h.again != nil {
		c.Changed = append(c.Changed, h.again.Changed...)
	}
	h.heard, h.again = now, &c
}

// revisit looks once more at what webhooks told of.
func (i *Intake) revisit(ctx context.Context, w *Watch) {
	for r, h := range w.hooked {
		c := h.again
		if c == nil || ctx.Err() != nil {
			continue
		}
		h.again = nil
		if err := i.visit(ctx, w, *c, true); err != nil && ctx.Err() == nil {
			h.again = c
			if !errors.Is(err, errHeld) {
				i.Log.Warn("Cannot look once more at "+r.String()+": "+i18n.English.Error(err), "repository", r.String())
			}
		}
	}
}

// leaves reports whether a look at a repository is left out this time: where a webhook
// came within hooksFactor of its intervals only every so often is looked for what none
// came for.
func (i *Intake) leaves(w *Watch, r forge.Repo, all bool) bool {
	h := w.hooked[lower(r)]
	if h == nil {
		return false
	}
	rest, n := hooksFactor*i.CommentsEvery, 0
	if all {
		rest, n = hooksFactor*i.Interval, 1
	}
	now := i.Now()
	return now.Sub(h.heard) < rest && now.Sub(h.looked[n]) < rest
}

// lookedAt notes that a repository was looked at.
func (i *Intake) lookedAt(w *Watch, r forge.Repo, all bool) {
	if h := w.hooked[lower(r)]; h != nil {
		h.looked[0] = i.Now()
		if all {
			h.looked[1] = i.Now()
		}
	}
}
