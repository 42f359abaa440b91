package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge/gitea/giteatest"
	"toritsugi/internal/forge/gitlab/gitlabtest"
)

// checks is a tori serve --check, what it tells, and what happens before.
type checks struct {
	name, want string
	code       int
	fix        bool
	before     func()
}

// checkedAt looks over a repository of another forge than GitHub, whose settings are given.
func (w *town) checkedAt(source, settings, token string, all []checks) {
	w.t.Helper()
	write(w.t, w.config, "language: en\n"+source+": {"+settings+"}\nserve: {listen: '127.0.0.1:0'}\npause_resume: {signal_file: "+filepath.Join(w.dir, "pause")+"}\n")
	name := strings.ToUpper(source)
	w.env = []string{name + "_TOKEN=" + token, "TORI_" + name + "_WEBHOOK_SECRET=" + hookSecret, "TORI_SERVE_PUBLIC_URL=https://tori.example/"}
	for _, c := range all {
		c.before()
		var args []string
		if c.fix {
			args = append(args, "--fix")
		}
		found, code, text := w.checked(args...)
		if got := parts(found); got != c.want || code != c.code {
			w.t.Errorf("%s: %s, exit %d\n%s", c.name, got, code, text)
		}
	}
}

func nothing() {}

// GitLab's webhooks are a maintainer's.
func TestServeCheckOfGitLab(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	lab := gitlabtest.New(t, gitlabtest.Options{Path: "/gitlab", Signing: true})
	p := lab.AddProject("acme/tools/widgets", "private")
	lab.AddUser("tori-bot", false)
	p.Member("tori-bot", 30)
	token := lab.Token("tori-bot", "api", "write_repository")
	w.checkedAt("gitlab", "url: '"+lab.URL+"', repositories: [acme/tools/widgets]", token, []checks{
		{"labels are missing, webhooks are not shown", "login repositories permission labels! webhook", 1, false, nothing},
		{"one that may not look after it", "login repositories permission labels* webhook", 0, true, nothing},
		{"no webhook", "login repositories permission labels webhook!", 1, false, func() { p.Member("tori-bot", 40) }},
		{"made", "login repositories permission labels webhook*", 0, true, nothing},
		{"well", "login repositories permission labels webhook", 0, false, nothing},
		{"without the scope to push", "login repositories permission scopes! labels webhook", 1, false, func() {
			w.env = append(w.env, "GITLAB_TOKEN="+lab.Token("tori-bot", "api"))
		}},
		{"another role", "login repositories permission! labels webhook", 1, true, func() {
			p.Member("tori-bot", 20)
			w.env = append(w.env, "GITLAB_TOKEN="+token)
		}},
		{"a revoked token", "login!", 1, true, func() { lab.Revoke(token) }},
	})
	h := p.Hooks()
	if len(h) != 1 || h[0].URL != "https://tori.example/webhooks/gitlab" || h[0].Token != hookSecret || !h[0].Events["issues_events"] || !h[0].Events["note_events"] || !h[0].Events["merge_requests_events"] || h[0].Events["push_events"] {
		t.Errorf("%+v", h)
	}
}

// Gitea tells the permissions of others to administrators alone: our account has to be one.
func TestServeCheckOfGitea(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	tea := giteatest.New(t, time.Now)
	ask := func(method, path string, body, v any, as ...string) {
		t.Helper()
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, tea.URL+"/api/v1/"+path, bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "token "+tea.Admin)
		for _, name := range as {
			req.Header.Set("Sudo", name)
		}
		a, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		if a.StatusCode >= 300 || v != nil && json.NewDecoder(a.Body).Decode(v) != nil {
			t.Fatalf("%s %s: %s", method, path, a.Status)
		}
	}
	role := func(name string) func() {
		return func() {
			ask("PUT", "repos/acme/widgets/collaborators/tori-bot", map[string]string{"permission": name}, nil)
		}
	}
	ask("POST", "orgs", sdk.CreateOrgOption{Name: "acme", Visibility: "public"}, nil)
	ask("POST", "orgs/acme/repos", map[string]any{"name": "widgets", "private": true, "auto_init": true, "default_branch": "main"}, nil)
	ask("POST", "admin/users", map[string]any{"username": "tori-bot", "email": "tori@people.example", "password": "correct horse 7", "must_change_password": false}, nil)
	role("admin")()
	var token sdk.AccessToken
	ask("POST", "users/tori-bot/tokens", map[string]any{"name": "t", "scopes": []string{"write:repository", "write:issue", "read:user", "read:organization"}}, &token, "tori-bot")
	w.checkedAt("gitea", fmt.Sprintf("url: '%s', repositories: [acme/widgets]", tea.URL), token.Token, []checks{
		{"nothing is there", "login repositories permission labels! webhook!", 1, false, nothing},
		{"made", "login repositories permission labels* webhook*", 0, true, nothing},
		{"well", "login repositories permission labels webhook", 0, true, nothing},
		{"one that sees no permissions of others, nor webhooks", "login repositories permission! labels webhook", 1, true, role("write")},
	})
	h := tea.Hooks("acme/widgets")
	if len(h) != 1 || h[0].Config["url"] != "https://tori.example/webhooks/gitea" || h[0].Secret != hookSecret || h[0].Config["content_type"] != "json" || !h[0].Active || !slices.Contains(h[0].Events, "pull_request_review") {
		t.Errorf("%+v", h)
	}
}
