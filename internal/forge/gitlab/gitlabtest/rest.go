package gitlabtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// routes are the operations by their patterns in the description.
func routes() map[string]handler {
	all := map[string]handler{
		"GET /user":                                                  func(c *call) (int, any) { return http.StatusOK, c.s.public(c.user) },
		"GET /users":                                                 usersNamed,
		"GET /users/{id}":                                            userPage,
		"GET /groups/{id}/projects":                                  groupProjects,
		"GET /users/{user_id}/projects":                              userProjects,
		"GET /projects/{id}":                                         func(c *call) (int, any) { return http.StatusOK, c.p.wire() },
		"GET /projects/{id}/labels":                                  labelList,
		"POST /projects/{id}/labels":                                 labelMake,
		"GET /personal_access_tokens/self":                           tokenSelf,
		"GET /projects/{id}/hooks":                                   administered(hookList),
		"POST /projects/{id}/hooks":                                  administered(hookMake),
		"PUT /projects/{id}/hooks/{hook_id}":                         administered(hookEdit),
		"DELETE /projects/{id}/hooks/{hook_id}":                      administered(hookEdit),
		"GET /projects/{id}/members/all/{user_id}":                   member,
		"GET /projects/{id}/repository/branches/{branch}":            branch,
		"GET /projects/{id}/repository/commits/{sha}/statuses":       statuses,
		"GET /projects/{id}/repository/commits/{sha}/merge_requests": commitMerges,
		"GET /projects/{id}/jobs/{job_id}/trace":                     trace,
		"POST /projects/{id}/merge_requests":                         mergeOpen,
	}
	for kind, iid := range map[string]string{issues: "issue_iid", merges: "merge_request_iid"} {
		on := func(h func(c *call, i *item) (int, any)) handler {
			return func(c *call) (int, any) {
				n, err := strconv.Atoi(c.r.PathValue(iid))
				i := c.p.item(kind, n)
				if err != nil || i == nil || !i.sees(c.user) {
					return refuse(http.StatusNotFound, "404 Not found")
				}
				return h(c, i)
			}
		}
		at := "/projects/{id}/" + kind
		one := at + "/{" + iid + "}"
		all["GET "+at] = func(c *call) (int, any) { return list(c, kind) }
		all["GET "+one] = on(func(_ *call, i *item) (int, any) { return http.StatusOK, i.wire(true) })
		all["PUT "+one] = on(change)
		all["GET "+one+"/notes"] = on(noteList)
		all["POST "+one+"/notes"] = on(noteMake)
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			all[method+" "+one+"/notes/{note_id}"] = on(noteOne)
		}
		for _, method := range []string{"GET", "POST"} {
			all[method+" "+one+"/award_emoji"] = on(awards)
			all[method+" "+one+"/notes/{note_id}/award_emoji"] = on(awards)
		}
		all["GET "+one+"/resource_label_events"] = on(func(c *call, i *item) (int, any) {
			wires := []object{}
			for _, e := range i.events {
				wires = append(wires, e.wire(i))
			}
			return paged(c, wires)
		})
		if kind == merges {
			all["GET "+one+"/discussions"] = on(discussions)
			all["POST "+one+"/discussions/{discussion_id}/notes"] = on(reply)
			all["GET "+one+"/versions"] = on(versions)
			all["GET "+one+"/draft_notes"] = on(draftList)
			all["POST "+one+"/draft_notes"] = on(draftMake)
			all["PUT "+one+"/draft_notes/{draft_note_id}/publish"] = on(draftPublish)
			all["POST "+one+"/draft_notes/bulk_publish"] = on(draftPublish)
			all["GET "+one+"/approvals"] = on(approvals)
			all["GET "+one+"/reviewers"] = on(reviewers)
		}
	}
	return all
}

func usersNamed(c *call) (int, any) {
	list := []any{}
	if u := c.s.user(c.r.URL.Query().Get("username")); u != nil {
		list = append(list, c.s.basic(u))
	}
	return paged(c, list)
}

func (s *Server) byID(id string) *user {
	for _, u := range s.users {
		if strconv.FormatInt(u.id, 10) == id {
			return u
		}
	}
	return nil
}

func userPage(c *call) (int, any) {
	u := c.s.byID(c.r.PathValue("id"))
	if u == nil {
		return refuse(http.StatusNotFound, "404 User Not Found")
	}
	return http.StatusOK, c.s.public(u)
}

func (c *call) projects(below string) []object {
	list := []object{}
	for _, p := range c.s.projects {
		if strings.EqualFold(p.path[:strings.LastIndexByte(p.path, '/')], below) && p.readable(c.user) && !p.archived {
			list = append(list, p.wire())
		}
	}
	return list
}

func groupProjects(c *call) (int, any) {
	if !c.s.groups[strings.ToLower(c.r.PathValue("id"))] {
		return refuse(http.StatusNotFound, "404 Group Not Found")
	}
	return paged(c, c.projects(c.r.PathValue("id")))
}

func userProjects(c *call) (int, any) {
	if c.s.user(c.r.PathValue("user_id")) == nil {
		return refuse(http.StatusNotFound, "404 User Not Found")
	}
	return paged(c, c.projects(c.r.PathValue("user_id")))
}

func labelList(c *call) (int, any) {
	list := []object{}
	for _, l := range c.p.labels {
		if strings.Contains(strings.ToLower(l.name), strings.ToLower(c.r.URL.Query().Get("search"))) {
			list = append(list, l.wire())
		}
	}
	return paged(c, list)
}

func labelMake(c *call) (int, any) {
	name, _ := c.text("name")
	if slices.ContainsFunc(c.p.labels, func(l *label) bool { return l.name == name }) {
		return refuse(http.StatusConflict, "Label already exists")
	}
	l := c.p.label(name)
	l.color, _ = c.text("color")
	l.description, _ = c.text("description")
	return http.StatusCreated, l.wire()
}

func member(c *call) (int, any) {
	u := c.s.byID(c.r.PathValue("user_id"))
	if u == nil || c.p.level(u) == 0 {
		return refuse(http.StatusNotFound, "404 Not found")
	}
	o := c.s.basic(u).(object)
	o["access_level"], o["expires_at"], o["membership_state"] = c.p.level(u), nil, "active"
	return http.StatusOK, o
}

func branch(c *call) (int, any) {
	name := c.r.PathValue("branch")
	sha := c.p.branches[name]
	if sha == "" {
		return refuse(http.StatusNotFound, "404 Branch Not Found")
	}
	return http.StatusOK, object{"name": name, "commit": object{"id": sha}, "merged": false, "protected": false, "default": name == c.p.branch}
}

func statuses(c *call) (int, any) {
	list := []object{}
	sha, pipeline := c.r.PathValue("sha"), c.r.URL.Query().Get("pipeline_id")
	for _, j := range c.p.statuses {
		if j.sha != sha || pipeline != "" && pipeline != strconv.FormatInt(j.pipeline, 10) {
			continue
		}
		o := object{"id": j.id, "sha": sha, "ref": "main", "status": j.state, "name": j.name, "allow_failure": j.mayFail, "pipeline_id": j.pipeline,
			"description": nil, "target_url": fmt.Sprintf("%s/%s/-/jobs/%d", c.s.URL, c.p.path, j.id), "created_at": stamp(c.s.now()), "coverage": nil}
		if j.description != "" {
			o["description"] = j.description
		}
		list = append(list, o)
	}
	return paged(c, list)
}

func commitMerges(c *call) (int, any) {
	list := []object{}
	for _, i := range c.p.items[merges] {
		if i.sha == c.r.PathValue("sha") {
			list = append(list, i.wire(false))
		}
	}
	return paged(c, list)
}

func trace(c *call) (int, any) {
	for _, j := range c.p.statuses {
		if strconv.FormatInt(j.id, 10) == c.r.PathValue("job_id") && !j.external {
			return http.StatusOK, j.log
		}
	}
	return refuse(http.StatusNotFound, "404 Not found")
}

// list is a list of items by what the query says.
func list(c *call, kind string) (int, any) {
	q := c.r.URL.Query()
	var found []*item
	after, _ := time.Parse(time.RFC3339, q.Get("updated_after"))
	for _, i := range c.p.items[kind] {
		named := func(login string, all ...*user) bool {
			return login == "" || slices.ContainsFunc(all, func(u *user) bool { return strconv.FormatInt(u.id, 10) == login })
		}
		switch state := q.Get("state"); {
		case !i.sees(c.user), state != "" && state != "all" && state != i.state, i.updated.Before(after),
			!named(q.Get("assignee_id"), i.assignees...), !named(q.Get("author_id"), i.author), q.Has("source_branch") && q.Get("source_branch") != i.source,
			!labelled(i, q.Get("labels")):
			continue
		}
		found = append(found, i)
	}
	slices.SortStableFunc(found, func(a, b *item) int {
		if q.Get("order_by") == "updated_at" {
			return a.updated.Compare(b.updated)
		}
		return a.created.Compare(b.created)
	})
	if q.Get("sort") != "asc" {
		slices.Reverse(found)
	}
	wires := []object{}
	for _, i := range found {
		wires = append(wires, i.wire(false))
	}
	return paged(c, wires)
}

// labelled reads the filter as the real server does: names are told apart by case, a comma
// ends one, and two of them are words.
func labelled(i *item, filter string) bool {
	switch strings.ToLower(filter) {
	case "":
		return true
	case "none":
		return len(i.labels) == 0
	case "any":
		return len(i.labels) > 0
	}
	for name := range strings.SplitSeq(filter, ",") {
		if !slices.Contains(i.labels, name) {
			return false
		}
	}
	return true
}

// change is a PUT of an item.
func change(c *call, i *item) (int, any) {
	for name, on := range map[string]bool{"add_labels": true, "remove_labels": false} {
		names, _ := c.text(name)
		for l := range strings.SplitSeq(names, ",") {
			if l = strings.TrimSpace(l); l != "" {
				i.label(c.user, l, on)
			}
		}
	}
	title, body := i.title, i.body
	if v, ok := c.text("title"); ok {
		title = v
	}
	if v, ok := c.text("description"); ok {
		body = quickActions(i, v)
	}
	i.retitle(c.user, title, body)
	if v, _ := c.text("state_event"); v == "close" {
		i.state = "closed"
		i.touch()
	}
	if ids, ok := c.body["reviewer_ids"].([]any); ok {
		i.review(c, ids)
	}
	return http.StatusOK, i.wire(true)
}

// review says who reviews: without a licence the first alone, and then only people who see
// the merge request. Source: GitLab, app/services/merge_requests/base_service.rb.
func (i *item) review(c *call, ids []any) {
	if !c.s.o.Licensed && len(ids) > 1 {
		ids = ids[:1]
	}
	var next []*reviewer
	for _, id := range ids {
		n, _ := id.(float64)
		u := c.s.byID(strconv.FormatInt(int64(n), 10))
		if u == nil || !i.p.readable(u) {
			continue
		}
		r := &reviewer{user: u, state: "unreviewed", at: c.s.now()}
		for _, old := range i.reviewers {
			if old.user == u {
				r = old
			}
		}
		next = append(next, r)
	}
	if next != nil {
		i.reviewers = next
		i.touch()
	}
}

func mergeOpen(c *call) (int, any) {
	source, _ := c.text("source_branch")
	target, _ := c.text("target_branch")
	for _, i := range c.p.items[merges] {
		if i.source == source && i.target == target && i.state == "opened" {
			return http.StatusConflict, object{"message": []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", i.iid)}}
		}
	}
	title, _ := c.text("title")
	if len([]rune(title)) > 255 {
		return http.StatusBadRequest, object{"message": object{"title": []string{"is too long (maximum is 255 characters)"}}}
	}
	i := c.p.open(merges, c.user, title, "")
	body, _ := c.text("description")
	i.body = quickActions(i, body)
	i.source, i.target, i.from, i.sha, i.old = source, target, c.p, c.p.branches[source], c.p.branches[target]
	return http.StatusCreated, i.wire(true)
}

func noteList(c *call, i *item) (int, any) {
	q := c.r.URL.Query()
	var found []*note
	for _, n := range i.notes {
		filter := q.Get("activity_filter")
		if n.internal && i.p.level(c.user) < levelReporter || filter == "only_comments" && n.system || filter == "only_activity" && !n.system {
			continue
		}
		found = append(found, n)
	}
	slices.SortStableFunc(found, func(a, b *note) int {
		if q.Get("order_by") == "updated_at" {
			return a.updated.Compare(b.updated)
		}
		return a.created.Compare(b.created)
	})
	if q.Get("sort") != "asc" {
		slices.Reverse(found)
	}
	wires := []object{}
	for _, n := range found {
		wires = append(wires, i.noteWire(n))
	}
	return paged(c, wires)
}

// quickActions carries out lines that begin with a slash, as the real server does.
func quickActions(i *item, text string) string {
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		switch line {
		case "/close":
			i.state = "closed"
		case "/merge":
			i.state = "merged"
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func noteMake(c *call, i *item) (int, any) {
	if i.locked && i.p.level(c.user) < levelReporter {
		return refuse(http.StatusForbidden, "403 Forbidden")
	}
	body, _ := c.text("body")
	return http.StatusCreated, i.noteWire(i.say(c.user, quickActions(i, body), false))
}

func noteOne(c *call, i *item) (int, any) {
	id, _ := strconv.ParseInt(c.r.PathValue("note_id"), 10, 64)
	n := i.note(id)
	switch {
	case n == nil:
		return refuse(http.StatusNotFound, "404 Note Not Found")
	case c.r.Method != http.MethodGet && n.author != c.user && i.p.level(c.user) < 40:
		return refuse(http.StatusForbidden, "403 Forbidden")
	case c.r.Method == http.MethodDelete:
		i.drop(id)
		return http.StatusNoContent, nil
	case c.r.Method == http.MethodPut:
		body, _ := c.text("body")
		i.edit(n, quickActions(i, body))
	}
	return http.StatusOK, i.noteWire(n)
}

func (i *item) edit(n *note, body string) {
	n.body, n.updated = body, i.p.s.now()
	i.touch()
}

func discussions(c *call, i *item) (int, any) {
	var order []string
	threads := map[string][]object{}
	single := map[string]bool{}
	for _, n := range i.notes {
		if threads[n.thread] == nil {
			order = append(order, n.thread)
		}
		threads[n.thread] = append(threads[n.thread], i.noteWire(n))
		single[n.thread] = n.kind == ""
	}
	wires := []object{}
	for _, id := range order {
		wires = append(wires, object{"id": id, "individual_note": single[id], "notes": threads[id]})
	}
	return paged(c, wires)
}

// reply adds a note to a thread.
func reply(c *call, i *item) (int, any) {
	for _, first := range i.notes {
		if first.thread == c.r.PathValue("discussion_id") {
			body, _ := c.text("body")
			n := i.say(c.user, quickActions(i, body), false)
			n.kind, n.thread, n.path, n.line, n.head = first.kind, first.thread, first.path, first.line, first.head
			return http.StatusCreated, i.noteWire(n)
		}
	}
	return refuse(http.StatusNotFound, "404 Discussion Not Found")
}

func approvals(c *call, i *item) (int, any) {
	by := []object{}
	for _, u := range i.approvals {
		by = append(by, object{"user": c.s.basic(u), "approved_at": stamp(i.updated)})
	}
	return http.StatusOK, object{"user_has_approved": false, "user_can_approve": false, "approved": len(by) > 0, "approved_by": by}
}

func reviewers(c *call, i *item) (int, any) {
	wires := []object{}
	for _, r := range i.reviewers {
		wires = append(wires, object{"user": c.s.basic(r.user), "state": r.state, "created_at": stamp(r.at)})
	}
	return paged(c, wires)
}
