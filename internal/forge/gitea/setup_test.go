package gitea

import (
	"errors"
	"slices"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/gitea/giteatest"
)

const hookURL = "https://tori.example/webhooks/gitea"

// TestSetup: what our account may do is told, and that it has to be administrator for others to be
// known; labels of the organization count; a webhook is made once, and not shown to others.
func TestSetup(t *testing.T) { t.Parallel(); everywhere(t, setup) }

func setup(t *testing.T, w *world) {
	ctx, f := t.Context(), w.open(nil)
	if p, missing, err := f.Rights(ctx, w.Repo); err != nil || p != forge.Admin || missing != nil {
		t.Errorf("%s, %q, %v", p, missing, err)
	}
	w.Do("", "POST", "orgs/"+w.Repo.Owner+"/labels", sdk.CreateLabelOption{Name: "shared", Color: "#ededed"}, nil)
	if err := f.EnsureLabels(ctx, w.Repo, []forge.Label{{Name: "own", Color: "ededed"}}); err != nil {
		t.Error(err)
	}
	if all, err := f.Labels(ctx, w.Repo); err != nil || !slices.Contains(all, "own") || !slices.Contains(all, "shared") {
		t.Errorf("%q, %v", all, err)
	}
	if _, err := f.Hook(ctx, w.Repo, hookURL); !errors.Is(err, forge.ErrNoHook) {
		t.Error(err)
	}
	for range 2 { // the second time for another secret
		if err := f.SetHook(ctx, w.Repo, hookURL, "s3cret"); err != nil {
			t.Fatal(err)
		}
		if wrong, err := f.Hook(ctx, w.Repo, hookURL); err != nil || wrong != nil {
			t.Errorf("%q, %v", wrong, err)
		}
	}
	if _, all, err := f.hooks(ctx, w.Repo, hookURL); err != nil || len(all) != 1 || all[0].Type != "gitea" {
		t.Errorf("%d webhooks, %v", len(all), err)
	}
	writer := w.Token(w.Person("writer", forge.Write).Login)
	other := w.open(func(o *Options) { o.Token = writer })
	if p, _, err := other.Rights(ctx, w.Repo); p != forge.Write || !forge.Is(err, forge.Forbidden) || !strings.Contains(err.Error(), "Administrator") {
		t.Errorf("%s, %v", p, err)
	}
	if _, err := other.Hook(ctx, w.Repo, hookURL); !forge.Is(err, forge.Forbidden) {
		t.Error(err)
	}
}

// A webhook that is there and wrong is told, and made anew for what else it is for.
func TestWrongHook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, name := w.open(nil), w.Repo.String()
	wrongly := func(h sdk.Hook) giteatest.Hook { return giteatest.Hook{Hook: h, Secret: "old"} }
	w.fake.AddHook(name, wrongly(sdk.Hook{Type: "gitea", Active: true, Config: map[string]string{"url": "https://elsewhere.example/"}, Events: []string{"push"}}))
	w.fake.AddHook(name, wrongly(sdk.Hook{Type: "slack", Config: map[string]string{"url": hookURL, "content_type": "form"}, BranchFilter: "main",
		Events: []string{"release", "issues", "issue_assign", "issue_label", "pull_request", "pull_request_review_request", "pull_request_assign", "pull_request_label", "pull_request_sync"}}))
	wrong, err := f.Hook(t.Context(), w.Repo, hookURL)
	if got := strings.Join(wrong, ", "); err != nil || got != "active, type: gitea, content_type: json, events: issue_comment, events: pull_request_comment, events: pull_request_review" {
		t.Errorf("%s, %v", got, err)
	}
	if err := f.SetHook(t.Context(), w.Repo, hookURL, "s3cret"); err != nil {
		t.Fatal(err)
	}
	if wrong, err := f.Hook(t.Context(), w.Repo, hookURL); err != nil || wrong != nil {
		t.Errorf("%q, %v", wrong, err)
	}
	all := w.fake.Hooks(name)
	if len(all) != 2 || all[0].Secret != "old" || all[1].Secret != "s3cret" || !all[1].Active || all[1].BranchFilter != "main" || !slices.Contains(all[1].Events, "release") || slices.Contains(all[1].Events, "push") {
		t.Errorf("%+v", all)
	}
	// Reviews by what they came to, as servers show those for all events.
	all[1].Events = slices.DeleteFunc(append(all[1].Events, "pull_request_review_approved"), func(e string) bool { return e == "pull_request_review" })
	all[1].Config["url"] += "/2"
	w.fake.AddHook(name, all[1])
	if wrong, err := f.Hook(t.Context(), w.Repo, hookURL+"/2"); err != nil || wrong != nil {
		t.Errorf("%q, %v", wrong, err)
	}
}
