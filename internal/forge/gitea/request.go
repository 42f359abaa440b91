package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	f *Forge
}

// asking begins a call; repo is "" for the server itself.
func (f *Forge) asking(repo string, what *i18n.Error) *call {
	return &call{Call: rest.Call{Server: rest.Server{Name: "Gitea", Setting: "gitea"}, Repo: repo, What: what}, f: f}
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

// What all members make requests of, by short names.
var path, query, stamp = rest.Path, rest.Query, rest.Stamp

func below(r forge.Repo, parts ...any) string {
	return path(append([]any{"repos", r.Owner, r.Name}, parts...)...)
}

// get reads; the answer is decoded into v.
func (d *call) get(ctx context.Context, path string, q url.Values, v any) (http.Header, error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return d.send(ctx, http.MethodGet, path, nil, v)
}

// send writes once; body and v may be nil.
func (d *call) send(ctx context.Context, method, path string, body, v any) (http.Header, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, d.Explain(ctx, err)
		}
	}
	a, err := d.attempt(ctx, method, d.f.address.api.String()+path, text)
	if err == nil && a.renamed != "" && method != http.MethodGet {
		// The server has written nothing yet, and does not say that it is to be sent again
		// as it was.
		a, err = d.attempt(ctx, method, a.renamed, text)
	}
	switch {
	case err != nil:
		return nil, d.Explain(ctx, err)
	case a.status >= 300 && a.status < 400:
		return nil, d.Elsewhere(fmt.Errorf("answer %d", a.status))
	case a.status >= 400:
		return nil, d.answered(a.status, a.body)
	case v == nil:
		return a.header, nil
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		return nil, d.Explain(ctx, err)
	}
	return a.header, nil
}

type answer struct {
	status  int
	header  http.Header
	body    []byte
	renamed string // where the repository is by now, at this host; "" where it is where it was
}

func (d *call) attempt(ctx context.Context, method, url string, text []byte) (*answer, error) {
	var body io.Reader
	if text != nil {
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "toritsugi")
	if text != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := d.f.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	a := &answer{status: resp.StatusCode, header: resp.Header}
	if to, err := resp.Location(); err == nil && resp.StatusCode >= 300 && resp.StatusCode < 400 && to.Host == d.f.address.api.Host && to.Scheme == d.f.address.api.Scheme {
		a.renamed = to.String()
	}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, rest.MaxBytes))
	return a, err
}

// answered explains an answer that is an error.
func (d *call) answered(status int, body []byte) error {
	var e struct {
		Message string
		Errors  []string
	}
	if json.Unmarshal(body, &e) != nil || e.Message == "" {
		e.Message = http.StatusText(status) // a page for people, of what stands before the server
	}
	permission := i18n.E("gitea.advice_forbidden")
	if strings.Contains(e.Message, "scope") {
		permission = i18n.E("gitea.advice_scope")
	}
	kept := status
	if status == http.StatusLocked { // the repository is archived
		status = http.StatusForbidden
	}
	err := d.Answered(status, strings.Join(append([]string{e.Message}, e.Errors...), "; "), i18n.E("gitea.advice_unauthorized"), permission, nil)
	err.Status = kept
	return err
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
		h, err := d.get(ctx, path, paged(q, n), &v)
		if err != nil {
			return err
		}
		got := use(&v)
		seen += got
		total, err := strconv.Atoi(h.Get("X-Total-Count"))
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
	if _, missing := d.get(ctx, below(r, "issues", n), nil, nil); forge.Is(missing, forge.NotFound) {
		return missing
	}
	return err
}
