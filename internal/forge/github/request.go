package github

import (
	"context"
	"maps"
	"net/url"
	"strings"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// call is one thing that is asked of one repository.
type call struct {
	rest.Call
	self forge.Person // of a call that talk began
	lost func()       // called where the App's installation is gone; may be nil
}

// asking begins a call; repo is "" for the server itself.
func asking(c *rest.API, repo string, what *i18n.Error) *call {
	d := &call{Call: rest.Call{Server: rest.Server{Name: "GitHub", Setting: "github"}, Repo: repo, What: what, API: c}}
	d.Refused = d.refused
	return d
}

// at begins a call to a repository.
func (f *Forge) at(ctx context.Context, r forge.Repo, what *i18n.Error) (*call, error) {
	d := asking(nil, r.String(), what)
	if !rest.IsRepo(r) || strings.Contains(r.Owner, "/") {
		return nil, d.Unknown()
	}
	var err error
	if d.API, err = f.access.client(ctx, r.Owner, r.Name); err != nil {
		return nil, err
	}
	if a, ok := f.access.(*appAccess); ok {
		d.lost = func() { a.forget(r.Owner) }
	}
	return d, nil
}

// on begins a call to an item, whose number it returns.
func (f *Forge) on(ctx context.Context, k task.Key, what string) (d *call, number int, err error) {
	r := forge.RepoOf(k)
	if number, err = asking(nil, r.String(), i18n.E(what, k.ID)).Number(k.ID); err != nil {
		return nil, 0, err
	}
	d, err = f.at(ctx, r, i18n.E(what, number))
	return d, number, err
}

// talk begins a call about what is said on an item.
func (f *Forge) talk(ctx context.Context, k task.Key, what string) (d *call, number int, err error) {
	if d, number, err = f.on(ctx, k, what); err == nil {
		d.self, err = f.Self(ctx)
	}
	return d, number, err
}

// What all members make requests of, by short names.
var path, below, query, stamp = rest.Path, rest.Below, rest.Query, rest.Stamp

// since reads a list as rest.Since does.
func since[T any](ctx context.Context, d *call, path string, q url.Values, from time.Time, most int, id func(*T) int64, at func(*T) time.Time) ([]*T, error) {
	order := query("sort", "updated", "direction", "asc")
	maps.Copy(order, q)
	return rest.Since(ctx, d, path, order, "since", from, most, id, at)
}
