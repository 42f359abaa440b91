package github

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// call is one thing that is asked of one repository.
type call struct {
	rest.Call
	client *github.Client
	lost   func() // called where the App's installation is gone; may be nil
}

// asking begins a call; repo is "" for the server itself.
func asking(c *github.Client, repo string, what *i18n.Error) *call {
	return &call{Call: rest.Call{Server: rest.Server{Name: "GitHub", Setting: "github"}, Repo: repo, What: what}, client: c}
}

// at begins a call to a repository.
func (f *Forge) at(ctx context.Context, r forge.Repo, what *i18n.Error) (*call, error) {
	d := asking(nil, r.String(), what)
	if !rest.IsRepo(r) || strings.Contains(r.Owner, "/") {
		return nil, d.Unknown()
	}
	var err error
	if d.client, err = f.access.client(ctx, r.Owner, r.Name); err != nil {
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

// What all members make requests of, by short names.
var path, query, stamp = rest.Path, rest.Query, rest.Stamp

func below(r forge.Repo, parts ...any) string {
	return path(append([]any{"repos", r.Owner, r.Name}, parts...)...)
}

// get reads; the answer is decoded into v.
func (d *call) get(ctx context.Context, path string, q url.Values, v any) (*github.Response, error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return d.send(ctx, http.MethodGet, path, nil, v)
}

// send writes once; v may be nil.
func (d *call) send(ctx context.Context, method, path string, body, v any) (*github.Response, error) {
	req, err := d.client.NewRequest(ctx, method, path, body)
	if err != nil {
		return nil, d.explain(ctx, err)
	}
	resp, err := d.client.Do(req, v)
	if err != nil {
		return resp, d.explain(ctx, err)
	}
	return resp, nil
}

// eachPage reads a list page by page. What leaves a list between two pages moves
// the rest up by one, so this is for lists that hardly ever shrink.
func eachPage[T any](ctx context.Context, d *call, path string, q url.Values, use func(*T)) error {
	for n := 1; n <= rest.MostPages; {
		var v T
		resp, err := d.get(ctx, path, rest.Page(q, n), &v)
		if err != nil {
			return err
		}
		use(&v)
		if n = resp.NextPage; n == 0 {
			return nil
		}
	}
	return nil
}

func pages[T any](ctx context.Context, d *call, path string, q url.Values) ([]*T, error) {
	var all []*T
	err := eachPage(ctx, d, path, q, func(p *[]*T) { all = append(all, rest.Present(*p)...) })
	return all, err
}

// backward reads a list that grows at its end from there, page by page, until
// use returns false; within a page the order stays. Nothing is lost where
// something is taken out meanwhile: what moves up goes where is read next. It
// returns how long the list is.
func backward[T any](ctx context.Context, d *call, path string, q url.Values, use func([]*T) bool) (length int, err error) {
	var first []*T
	resp, err := d.get(ctx, path, rest.Page(q, 1), &first)
	if err != nil {
		return 0, err
	}
	switch {
	case resp.LastPage <= 1 && !further(resp):
		use(rest.Present(first))
		return len(first), nil
	case resp.LastPage <= 1: // a server that does not tell where the end is
		all, err := pages[T](ctx, d, path, q)
		if err == nil {
			use(all)
		}
		return len(all), err
	}
	more := true
	for n := min(resp.LastPage, rest.MostPages); n >= 1 && more; n-- {
		var v []*T
		if _, err := d.get(ctx, path, rest.Page(q, n), &v); err != nil {
			return 0, err
		}
		if length == 0 {
			// What is added meanwhile comes after: it is read with the next look.
			length = (n-1)*rest.PerPage + len(v)
		}
		more = use(rest.Present(v))
	}
	return length, nil
}

// further reports whether a list goes on, by a page's number or a cursor.
func further(r *github.Response) bool {
	return r.NextPage != 0 || r.NextPageToken != "" || r.After != ""
}

// since reads a list as rest.Since does.
func since[T any](ctx context.Context, d *call, path string, q url.Values, from time.Time, most int, id func(*T) int64, at func(*T) time.Time) ([]*T, error) {
	return rest.Since(from, most, id, at, func(from time.Time, n int) (v []*T, more bool, err error) {
		q := rest.Page(q, n)
		if !from.IsZero() {
			q.Set("since", stamp(from))
		}
		q.Set("sort", "updated")
		q.Set("direction", "asc")
		resp, err := d.get(ctx, path, q, &v)
		return v, err == nil && further(resp), err
	})
}

// reversed calls f with the elements from the last on until it returns false.
func reversed[T any](all []T, f func(T) bool) bool {
	for _, e := range slices.Backward(all) {
		if !f(e) {
			return false
		}
	}
	return true
}
