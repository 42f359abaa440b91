package gitlab

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// needed are the scopes of a token (docs/serve.md).
var needed = []string{"api", "write_repository"}

// Rights implements forge.Setup. A token tells its own scopes, also one of a project or a group; where
// it does not, or they are finer ones (granular), none is said to be missing.
func (f *Forge) Rights(ctx context.Context, r forge.Repo) (p forge.Permission, missing []string, err error) {
	self, err := f.Self(ctx)
	if err != nil {
		return forge.None, nil, err
	}
	if p, err = f.Permission(ctx, r, self); err != nil {
		return forge.None, nil, err
	}
	var t struct{ Scopes []string }
	_, err = f.asking("", i18n.E("gitlab.do_scopes")).Get(ctx, path("personal_access_tokens", "self"), nil, &t)
	switch {
	case forge.Is(err, forge.Invalid), forge.Is(err, forge.Forbidden), forge.Is(err, forge.NotFound):
		return p, nil, nil
	case err != nil || slices.Contains(t.Scopes, "granular"):
		return p, nil, err
	}
	for _, s := range needed {
		if !slices.Contains(t.Scopes, s) {
			missing = append(missing, s)
		}
	}
	return p, missing, nil
}

// Labels implements forge.Setup: those of the project's groups count.
func (f *Forge) Labels(ctx context.Context, r forge.Repo) ([]string, error) {
	d, err := f.at(r, i18n.E("rest.do_read_labels"))
	if err != nil {
		return nil, err
	}
	return d.allLabels(ctx)
}

// webhook is a webhook of a project. Servers before 19.0 do not tell whether it has a secret.
type webhook struct {
	gitlab.ProjectHook
	Token   *bool `json:"token_present"`
	Signing *bool `json:"signing_token_present"`
}

// events are what the webhook is to tell of, and whether it does. What is confidential is
// listened to where it is worked on.
func (h *webhook) events(confidential bool) map[string]bool {
	all := map[string]bool{"issues_events": h.IssuesEvents, "merge_requests_events": h.MergeRequestsEvents, "note_events": h.NoteEvents}
	if confidential {
		all["confidential_issues_events"], all["confidential_note_events"] = h.ConfidentialIssuesEvents, h.ConfidentialNoteEvents
	}
	return all
}

// kept is what else a webhook is for.
func (h *webhook) kept() map[string]any {
	return map[string]any{"confidential_issues_events": h.ConfidentialIssuesEvents, "confidential_note_events": h.ConfidentialNoteEvents, "deployment_events": h.DeploymentEvents,
		"emoji_events": h.EmojiEvents, "enable_ssl_verification": h.EnableSSLVerification, "feature_flag_events": h.FeatureFlagEvents, "job_events": h.JobEvents,
		"pipeline_events": h.PipelineEvents, "releases_events": h.ReleasesEvents, "resource_access_token_events": h.ResourceAccessTokenEvents, "tag_push_events": h.TagPushEvents,
		"wiki_page_events": h.WikiPageEvents}
}

// hook is the webhook of a project to an address, nil for none.
func (f *Forge) hook(ctx context.Context, r forge.Repo, url string) (*call, *webhook, error) {
	d, err := f.at(r, i18n.E("rest.do_hook"))
	if err != nil {
		return nil, nil, err
	}
	d.forbidden = i18n.E("gitlab.advice_hook")
	all, err := rest.Pages[webhook](ctx, d, d.below("hooks"), nil)
	for _, h := range all {
		if h.URL == url {
			return d, h, err
		}
	}
	return d, nil, err
}

// Hook implements forge.Setup.
func (f *Forge) Hook(ctx context.Context, r forge.Repo, url string) (wrong []string, err error) {
	d, h, err := f.hook(ctx, r, url)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return nil, forge.ErrNoHook
	}
	at, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	for name, on := range h.events(members(at)) {
		if !on {
			wrong = append(wrong, name)
		}
	}
	slices.Sort(wrong)
	if !h.works() {
		wrong = append(wrong, "alert_status: executable")
	}
	if h.Token != nil && h.Signing != nil && !*h.Token && !*h.Signing {
		wrong = append(wrong, "token")
	}
	return wrong, nil
}

// works reports whether GitLab calls the webhook: one that failed too often it does not.
func (h *webhook) works() bool { return h.AlertStatus == "" || h.AlertStatus == "executable" }

// SetHook implements forge.Setup. One that GitLab has given up calling gets another one in its place,
// for the same events. A secret that begins with whsec_ is a signing token, which servers before
// 19.0 pass over: that is an error of kind Invalid.
func (f *Forge) SetHook(ctx context.Context, r forge.Repo, url, secret string) error {
	d, h, err := f.hook(ctx, r, url)
	if err != nil {
		return err
	}
	at, err := d.read(ctx)
	if err != nil {
		return err
	}
	method, to := http.MethodPost, d.below("hooks")
	body := map[string]any{"url": url, "push_events": h != nil && h.PushEvents}
	switch {
	case h == nil:
		body["enable_ssl_verification"] = true
	case h.works():
		method, to = http.MethodPut, d.below("hooks", h.ID)
	default:
		maps.Copy(body, h.kept())
	}
	for name := range (&webhook{}).events(members(at)) {
		body[name] = true
	}
	signing := strings.HasPrefix(secret, "whsec_")
	if signing {
		body["signing_token"] = secret
	} else {
		body["token"] = secret
	}
	var made webhook
	if err := d.send(ctx, method, to, body, &made); err != nil {
		return err
	}
	if h != nil && method == http.MethodPost {
		if err := d.send(ctx, http.MethodDelete, d.below("hooks", h.ID), nil, nil); gone(err) != nil {
			return err
		}
	}
	if signing && (made.Signing == nil || !*made.Signing) {
		return d.Failed(forge.Invalid, 0, i18n.E("gitlab.said_unsigned"), i18n.E("gitlab.advice_unsigned"), nil)
	}
	return nil
}

var _ forge.Setup = (*Forge)(nil)
