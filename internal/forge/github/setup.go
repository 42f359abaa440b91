package github

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// needed are the permissions that an App has to have (docs/serve.md).
var needed = []string{"checks: read", "contents: write", "issues: write", "metadata: read", "pull_requests: write", "statuses: read"}

// Rights implements forge.Setup. Of fine-grained tokens GitHub tells no permissions.
func (f *Forge) Rights(ctx context.Context, r forge.Repo) (p forge.Permission, missing []string, err error) {
	d, err := f.at(ctx, r, i18n.E("rest.do_repository"))
	if err != nil {
		return forge.None, nil, err
	}
	if a, ok := f.access.(*appAccess); ok {
		return a.rights(ctx, r)
	}
	var repo github.Repository
	resp, err := d.Get(ctx, below(r), nil, &repo)
	if err != nil {
		return forge.None, nil, err
	}
	may := repo.GetPermissions()
	switch {
	case may.GetAdmin():
		p = forge.Admin
	case may.GetMaintain():
		p = forge.Maintain
	case may.GetPush():
		p = forge.Write
	case may.GetTriage():
		p = forge.Triage
	case may.GetPull():
		p = forge.Read
	}
	if _, classic := resp.Header["X-Oauth-Scopes"]; classic {
		scopes := strings.FieldsFunc(resp.Header.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
		if !slices.Contains(scopes, "repo") && (repo.GetPrivate() || !slices.Contains(scopes, "public_repo")) {
			missing = append(missing, "repo")
		}
	}
	return p, missing, nil
}

// rights are those of the App's installation.
func (a *appAccess) rights(ctx context.Context, r forge.Repo) (forge.Permission, []string, error) {
	d := asking(a.own(), r.String(), i18n.E("github.do_installation"))
	var in github.Installation
	if _, err := d.Get(ctx, below(r, "installation"), nil, &in); err != nil {
		return forge.None, nil, err
	}
	raw, err := json.Marshal(in.GetPermissions())
	if err != nil {
		return forge.None, nil, err
	}
	var has map[string]string
	if err := json.Unmarshal(raw, &has); err != nil {
		return forge.None, nil, err
	}
	var missing []string
	for _, need := range needed {
		name, level, _ := strings.Cut(need, ": ")
		if has[name] == "" || level == "write" && has[name] == "read" {
			missing = append(missing, need)
		}
	}
	if has["contents"] == "write" {
		return forge.Write, missing, nil
	}
	return forge.Read, missing, nil
}

// Labels implements forge.Setup.
func (f *Forge) Labels(ctx context.Context, r forge.Repo) ([]string, error) {
	d, err := f.at(ctx, r, i18n.E("rest.do_read_labels"))
	if err != nil {
		return nil, err
	}
	all, err := rest.Pages[github.Label](ctx, d, below(r, "labels"), nil)
	return labels(all), err
}

// hookEvents are what a webhook is to tell of.
var hookEvents = []string{"issue_comment", "issues", "pull_request", "pull_request_review", "pull_request_review_comment"}

// hook is the webhook of a repository to an address.
func (f *Forge) hook(ctx context.Context, r forge.Repo, url string) (*call, *github.Hook, error) {
	d, err := f.at(ctx, r, i18n.E("rest.do_hook"))
	if err != nil {
		return nil, nil, err
	}
	if _, app := f.access.(*appAccess); app {
		return nil, nil, d.Failed(forge.Unsupported, 0, i18n.E("rest.said_nothing", d.Name), i18n.E("github.advice_app_hook", url, strings.Join(hookEvents, ", ")), nil)
	}
	all, err := rest.Pages[github.Hook](ctx, d, below(r, "hooks"), nil)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range all {
		if h.GetConfig().GetURL() == url {
			return d, h, nil
		}
	}
	return d, nil, nil
}

// Hook implements forge.Setup. The webhook of an App is the App's own.
func (f *Forge) Hook(ctx context.Context, r forge.Repo, url string) (wrong []string, err error) {
	_, h, err := f.hook(ctx, r, url)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, forge.ErrNoHook
	}
	if !h.GetActive() {
		wrong = append(wrong, "active")
	}
	if h.GetConfig().GetContentType() != "json" {
		wrong = append(wrong, "content_type: json")
	}
	if h.GetConfig().GetSecret() == "" { // it is shown as stars
		wrong = append(wrong, "secret")
	}
	for _, e := range hookEvents {
		if !slices.Contains(h.Events, e) && !slices.Contains(h.Events, "*") {
			wrong = append(wrong, "events: "+e)
		}
	}
	return wrong, nil
}

// SetHook implements forge.Setup.
func (f *Forge) SetHook(ctx context.Context, r forge.Repo, url, secret string) error {
	d, h, err := f.hook(ctx, r, url)
	if err != nil {
		return err
	}
	method, at := http.MethodPost, below(r, "hooks")
	events, format, active, insecure := slices.Clone(hookEvents), "json", true, "0"
	if h != nil {
		insecure = cmp.Or(h.GetConfig().GetInsecureSSL(), insecure)
		method, at = http.MethodPatch, below(r, "hooks", h.GetID())
		events = append(events, h.Events...)
	}
	slices.Sort(events)
	_, err = d.Send(ctx, method, at, map[string]any{"active": &active, "events": slices.Compact(events),
		"config": &github.HookConfig{URL: &url, ContentType: &format, Secret: &secret, InsecureSSL: &insecure}}, nil)
	return err
}

var _ forge.Setup = (*Forge)(nil)
