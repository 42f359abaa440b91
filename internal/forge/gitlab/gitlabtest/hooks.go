package gitlabtest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Hook is a webhook of a project.
type Hook struct {
	URL         string
	Token       string
	Signing     string // the signing token
	Alert       string // "" is "executable"
	Events      map[string]bool
	id          int64
	sslVerified bool
}

// AddHook adds a webhook that people made, for the events named: "issues_events".
func (p *Project) AddHook(h Hook, events ...string) {
	p.do(func() {
		h.id, h.Events = p.s.id(), map[string]bool{}
		for _, e := range events {
			h.Events[e] = true
		}
		p.p.hooks = append(p.p.hooks, &h)
	})
}

// Hooks lists the webhooks.
func (p *Project) Hooks() (all []Hook) {
	p.do(func() {
		for _, h := range p.p.hooks {
			one := *h
			one.Events = maps.Clone(h.Events)
			all = append(all, one)
		}
	})
	return all
}

func tokenSelf(c *call) (int, any) {
	return http.StatusOK, object{"id": c.token.id, "name": "tori", "revoked": false, "created_at": stamp(c.s.now()), "description": nil, "scopes": c.token.scopes,
		"user_id": c.user.id, "last_used_at": nil, "active": true, "expires_at": "2027-01-31"}
}

// administered keeps webhooks from who is no maintainer.
func administered(h handler) handler {
	return func(c *call) (int, any) {
		if c.p.level(c.user) < levelMaintainer {
			return refuse(http.StatusForbidden, "403 Forbidden")
		}
		return h(c)
	}
}

func hookList(c *call) (int, any) {
	wires := []object{}
	for _, h := range c.p.hooks {
		wires = append(wires, h.wire(c))
	}
	return paged(c, wires)
}

func hookMake(c *call) (int, any) {
	h := &Hook{id: c.s.id(), Events: map[string]bool{"push_events": true}, sslVerified: true}
	c.p.hooks = append(c.p.hooks, h)
	h.set(c)
	return http.StatusCreated, h.wire(c)
}

func hookEdit(c *call) (int, any) {
	i := slices.IndexFunc(c.p.hooks, func(h *Hook) bool { return strconv.FormatInt(h.id, 10) == c.r.PathValue("hook_id") })
	if i < 0 {
		return refuse(http.StatusNotFound, "404 Not found")
	}
	if c.r.Method == http.MethodDelete {
		c.p.hooks = slices.Delete(c.p.hooks, i, i+1)
		return http.StatusNoContent, nil
	}
	c.p.hooks[i].set(c)
	return http.StatusOK, c.p.hooks[i].wire(c)
}

// set changes what the body names. Another address loses the secret, and servers that do not sign pass
// the signing token over.
func (h *Hook) set(c *call) {
	if u, ok := c.text("url"); ok && u != h.URL {
		h.URL, h.Token = u, ""
	}
	if t, ok := c.text("token"); ok {
		h.Token = t
	}
	if t, ok := c.text("signing_token"); ok && c.s.o.Signing {
		h.Signing = t
	}
	for name, v := range c.body {
		if on, is := v.(bool); is && strings.HasSuffix(name, "_events") {
			h.Events[name] = on
		}
	}
	if on, is := c.body["enable_ssl_verification"].(bool); is {
		h.sslVerified = on
	}
}

var hookEvents = []string{"push_events", "tag_push_events", "merge_requests_events", "repository_update_events", "issues_events", "confidential_issues_events", "note_events",
	"confidential_note_events", "pipeline_events", "wiki_page_events", "deployment_events", "feature_flag_events", "job_events", "releases_events", "emoji_events", "resource_access_token_events"}

func (h *Hook) wire(c *call) object {
	o := object{"id": h.id, "project_id": c.p.id, "url": h.URL, "name": nil, "description": nil, "created_at": stamp(c.s.now()), "enable_ssl_verification": h.sslVerified,
		"alert_status": "executable", "disabled_until": nil, "url_variables": []any{}, "push_events_branch_filter": nil, "branch_filter_strategy": "wildcard",
		"custom_webhook_template": nil, "custom_headers": []any{}}
	if h.Alert != "" {
		o["alert_status"] = h.Alert
	}
	for _, name := range hookEvents {
		o[name] = h.Events[name]
	}
	if c.s.o.Signing {
		o["token_present"], o["signing_token_present"] = h.Token != "", h.Signing != ""
	}
	return o
}
