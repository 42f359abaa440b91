package gitea

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// event is one of an item's history. The library's has another label and no assignee.
type event struct {
	ID              int64      `json:"id"`
	Type            string     `json:"type"`
	User            *sdk.User  `json:"user"`
	Body            string     `json:"body"` // "1" of a label that was put on
	Created         time.Time  `json:"created_at"`
	Label           *sdk.Label `json:"label"` // nil where it was deleted since
	Assignee        *sdk.User  `json:"assignee"`
	RemovedAssignee bool       `json:"removed_assignee"`
}

// history is all that happened to an item, oldest first. Gitea leaves out what it does not
// show after it has made a page, and does not say how much there is: a page can be short, or
// empty, and not the last one. The end is where two in a row are empty.
func (d *call) history(ctx context.Context, r forge.Repo, n int, since time.Time) ([]*event, error) {
	var all []*event
	empty := 0
	for page := 1; empty < 2 && page <= rest.MostPages; page++ {
		var some []*event
		if _, err := d.Get(ctx, below(r, "issues", n, "timeline"), paged(rest.From(since), page), &some); err != nil {
			return nil, d.absent(ctx, r, n, err)
		}
		if empty++; len(some) > 0 {
			empty = 0
		}
		all = append(all, rest.Present(some)...)
	}
	return all, nil
}

// Asked implements forge.Tracker. Of a label that was deleted since nobody has asked.
func (f *Forge) Asked(ctx context.Context, k task.Key, t forge.Trigger) (forge.Asked, error) {
	d, n, err := f.on(k, "rest.do_events")
	if err != nil {
		return forge.Asked{}, err
	}
	all, err := d.history(ctx, forge.RepoOf(k), n, time.Time{})
	if err != nil {
		return forge.Asked{}, err
	}
	var label, assigned *rest.Act // each trigger is decided by the last event about it
	for _, e := range all {
		a := &rest.Act{By: person(e.User), At: e.Created.UTC(), Event: strconv.FormatInt(e.ID, 10)}
		switch {
		case e.Type == "label" && t.Label != "" && e.Label != nil && strings.EqualFold(e.Label.Name, t.Label):
			label, a.On = a, e.Body == "1"
		case e.Type == "assignees" && rest.Meant(person(e.Assignee), t.Assignee):
			assigned, a.On = a, !e.RemovedAssignee
		}
	}
	return rest.Asked(label, assigned)
}

// EditedSince implements forge.Editors. Who changed a title the history tells. Who changed
// the text nothing does, nor when; newer servers tell that somebody did. That can be its
// author, or people who may write to the repository: where it may have been changed after the
// time it is taken for changed by its author.
func (f *Forge) EditedSince(ctx context.Context, k task.Key, since time.Time) ([]forge.Person, error) {
	d, n, err := f.on(k, "rest.do_edits")
	if err != nil {
		return nil, err
	}
	r := forge.RepoOf(k)
	events, err := d.history(ctx, r, n, since)
	if err != nil {
		return nil, err
	}
	var all []forge.Person
	for _, e := range events {
		if p := person(e.User); e.Type == "change_title" && e.Created.After(since) && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	var g struct {
		sdk.Issue
		Edits *int `json:"content_version"` // how often the text was changed; nil of older servers
	}
	if _, err := d.Get(ctx, below(r, "issues", n), nil, &g); err != nil {
		return nil, err
	}
	if p := writer(g.Poster, g.OriginalAuthor); g.Updated.After(since) && (g.Edits == nil || *g.Edits > 0) && !slices.Contains(all, p) {
		all = append(all, p)
	}
	return all, nil
}

// Person implements forge.CodeHost.
func (f *Forge) Person(ctx context.Context, r forge.Repo, login string) (forge.Person, error) {
	d, err := f.at(r, i18n.E("rest.do_person", login))
	if err != nil {
		return forge.Person{}, err
	}
	var u sdk.User
	if _, err := d.Get(ctx, path("users", login), nil, &u); err != nil {
		return forge.Person{}, err
	}
	if p := person(&u); strings.EqualFold(p.Login, login) {
		return p, nil
	}
	return forge.Person{}, d.Unknown() // a name that was given up leads to the new one
}

// Permission implements forge.Tracker. Gitea tells that of others to administrators of the
// repository alone.
func (f *Forge) Permission(ctx context.Context, r forge.Repo, p forge.Person) (forge.Permission, error) {
	if p.ID <= 0 || p.Login == "" {
		return forge.None, nil
	}
	d, err := f.at(r, i18n.E("rest.do_permission", p.Login))
	if err != nil {
		return forge.None, err
	}
	var level sdk.CollaboratorPermissionResult
	_, err = d.Get(ctx, below(r, "collaborators", p.Login, "permission"), nil, &level)
	var e *forge.Error
	switch {
	case forge.Is(err, forge.NotFound):
		return forge.None, nil
	case forge.Is(err, forge.Forbidden) && errors.As(err, &e):
		return forge.None, d.Failed(e.Kind, e.Status, i18n.E("gitea.said_permission"), i18n.E("gitea.advice_permission"), e)
	case err != nil || level.User == nil || level.User.ID != p.ID:
		return forge.None, err
	case level.Permission == sdk.AccessModeOwner:
		return forge.Admin, nil
	}
	role, _ := forge.ParsePermission(string(level.Permission))
	return role, nil
}
