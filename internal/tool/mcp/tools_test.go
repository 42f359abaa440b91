package mcp_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toritsugi/internal/i18n"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// TestOddDefinitions: what a server lists is cleaned before it is offered, and
// what cannot be offered is left out.
func TestOddDefinitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, mode("odd"))
		defer m.Close()
		if len(m.Tools()) != 7 {
			t.Errorf("tools %q", names(m.Tools()))
		}
		if d := find(t, m, "odd__twin"); d.Description != "the first" {
			t.Errorf("of two tools with one name it is %q", d.Description)
		}
		odd := mcp.Name("odd", "名前.with/odd chars")
		d := find(t, m, odd)
		if d.Description != "名前.with/odd chars (odd): ok[31m end" || string(d.Schema) != `{"properties":{"x":{"description":"ab","type":"string"}},"type":"object"}` {
			t.Errorf("%+v %s", d, d.Schema)
		}
		says(t, call(t, m, odd, `{"x":"1"}`), false, `名前.with/odd chars {"x":"1"}`)
		if d := find(t, m, mcp.Name("odd", strings.Repeat("long", 30))); len(d.Description) > 4096+256 || !strings.HasSuffix(d.Description, "...") {
			t.Errorf("a description of %d bytes", len(d.Description))
		}
		if offers(m, "odd__task") || !offers(m, "odd__either") {
			t.Errorf("tools %q", names(m.Tools()))
		}
		if d := find(t, m, "odd__large"); !strings.HasSuffix(d.Description, "\n(The schema of its arguments, of 80047 bytes, is cut here; the server checks all of them.)") || string(d.Schema) != `{"properties":{"n":{}},"type":"object"}` {
			t.Errorf("%s %s", d.Description, d.Schema)
		}
		if d := find(t, m, mcp.Name("odd", "no schema")); string(d.Schema) != `{"type":"object"}` {
			t.Errorf("schema %s", d.Schema)
		}
		list := find(t, m, "odd__list")
		if want := `{"$defs":{"n":{"type":"integer"}},"properties":{"value":{"items":{"$ref":"#/$defs/n"},"type":"array"}},"required":["value"],"type":"object"}`; string(list.Schema) != want {
			t.Errorf("schema %s", list.Schema)
		}
		says(t, call(t, m, "odd__list", `{"value":["a"]}`), true, "not valid")
	})
}

func TestHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trusted := mode("hints")
		trusted.Name, trusted.TrustHints = "friend", true
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, mode("hints"), trusted)
		defer m.Close()
		for name, want := range map[string]bool{"hints__look": false, "hints__put": false, "friend__look": true, "friend__put": false, "friend__wild": false} {
			if d := find(t, m, name); d.ReadOnly != want {
				t.Errorf("%s: ReadOnly is %t", name, d.ReadOnly)
			}
		}
	})
}

func TestAllowAndDeny(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := mode("hints"), mode("hints")
		a.Name, a.Allow = "a", []string{"l??k", "p*"}
		b.Name, b.Deny = "b", []string{"w*"}
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, b, a)
		defer m.Close()
		if got := strings.Join(names(m.Tools()), " "); got != "a__look a__put b__look b__put" {
			t.Error(got)
		}
		if d := m.Drift(); len(d) != 0 {
			t.Errorf("drift %+v", d)
		}
	})
}

func TestResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, mode("s"))
		defer m.Close()
		want := tool.Result{Images: []tool.Image{{MediaType: "image/png", Data: pixel}, {MediaType: "image/png", Data: pixel}}, Text: `see

[image 1: image/png, 70 bytes]

[image left out: it is not a PNG, JPEG, GIF or WebP but image/svg+xml, 6 bytes]

[audio left out: audio/wav, 4 bytes]

[link to the resource file:///a: a, text/plain, 12 bytes]
an a

[resource file:///b]
the b

[resource file:///c left out: application/zip, 2 bytes]

[resource file:///d]

[image 2: image/png, 70 bytes]

{"a":"<>","b":1}`}
		if diff := cmp.Diff(want, call(t, m, "s__rich", ""), cmpopts.IgnoreFields(tool.Result{}, "Args")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		want = tool.Result{Text: `{"n": 1, "a":[true]}`, IsError: true}
		if diff := cmp.Diff(want, call(t, m, "s__json", ""), cmpopts.IgnoreFields(tool.Result{}, "Args")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// TestLimits: a large result is cut and spilled as that of any tool.
func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, mode("s"))
		defer m.Close()
		r, err := tool.NewRegistry(tool.Limits{MaxOutput: 2000, SpillDir: t.TempDir()}, m.Tools()...)
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.Call(t.Context(), "s__huge", "")
		if err != nil || len(res.Text) > 2000 {
			t.Errorf("%d bytes, %v", len(res.Text), err)
		}
		says(t, res, false, "output-000001")
	})
}

func TestServersThatAreNotWellDescribed(t *testing.T) {
	t.Parallel()
	start := (&within{}).start
	for key, tc := range map[string]struct {
		opts    mcp.Options
		servers []mcp.Server
	}{
		"mcp.dir":     {mcp.Options{Start: start}, nil},
		"mcp.name":    {mcp.Options{Dir: "x", Start: start}, []mcp.Server{mode(" ")}},
		"mcp.twice":   {mcp.Options{Dir: "x", Start: start}, []mcp.Server{mode("a"), mode("a")}},
		"mcp.how":     {mcp.Options{Dir: "x", Start: start}, []mcp.Server{{Name: "a"}}},
		"mcp.command": {mcp.Options{Dir: "x", Start: start}, []mcp.Server{{Name: "a", Command: []string{"", "b"}}}},
		"mcp.start":   {mcp.Options{Dir: "x"}, []mcp.Server{mode("a")}},
		"mcp.url":     {mcp.Options{Dir: "x"}, []mcp.Server{{Name: "a", URL: "ftp://token@host/"}}},
		"mcp.env":     {mcp.Options{Dir: "x", Start: start}, []mcp.Server{{Name: "a", Command: []string{"a"}, Env: map[string]string{"A=B": "c"}}}},
	} {
		_, err := mcp.Open(t.Context(), tc.servers, tc.opts)
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != key {
			t.Errorf("%s: %v", key, err)
		}
		if err != nil && strings.Contains(err.Error(), "token") {
			t.Errorf("%s tells a secret: %v", key, err)
		}
	}
	both := mcp.Server{Name: "a", Command: []string{"a"}, URL: "http://a/"}
	if _, err := mcp.Open(t.Context(), []mcp.Server{both}, mcp.Options{Dir: "x", Start: start, HTTP: http.DefaultTransport}); err == nil {
		t.Error("a command and a url were both taken")
	}
}
