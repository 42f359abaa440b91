package gitlab

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/gitlab/gitlabtest"
)

func TestRights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		level   int
		bot     bool
		scopes  []string
		may     forge.Permission
		missing string
	}{
		{"all", 30, false, []string{"api", "write_repository"}, forge.Write, ""},
		{"a project access token", 40, true, []string{"write_repository", "api"}, forge.Maintain, ""},
		{"no push", 30, false, []string{"api"}, forge.Write, "write_repository"},
		{"reading alone", 20, false, []string{"read_api"}, forge.Triage, "api write_repository"},
		{"finer scopes", 30, false, []string{"api", "granular"}, forge.Write, ""},
		{"no member", 0, false, []string{"api", "write_repository"}, forge.None, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, gitlabtest.Options{})
			p := w.AddProject("acme/shown", "internal")
			w.AddUser("who", c.bot)
			p.Member("who", c.level)
			f := w.open(func(o *Options) { o.Token = w.Token("who", c.scopes...) })
			may, missing, err := f.Rights(bg, forge.Repo{Owner: "acme", Name: "shown"})
			if err != nil || may != c.may || strings.Join(missing, " ") != c.missing {
				t.Errorf("%s, lacks %q, %v", may, missing, err)
			}
		})
	}
}

// Where the token does not tell its scopes nothing is said about them; where it cannot be asked that
// is an error.
func TestUntoldScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gitlabtest.Options{})
	f := w.open(nil)
	answer := func(status int) {
		w.Break(func(r *http.Request) *gitlabtest.Answer {
			if strings.HasSuffix(r.URL.Path, "/personal_access_tokens/self") {
				return &gitlabtest.Answer{Status: status, Body: `{"message":"400 Bad request - This endpoint requires token type to be a personal access token"}`}
			}
			return nil
		})
	}
	answer(http.StatusBadRequest)
	if may, missing, err := f.Rights(bg, acme); err != nil || may != forge.Write || missing != nil {
		t.Errorf("%s, %q, %v", may, missing, err)
	}
	answer(http.StatusBadGateway)
	_, _, err := f.Rights(bg, acme)
	is(t, err, forge.Unavailable, "the token's scopes")
}

const hookURL = "https://tori.example/webhooks/gitlab"

// A webhook is made for what is listened to, and mended without what else it is for.
func TestHook(t *testing.T) {
	t.Parallel()
	for _, signing := range []bool{false, true} {
		w := newWorld(t, gitlabtest.Options{Signing: signing})
		f := w.open(nil)
		_, err := f.Hook(bg, acme, hookURL)
		is(t, err, forge.Forbidden, "Maintainer")
		w.p.Member("tori-bot", 40)
		w.p.AddHook(gitlabtest.Hook{URL: "https://elsewhere.example/", Token: "theirs"}, "push_events")
		if _, err := f.Hook(bg, acme, hookURL); !errors.Is(err, forge.ErrNoHook) {
			t.Error(err)
		}
		must(t, f.SetHook(bg, acme, hookURL, "s3cret"))
		if wrong, err := f.Hook(bg, acme, hookURL); err != nil || wrong != nil {
			t.Errorf("made: %q, %v", wrong, err)
		}
		h := w.p.Hooks()
		if len(h) != 2 || h[1].Token != "s3cret" || h[1].Events["push_events"] || !h[1].Events["confidential_note_events"] || h[0].Token != "theirs" {
			t.Errorf("%+v", h)
		}
	}
}

func TestWrongHook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gitlabtest.Options{Signing: true})
	w.p.Member("tori-bot", 40)
	w.p.AddHook(gitlabtest.Hook{URL: hookURL, Alert: "disabled"}, "push_events", "pipeline_events", "note_events")
	f := w.open(nil)
	wrong, err := f.Hook(bg, acme, hookURL)
	if got := strings.Join(wrong, ", "); err != nil || got != "confidential_issues_events, confidential_note_events, issues_events, merge_requests_events, alert_status: executable, token" {
		t.Errorf("%s, %v", got, err)
	}
	must(t, f.SetHook(bg, acme, hookURL, "s3cret"))
	if wrong, err = f.Hook(bg, acme, hookURL); err != nil || wrong != nil {
		t.Errorf("mended: %q, %v", wrong, err)
	}
	if h := w.p.Hooks(); len(h) != 1 || !h[0].Events["push_events"] || !h[0].Events["pipeline_events"] || h[0].Token != "s3cret" {
		t.Errorf("%+v", h)
	}
	w.p.AddHook(gitlabtest.Hook{URL: hookURL + "/", Token: "s3cret"}, "push_events", "tag_push_events", "issues_events", "note_events", "merge_requests_events", "confidential_note_events")
	must(t, f.SetHook(bg, acme, hookURL+"/", "another"))
	if h := w.p.Hooks(); len(h) != 2 || h[1].Token != "another" || !h[1].Events["tag_push_events"] || !h[1].Events["push_events"] || !h[1].Events["confidential_issues_events"] {
		t.Errorf("%+v", h)
	}
	// What is confidential is worked on in private projects alone.
	p := w.AddProject("acme/shown", "public")
	p.Member("tori-bot", 40)
	shown := forge.Repo{Owner: "acme", Name: "shown"}
	must(t, f.SetHook(bg, shown, hookURL, "s3cret"))
	if wrong, err = f.Hook(bg, shown, hookURL); err != nil || wrong != nil || p.Hooks()[0].Events["confidential_issues_events"] {
		t.Errorf("%q, %v, %+v", wrong, err, p.Hooks())
	}
}

// A signing token is set where the server has such, and it is told where it has not.
func TestSigningToken(t *testing.T) {
	t.Parallel()
	signing := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	for _, able := range []bool{true, false} {
		w := newWorld(t, gitlabtest.Options{Signing: able})
		w.p.Member("tori-bot", 40)
		err := w.open(nil).SetHook(bg, acme, hookURL, signing)
		if h := w.p.Hooks(); len(h) != 1 || h[0].Token != "" || (h[0].Signing == signing) != able {
			t.Errorf("%+v", h)
		}
		if able {
			must(t, err)
		} else {
			is(t, err, forge.Invalid, "GitLab 19.0")
		}
	}
}

// A project that was renamed, and labels of it.
func TestSetupOfAMovedProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gitlabtest.Options{})
	w.p.Member("tori-bot", 40)
	f := w.open(nil)
	must(t, f.EnsureLabels(bg, acme, []forge.Label{{Name: "coding agent", Color: "123456"}}))
	w.p.Move("acme/elsewhere")
	must(t, f.SetHook(bg, acme, hookURL, "s3cret"))
	all, err := f.Labels(bg, acme)
	if err != nil || len(all) != 1 || all[0] != "coding agent" || len(w.p.Hooks()) != 1 {
		t.Errorf("%q, %v, %+v", all, err, w.p.Hooks())
	}
}
