package github

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
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
	var asked *forge.Asked
	var taken *forge.TriggerRemoved // the last time that it was
	// Each trigger is decided by the last event about it.
	label, assignee := t.Label != "", t.Assignee.Login != "" || t.Assignee.ID != 0
	read := 0
	_, err = backward(ctx, d, below(forge.RepoOf(k), "issues", n, "events"), nil, func(page []*github.IssueEvent) bool {
		read += len(page)
		return reversed(page, func(e *github.IssueEvent) bool {
			switch e.GetEvent() {
			case "labeled", "unlabeled":
				if !label || !strings.EqualFold(e.GetLabel().GetName(), t.Label) {
					return true
				}
				label = false
			case "assigned", "unassigned":
				if !assignee || !isPerson(e.GetAssignee(), t.Assignee) {
					return true
				}
				assignee = false
			default:
				return true
			}
			if !strings.HasPrefix(e.GetEvent(), "un") {
				asked = &forge.Asked{By: actor(e), At: e.GetCreatedAt().UTC(), Event: strconv.FormatInt(e.GetID(), 10)}
				return false
			}
			if taken == nil {
				taken = &forge.TriggerRemoved{By: actor(e), At: e.GetCreatedAt().UTC()}
			}
			return label || assignee
		}) && read < mostEvents
	})
	switch {
	case err != nil:
		return forge.Asked{}, err
	case asked == nil && taken != nil:
		return forge.Asked{}, taken
	case asked == nil:
		return forge.Asked{}, forge.ErrNotAsked
	}
	return *asked, nil
}

func isPerson(u *github.User, p forge.Person) bool {
	if p.ID != 0 {
		return u.GetID() == p.ID
	}
	return strings.EqualFold(u.GetLogin(), p.Login)
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
	if _, err := d.get(ctx, path("users", login), nil, &u); err != nil {
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
	_, err = d.get(ctx, below(r, "collaborators", p.Login, "permission"), nil, &level)
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
