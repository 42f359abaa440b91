package gitlab

import (
	"context"
	"net/http"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// Person implements forge.CodeHost.
func (f *Forge) Person(ctx context.Context, r forge.Repo, login string) (forge.Person, error) {
	d := f.asking(r.String(), i18n.E("rest.do_person", login))
	var found []*gitlab.User
	if _, err := d.Get(ctx, "users", query("username", login), &found); err != nil {
		return forge.Person{}, err
	}
	for _, u := range rest.Present(found) {
		if strings.EqualFold(u.Username, login) {
			u, err := d.account(ctx, u.ID)
			p := person(u.ID, u.Username)
			p.Bot = p.Bot || u.Bot
			return p, err
		}
	}
	return forge.Person{}, d.Answered(http.StatusNotFound, "Not Found", nil, nil, nil)
}

// account is an account's own page.
func (d *call) account(ctx context.Context, id int64) (*gitlab.User, error) {
	var u gitlab.User
	_, err := d.Get(ctx, path("users", id), nil, &u)
	return &u, err
}

// Permission implements forge.Tracker. Who is no member may read a public project. A bot that
// items do not show as one has none: people name service accounts as they like.
func (f *Forge) Permission(ctx context.Context, r forge.Repo, p forge.Person) (forge.Permission, error) {
	if p.ID == 0 || p.Login == "" {
		return forge.None, nil
	}
	d, err := f.at(r, i18n.E("rest.do_permission", p.Login))
	if err != nil {
		return forge.None, err
	}
	var m gitlab.ProjectMember
	_, err = d.Get(ctx, d.below("members", "all", p.ID), nil, &m)
	switch {
	case forge.Is(err, forge.NotFound):
		return d.outside(ctx, p)
	case err != nil:
		return forge.None, err
	case m.ID != p.ID || !strings.EqualFold(m.Username, p.Login) || m.State != "active":
		return forge.None, nil
	}
	if !p.Bot {
		u, err := d.account(ctx, p.ID)
		if err != nil || u.Bot {
			return forge.None, gone(err)
		}
	}
	return level(m.AccessLevel), nil
}

// outside is the permission of somebody who is no member.
func (d *call) outside(ctx context.Context, p forge.Person) (forge.Permission, error) {
	at, err := d.read(ctx)
	if err != nil || at.Visibility != gitlab.PublicVisibility {
		return forge.None, gone(err)
	}
	u, err := d.account(ctx, p.ID)
	if err != nil || u.ID != p.ID || !strings.EqualFold(u.Username, p.Login) || u.State != "active" {
		return forge.None, gone(err)
	}
	return forge.Read, nil
}

// level is a permission by GitLab's number of it; those between two, as the planner's 15,
// are the weaker one. Source: GitLab docs, "Members API".
func level(n gitlab.AccessLevelValue) forge.Permission {
	switch {
	case n >= gitlab.OwnerPermissions:
		return forge.Admin
	case n >= gitlab.MaintainerPermissions:
		return forge.Maintain
	case n >= gitlab.DeveloperPermissions:
		return forge.Write
	case n >= gitlab.ReporterPermissions:
		return forge.Triage
	case n >= gitlab.GuestPermissions:
		return forge.Read
	}
	return forge.None
}
