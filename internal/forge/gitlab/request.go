package gitlab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
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
	issue        = "issue"
	mergeRequest = "merge_request"
)

// on begins a call to an item, and returns where the item is.
func (f *Forge) on(k task.Key, what string) (d *call, at string, err error) {
	r := forge.RepoOf(k)
	d, err = f.at(r, i18n.E(what, name(k)))
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

// name is an item as people write it: #12 or !12.
func name(k task.Key) string {
	if k.Type == mergeRequest {
		return "!" + k.ID
	}
	return "#" + k.ID
}

// path joins the parts of a path, each escaped as one segment: the path of a project and
// the names of branches have slashes.
func path(parts ...any) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(gitlab.PathEscape(fmt.Sprint(p)))
	}
	return b.String()
}

func (d *call) below(parts ...any) string {
	if len(parts) == 0 {
		return d.project
	}
	return d.project + "/" + path(parts...)
}

// query makes a query of names and values.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q
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

const (
	perPage = 100
	// mostPages bounds a list that a broken server never ends.
	mostPages = 10_000
)

func page(q url.Values, n int64) url.Values {
	p := url.Values{"per_page": {strconv.Itoa(perPage)}}
	for k, v := range q {
		p[k] = v
	}
	if n > 1 {
		p.Set("page", strconv.FormatInt(n, 10))
	}
	return p
}

// forward reads a list page by page until use returns false. What leaves a list between
// two pages moves the rest up by one, so this is for lists that hardly ever shrink.
func forward[T any](ctx context.Context, d *call, path string, q url.Values, use func([]*T) bool) error {
	for n := int64(1); n <= mostPages; {
		var v []*T
		resp, err := d.get(ctx, path, page(q, n), &v)
		if err != nil {
			return err
		}
		if !use(present(v)) {
			return nil
		}
		if n = next(resp, n); n == 0 {
			return nil
		}
	}
	return nil
}

// next is the number of the page after n, 0 where that is the last.
func next(r *gitlab.Response, n int64) int64 {
	if r.NextPage == 0 && r.NextLink != "" {
		return n + 1
	}
	return r.NextPage
}

func pages[T any](ctx context.Context, d *call, path string, q url.Values) ([]*T, error) {
	var all []*T
	err := forward(ctx, d, path, q, func(p []*T) bool { all = append(all, p...); return true })
	return all, err
}

// present leaves out what a broken answer has for nothing.
func present[T any](all []*T) []*T {
	return slices.DeleteFunc(all, func(e *T) bool { return e == nil })
}

// backward reads a list that grows at its end from there, page by page, until
// use returns false; within a page the order stays. Nothing is lost where
// something is taken out meanwhile: what moves up goes where is read next. It
// returns how long the list is, at least: of more than 10,000 the server does not tell.
func backward[T any](ctx context.Context, d *call, path string, q url.Values, use func([]*T) bool) (length int, err error) {
	var first []*T
	resp, err := d.get(ctx, path, page(q, 1), &first)
	if err != nil {
		return 0, err
	}
	switch {
	case resp.TotalPages <= 1 && next(resp, 1) == 0:
		use(present(first))
		return len(first), nil
	case resp.TotalPages <= 1 && q.Get("sort") != "": // a list that can be turned round
		length, more := 0, true
		turned := page(q, 1)
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
	for n := min(resp.TotalPages, mostPages); n >= 1 && more; n-- {
		var v []*T
		if _, err := d.get(ctx, path, page(q, n), &v); err != nil {
			return 0, err
		}
		if length == 0 {
			// What is added meanwhile comes after: it is read with the next look.
			length = (int(n)-1)*perPage + len(v)
		}
		more = use(present(v))
	}
	return length, nil
}

// mostCounted is how far the server counts. Source: GitLab docs, "Pagination".
const mostCounted = 10_000

// since reads a list of items ordered by the time of the last change, from a time on, each
// once. It goes on from the last time seen, not from the last place: what changes or
// leaves meanwhile moves no other one out of sight. It stops after most.
func since[T any](ctx context.Context, d *call, path string, q url.Values, from time.Time, most int, id func(*T) int64, at func(*T) time.Time) ([]*T, error) {
	var all []*T
	seen := map[int64]bool{}
	q = page(q, 1)
	if !from.IsZero() {
		q.Set("updated_after", stamp(from))
	}
	q.Set("order_by", "updated_at")
	q.Set("sort", "asc")
	for n := int64(1); ; {
		var v []*T
		resp, err := d.get(ctx, path, page(q, n), &v)
		if err != nil {
			return nil, err
		}
		v = present(v)
		for _, e := range v {
			if !seen[id(e)] {
				seen[id(e)] = true
				all = append(all, e)
			}
		}
		more := next(resp, n)
		if more == 0 || len(v) == 0 || len(all) >= most || n > mostPages {
			return all, nil
		}
		// A second back, for those of the same second.
		if last := at(v[len(v)-1]).Truncate(time.Second).Add(-time.Second); last.After(from) {
			from, n = last, 1
			q.Set("updated_after", stamp(from))
		} else {
			n = more
		}
	}
}

func stamp(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// when is a time of an answer, which may be null.
func when(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
