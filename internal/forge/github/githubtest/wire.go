package githubtest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"
)

func (s *Server) api(format string, args ...any) string {
	return s.URL + "/api/v3" + fmt.Sprintf(format, args...)
}

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// nodeID is a global id as GraphQL has them.
func nodeID(kind string, id int64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s:%d", kind, id))
}

// ghost stands for people whose account was deleted.
var ghost = &account{id: 10137, login: "ghost", kind: "User"}

// user is an account in short.
func (s *Server) user(a *account) object {
	if a.gone {
		a = ghost
	}
	login := url.PathEscape(a.login)
	u := s.api("/users/%s", login)
	page := s.URL + "/" + login
	if name, bot := strings.CutSuffix(a.login, "[bot]"); bot {
		page = s.URL + "/apps/" + name
	}
	return object{
		"login": a.login, "id": a.id, "node_id": nodeID("User", a.id), "avatar_url": fmt.Sprintf("%s/avatars/u/%d?v=4", s.URL, a.id),
		"gravatar_id": "", "url": u, "html_url": page, "followers_url": u + "/followers",
		"following_url": u + "/following{/other_user}", "gists_url": u + "/gists{/gist_id}", "starred_url": u + "/starred{/owner}{/repo}",
		"subscriptions_url": u + "/subscriptions", "organizations_url": u + "/orgs", "repos_url": u + "/repos",
		"events_url": u + "/events{/privacy}", "received_events_url": u + "/received_events", "type": a.kind, "user_view_type": "public", "site_admin": false,
	}
}

func (s *Server) userOrNull(a *account) any {
	if a == nil {
		return nil
	}
	return s.user(a)
}

func (s *Server) users(all []*account) []any {
	out := []any{}
	for _, a := range all {
		out = append(out, s.user(a))
	}
	return out
}

// profile is an account in full, with what only its owner sees where private.
func (s *Server) profile(a *account, private bool) object {
	o := s.user(a)
	began := stamp(time.Date(2011, 1, 25, 18, 44, 36, 0, time.UTC))
	maps.Copy(o, object{"name": a.login, "company": nil, "blog": "", "location": nil, "email": nil, "hireable": nil, "bio": nil, "twitter_username": nil,
		"public_repos": 0, "public_gists": 0, "followers": 0, "following": 0, "created_at": began, "updated_at": began})
	if private {
		o["user_view_type"] = "private"
		maps.Copy(o, object{"notification_email": nil, "private_gists": 0, "total_private_repos": 0, "owned_private_repos": 0, "disk_usage": 0, "collaborators": 0,
			"two_factor_authentication": true, "plan": object{"name": "free", "space": 1, "private_repos": 10000, "collaborators": 0}})
	}
	return o
}

// repository is a repository as who sees it; full adds what only its own page has.
func (s *Server) repository(r *repo, role int, full bool) object {
	u, page := s.api("/repos/%s", r.full()), s.URL+"/"+r.full()
	o := object{
		"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.full(), "owner": s.user(r.owner),
		"private": r.o.Private, "html_url": page, "description": nil, "fork": r.fork != nil, "url": u,
		"git_url": "git://" + strings.TrimPrefix(page, "http://") + ".git", "ssh_url": "git@127.0.0.1:" + r.full() + ".git",
		"clone_url": page + ".git", "svn_url": page, "mirror_url": nil, "homepage": nil, "language": nil,
		"forks_count": 0, "stargazers_count": 0, "watchers_count": 0, "size": 1, "default_branch": r.o.Branch,
		"open_issues_count": r.openIssues(), "is_template": false, "topics": []any{}, "has_issues": !r.o.NoIssues, "has_projects": true,
		"has_wiki": true, "has_pages": false, "has_downloads": true, "has_discussions": false, "archived": r.o.Archived,
		"disabled": false, "visibility": "public", "pushed_at": stamp(r.pushed), "created_at": stamp(r.created), "updated_at": stamp(r.pushed),
		"license": nil, "forks": 0, "open_issues": r.openIssues(), "watchers": 0, "allow_forking": true, "web_commit_signoff_required": false,
	}
	if r.o.Private {
		o["visibility"] = "private"
	}
	for k, tail := range map[string]string{"archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}", "blobs_url": "/git/blobs{/sha}",
		"branches_url": "/branches{/branch}", "collaborators_url": "/collaborators{/collaborator}", "comments_url": "/comments{/number}",
		"commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}", "contents_url": "/contents/{+path}", "contributors_url": "/contributors",
		"deployments_url": "/deployments", "downloads_url": "/downloads", "events_url": "/events", "forks_url": "/forks", "git_commits_url": "/git/commits{/sha}",
		"git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}", "issue_comment_url": "/issues/comments{/number}",
		"issue_events_url": "/issues/events{/number}", "issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}",
		"languages_url": "/languages", "merges_url": "/merges", "milestones_url": "/milestones{/number}", "notifications_url": "/notifications{?since,all,participating}",
		"pulls_url": "/pulls{/number}", "releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}",
		"subscribers_url": "/subscribers", "subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams", "trees_url": "/git/trees{/sha}",
		"hooks_url": "/hooks"} {
		o[k] = u + tail
	}
	if role > roleNone {
		o["permissions"] = permissions(role)
	}
	if full {
		o["subscribers_count"], o["network_count"] = 0, 0
		if r.owner.kind == "Organization" {
			o["organization"] = s.user(r.owner)
		}
		if r.fork != nil {
			o["parent"], o["source"] = s.repository(r.fork, roleNone, false), s.repository(r.fork, roleNone, false)
		}
	}
	return o
}

func (r *repo) openIssues() int {
	n := 0
	for _, i := range r.issues {
		if !i.closed && !i.deleted {
			n++
		}
	}
	return n
}

func permissions(role int) object {
	return object{"admin": role >= roleAdmin, "maintain": role >= roleMaintain, "push": role >= roleWrite, "triage": role >= roleTriage, "pull": role >= roleRead}
}

// association is what an author is to the repository.
func (r *repo) association(a *account) string {
	switch {
	case a == r.owner:
		return "OWNER"
	case r.roles[a.id] > roleNone && r.owner.kind == "Organization":
		return "MEMBER"
	case r.roles[a.id] > roleNone:
		return "COLLABORATOR"
	}
	return "NONE"
}

func (s *Server) label(r *repo, l *label) object {
	return object{"id": l.id, "node_id": nodeID("Label", l.id), "url": s.api("/repos/%s/labels/%s", r.full(), url.PathEscape(l.name)),
		"name": l.name, "description": orNull(l.description), "color": l.color, "default": false}
}

func (s *Server) labels(r *repo, all []*label) []any {
	out := []any{}
	for _, l := range all {
		out = append(out, s.label(r, l))
	}
	return out
}

func (s *Server) reactions(at string) object {
	return object{"url": at + "/reactions", "total_count": 0, "+1": 0, "-1": 0, "laugh": 0, "hooray": 0, "confused": 0, "heart": 0, "rocket": 0, "eyes": 0}
}

// page is where people find an issue or a pull request.
func (i *issue) page() string {
	kind := "issues"
	if i.pull != nil {
		kind = "pull"
	}
	return fmt.Sprintf("%s/%s/%s/%d", i.repo.s.URL, i.repo.full(), kind, i.number)
}

// issue is an issue, or a pull request as if it were one.
func (s *Server) issue(i *issue) object {
	r := i.repo
	u := s.api("/repos/%s/issues/%d", r.full(), i.number)
	o := object{
		"id": i.id, "node_id": nodeID("Issue", i.id), "url": u, "repository_url": s.api("/repos/%s", r.full()), "labels_url": u + "/labels{/name}",
		"comments_url": u + "/comments", "events_url": u + "/events", "html_url": i.page(), "timeline_url": u + "/timeline", "number": i.number,
		"state": i.state(), "state_reason": orNull(i.reason), "title": i.title, "body": orNull(i.body), "user": s.user(i.author),
		"labels": s.labels(r, i.labels), "assignee": nil, "assignees": s.users(i.assignees), "milestone": nil, "locked": i.locked,
		"active_lock_reason": nil, "comments": len(i.comments), "closed_at": stamp(i.closedAt), "created_at": stamp(i.created),
		"updated_at": stamp(i.updated), "author_association": r.association(i.author), "reactions": s.reactions(u), "performed_via_github_app": nil,
	}
	if len(i.assignees) > 0 {
		o["assignee"] = s.user(i.assignees[0])
	}
	if p := i.pull; p != nil {
		o["node_id"] = nodeID("PullRequest", i.id)
		o["draft"] = p.draft
		o["pull_request"] = object{"url": s.api("/repos/%s/pulls/%d", r.full(), i.number), "html_url": i.page(),
			"diff_url": i.page() + ".diff", "patch_url": i.page() + ".patch", "merged_at": stamp(p.merged)}
	}
	return o
}

// issueAlone is an issue in an answer of its own.
func (s *Server) issueAlone(i *issue) object {
	o := s.issue(i)
	o["closed_by"] = s.userOrNull(i.closedBy)
	return o
}

func (i *issue) state() string {
	if i.closed {
		return "closed"
	}
	return "open"
}

func (s *Server) comment(c *comment) object {
	r := c.issue.repo
	u := s.api("/repos/%s/issues/comments/%d", r.full(), c.id)
	return object{"id": c.id, "node_id": nodeID("IssueComment", c.id), "url": u, "html_url": fmt.Sprintf("%s#issuecomment-%d", c.issue.page(), c.id),
		"issue_url": s.api("/repos/%s/issues/%d", r.full(), c.issue.number), "user": s.user(c.author), "body": c.body,
		"created_at": stamp(c.created), "updated_at": stamp(c.updated), "author_association": r.association(c.author),
		"reactions": s.reactions(u), "performed_via_github_app": nil}
}

func (s *Server) event(i *issue, e *event) object {
	o := object{"id": e.id, "node_id": nodeID("Event", e.id), "url": s.api("/repos/%s/issues/events/%d", i.repo.full(), e.id), "actor": s.user(e.actor),
		"event": e.kind, "commit_id": orNull(e.commit), "commit_url": nil, "created_at": stamp(e.at), "performed_via_github_app": nil}
	if e.commit != "" {
		o["commit_url"] = s.api("/repos/%s/commits/%s", i.repo.full(), e.commit)
	}
	switch e.kind {
	case "labeled", "unlabeled":
		o["label"] = object{"name": e.label.name, "color": e.label.color}
	case "assigned", "unassigned":
		o["assignee"] = s.user(e.assignee)
		o["assigner"] = s.user(e.actor)
	case "review_requested":
		o["review_requester"], o["requested_reviewer"] = s.user(e.actor), s.user(e.assignee)
	case "renamed":
		o["rename"] = object{"from": e.from, "to": e.to}
	case "locked":
		o["lock_reason"] = nil
	case "closed", "reopened":
		o["state_reason"] = nil
	}
	return o
}

// branch is one end of a pull request.
func (s *Server) branch(r *repo, owner *account, ref, sha string) object {
	if r == nil { // the fork is gone
		return object{"label": owner.login + ":" + ref, "ref": ref, "sha": sha, "user": s.user(owner), "repo": nil}
	}
	return object{"label": r.owner.login + ":" + ref, "ref": ref, "sha": sha, "user": s.user(r.owner), "repo": s.repository(r, roleNone, false)}
}

// pull is a pull request as lists have it.
func (s *Server) pull(i *issue) object {
	p, r := i.pull, i.repo
	u, page := s.api("/repos/%s/pulls/%d", r.full(), i.number), i.page()
	own := s.api("/repos/%s/issues/%d", r.full(), i.number)
	o := object{
		"url": u, "id": i.id, "node_id": nodeID("PullRequest", i.id), "html_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch",
		"issue_url": own, "commits_url": u + "/commits", "review_comments_url": u + "/comments", "review_comment_url": s.api("/repos/%s/pulls/comments{/number}", r.full()),
		"comments_url": own + "/comments", "statuses_url": s.api("/repos/%s/statuses/%s", r.full(), p.headSHA), "number": i.number, "state": i.state(),
		"locked": i.locked, "active_lock_reason": nil, "title": i.title, "user": s.user(i.author), "body": orNull(i.body), "labels": s.labels(r, i.labels),
		"milestone": nil, "created_at": stamp(i.created), "updated_at": stamp(i.updated), "closed_at": stamp(i.closedAt), "merged_at": stamp(p.merged),
		"merge_commit_sha": orNull(p.mergeSHA), "assignee": nil, "assignees": s.users(i.assignees), "requested_reviewers": s.users(p.reviewers),
		"requested_teams": []any{}, "draft": p.draft, "head": s.branch(p.headRepo, p.headUser, p.head, p.headSHA), "base": s.branch(r, r.owner, p.base, p.baseSHA),
		"author_association": r.association(i.author), "auto_merge": nil,
	}
	if len(i.assignees) > 0 {
		o["assignee"] = s.user(i.assignees[0])
	}
	links := object{}
	for name, at := range map[string]string{"self": u, "html": page, "issue": own, "comments": own + "/comments", "review_comments": u + "/comments",
		"review_comment": s.api("/repos/%s/pulls/comments{/number}", r.full()), "commits": u + "/commits", "statuses": o["statuses_url"].(string)} {
		links[name] = object{"href": at}
	}
	o["_links"] = links
	return o
}

// pullAlone is a pull request in an answer of its own; ask settles whether it merges.
func (s *Server) pullAlone(i *issue, ask bool) object {
	o, p := s.pull(i), i.pull
	merges, known := i.mergeable(ask)
	state := "unknown"
	switch {
	case !p.merged.IsZero() || !known:
	case p.draft && merges:
		state = "draft"
	case merges:
		state = "clean"
	default:
		state = "dirty"
	}
	o["mergeable"], o["rebaseable"] = nil, nil
	if known && p.merged.IsZero() {
		o["mergeable"], o["rebaseable"] = merges, merges
	}
	o["mergeable_state"], o["merged"], o["merged_by"] = state, !p.merged.IsZero(), s.userOrNull(p.mergedBy)
	o["comments"], o["review_comments"] = len(i.comments), len(p.lines)
	o["maintainer_can_modify"] = p.editable
	o["commits"], o["additions"], o["deletions"], o["changed_files"] = len(i.repo.commits(p.baseSHA, p.headSHA)), 0, 0, 0
	return o
}

func (s *Server) review(i *issue, v *review) object {
	o := object{"id": v.id, "node_id": nodeID("PullRequestReview", v.id), "user": nil, "body": v.body, "state": v.state,
		"html_url": fmt.Sprintf("%s#pullrequestreview-%d", i.page(), v.id), "pull_request_url": s.api("/repos/%s/pulls/%d", i.repo.full(), i.number),
		"commit_id": v.commit, "submitted_at": stamp(v.at), "author_association": i.repo.association(v.author)}
	if !v.author.gone {
		o["user"] = s.user(v.author)
	}
	o["_links"] = object{"html": object{"href": o["html_url"]}, "pull_request": object{"href": o["pull_request_url"]}}
	return o
}

func (s *Server) line(c *lineComment) object {
	i := c.issue
	u := s.api("/repos/%s/pulls/comments/%d", i.repo.full(), c.id)
	o := object{"url": u, "pull_request_review_id": c.review.id, "id": c.id, "node_id": nodeID("PullRequestReviewComment", c.id),
		"diff_hunk": "@@ -1,1 +1,1 @@", "path": c.path, "commit_id": c.commit, "original_commit_id": c.original, "user": s.user(c.author), "body": c.body,
		"created_at": stamp(c.created), "updated_at": stamp(c.updated), "html_url": fmt.Sprintf("%s#discussion_r%d", i.page(), c.id),
		"pull_request_url": s.api("/repos/%s/pulls/%d", i.repo.full(), i.number), "author_association": i.repo.association(c.author),
		"start_line": nil, "original_start_line": nil, "start_side": nil, "side": "RIGHT", "reactions": s.reactions(u), "subject_type": "line"}
	if c.line == 0 {
		o["subject_type"] = "file"
	} else {
		o["original_line"], o["line"], o["original_position"], o["position"] = c.line, c.line, c.line, c.line
		if c.outdated { // the line is not what was talked about any more
			o["line"], o["position"] = nil, nil
		}
	}
	if c.replyTo != 0 {
		o["in_reply_to_id"] = c.replyTo
	}
	o["_links"] = object{"self": object{"href": u}, "html": object{"href": o["html_url"]}, "pull_request": object{"href": o["pull_request_url"]}}
	return o
}
