package gitea

import (
	"context"
	"net/http"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// Rights implements forge.Setup. Gitea tells no scopes of a token. Where our account is no administrator
// nobody may ask for work (see Permission): that is an error of kind Forbidden.
func (f *Forge) Rights(ctx context.Context, r forge.Repo) (p forge.Permission, missing []string, err error) {
	d, err := f.at(r, i18n.E("rest.do_repository"))
	if err != nil {
		return forge.None, nil, err
	}
	var repo sdk.Repository
	if _, err := d.Get(ctx, below(r), nil, &repo); err != nil {
		return forge.None, nil, err
	}
	switch may := repo.Permissions; {
	case may != nil && may.Admin:
		return forge.Admin, nil, nil
	case may != nil && may.Push:
		p = forge.Write
	case may != nil && may.Pull:
		p = forge.Read
	}
	return p, nil, d.Failed(forge.Forbidden, 0, i18n.E("gitea.said_permission"), i18n.E("gitea.advice_permission"), nil)
}

// Labels implements forge.Setup: those of the organization count.
func (f *Forge) Labels(ctx context.Context, r forge.Repo) ([]string, error) {
	d, err := f.at(r, i18n.E("rest.do_read_labels"))
	if err != nil {
		return nil, err
	}
	all, err := f.labels(ctx, d, r)
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
	}
	return names, err
}

// hookEvents are what a webhook is to tell of. Reviews are shown as one event, or by what they came to.
var hookEvents = []string{"issues", "issue_assign", "issue_label", "issue_comment", "pull_request", "pull_request_assign", "pull_request_label", "pull_request_comment", reviewed, "pull_request_sync"}

const reviewed = "pull_request_review"

// hooks are the webhooks of a repository to an address.
func (f *Forge) hooks(ctx context.Context, r forge.Repo, url string) (*call, []*sdk.Hook, error) {
	d, err := f.at(r, i18n.E("rest.do_hook"))
	if err != nil {
		return nil, nil, err
	}
	all, err := pages[sdk.Hook](ctx, d, below(r, "hooks"), nil)
	return d, slices.DeleteFunc(all, func(h *sdk.Hook) bool { return h.Config["url"] != url }), err
}

// Hook implements forge.Setup. Gitea does not tell whether there is a secret.
func (f *Forge) Hook(ctx context.Context, r forge.Repo, url string) (wrong []string, err error) {
	_, all, err := f.hooks(ctx, r, url)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, forge.ErrNoHook
	}
	h := all[0]
	if !h.Active {
		wrong = append(wrong, "active")
	}
	if h.Type != "gitea" && h.Type != "forgejo" {
		wrong = append(wrong, "type: gitea")
	}
	if h.Config["content_type"] != "json" {
		wrong = append(wrong, "content_type: json")
	}
	for _, e := range hookEvents {
		if !slices.ContainsFunc(h.Events, func(has string) bool {
			return has == e || e == reviewed && strings.HasPrefix(has, reviewed+"_") && has != reviewed+"_request"
		}) {
			wrong = append(wrong, "events: "+e)
		}
	}
	return wrong, nil
}

// SetHook implements forge.Setup. The secret of a webhook cannot be changed by the API: it is made anew,
// for what else it told of as well, before the old one goes. The header Authorization of that is not shown since Gitea 1.27, and goes with it.
func (f *Forge) SetHook(ctx context.Context, r forge.Repo, url, secret string) error {
	d, old, err := f.hooks(ctx, r, url)
	if err != nil {
		return err
	}
	o := sdk.CreateHookOption{Type: sdk.HookTypeGitea, Active: true, Events: slices.Clone(hookEvents), Config: map[string]string{"url": url, "content_type": "json", "secret": secret}}
	for _, h := range old {
		o.Events = append(o.Events, h.Events...)
		o.BranchFilter, o.AuthorizationHeader = h.BranchFilter, h.AuthorizationHeader
	}
	slices.Sort(o.Events)
	o.Events = slices.Compact(o.Events)
	if _, err := d.Send(ctx, http.MethodPost, below(r, "hooks"), o, nil); err != nil {
		return err
	}
	for _, h := range old {
		if _, err := d.Send(ctx, http.MethodDelete, below(r, "hooks", h.ID), nil, nil); err != nil && !forge.Is(err, forge.NotFound) {
			return err
		}
	}
	return nil
}

var _ forge.Setup = (*Forge)(nil)
