package github

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// mostEvents bounds how far back an item's history is read, events.
const mostEvents = 2000

// Asked implements forge.Tracker. The history is read from its end; an act that
// lies more than 2,000 events back is not found.
func (f *Forge) Asked(ctx context.Context, k task.Key, t forge.Trigger) (forge.Asked, error) {
	d, n, err := f.on(ctx, k, "rest.do_events")
	if err != nil {
		return forge.Asked{}, err
	}
	var label, assigned *rest.Act // each trigger is decided by the last event about it
	read := 0
	_, err = rest.Backward(ctx, d, below(forge.RepoOf(k), "issues", n, "events"), nil, func(page []*github.IssueEvent) bool {
		read += len(page)
		for _, e := range slices.Backward(page) {
			a := &rest.Act{By: actor(e), At: e.GetCreatedAt().UTC(), Event: strconv.FormatInt(e.GetID(), 10), On: !strings.HasPrefix(e.GetEvent(), "un")}
			switch e.GetEvent() {
			case "labeled", "unlabeled":
				if label == nil && t.Label != "" && strings.EqualFold(e.GetLabel().GetName(), t.Label) {
					label = a
				}
			case "assigned", "unassigned":
				if assigned == nil && rest.Meant(person(e.GetAssignee()), t.Assignee) {
					assigned = a
				}
			}
		}
		return read < mostEvents && (label == nil && t.Label != "" || assigned == nil && t.Assignee != (forge.Person{}))
	})
	if err != nil {
		return forge.Asked{}, err
	}
	return rest.Asked(label, assigned)
}

// actor is who did it; of an assignment that is who assigned, which older
// servers keep apart from the actor.
func actor(e *github.IssueEvent) forge.Person {
	if e.Assigner != nil {
		return person(e.Assigner)
	}
	return person(e.Actor)
}

// Person implements forge.CodeHost.
func (f *Forge) Person(ctx context.Context, r forge.Repo, login string) (forge.Person, error) {
	d, err := f.at(ctx, r, i18n.E("rest.do_person", login))
	if err != nil {
		return forge.Person{}, err
	}
	var u github.User
	if _, err := d.Get(ctx, path("users", login), nil, &u); err != nil {
		return forge.Person{}, err
	}
	return person(&u), nil
}

// Permission implements forge.Tracker.
func (f *Forge) Permission(ctx context.Context, r forge.Repo, p forge.Person) (forge.Permission, error) {
	if p.ID == 0 || p.Login == "" {
		return forge.None, nil
	}
	d, err := f.at(ctx, r, i18n.E("rest.do_permission", p.Login))
	if err != nil {
		return forge.None, err
	}
	var level github.RepositoryPermissionLevel
	_, err = d.Get(ctx, below(r, "collaborators", p.Login, "permission"), nil, &level)
	if forge.Is(err, forge.NotFound) {
		return forge.None, nil
	}
	if err != nil || level.GetUser().GetID() != p.ID {
		return forge.None, err
	}
	// The role is finer; one that an organization made for itself has its own
	// name and the older word for what it can do.
	if role, ok := forge.ParsePermission(level.GetRoleName()); ok {
		return role, nil
	}
	role, _ := forge.ParsePermission(level.GetPermission())
	return role, nil
}
