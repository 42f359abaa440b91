package gitlab

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"
)

// mostEvents bounds how far back an item's history is read, events.
const mostEvents = 2000

// Asked implements forge.Tracker. Labels have a history of their own; who assigned whom
// is told by the notes that the server writes. An act that lies more than 2,000 events
// back is not found.
func (f *Forge) Asked(ctx context.Context, k task.Key, t forge.Trigger) (forge.Asked, error) {
	d, at, err := f.on(k, "gitlab.do_events")
	if err != nil {
		return forge.Asked{}, err
	}
	var last []*rest.Act
	if t.Label != "" {
		a, err := d.labelled(ctx, at, t.Label)
		if err != nil {
			return forge.Asked{}, err
		}
		last = append(last, a)
	}
	if t.Assignee.Login != "" {
		a, err := d.assigned(ctx, at, t.Assignee)
		if err != nil {
			return forge.Asked{}, err
		}
		last = append(last, a)
	}
	if len(last) == 0 { // the item was not asked for yet
		if _, err = d.Get(ctx, at, nil, nil); err != nil {
			return forge.Asked{}, err
		}
	}
	return rest.Asked(last...)
}

// labelled is the last act about a label, nil where there is none. A label that
// came with an import has no history: nobody put it on.
func (d *call) labelled(ctx context.Context, at, label string) (a *rest.Act, err error) {
	read := 0
	_, err = rest.Backward(ctx, d, at+"/resource_label_events", nil, func(page []*gitlab.LabelEvent) bool {
		read += len(page)
		slices.SortStableFunc(page, func(a, b *gitlab.LabelEvent) int { return cmp.Compare(a.ID, b.ID) })
		for _, e := range page { // the last one counts
			if strings.EqualFold(e.Label.Name, label) {
				a = &rest.Act{By: user(&e.User), At: when(e.CreatedAt), Event: "label-" + strconv.FormatInt(e.ID, 10), On: e.Action == "add"}
			}
		}
		return a == nil && read < mostEvents
	})
	return a, err
}

// assigned is the last act about who works on an item, nil where there is none. Source:
// GitLab, app/services/system_notes/issuables_service.rb.
func (d *call) assigned(ctx context.Context, at string, to forge.Person) (a *rest.Act, err error) {
	told := false // of any assignment
	err = d.system(ctx, at, func(n *gitlab.Note) bool {
		gets, loses, ok := assignment(n.Body)
		told = told || ok
		if !ok || !names(gets, to.Login) && !names(loses, to.Login) && !strings.HasPrefix(n.Body, "removed assignee") {
			return true
		}
		a = &rest.Act{By: person(n.Author.ID, n.Author.Username), At: when(n.CreatedAt), Event: "note-" + strconv.FormatInt(n.ID, 10), On: names(gets, to.Login)}
		return false
	})
	if err != nil || a != nil || told {
		return a, err
	}
	// Nobody was ever assigned later: then whoever opened it said who works on it.
	var g struct {
		ID        int64
		Author    *gitlab.BasicUser
		CreatedAt *time.Time          `json:"created_at"`
		Assignees []*gitlab.BasicUser `json:"assignees"`
	}
	if _, err := d.Get(ctx, at, nil, &g); err != nil {
		return nil, err
	}
	if (forge.Item{Assignees: rest.Each(g.Assignees, user)}).AssignedTo(to) {
		a = &rest.Act{By: user(g.Author), At: when(g.CreatedAt), Event: "item-" + strconv.FormatInt(g.ID, 10), On: true}
	}
	return a, nil
}

// assignment reads a note about who works on an item.
func assignment(body string) (gets, loses string, ok bool) {
	switch {
	case strings.HasPrefix(body, "assigned to "):
		gets, loses, _ = strings.Cut(body, "unassigned ")
		return gets, loses, true
	case strings.HasPrefix(body, "unassigned "), strings.HasPrefix(body, "removed assignee"):
		return "", body, true
	}
	return "", "", false
}

var atName = lazyregexp.New(`@([0-9A-Za-z_](?:[0-9A-Za-z_.-]*[0-9A-Za-z_-])?)`)

func names(text, login string) bool {
	return slices.ContainsFunc(atName().FindAllStringSubmatch(text, -1), func(m []string) bool { return strings.EqualFold(m[1], login) })
}

// system reads the notes that the server wrote, the last first, until use returns false.
func (d *call) system(ctx context.Context, at string, use func(*gitlab.Note) bool) error {
	read := 0
	return rest.Forward(ctx, d, at+"/notes", query("sort", "desc", "order_by", "created_at", "activity_filter", "only_activity"), func(page []*gitlab.Note) bool {
		read += len(page)
		for _, n := range page {
			if n.System && !use(n) {
				return false
			}
		}
		return read < mostEvents
	})
}

// EditedSince implements forge.Editors: the server notes each change of a title and a
// text, and of a box that is ticked in it.
func (f *Forge) EditedSince(ctx context.Context, k task.Key, from time.Time) ([]forge.Person, error) {
	d, at, err := f.on(k, "gitlab.do_edits")
	if err != nil {
		return nil, err
	}
	var all []forge.Person
	seen := map[forge.Person]bool{}
	err = d.system(ctx, at, func(n *gitlab.Note) bool {
		if !when(n.CreatedAt).After(from) {
			return false
		}
		p := person(n.Author.ID, n.Author.Username)
		if edits(n.Body) && !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
		return true
	})
	return all, err
}

func edits(body string) bool {
	all := []string{"changed the description", "changed title from ", "marked the task ", "marked the checklist item "}
	return slices.ContainsFunc(all, func(how string) bool { return strings.HasPrefix(body, how) })
}
