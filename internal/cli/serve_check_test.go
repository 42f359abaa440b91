package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/app"
	"toritsugi/internal/forge/github/githubtest"
)

// checked is what tori serve --check tells, and its exit code.
func (w *town) checked(args ...string) (all []app.ServeFinding, code int, text string) {
	w.t.Helper()
	cmd := w.serve(append([]string{"--check", "--json"}, args...)...)
	cmd.Args = slices.DeleteFunc(cmd.Args, func(a string) bool { return a == "--script" || strings.HasSuffix(a, "script.yaml") })
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	for line := range bytes.Lines(out.Bytes()) {
		var f app.ServeFinding
		if err := json.Unmarshal(line, &f); err != nil {
			w.t.Fatalf("%v\n%s", err, out.String())
		}
		all = append(all, f)
	}
	return all, cmd.ProcessState.ExitCode(), out.String() + errs.String()
}

// parts are the parts by how they are.
func parts(all []app.ServeFinding) string {
	var b strings.Builder
	for _, f := range all {
		b.WriteString(" " + f.Part)
		switch {
		case !f.OK:
			b.WriteByte('!')
		case f.Fixed:
			b.WriteByte('*')
		}
	}
	return strings.TrimSpace(b.String())
}

// What is missing is told, made where it may be, and then well; what may not be made stays wrong.
func TestServeCheck(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	w.env = []string{"TORI_GITHUB_WEBHOOK_SECRET=" + hookSecret, "TORI_SERVE_PUBLIC_URL=https://tori.example/"}
	for _, c := range []struct {
		name, want string
		code       int
		fix        bool
		before     func()
	}{
		{"labels are missing, webhooks are not shown", "login repositories permission labels! webhook", 1, false, func() {}},
		{"one that may not look after it", "login repositories permission labels* webhook", 0, true, func() {}},
		{"no webhook", "login repositories permission labels webhook!", 1, false, func() { w.repo.Allow("tori-bot", "admin") }},
		{"made", "login repositories permission labels webhook*", 0, true, func() {}},
		{"well", "login repositories permission labels webhook", 0, false, func() {}},
		{"nothing to make", "login repositories permission labels webhook", 0, true, func() {}},
		{"another role", "login repositories permission! labels webhook", 1, true, func() { w.repo.Allow("tori-bot", "read") }},
	} {
		c.before()
		var args []string
		if c.fix {
			args = append(args, "--fix")
		}
		all, code, text := w.checked(args...)
		if got := parts(all); got != c.want || code != c.code {
			t.Errorf("%s: %s, exit %d\n%s", c.name, got, code, text)
		}
	}
	hooks := w.repo.Hooks()
	if len(hooks) != 1 || hooks[0].URL != "https://tori.example/webhooks/github" || hooks[0].Secret != hookSecret || hooks[0].ContentType != "json" || !hooks[0].Active || len(hooks[0].Events) != 5 {
		t.Errorf("%+v", hooks)
	}
}

// A webhook that is there and wrong is told, and mended without what else it is for; a revoked
// token and one whose scopes do not do are told.
func TestServeCheckTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	w.repo.Allow("tori-bot", "admin")
	w.repo.AddHook(githubtest.Hook{URL: "https://tori.example/webhooks/github", ContentType: "form", Events: []string{"issues", "push"}})
	w.env = []string{"TORI_GITHUB_WEBHOOK_SECRET=" + hookSecret, "TORI_SERVE_PUBLIC_URL=https://tori.example"}
	all, code, text := w.checked()
	if f := all[len(all)-1]; f.OK || code != 1 || !strings.Contains(f.Text, "active, content_type: json, secret, events: issue_comment,") {
		t.Errorf("exit %d\n%s", code, text)
	}
	w.checked("--fix")
	if h := w.repo.Hooks()[0]; !h.Active || h.Secret != hookSecret || !slices.Contains(h.Events, "push") || len(h.Events) != 6 {
		t.Errorf("%+v", h)
	}
	token := w.hub.Token("tori-bot")
	w.hub.Scope(token, "read:org, workflow")
	w.env = append(w.env, "GITHUB_TOKEN="+token)
	if all, code, text = w.checked(); code != 1 || !strings.Contains(parts(all), "scopes!") || !strings.Contains(text, "lacks: repo") {
		t.Errorf("exit %d\n%s", code, text)
	}
	w.hub.Scope(token, "repo")
	if all, code, text = w.checked(); code != 0 || strings.Contains(parts(all), "scopes") {
		t.Errorf("exit %d\n%s", code, text)
	}
	w.hub.Revoke(token)
	if all, code, text = w.checked(); code != 1 || parts(all) != "login!" {
		t.Errorf("exit %d\n%s", code, text)
	}
	w.env = append(w.env, "TORI_SERVE_PUBLIC_URL=", "TORI_GITHUB_WEBHOOK_SECRET=", "GITHUB_TOKEN="+w.hub.Token("tori-bot"))
	if all, code, text = w.checked(); code != 0 || parts(all) != "login repositories permission labels webhook" || !strings.Contains(text, "every 5 seconds") {
		t.Errorf("exit %d\n%s", code, text)
	}
}
