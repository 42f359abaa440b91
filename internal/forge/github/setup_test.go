package github

import (
	"errors"
	"strings"
	"testing"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/forge/rest"
)

// What an App may is what its installation was given; its webhook is the App's own, which says so.
func TestSetupOfAnApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	key := w.AddApp(githubtest.App{ID: 7, Slug: "tori", Permissions: map[string]string{"contents": "write", "issues": "read", "metadata": "read", "checks": "read", "statuses": "read"}})
	w.Install("tori", acme.Owner)
	f, err := New(Options{Login: rest.Login{URL: w.URL}, App: App{ID: 7, Key: key}, WriteSpacing: -1})
	if err != nil {
		t.Fatal(err)
	}
	may, missing, err := f.Rights(t.Context(), acme)
	if err != nil || may != forge.Write || strings.Join(missing, ", ") != "issues: write, pull_requests: write" {
		t.Errorf("%s, lacks %q, %v", may, missing, err)
	}
	if _, err := f.Hook(t.Context(), acme, "https://tori.example/webhooks/github"); !forge.Is(err, forge.Unsupported) || !strings.Contains(err.Error(), "https://tori.example/webhooks/github") {
		t.Error(err)
	}
	if err := f.SetHook(t.Context(), acme, "https://tori.example/webhooks/github", "s"); !forge.Is(err, forge.Unsupported) {
		t.Error(err)
	}
}

// Webhooks to other addresses are left alone; who may not see any is told so.
func TestHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	f := w.open(nil)
	const at = "https://tori.example/webhooks/github"
	if _, err := f.Hook(t.Context(), acme, at); !forge.Is(err, forge.NotFound) {
		t.Errorf("not shown: %v", err)
	}
	self, err := f.Self(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.repo.Allow(self.Login, "admin")
	w.repo.AddHook(githubtest.Hook{URL: "https://other.example/", ContentType: "form", Events: []string{"push"}, Active: true})
	if _, err := f.Hook(t.Context(), acme, at); !errors.Is(err, forge.ErrNoHook) {
		t.Errorf("not there: %v", err)
	}
	for range 2 {
		if err := f.SetHook(t.Context(), acme, at, "s3cret"); err != nil {
			t.Fatal(err)
		}
		if wrong, err := f.Hook(t.Context(), acme, at); err != nil || len(wrong) > 0 {
			t.Errorf("%q, %v", wrong, err)
		}
	}
	all := w.repo.Hooks()
	if len(all) != 2 || all[0].ContentType != "form" || len(all[0].Events) != 1 || all[1].Secret != "s3cret" {
		t.Errorf("%+v", all)
	}
}
