package giteatest

import (
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
)

// Hook is a webhook of a repository; its secret is shown to nobody else.
type Hook struct {
	sdk.Hook
	Secret string
}

// AddHook adds a webhook that people made to owner/name.
func (s *Server) AddHook(fullName string, h Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.repos {
		if r.FullName == fullName {
			h.ID, h.Created, h.Updated = s.id(), s.second(), s.second()
			r.hooks = append(r.hooks, &h)
			return
		}
	}
	s.t.Fatalf("giteatest: no repository %s", fullName)
}

// Hooks lists the webhooks of owner/name.
func (s *Server) Hooks(fullName string) (all []Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.repos {
		if r.FullName == fullName {
			for _, h := range r.hooks {
				all = append(all, *h)
			}
		}
	}
	return all
}

func listHooks(c *call) (int, any) {
	all := []*sdk.Hook{}
	for _, h := range c.repo.hooks {
		all = append(all, &h.Hook)
	}
	return 200, page(c, all)
}

// createHook makes a webhook as Gitea's addHook does: "issues" and "pull_request" stand for all of their
// kind, and what there is no such event of is passed over.
func createHook(c *call) (int, any) {
	var o sdk.CreateHookOption
	c.into(&o)
	for _, name := range []string{"url", "content_type"} {
		if o.Config[name] == "" {
			return fail(422, "Missing config option: "+name)
		}
	}
	h := &Hook{Secret: o.Config["secret"]}
	h.ID, h.Type, h.Active, h.BranchFilter, h.Created, h.Updated = c.id(), string(o.Type), o.Active, o.BranchFilter, c.second(), c.second()
	h.Config = map[string]string{"url": o.Config["url"], "content_type": o.Config["content_type"]}
	for _, e := range []string{"create", "delete", "fork", "push", "repository", "wiki", "release", "package", "status", "workflow_run", "workflow_job",
		"issues", "issue_assign", "issue_label", "issue_milestone", "issue_comment", "pull_request", "pull_request_assign", "pull_request_label", "pull_request_milestone",
		"pull_request_comment", "pull_request_review", "pull_request_review_request", "pull_request_sync"} {
		if slices.Contains(o.Events, e) || strings.HasPrefix(e, "issue") && slices.Contains(o.Events, "issues") ||
			strings.HasPrefix(e, "pull_request") && slices.Contains(o.Events, "pull_request") {
			h.Events = append(h.Events, e)
		}
	}
	c.repo.hooks = append(c.repo.hooks, h)
	return 201, &h.Hook
}

func deleteHook(c *call) (int, any) {
	i := slices.IndexFunc(c.repo.hooks, func(h *Hook) bool { return h.ID == c.number() })
	if i < 0 {
		return notFound()
	}
	c.repo.hooks = slices.Delete(c.repo.hooks, i, i+1)
	return 204, nil
}
