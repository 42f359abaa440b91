package gitea

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// call is one thing that is asked of one repository.
type call struct {
	rest.Call
	self forge.Person // of a call that talk began
}

// asking begins a call; repo is "" for the server itself.
func (f *Forge) asking(repo string, what *i18n.Error) *call {
	d := &call{Call: rest.Call{Server: rest.Server{Name: "Gitea", Setting: "gitea"}, Repo: repo, What: what, API: f.api}}
	d.Refused = d.refused
	return d
}

// at begins a call to a repository.
func (f *Forge) at(r forge.Repo, what *i18n.Error) (*call, error) {
	d := f.asking(r.String(), what)
	if !rest.IsRepo(r) || strings.Contains(r.Owner, "/") {
		return nil, d.Unknown()
	}
	return d, nil
}

// on begins a call to an item, whose number it returns.
func (f *Forge) on(k task.Key, what string) (d *call, number int, err error) {
	r := forge.RepoOf(k)
	if d, err = f.at(r, i18n.E(what, k.ID)); err == nil {
		number, err = d.Number(k.ID)
	}
	return d, number, err
}

// talk begins a call about what is said on an item.
func (f *Forge) talk(ctx context.Context, k task.Key, what string) (d *call, number int, err error) {
	if d, number, err = f.on(k, what); err == nil {
		d.self, err = f.Self(ctx)
	}
	return d, number, err
}

// What all members make requests of, by short names.
var path, below, query, stamp = rest.Path, rest.Below, rest.Query, rest.Stamp

// Send sends what writes to a repository that has another name by now there: the server has
// written nothing yet, and does not say that it is to be sent again as it was.
func (d *call) Send(ctx context.Context, method, at string, body, v any) (*rest.Answer, error) {
	a, err := d.Call.Send(ctx, method, at, body, v)
	if a != nil && err != nil {
		if to, lerr := a.Location(); lerr == nil {
			return d.Call.Send(ctx, method, to.String(), body, v)
		}
	}
	return a, err
}

// refused explains an answer that is an error.
func (d *call) refused(a *rest.Answer) error {
	status := a.StatusCode
	var e struct {
		Message string
		Errors  []string
	}
	if json.Unmarshal(a.Text, &e) != nil || e.Message == "" {
		e.Message = http.StatusText(status) // a page for people, of what stands before the server
	}
	permission := i18n.E("gitea.advice_forbidden")
	if strings.Contains(e.Message, "scope") {
		permission = i18n.E("gitea.advice_scope")
	}
	if status == http.StatusLocked { // the repository is archived
		status = http.StatusForbidden
	}
	said := d.Answered(status, strings.Join(append([]string{e.Message}, e.Errors...), "; "), i18n.E("gitea.advice_unauthorized"), permission, nil)
	said.Status = a.StatusCode
	return said
}

// perPage is what the server gives at most unless it is set otherwise.
const perPage = 50

// paged is a query for a page.
func paged(q url.Values, n int) url.Values {
	p := query("page", strconv.Itoa(n), "limit", strconv.Itoa(perPage))
	for k, v := range q {
		p[k] = v
	}
	return p
}

// eachPage reads a list page by page; use returns how many elements a page had. The server
// may give fewer on a page than asked for, and says how many there are. What leaves a list
// meanwhile moves the rest up: then it is an error of kind Conflict.
func eachPage[T any](ctx context.Context, d *call, path string, q url.Values, use func(*T) int) error {
	seen, length := 0, 0
	for n := 1; n <= rest.MostPages; n++ {
		var v T
		a, err := d.Get(ctx, path, paged(q, n), &v)
		if err != nil {
			return err
		}
		got := use(&v)
		seen += got
		total, err := strconv.Atoi(a.Header.Get("X-Total-Count"))
		if err == nil && total < length {
			return d.Failed(forge.Conflict, 0, i18n.E("gitea.said_shorter"), i18n.E("rest.advice_conflict"), nil)
		}
		if length = total; got == 0 || err == nil && seen >= total {
			return nil
		}
	}
	return nil
}

// pages reads a whole list, anew where something was taken out of it meanwhile.
func pages[T any](ctx context.Context, d *call, path string, q url.Values) ([]*T, error) {
	for try := 1; ; try++ {
		var all []*T
		err := eachPage(ctx, d, path, q, func(p *[]*T) int {
			got := len(*p)
			all = append(all, rest.Present(*p)...)
			return got
		})
		if !forge.Is(err, forge.Conflict) || try == rest.Tries {
			return all, err
		}
	}
}

// absent turns the error of an item into one of kind NotFound where the item is not there:
// Gitea answers 500 to some questions about such.
func (d *call) absent(ctx context.Context, r forge.Repo, n int, err error) error {
	if !forge.Is(err, forge.Unavailable) || ctx.Err() != nil {
		return err
	}
	if _, missing := d.Get(ctx, below(r, "issues", n), nil, nil); forge.Is(missing, forge.NotFound) {
		return missing
	}
	return err
}
