package gitlab

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// call is one thing that is asked of one project.
type call struct {
	rest.Call
	// project is the beginning of the paths below the project, "" for the server itself.
	project string
	// forbidden is the advice where the role does not do; nil is that of most calls.
	forbidden *i18n.Error
}

// asking begins a call; repo is "" for the server itself.
func (f *Forge) asking(repo string, what *i18n.Error) *call {
	d := &call{Call: rest.Call{Server: rest.Server{Name: "GitLab", Setting: "gitlab"}, Repo: repo, What: what, API: f.api}}
	d.Refused = d.refused
	return d
}

// at begins a call to a project.
func (f *Forge) at(r forge.Repo, what *i18n.Error) (*call, error) {
	d := f.asking(r.String(), what)
	if !rest.IsRepo(r) || r.Owner == "" {
		return nil, d.Unknown()
	}
	d.project = path("projects", r)
	return d, nil
}

// The types of tasks, and where the items lie below a project: each kind is numbered on
// its own.
const (
	issue        = task.TypeIssue
	mergeRequest = task.TypeMerge
)

// on begins a call to an item, and returns where the item is.
func (f *Forge) on(k task.Key, what string) (d *call, at string, err error) {
	r := forge.RepoOf(k)
	d, err = f.at(r, i18n.E(what, k.Number()))
	if err != nil {
		return nil, "", err
	}
	n, err := d.Number(k.ID)
	if err != nil {
		return nil, "", err
	}
	if k.Type != issue && k.Type != mergeRequest {
		return nil, "", d.Unknown()
	}
	return d, d.below(k.Type+"s", n), nil
}

// What all members make requests of, by short names. GitLab takes what stands behind a dot for
// the form of an answer.
var query, stamp = rest.Query, rest.Stamp

func path(parts ...any) string { return strings.ReplaceAll(rest.Path(parts...), ".", "%2E") }

func (d *call) below(parts ...any) string {
	if len(parts) == 0 {
		return d.project
	}
	return d.project + "/" + path(parts...)
}

// Send sends what writes below a project that has another path by now to its number: the old path
// is good for reading only.
func (d *call) Send(ctx context.Context, method, at string, body, v any) (*rest.Answer, error) {
	a, err := d.Call.Send(ctx, method, at, body, v)
	tail, below := strings.CutPrefix(at, d.project+"/")
	if d.project == "" || !below || !said(err, http.StatusMethodNotAllowed, "moved projects") {
		return a, err
	}
	p, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	return d.Call.Send(ctx, method, path("projects", p.ID)+"/"+tail, body, v)
}

// send is Send for whom the answer does not matter.
func (d *call) send(ctx context.Context, method, at string, body, v any) error {
	_, err := d.Send(ctx, method, at, body, v)
	return err
}

// since reads a list of items as rest.Since does.
func since[T any](ctx context.Context, d *call, path string, q url.Values, from time.Time, most int, id func(*T) int64, at func(*T) time.Time) ([]*T, error) {
	order := query("order_by", "updated_at", "sort", "asc")
	maps.Copy(order, q)
	return rest.Since(ctx, d, path, order, "updated_after", from, most, id, at)
}

// when is a time of an answer, which may be null.
func when(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
