package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// API is the API of a server, as one credential reaches it.
type API struct {
	Base   *url.URL          // ends in a slash
	Client *http.Client      // of a Line
	Header map[string]string // of each request, besides
}

// Answer is what a server answered.
type Answer struct {
	*http.Response
	Text []byte // its body, whole
}

func (a *API) ask(ctx context.Context, method, at string, body any) (*Answer, error) {
	to, err := a.Base.Parse(at)
	if err != nil {
		return nil, err
	}
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "toritsugi")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range a.Header {
		req.Header.Set(k, v)
	}
	resp, err := a.Client.Do(req)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes)) // as a Line did
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(all))
	return &Answer{resp, all}, err
}

// Get reads; the answer is decoded into v.
func (d *Call) Get(ctx context.Context, at string, q url.Values, v any) (*Answer, error) {
	if len(q) > 0 {
		at += "?" + q.Encode()
	}
	return d.Send(ctx, http.MethodGet, at, nil, v)
}

// Send writes once. at is below the API's address, or an address at its host; the answer is decoded
// into v. body and v may be nil. The Answer is there, too, beside the error of one that leads elsewhere.
func (d *Call) Send(ctx context.Context, method, at string, body, v any) (*Answer, error) {
	path, _, _ := strings.Cut(at, "?")
	if slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return part == "." || part == ".." }) {
		return nil, d.Unknown()
	}
	a, err := d.API.ask(ctx, method, at, body)
	switch {
	case err != nil || ctx.Err() != nil:
		return nil, d.Explain(ctx, err)
	case a.StatusCode >= 400:
		return nil, d.Refused(a)
	case a.StatusCode >= 300:
		return a, d.Elsewhere(fmt.Errorf("answer %d", a.StatusCode))
	case v != nil:
		if err := decode(a.Text, v); err != nil {
			return nil, d.Explain(ctx, err)
		}
	}
	return a, nil
}

// decode reads JSON. The types of the libraries panic at some that lacks what they expect.
func decode(data []byte, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &json.UnmarshalTypeError{Value: "answer of another form", Type: reflect.TypeOf(v).Elem()}
		}
	}()
	return json.Unmarshal(data, v)
}

// link is where the link of a relation leads, nil for none. Source: RFC 8288.
func (a *Answer) link(rel string) *url.URL {
	for l := range strings.SplitSeq(a.Header.Get("Link"), ",") {
		to, params, _ := strings.Cut(strings.TrimSpace(l), ">")
		if to, is := strings.CutPrefix(to, "<"); is && strings.Contains(params, `rel="`+rel+`"`) {
			if u, err := url.Parse(to); err == nil {
				return u
			}
		}
	}
	return nil
}

// last is the number of a list's last page, 0 where the server does not tell.
func (a *Answer) last() int {
	u := a.link("last")
	if u == nil {
		return 0
	}
	n, _ := strconv.Atoi(u.Query().Get("page")) // 0 for none
	return n
}
