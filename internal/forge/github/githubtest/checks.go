package githubtest

import (
	"cmp"
	"strings"
)

// CheckRun is what a check says about a commit.
type CheckRun struct {
	Name       string
	Status     string // default: completed beside a Conclusion, else in_progress
	Conclusion string // "success", "failure", ...; "" while it runs
	Title      string // of the output
	Summary    string
	Text       string
	URL        string // details; default a page of the server
	// Old makes it a status of a commit instead, as older systems report:
	// "success", "failure", "error" and "pending" are its conclusions.
	Old bool
}

var checkRoutes = []route{
	{"GET /repos/{owner}/{repo}/commits/{ref}/check-runs", "anyone", (*call).listCheckRuns},
	{"GET /repos/{owner}/{repo}/commits/{ref}/status", "anyone", (*call).combinedStatus},
}

// of finds the commit of a path and the newest report of each name about it.
func (c *call) reports(old bool) (sha string, all []*check, a *answer) {
	sha = c.repo.resolve(c.r.PathValue("ref"))
	if sha == "" {
		return "", nil, invalid("Commit", "", "custom", "No commit found for SHA: "+c.r.PathValue("ref"))
	}
	seen := map[string]bool{}
	for n := len(c.repo.checks) - 1; n >= 0; n-- {
		k := c.repo.checks[n]
		if k.sha != sha || k.made.Old != old || seen[k.made.Name] {
			continue
		}
		seen[k.made.Name] = true
		all = append(all, k)
	}
	return sha, all, nil
}

func (c *call) listCheckRuns() *answer {
	_, all, a := c.reports(false)
	if a != nil {
		return a
	}
	page, link := c.page(len(all), func(i int) object { return c.s.checkRun(c.repo, all[i]) })
	a = ok(object{"total_count": len(all), "check_runs": page})
	a.link = link
	return a
}

func (s *Server) checkRun(r *repo, k *check) object {
	u := s.api("/repos/%s/check-runs/%d", r.full(), k.id)
	o := object{"id": k.id, "head_sha": k.sha, "node_id": nodeID("CheckRun", k.id), "external_id": "", "url": u,
		"html_url": s.URL + "/" + r.full() + "/runs/1", "details_url": cmp.Or(k.made.URL, s.URL+"/"+r.full()+"/runs/1"), "status": k.made.Status,
		"conclusion": orNull(k.made.Conclusion), "started_at": stamp(k.at), "completed_at": nil, "name": k.made.Name, "check_suite": object{"id": k.id},
		"app": nil, "pull_requests": []any{},
		"output": object{"title": orNull(k.made.Title), "summary": orNull(k.made.Summary), "text": orNull(k.made.Text), "annotations_count": 0, "annotations_url": u + "/annotations"}}
	if k.made.Status == "completed" {
		o["completed_at"] = stamp(k.at)
	}
	return o
}

func (c *call) combinedStatus() *answer {
	sha, all, a := c.reports(true)
	if a != nil {
		return a
	}
	state := "success"
	if len(all) == 0 {
		state = "pending"
	}
	for _, k := range all {
		switch {
		case k.made.Conclusion == "failure" || k.made.Conclusion == "error":
			state = "failure"
		case k.made.Conclusion == "pending" && state != "failure":
			state = "pending"
		}
	}
	u := c.s.api("/repos/%s/commits/%s", c.repo.full(), sha)
	page, link := c.page(len(all), func(i int) object {
		k := all[i]
		return object{"id": k.id, "node_id": nodeID("StatusContext", k.id), "url": c.s.api("/repos/%s/statuses/%s", c.repo.full(), sha), "avatar_url": nil,
			"state": k.made.Conclusion, "description": orNull(k.made.Summary), "target_url": orNull(k.made.URL), "context": k.made.Name,
			"created_at": stamp(k.at), "updated_at": stamp(k.at)}
	})
	a = ok(object{"state": state, "statuses": page, "sha": sha, "total_count": len(all), "repository": c.s.repository(c.repo, roleNone, false),
		"commit_url": u, "url": u + "/status"})
	a.link = link
	return a
}

// resolve finds a commit by its hash or by the name of a branch.
func (r *repo) resolve(ref string) string {
	for _, name := range []string{"refs/heads/" + ref, "refs/heads/" + strings.TrimPrefix(ref, "heads/")} {
		if sha := r.refs[name]; sha != "" {
			return sha
		}
	}
	if sha, err := r.gitOut("rev-parse", "--quiet", "--verify", "--end-of-options", ref+"^{commit}"); err == nil {
		return sha
	}
	return ""
}
