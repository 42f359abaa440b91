package gitlabtest

import (
	"fmt"
	"strings"
	"time"
)

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (s *Server) basic(u *user) any {
	if u == nil {
		return nil
	}
	return object{"id": u.id, "username": u.login, "name": strings.ToUpper(u.login[:1]) + u.login[1:], "state": u.state, "locked": false,
		"avatar_url": nil, "web_url": s.URL + "/" + u.login}
}

func (s *Server) basics(all []*user) []any {
	list := []any{}
	for _, u := range all {
		list = append(list, s.basic(u))
	}
	return list
}

func (s *Server) public(u *user) any {
	o := s.basic(u).(object)
	o["bot"], o["created_at"], o["bio"] = u.bot, stamp(s.now()), ""
	return o
}

func (p *project) wire() object {
	at := strings.LastIndexByte(p.path, '/')
	kind := "user"
	if p.s.groups[strings.ToLower(p.path[:at])] {
		kind = "group"
	}
	web := p.s.URL + "/" + p.path
	return object{"id": p.id, "path": p.path[at+1:], "name": p.path[at+1:], "path_with_namespace": p.path, "default_branch": p.branch,
		"visibility": p.visibility, "archived": p.archived, "web_url": web, "http_url_to_repo": web + ".git",
		"namespace": object{"id": 1, "name": p.path[:at], "path": p.path[strings.LastIndexByte(p.path[:at], '/')+1 : at], "kind": kind, "full_path": p.path[:at]}}
}

func (i *item) wire(whole bool) object {
	s := i.p.s
	n := 0
	for _, t := range i.notes {
		if !t.system {
			n++
		}
	}
	o := object{"id": i.id, "iid": i.iid, "project_id": i.p.id, "title": i.title, "description": i.body, "state": i.state,
		"created_at": stamp(i.created), "updated_at": stamp(i.updated), "labels": append([]string{}, i.labels...), "assignees": s.basics(i.assignees),
		"author": s.basic(i.author), "user_notes_count": n, "discussion_locked": i.locked, "web_url": fmt.Sprintf("%s/%s/-/%s/%d", s.URL, i.p.path, i.kind, i.iid)}
	if i.body == "" {
		o["description"] = nil
	}
	if i.kind == issues {
		o["confidential"], o["moved_to_id"], o["issue_type"] = i.confidential, nil, "issue"
		if i.movedTo != 0 {
			o["moved_to_id"] = i.movedTo
		}
		return o
	}
	var reviewers []*user
	for _, r := range i.reviewers {
		reviewers = append(reviewers, r.user)
	}
	o["source_branch"], o["target_branch"], o["sha"], o["draft"] = i.source, i.target, i.sha, isDraft(i.title)
	o["work_in_progress"], o["reviewers"], o["has_conflicts"], o["allow_collaboration"] = isDraft(i.title), s.basics(reviewers), false, false
	o["source_project_id"], o["target_project_id"] = i.from.id, i.p.id
	if whole {
		o["diff_refs"] = object{"base_sha": i.old, "head_sha": i.sha, "start_sha": i.old}
		o["head_pipeline"] = i.pipeline
	}
	return o
}

func (i *item) noteWire(n *note) object {
	kind := map[string]string{issues: "Issue", merges: "MergeRequest"}[i.kind]
	o := object{"id": n.id, "type": nil, "body": n.body, "attachment": nil, "author": i.p.s.basic(n.author), "created_at": stamp(n.created),
		"updated_at": stamp(n.updated), "system": n.system, "noteable_id": i.id, "noteable_type": kind, "project_id": i.p.id,
		"resolvable": n.kind != "", "confidential": n.internal, "internal": n.internal, "imported": false, "imported_from": "none",
		"noteable_iid": i.iid, "commands_changes": object{}}
	if n.kind != "" {
		o["type"], o["resolved"], o["resolved_by"], o["resolved_at"] = n.kind, n.resolved, nil, nil
	}
	if n.kind == "DiffNote" {
		o["position"] = object{"base_sha": i.old, "start_sha": i.old, "head_sha": n.head, "position_type": "text", "old_path": n.path, "new_path": n.path,
			"old_line": nil, "new_line": n.line, "line_range": nil}
	}
	return o
}

func (e *event) wire(i *item) object {
	o := object{"id": e.id, "user": i.p.s.basic(e.user), "created_at": stamp(e.at), "resource_type": "Issue", "resource_id": i.id, "action": "remove", "label": nil}
	if i.kind == merges {
		o["resource_type"] = "MergeRequest"
	}
	if e.add {
		o["action"] = "add"
	}
	for _, l := range i.p.labels {
		if l.name == e.label {
			o["label"] = l.wire()
		}
	}
	return o
}

func (l *label) wire() object {
	return object{"id": l.id, "name": l.name, "color": l.color, "description": l.description}
}
