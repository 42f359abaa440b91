package giteatest

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge/gittest"
)

// route is an operation; needs is the role in the repository that it asks for.
type route struct {
	pattern string
	needs   int
	answer  func(c *call) (status int, v any)
}

const at = "/repos/{owner}/{repo}"

var routes = []route{
	{"GET /user", 0, func(c *call) (int, any) { return 200, &c.doer.User }},
	{"GET /users/{username}", 0, func(c *call) (int, any) {
		if u := c.user(c.PathValue("username")); u != nil {
			return 200, &u.User
		}
		for _, u := range c.users {
			if u.before == c.PathValue("username") {
				c.header.Set("Location", "/git/api/v1/users/"+u.UserName)
				return fail(301, "")
			}
		}
		return notFound()
	}},
	{"POST /users/{username}/tokens", 0, func(c *call) (int, any) { return 201, &sdk.AccessToken{ID: c.id(), Token: c.token(c.doer)} }},
	{"POST /admin/users", 3, createUser},
	{"POST /admin/users/{username}/rename", 3, func(c *call) (int, any) {
		var o struct {
			New string `json:"new_username"`
		}
		c.into(&o)
		u := c.user(c.PathValue("username"))
		u.before, u.UserName = u.UserName, o.New
		return 204, nil
	}},
	{"DELETE /admin/users/{username}", 3, func(c *call) (int, any) {
		u := c.user(c.PathValue("username"))
		u.User = sdk.User{ID: -1, UserName: "Ghost", Created: u.Created, LastLogin: u.LastLogin, Visibility: "public"}
		return 204, nil
	}},
	{"POST /orgs", 0, func(c *call) (int, any) {
		var o sdk.CreateOrgOption
		c.into(&o)
		u := c.addUser(o.Name, "")
		u.org = true
		return 201, map[string]any{"id": u.ID, "name": u.UserName, "username": u.UserName}
	}},
	{"GET /orgs/{org}/labels", 0, func(c *call) (int, any) {
		u := c.user(c.PathValue("org"))
		if u == nil || !u.org {
			return notFound()
		}
		return 200, page(c, c.labels[u.ID])
	}},
	{"POST /orgs/{org}/labels", 0, func(c *call) (int, any) {
		u := c.user(c.PathValue("org"))
		l := c.label()
		c.labels[u.ID] = append(c.labels[u.ID], l)
		return 201, l
	}},
	{"POST /orgs/{org}/repos", 0, createRepo},
	{"GET /repos/search", 0, searchRepos},
	{"GET " + at, 1, func(c *call) (int, any) { return 200, c.shown(c.repo) }},
	{"PATCH " + at, 3, editRepo},
	{"GET " + at + "/collaborators/{collaborator}/permission", 1, permission},
	{"PUT " + at + "/collaborators/{collaborator}", 3, func(c *call) (int, any) {
		var o sdk.AddCollaboratorOption
		c.into(&o)
		c.repo.roles[c.user(c.PathValue("collaborator")).ID] = string(*o.Permission)
		return 204, nil
	}},
	{"GET " + at + "/hooks", 3, listHooks},
	{"POST " + at + "/hooks", 3, createHook},
	{"DELETE " + at + "/hooks/{id}", 3, deleteHook},
	{"GET " + at + "/labels", 1, func(c *call) (int, any) { return 200, page(c, c.repo.labels) }},
	{"POST " + at + "/labels", 2, func(c *call) (int, any) {
		l := c.label()
		c.repo.labels = append(c.repo.labels, l)
		return 201, l
	}},
	{"GET " + at + "/issues", 1, listIssues},
	{"POST " + at + "/issues", 1, createIssue},
	{"GET " + at + "/issues/{index}", 1, func(c *call) (int, any) { return 200, c.issue.json() }},
	{"PATCH " + at + "/issues/{index}", 1, editIssue},
	{"PUT " + at + "/issues/{index}/lock", 3, func(c *call) (int, any) { c.issue.IsLocked = true; return 204, nil }},
	{"GET " + at + "/issues/{index}/labels", 1, func(c *call) (int, any) { return 200, c.issue.Labels }},
	{"POST " + at + "/issues/{index}/labels", 2, addLabels},
	{"DELETE " + at + "/issues/{index}/labels/{id}", 2, removeLabel},
	{"GET " + at + "/issues/{index}/timeline", 1, timeline},
	{"GET " + at + "/issues/{index}/comments", 1, func(c *call) (int, any) {
		all := c.changed(c.issue)
		c.header.Set("X-Total-Count", strconv.Itoa(len(all)))
		return 200, all
	}},
	{"POST " + at + "/issues/{index}/comments", 1, createComment},
	{"GET " + at + "/issues/comments", 1, func(c *call) (int, any) {
		return 200, page(c, c.changed(c.repo.issues...))
	}},
	{"GET " + at + "/issues/comments/{id}", 1, func(c *call) (int, any) {
		if i, n := c.comment(); n >= 0 {
			return 200, i.comments[n]
		}
		return notFound()
	}},
	{"GET " + at + "/issues/{index}/reactions", 1, listReactions(onIssue)},
	{"POST " + at + "/issues/{index}/reactions", 1, react(onIssue)},
	{"GET " + at + "/issues/comments/{id}/reactions", 1, listReactions(onComment)},
	{"POST " + at + "/issues/comments/{id}/reactions", 1, react(onComment)},
	{"PATCH " + at + "/issues/comments/{id}", 1, editComment},
	{"DELETE " + at + "/issues/comments/{id}", 1, func(c *call) (int, any) {
		i, n := c.comment()
		switch {
		case n < 0:
			return notFound()
		case i.comments[n].Poster != &c.doer.User && c.repo.role(c.doer) < 3:
			return fail(403, "not yours")
		}
		i.comments = slices.Delete(i.comments, n, n+1)
		return 204, nil
	}},
	{"GET " + at + "/pulls", 1, listPulls},
	{"POST " + at + "/pulls", 1, createPull},
	{"GET " + at + "/pulls/{index}", 1, func(c *call) (int, any) { return 200, c.pull(c.issue) }},
	{"PATCH " + at + "/pulls/{index}", 1, editIssue},
	{"POST " + at + "/pulls/{index}/requested_reviewers", 1, requestReviewers},
	{"GET " + at + "/pulls/{index}/reviews", 1, func(c *call) (int, any) {
		var all []*sdk.PullReview
		for _, r := range c.issue.pull.reviews {
			all = append(all, &r.PullReview)
		}
		return 200, page(c, all)
	}},
	{"POST " + at + "/pulls/{index}/reviews", 1, createReview},
	{"DELETE " + at + "/pulls/{index}/reviews/{id}", 1, func(c *call) (int, any) {
		p := c.issue.pull
		n := slices.IndexFunc(p.reviews, func(r *review) bool { return r.ID == c.number() })
		if n < 0 || p.reviews[n].Reviewer != &c.doer.User {
			return notFound()
		}
		p.reviews = slices.Delete(p.reviews, n, n+1)
		return 204, nil
	}},
	{"POST " + at + "/pulls/{index}/comments/{id}/replies", 1, reply},
	{"GET " + at + "/pulls/{index}/reviews/{id}/comments", 1, func(c *call) (int, any) {
		for _, r := range c.issue.pull.reviews {
			if r.ID == c.number() {
				return 200, r.lines
			}
		}
		return notFound()
	}},
	{"GET " + at + "/commits/{ref}/status", 1, func(c *call) (int, any) {
		sha := c.PathValue("ref")
		if _, there := c.repo.git(c, "", "cat-file", "-e", sha+"^{commit}"); !there {
			return notFound()
		}
		all := c.repo.statuses[sha]
		return 200, &sdk.CombinedStatus{State: "pending", SHA: sha, TotalCount: len(all), Statuses: page(c, all)}
	}},
	{"POST " + at + "/statuses/{sha}", 2, func(c *call) (int, any) {
		var o sdk.CreateStatusOption
		c.into(&o)
		s := &sdk.Status{ID: c.id(), State: o.State, Context: o.Context, Description: o.Description, TargetURL: o.TargetURL, Created: c.second(), Updated: c.second()}
		sha := c.PathValue("sha")
		c.repo.statuses[sha] = append(slices.DeleteFunc(c.repo.statuses[sha], func(x *sdk.Status) bool { return x.Context == s.Context }), s)
		return 201, s
	}},
	{"POST " + at + "/contents/{filepath}", 2, createFile},
}

func createUser(c *call) (int, any) {
	var o sdk.CreateUserOption
	c.into(&o)
	if c.user(o.Username) != nil {
		return fail(422, "user already exists [name: "+o.Username+"]")
	}
	return 201, &c.addUser(o.Username, o.Password).User
}

var allProjects = sdk.ProjectsModeAll

func createRepo(c *call) (int, any) {
	var o sdk.CreateRepoOption
	c.into(&o)
	r := &repo{owner: c.user(c.PathValue("org")), roles: map[int64]string{}, statuses: map[string][]*sdk.Status{}}
	r.ID, r.Name, r.Private, r.DefaultBranch, r.Owner, r.Created, r.Updated = c.id(), o.Name, o.Private, o.DefaultBranch, &r.owner.User, c.second(), c.second()
	r.ObjectFormatName, r.ProjectsMode = "sha1", &allProjects
	r.FullName, r.dir = r.owner.UserName+"/"+r.Name, filepath.Join(c.dir, fmt.Sprint(r.ID)+".git")
	if err := gittest.Init(r.dir, r.DefaultBranch, "Gitea", "noreply@gitea.example"); err != nil {
		c.t.Errorf("giteatest: %v", err)
	}
	c.repo, c.repos = r, append(c.repos, r)
	if o.AutoInit {
		c.commit(r.DefaultBranch, "", "README.md", "hello\n", "Initial commit")
	}
	return 201, &r.Repository
}

func editRepo(c *call) (int, any) {
	var o sdk.EditRepoOption
	c.into(&o)
	if o.Name != nil {
		c.repo.before = c.repo.FullName
		c.repo.Name, c.repo.FullName = *o.Name, c.repo.owner.UserName+"/"+*o.Name
	}
	if o.Archived != nil {
		c.repo.Archived = *o.Archived
	}
	return 200, &c.repo.Repository
}

// shown is a repository as it is shown to who asks.
func (c *call) shown(r *repo) *sdk.Repository {
	role, o := r.role(c.doer), r.Repository
	o.Permissions = &sdk.Permission{Admin: role > 2, Push: role > 1, Pull: role > 0}
	return &o
}

func searchRepos(c *call) (int, any) {
	var all []*sdk.Repository
	for _, r := range c.repos {
		if r.role(c.doer) > 0 && strconv.FormatInt(r.owner.ID, 10) == c.Request.URL.Query().Get("uid") {
			all = append(all, c.shown(r))
		}
	}
	return 200, map[string]any{"ok": true, "data": page(c, all)}
}

func permission(c *call) (int, any) {
	name := c.PathValue("collaborator")
	if c.repo.role(c.doer) < 3 && !strings.EqualFold(name, c.doer.UserName) {
		return fail(403, "Only admins can query all permissions, repo admins can query all repo permissions, collaborators can query only their own")
	}
	u := c.user(name)
	if u == nil {
		return notFound()
	}
	role := []string{"none", "read", "write", "admin"}[c.repo.role(u)]
	if u == c.repo.owner {
		role = "owner"
	}
	return 200, &sdk.CollaboratorPermissionResult{Permission: sdk.AccessMode(role), Role: role, User: &u.User}
}

// label makes the label of the body.
func (c *call) label() *sdk.Label {
	var o sdk.CreateLabelOption
	c.into(&o)
	return &sdk.Label{ID: c.id(), Name: o.Name, Color: strings.TrimPrefix(o.Color, "#"), Description: o.Description}
}

// commit makes one on a branch, which begins at another where it is new.
func (c *call) commit(branch, from, path, text, message string) {
	in := fmt.Sprintf("commit refs/heads/%s\ncommitter %s <x@x> now\ndata %d\n%s\n", branch, "someone", len(message), message)
	if sha, there := c.repo.git(c, "", "rev-parse", "-q", "--verify", "refs/heads/"+branch); there {
		in += "from " + sha + "\n"
	} else if from != "" {
		in += "from refs/heads/" + from + "^0\n"
	}
	in += fmt.Sprintf("M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
	if out, is := c.repo.git(c, in, "fast-import", "--quiet", "--date-format=now"); !is {
		c.t.Errorf("giteatest: fast-import: %s", out)
	}
}

func createFile(c *call) (int, any) {
	var o sdk.CreateFileOptions
	c.into(&o)
	text, _ := base64.StdEncoding.DecodeString(o.Content)
	branch := o.BranchName
	if o.NewBranchName != "" {
		branch = o.NewBranchName
	}
	c.commit(branch, o.BranchName, c.PathValue("filepath"), string(text), o.Message)
	sha, _ := c.repo.git(c, "", "rev-parse", "refs/heads/"+branch)
	return 201, map[string]any{"commit": map[string]any{"sha": sha}}
}
