package gitlabtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// versions are those of the change: that of the head alone.
func versions(c *call, i *item) (int, any) {
	return paged(c, []object{{"id": i.id, "head_commit_sha": i.sha, "base_commit_sha": i.old, "start_commit_sha": i.old, "created_at": stamp(i.created),
		"merge_request_id": i.id, "state": "collected", "real_size": "1", "patch_id_sha": i.sha}})
}

func (n *note) draft(i *item) object {
	o := object{"id": n.id, "author_id": n.author.id, "merge_request_id": i.id, "resolve_discussion": false, "discussion_id": nil, "note": n.body, "commit_id": nil,
		"line_code": nil, "position": nil}
	if n.kind == "DiffNote" {
		o["position"] = i.noteWire(n)["position"]
	}
	return o
}

// draftList lists the drafts of who asks.
func draftList(c *call, i *item) (int, any) {
	wires := []object{}
	for _, n := range i.drafts {
		if n.author == c.user {
			wires = append(wires, n.draft(i))
		}
	}
	return paged(c, wires)
}

func draftMake(c *call, i *item) (int, any) {
	body, _ := c.text("note")
	n := &note{id: c.s.id(), body: quickActions(i, body), author: c.user}
	if at, ok := c.body["position"].(map[string]any); ok {
		n.kind, n.head = "DiffNote", i.sha
		n.path, _ = at["new_path"].(string)
		line, _ := at["new_line"].(float64)
		n.line = int(line)
		text, err := i.p.git("show", i.sha+":"+n.path)
		if err != nil || n.line < 1 || n.line > strings.Count(text, "\n")+1 || at["head_sha"] != i.sha || at["base_sha"] != i.old {
			return http.StatusBadRequest, object{"message": object{"line_code": []string{"can't be blank", "must be a valid line code"}}}
		}
	}
	i.drafts = append(i.drafts, n)
	return http.StatusCreated, n.draft(i)
}

// draftPublish publishes one draft of who asks, or all.
func draftPublish(c *call, i *item) (int, any) {
	id := c.r.PathValue("draft_note_id")
	i.drafts = slices.DeleteFunc(i.drafts, func(d *note) bool {
		if d.author != c.user || id != "" && strconv.FormatInt(d.id, 10) != id {
			return false
		}
		n := i.say(c.user, d.body, false)
		n.kind, n.path, n.line, n.head = d.kind, d.path, d.line, d.head
		return true
	})
	return http.StatusNoContent, nil
}

// Draft has somebody write a draft of a note.
func (p *Project) Draft(n, by, body string) {
	p.on(n, func(i *item) { i.drafts = append(i.drafts, &note{id: p.s.id(), body: body, author: p.s.must(by)}) })
}

// Drafts are the texts of drafts that are not published.
func (p *Project) Drafts(n string) (all []string) {
	p.on(n, func(i *item) {
		for _, d := range i.drafts {
			all = append(all, d.body)
		}
	})
	return all
}
