package githubtest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// webhook is one of a repository.
type webhook struct {
	id          int64
	url, secret string
	contentType string
	events      []string
	active      bool
}

// Hook is a webhook of a repository, as people see it.
type Hook struct {
	URL, Secret, ContentType string
	Events                   []string
	Active                   bool
}

// Delivery is what the server sends to one webhook of what happened.
type Delivery struct {
	Event, Action string
	Header        http.Header
	Body          []byte
	URL           string
}

// Send sends it; status is 0 where nobody answered.
func (d Delivery) Send() (status int) {
	r, err := http.NewRequest(http.MethodPost, d.URL, bytes.NewReader(d.Body)) //nolint:noctx // it has no one to wait for
	if err != nil {
		return 0
	}
	r.Header = d.Header.Clone()
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	_ = a.Body.Close()
	return a.StatusCode
}

// OnDelivery has deliveries handed over instead of sent, so that they can be lost, doubled
// and reordered. It is called with the server's lock held; nil sends them again.
func (s *Server) OnDelivery(f func(Delivery)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post = f
}

// AddHook adds a webhook.
func (r *Repo) AddHook(h Hook) {
	defer r.lock()()
	r.r.hooks = append(r.r.hooks, &webhook{id: r.s.id(), url: h.URL, secret: h.Secret, contentType: h.ContentType, events: h.Events, active: h.Active})
}

// Hooks lists the webhooks.
func (r *Repo) Hooks() (all []Hook) {
	defer r.lock()()
	for _, h := range r.r.hooks {
		all = append(all, Hook{h.url, h.secret, h.contentType, slices.Clone(h.events), h.active})
	}
	return all
}

// changed tells the webhooks that an issue or a pull request is other than it was.
func (i *issue) changed(action string, by *account, more object) {
	if len(i.repo.hooks) == 0 {
		return
	}
	event, body := "issues", object{"issue": i.repo.s.issue(i)}
	if i.pull != nil {
		event, body = "pull_request", object{"number": i.number, "pull_request": i.repo.s.pullAlone(i, false)}
	}
	maps.Copy(body, more)
	i.told(event, action, by, body)
}

// told tells the webhooks of a comment.
func (m *comment) told(action string, by *account, more object) {
	if s := m.issue.repo.s; len(m.issue.repo.hooks) > 0 {
		body := object{"issue": s.issue(m.issue), "comment": s.comment(m)}
		maps.Copy(body, more)
		m.issue.told("issue_comment", action, by, body)
	}
}

// told is a review as webhooks have it: with its state in lower case.
func (s *Server) told(i *issue, v *review) object {
	o := s.review(i, v)
	o["state"] = strings.ToLower(v.state)
	return o
}

// told has what happened delivered to the webhooks that want to know.
func (i *issue) told(event, action string, by *account, body object) {
	r := i.repo
	s := r.s
	var raw []byte
	for _, h := range r.hooks {
		if !h.active || !slices.Contains(h.events, event) && !slices.Contains(h.events, "*") {
			continue
		}
		if raw == nil {
			body["action"], body["repository"], body["sender"] = action, s.repository(r, roleNone, false), s.user(by)
			delete(body["repository"].(object), "permissions")
			var err error
			if raw, err = json.Marshal(body); err != nil {
				s.t.Errorf("githubtest: %v", err)
				return
			}
			s.validateDelivery(event, action, raw)
		}
		d := Delivery{Event: event, Action: action, URL: h.url, Body: raw, Header: http.Header{}}
		for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/044aadd", "X-GitHub-Event": event, "X-GitHub-Delivery": uuid.NewString(),
			"X-GitHub-Hook-ID": strconv.FormatInt(h.id, 10), "X-GitHub-Hook-Installation-Target-ID": strconv.FormatInt(r.id, 10), "X-GitHub-Hook-Installation-Target-Type": "repository"} {
			d.Header.Set(name, value)
		}
		if h.secret != "" {
			mac := hmac.New(sha256.New, []byte(h.secret))
			_, _ = mac.Write(raw)
			d.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		}
		if s.post != nil {
			s.post(d)
			continue
		}
		s.posting.Go(func() { d.Send() })
	}
}

// validateDelivery holds a delivery to the description (x-webhooks).
func (s *Server) validateDelivery(event, action string, raw []byte) {
	if s.ops == nil {
		return
	}
	name := "webhook-" + strings.ReplaceAll(event+"-"+action, "_", "-")
	s.ops.mu.Lock()
	schema, err := s.ops.compiler.Compile(scheme + "components/schemas/" + name)
	s.ops.mu.Unlock()
	if err != nil {
		s.t.Errorf("githubtest: the schema of %s: %v", name, err)
		return
	}
	body, err := decode(raw)
	if err != nil {
		s.t.Errorf("githubtest: %v", err)
		return
	}
	s.against(schema, body, Violation{Operation: name, Where: "delivery"})
}

var hookRoutes = []route{
	{"GET /repos/{owner}/{repo}/hooks", "user", administered(func(c *call) *answer {
		return c.list(len(c.repo.hooks), func(i int) object { return c.s.hook(c.repo, c.repo.hooks[i]) })
	})},
	{"POST /repos/{owner}/{repo}/hooks", "user", administered((*call).createHook)},
	{"PATCH /repos/{owner}/{repo}/hooks/{hook_id}", "user", administered((*call).editHook)},
}

// administered hides webhooks from who does not look after the repository.
func administered(do func(*call) *answer) func(*call) *answer {
	return func(c *call) *answer {
		if c.role < roleAdmin {
			return notFound()
		}
		return do(c)
	}
}

func (s *Server) hook(r *repo, h *webhook) object {
	u := s.api("/repos/%s/hooks/%d", r.full(), h.id)
	config := object{"url": h.url, "content_type": h.contentType, "insecure_ssl": "0"}
	if h.secret != "" {
		config["secret"] = "********"
	}
	return object{"type": "Repository", "id": h.id, "name": "web", "active": h.active, "events": h.events, "config": config, "updated_at": stamp(s.now()), "created_at": stamp(s.now()),
		"url": u, "test_url": u + "/test", "ping_url": u + "/pings", "deliveries_url": u + "/deliveries", "last_response": object{"code": nil, "status": "unused", "message": nil}}
}

type hookInput struct {
	Name   string
	Active *bool
	Events []string
	Config struct {
		URL         string
		ContentType string `json:"content_type"`
		Secret      string
	}
}

func (c *call) createHook() *answer {
	var in hookInput
	if a := c.read(&in); a != nil {
		return a
	}
	for _, h := range c.repo.hooks {
		if h.url == in.Config.URL {
			return invalid("Hook", "", "custom", "Hook already exists on this repository")
		}
	}
	h := &webhook{id: c.s.id(), contentType: "form", events: []string{"push"}, active: true}
	c.repo.hooks = append(c.repo.hooks, h)
	h.set(in)
	return created(c.s.hook(c.repo, h))
}

func (c *call) editHook() *answer {
	var in hookInput
	if a := c.read(&in); a != nil {
		return a
	}
	for _, h := range c.repo.hooks {
		if fmt.Sprint(h.id) == c.r.PathValue("hook_id") {
			h.set(in)
			return ok(c.s.hook(c.repo, h))
		}
	}
	return notFound()
}

// set changes what is given; a config that is given takes the place of the whole.
func (h *webhook) set(in hookInput) {
	if in.Config.URL != "" {
		h.url, h.secret, h.contentType = in.Config.URL, in.Config.Secret, "form"
		if in.Config.ContentType != "" {
			h.contentType = in.Config.ContentType
		}
	}
	if in.Events != nil {
		h.events = in.Events
	}
	if in.Active != nil {
		h.active = *in.Active
	}
}
