package githubtest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// routes are all operations, in the words of the vendor's description.
func (s *Server) routes() {
	s.mux = &router{routes: map[string][]*path{}}
	for _, part := range [][]route{peopleRoutes, issueRoutes, commentRoutes, pullRoutes, reviewRoutes, checkRoutes, graphqlRoutes, hookRoutes} {
		for _, rt := range part {
			s.mux.add(rt)
		}
	}
}

var peopleRoutes = []route{
	{"GET /user", "user", func(c *call) *answer {
		if c.who.install != nil {
			return forbidden() // as of integrations
		}
		return ok(c.s.profile(c.me(), true))
	}},
	{"GET /users/{username}", "anyone", func(c *call) *answer {
		a := c.s.account(c.r.PathValue("username"))
		if a == nil {
			return notFound()
		}
		return ok(c.s.profile(a, false))
	}},
	{"GET /app", "app", func(c *call) *answer { return ok(c.s.integration(c.who.app)) }},
	{"GET /app/installations", "app", (*call).installations},
	{"GET /repos/{owner}/{repo}/installation", "app", (*call).installation},
	{"POST /app/installations/{installation_id}/access_tokens", "app", (*call).accessToken},
	{"GET /installation/repositories", "user", (*call).installed},
	{"GET /user/repos", "user", (*call).myRepos},
	{"GET /orgs/{org}/repos", "anyone", func(c *call) *answer { return c.reposOf(c.r.PathValue("org"), true) }},
	{"GET /users/{username}/repos", "anyone", func(c *call) *answer { return c.reposOf(c.r.PathValue("username"), false) }},
	{"GET /repos/{owner}/{repo}", "anyone", func(c *call) *answer {
		return ok(c.s.repository(c.repo, c.role, true))
	}},
	{"GET /repos/{owner}/{repo}/collaborators/{username}/permission", "user", (*call).permission},
}

// reposBy lists the repositories that pass, as the query sorts them.
func (c *call) reposBy(owner bool, keep func(*repo) bool) *answer {
	var all []*repo
	for _, r := range c.s.repos {
		if c.who.role(r) >= roleRead && keep(r) {
			all = append(all, r)
		}
	}
	q := c.r.URL.Query()
	order := cmp.Or(q.Get("sort"), "full_name")
	if owner && q.Get("sort") == "" {
		order = "created"
	}
	slices.SortStableFunc(all, func(a, b *repo) int {
		switch order {
		case "created":
			return -a.created.Compare(b.created)
		case "updated", "pushed":
			return -a.pushed.Compare(b.pushed)
		}
		return strings.Compare(strings.ToLower(a.full()), strings.ToLower(b.full()))
	})
	if d := q.Get("direction"); d == "asc" && order != "full_name" || d == "desc" && order == "full_name" {
		slices.Reverse(all)
	}
	return c.list(len(all), func(i int) object { return c.s.repository(all[i], c.who.role(all[i]), false) })
}

func (c *call) reposOf(login string, org bool) *answer {
	a := c.s.account(login)
	if a == nil || org && a.kind != "Organization" {
		return notFound()
	}
	return c.reposBy(org, func(r *repo) bool { return r.owner == a && (org || !r.o.Private || r.owner == c.me()) })
}

// myRepos lists what was given to the caller; everybody's repositories are not.
func (c *call) myRepos() *answer {
	if c.who.install != nil {
		return forbidden()
	}
	visibility := c.r.URL.Query().Get("visibility")
	return c.reposBy(false, func(r *repo) bool {
		return r.collaborator(c.me()) && (visibility != "private" || r.o.Private) && (visibility != "public" || !r.o.Private)
	})
}

func (c *call) permission() *answer {
	if c.role < roleWrite {
		return failed(http.StatusForbidden, "Must have push access to view collaborator permission.")
	}
	name := c.r.PathValue("username")
	a := c.s.account(name)
	if a == nil {
		return failed(http.StatusNotFound, name+" is not a user")
	}
	role := c.repo.role(a)
	legacy := [...]string{"none", "read", "read", "write", "write", "admin"}[role]
	u := c.s.user(a)
	u["permissions"], u["role_name"] = permissions(role), roles[role]
	return ok(object{"permission": legacy, "role_name": roles[role], "user": u})
}
