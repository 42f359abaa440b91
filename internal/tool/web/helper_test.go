package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"toritsugi/internal/broker"
	"toritsugi/internal/redact"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool"
)

// searxng answers as a SearXNG does (its documentation, "Search API"; the JSON is that of its result types).
type searxng struct {
	asked   []url.Values
	formats []string // search.formats of its settings.yml
	results []map[string]any
	more    map[string]any // further fields of the answer
}

// result has the fields that a main result has.
func result(address, title, content string) map[string]any {
	return map[string]any{"url": address, "title": title, "content": content, "publishedDate": nil, "engine": "duckduckgo", "engines": []string{"duckduckgo"}, "template": "default.html",
		"parsed_url": []string{"https", "example.org", "/", "", "", ""}, "positions": []int{1}, "score": 1.0, "category": "general", "thumbnail": "", "priority": ""}
}

func (s *searxng) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/search" && r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	q := r.URL.Query()
	s.asked = append(s.asked, q)
	allowed := false
	for _, f := range s.formats {
		allowed = allowed || f == q.Get("format")
	}
	if !allowed {
		http.Error(w, "Forbidden", http.StatusForbidden)
		return
	}
	answer := map[string]any{"query": q.Get("q"), "number_of_results": 0, "results": s.results, "answers": []any{}, "corrections": []any{}, "infoboxes": []any{}, "suggestions": []any{}, "unresponsive_engines": []any{}}
	if s.results == nil {
		answer["results"] = []any{}
	}
	for k, v := range s.more {
		answer[k] = v
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// serve starts a server and returns its address, and its host with the port.
func serve(t testing.TB, h http.Handler) (address, host string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, strings.TrimPrefix(s.URL, "http://")
}

// pages serves texts by path; a path without one is not found.
func pages(t testing.TB, all map[string]http.HandlerFunc) (address, host string) {
	t.Helper()
	mux := http.NewServeMux()
	for path, h := range all {
		mux.HandleFunc(path, h)
	}
	return serve(t, mux)
}

// says is a page of a kind.
func says(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if kind == "" {
			w.Header()["Content-Type"] = nil // not guessed by the server
		} else {
			w.Header().Set("Content-Type", kind)
		}
		_, _ = io.WriteString(w, text)
	}
}

// opened is a leg whose web has these hosts and this SearXNG.
func opened(t testing.TB, search string, hosts []string, l Leg) *Lookup {
	t.Helper()
	w, err := New(Options{SearchURL: search, Network: sandbox.Network{AllowHosts: hosts}, Filter: broker.NewFilter(broker.FilterOptions{Sanitizer: redact.New([]string{"hunter2-hunter2"}, nil)})})
	if err != nil {
		t.Fatal(err)
	}
	return w.Open(l)
}

// call makes a call as a run does.
func call(t testing.TB, u *Lookup, name string, args map[string]any) tool.Result {
	t.Helper()
	r, err := tool.NewRegistry(u.leg.Limits, u.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Call(t.Context(), name, string(raw))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Text) > 30_000 {
		t.Errorf("%d bytes", len(res.Text))
	}
	return res
}

// fetched is the text of a page, which has to be read.
func fetched(t testing.TB, u *Lookup, address string) string {
	t.Helper()
	res := call(t, u, "web_fetch", map[string]any{"url": address})
	if res.IsError {
		t.Errorf("%s: %s", address, res.Text)
	}
	return inside(t, res.Text)
}

// inside is what of a result strangers wrote.
func inside(t testing.TB, text string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, warning+"<untrusted_web>\n")
	body, after, closed := strings.Cut(rest, "\n</untrusted_web>")
	if !ok || !closed || after != "" || strings.Count(text, "<untrusted_web>") != 1 {
		t.Errorf("not marked: %s", fmt.Sprint(before, rest))
	}
	return body
}

// refused is why a call failed.
func refused(t testing.TB, u *Lookup, name string, args map[string]any, parts ...string) {
	t.Helper()
	res := call(t, u, name, args)
	for _, p := range parts {
		if !res.IsError || !strings.Contains(res.Text, p) {
			t.Errorf("%v: %s, want %q", args, res.Text, p)
		}
	}
}
