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
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"
)

// mostEvents bounds how far back an item's history is read, events.
const mostEvents = 2000

// act is that a trigger was put on an item, or taken away.
type act struct {
	by    forge.Person
	at    time.Time
	event string
	on    bool
}

// Asked implements forge.Tracker. Labels have a history of their own; who assigned whom
// is told by the notes that the server writes. An act that lies more than 2,000 events
// back is not found.
func (f *Forge) Asked(ctx context.Context, k task.Key, t forge.Trigger) (forge.Asked, error) {
	d, at, err := f.on(k, "gitlab.do_events")
	if err != nil {
		return forge.Asked{}, err
	}
	var last []*act
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
	// Each trigger is decided by the last act about it; the later one counts.
	var asked, taken *act
	for _, a := range last {
		switch {
		case a == nil:
		case a.on && (asked == nil || a.at.After(asked.at)):
			asked = a
		case !a.on && (taken == nil || a.at.After(taken.at)):
			taken = a
		}
	}
	switch {
	case asked != nil:
		return forge.Asked{By: asked.by, At: asked.at, Event: asked.event}, nil
	case taken != nil:
		return forge.Asked{}, &forge.TriggerRemoved{By: taken.by, At: taken.at}
	}
	if len(last) == 0 { // the item was not asked for yet
		_, err = d.get(ctx, at, nil, nil)
	}
	if err == nil {
		err = forge.ErrNotAsked
	}
	return forge.Asked{}, err
}

// labelled is the last act about a label, nil where there is none. A label that
// came with an import has no history: nobody put it on.
func (d *call) labelled(ctx context.Context, at, label string) (a *act, err error) {
	read := 0
	_, err = backward(ctx, d, at+"/resource_label_events", nil, func(page []*gitlab.LabelEvent) bool {
		read += len(page)
		slices.SortStableFunc(page, func(a, b *gitlab.LabelEvent) int { return cmp.Compare(a.ID, b.ID) })
		for _, e := range page { // the last one counts
			if strings.EqualFold(e.Label.Name, label) {
				a = &act{by: user(&e.User), at: when(e.CreatedAt), event: "label-" + strconv.FormatInt(e.ID, 10), on: e.Action == "add"}
			}
		}
		return a == nil && read < mostEvents
	})
	return a, err
}

// assigned is the last act about who works on an item, nil where there is none. Source:
// GitLab, app/services/system_notes/issuables_service.rb.
func (d *call) assigned(ctx context.Context, at string, to forge.Person) (a *act, err error) {
	told := false // of any assignment
	err = d.system(ctx, at, func(n *gitlab.Note) bool {
		gets, loses, ok := assignment(n.Body)
		told = told || ok
		if !ok || !names(gets, to.Login) && !names(loses, to.Login) && !strings.HasPrefix(n.Body, "removed assignee") {
			return true
		}
		a = &act{by: person(n.Author.ID, n.Author.Username), at: when(n.CreatedAt), event: "note-" + strconv.FormatInt(n.ID, 10), on: names(gets, to.Login)}
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
	if _, err := d.get(ctx, at, nil, &g); err != nil {
		return nil, err
	}
	if (forge.Item{Assignees: users(g.Assignees)}).AssignedTo(to) {
		a = &act{by: user(g.Author), at: when(g.CreatedAt), event: "item-" + strconv.FormatInt(g.ID, 10), on: true}
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
	for _, m := range atName().FindAllStringSubmatch(text, -1) {
		if strings.EqualFold(m[1], login) {
			return true
		}
	}
	return false
}

// system reads the notes that the server wrote, the last first, until use returns false.
func (d *call) system(ctx context.Context, at string, use func(*gitlab.Note) bool) error {
	read := 0
	return forward(ctx, d, at+"/notes", query("sort", "desc", "order_by", "created_at", "activity_filter", "only_activity"), func(page []*gitlab.Note) bool {
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
	for _, how := range []string{"changed the description", "changed title from ", "marked the task ", "marked the checklist item "} {
		if strings.HasPrefix(body, how) {
			return true
		}
	}
	return false
}
