package gitlab

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// call is one thing that is asked of one project.
type call struct {
	rest.Call
	f *Forge
	// project is the beginning of the paths below the project, "" for the server itself.
	project string
	// forbidden is the advice where the role does not do; nil is that of most calls.
	forbidden *i18n.Error
}

// asking begins a call; repo is "" for the server itself.
func (f *Forge) asking(repo string, what *i18n.Error) *call {
	return &call{Call: rest.Call{Server: rest.Server{Name: "GitLab", Setting: "gitlab"}, Repo: repo, What: what}, f: f}
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

// get reads; the answer is decoded into v, or copied where v is a *bytes.Buffer.
func (d *call) get(ctx context.Context, path string, q url.Values, v any) (*gitlab.Response, error) {
	return d.ask(ctx, http.MethodGet, path, q, nil, v)
}

// send writes once; v may be nil. What is below a project that has another path by now
// is sent to its number: the old path is good for reading only.
func (d *call) send(ctx context.Context, method, at string, body, v any) error {
	_, err := d.ask(ctx, method, at, nil, body, v)
	tail, below := strings.CutPrefix(at, d.project+"/")
	if d.project == "" || !below || !said(err, http.StatusMethodNotAllowed, "moved projects") {
		return err
	}
	var p gitlab.Project
	if _, err := d.get(ctx, d.project, nil, &p); err != nil {
		return err
	}
	_, err = d.ask(ctx, method, path("projects", p.ID)+"/"+tail, nil, body, v)
	return err
}

func (d *call) ask(ctx context.Context, method, path string, q url.Values, body, v any) (*gitlab.Response, error) {
	req, err := d.f.client.NewRequest(method, path, body, []gitlab.RequestOptionFunc{gitlab.WithContext(ctx)})
	if err != nil {
		return nil, d.Explain(ctx, err)
	}
	req.URL.RawQuery = q.Encode()
	raw, plain := v.(*bytes.Buffer)
	if !plain {
		raw = &bytes.Buffer{}
	}
	resp, err := d.f.client.Do(req, raw)
	if err != nil {
		return resp, d.explain(ctx, resp, err)
	}
	if v != nil && !plain {
		if err := decode(raw.Bytes(), v); err != nil {
			return resp, d.Explain(ctx, err)
		}
	}
	return resp, nil
}

// decode reads JSON. The client's own types panic at some that lacks what they expect.
func decode(data []byte, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &json.UnmarshalTypeError{Value: "answer of another form", Type: reflect.TypeOf(v).Elem()}
		}
	}()
	return json.Unmarshal(data, v)
}

// forward reads a list page by page until use returns false. What leaves a list between
// two pages moves the rest up by one, so this is for lists that hardly ever shrink.
func forward[T any](ctx context.Context, d *call, path string, q url.Values, use func([]*T) bool) error {
	for n := 1; n <= rest.MostPages; {
		var v []*T
		resp, err := d.get(ctx, path, rest.Page(q, n), &v)
		if err != nil {
			return err
		}
		if !use(rest.Present(v)) {
			return nil
		}
		if n = next(resp, n); n == 0 {
			return nil
		}
	}
	return nil
}

// next is the number of the page after n, 0 where that is the last.
func next(r *gitlab.Response, n int) int {
	if r.NextPage == 0 && r.NextLink != "" {
		return n + 1
	}
	return int(r.NextPage)
}

func pages[T any](ctx context.Context, d *call, path string, q url.Values) ([]*T, error) {
	var all []*T
	err := forward(ctx, d, path, q, func(p []*T) bool { all = append(all, p...); return true })
	return all, err
}

// backward reads a list that grows at its end from there, page by page, until
// use returns false; within a page the order stays. Nothing is lost where
// something is taken out meanwhile: what moves up goes where is read next. It
// returns how long the list is, at least: of more than 10,000 the server does not tell.
func backward[T any](ctx context.Context, d *call, path string, q url.Values, use func([]*T) bool) (length int, err error) {
	var first []*T
	resp, err := d.get(ctx, path, rest.Page(q, 1), &first)
	if err != nil {
		return 0, err
	}
	switch {
	case resp.TotalPages <= 1 && next(resp, 1) == 0:
		use(rest.Present(first))
		return len(first), nil
	case resp.TotalPages <= 1 && q.Get("sort") != "": // a list that can be turned round
		length, more := 0, true
		turned := rest.Page(q, 1)
		turned.Set("sort", "desc")
		err := forward(ctx, d, path, turned, func(p []*T) bool {
			length += len(p)
			slices.Reverse(p)
			more = use(p)
			return more
		})
		if !more {
			length = max(length, mostCounted)
		}
		return length, err
	case resp.TotalPages <= 1:
		all, err := pages[T](ctx, d, path, q)
		if err == nil {
			use(all)
		}
		return len(all), err
	}
	more := true
	for n := min(int(resp.TotalPages), rest.MostPages); n >= 1 && more; n-- {
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

// mostCounted is how far the server counts. Source: GitLab docs, "Pagination".
const mostCounted = 10_000

// since reads a list of items as rest.Since does.
func since[T any](ctx context.Context, d *call, path string, q url.Values, from time.Time, most int, id func(*T) int64, at func(*T) time.Time) ([]*T, error) {
	return rest.Since(from, most, id, at, func(from time.Time, n int) (v []*T, more bool, err error) {
		q := rest.Page(q, n)
		if !from.IsZero() {
			q.Set("updated_after", stamp(from))
		}
		q.Set("order_by", "updated_at")
		q.Set("sort", "asc")
		resp, err := d.get(ctx, path, q, &v)
		return v, err == nil && next(resp, n) != 0, err
	})
}

// when is a time of an answer, which may be null.
func when(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
