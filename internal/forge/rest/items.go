package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Repositories is forge.Tracker's: matching lists what a pattern means, and unseen is the key
// of the text about the names that cannot be seen. A pattern that fails keeps none of the others
// back; the errors are joined, that of the names which cannot be seen last.
func Repositories(ctx context.Context, patterns []string, unseen string, matching func(context.Context, forge.Repo) ([]forge.Repository, error)) ([]forge.Repository, error) {
	var found []forge.Repository
	var names []string
	var errs []error
	seen := map[string]bool{}
	for _, p := range patterns {
		r, ok := forge.ParseRepo(p)
		if !ok {
			names = append(names, p)
			continue
		}
		all, err := matching(ctx, r)
		if forge.Is(err, forge.NotFound) {
			names = append(names, p)
			continue
		}
		if forge.Is(err, forge.RateLimited) || forge.Is(err, forge.Unauthorized) || ctx.Err() != nil {
			return found, errors.Join(append([]error{err}, errs...)...) // the others are not to be asked
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, r := range all {
			if key := strings.ToLower(r.String()); !seen[key] {
				seen[key] = true
				found = append(found, r)
			}
		}
	}
	if names != nil {
		errs = append(errs, &forge.Error{Kind: forge.NotFound, Status: http.StatusNotFound, Err: i18n.E(unseen, strings.Join(names, ", "))})
	}
	if len(errs) == 1 {
		return found, errs[0]
	}
	return found, errors.Join(errs...)
}

// Bearing are those of items that are open and bear a trigger, each once, the least recently
// updated first. Paging shows how an item was; one may have been closed, or lost its label, since.
func Bearing(items []forge.Item, t forge.Trigger) []forge.Item {
	seen := map[task.Key]bool{}
	items = slices.DeleteFunc(items, func(i forge.Item) bool {
		bears := t.Label != "" && i.Has(t.Label) || t.Assignee.Login != "" && i.AssignedTo(t.Assignee)
		if !i.Open || !bears || seen[i.Key] {
			return true
		}
		seen[i.Key] = true
		return false
	})
	slices.SortStableFunc(items, func(a, b forge.Item) int { return a.Updated.Compare(b.Updated) })
	return items
}

// Act is that a trigger was put on an item, or taken away.
type Act struct {
	By    forge.Person
	At    time.Time
	Event string
	On    bool
}

// Asked is forge.Tracker's, by the last act about each trigger, nil for none: the later one counts.
func Asked(last ...*Act) (forge.Asked, error) {
	var on, off *Act
	for _, a := range last {
		switch {
		case a == nil:
		case a.On && (on == nil || a.At.After(on.At)):
			on = a
		case !a.On && (off == nil || a.At.After(off.At)):
			off = a
		}
	}
	switch {
	case on != nil:
		return forge.Asked{By: on.By, At: on.At, Event: on.Event}, nil
	case off != nil:
		return forge.Asked{}, &forge.TriggerRemoved{By: off.By, At: off.At}
	}
	return forge.Asked{}, forge.ErrNotAsked
}

// Meant reports whether an account is that of a trigger: by its number, or, where that names none, by
// its name.
func Meant(account, trigger forge.Person) bool {
	if trigger.ID != 0 {
		return account.ID == trigger.ID
	}
	return trigger.Login != "" && strings.EqualFold(account.Login, trigger.Login)
}

// Self is our own account, which is asked for once: what was answered stays.
type Self struct{ known atomic.Pointer[forge.Person] }

// Is returns our account, as ask tells it.
func (s *Self) Is(ctx context.Context, ask func(context.Context) (forge.Person, error)) (forge.Person, error) {
	if known := s.known.Load(); known != nil {
		return *known, nil
	}
	p, err := ask(ctx)
	if err != nil {
		return forge.Person{}, err
	}
	s.known.Store(&p)
	return p, nil
}
