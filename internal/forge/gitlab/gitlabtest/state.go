package gitlabtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The access levels. Source: GitLab docs, "Members API".
const (
	levelGuest      = 10
	levelReporter   = 20
	levelDeveloper  = 30
	levelMaintainer = 40
)

type user struct {
	id    int64
	login string
	bot   bool
	state string
}

// project is a repository and what is said about it. Kinds of items are numbered apart.
type project struct {
	s          *Server
	id         int64
	dir        string   // of the bare repository, below the server's
	path       string   // "group/subgroup/name"
	old        []string // paths that it had
	visibility string
	archived   bool
	branch     string // the default one
	members    map[int64]int
	labels     []*label
	hooks      []*Hook
	items      map[string][]*item // by kind; the iid is the place, from one on
	statuses   []*status
	branches   map[string]string
}

type label struct {
	id                       int64
	name, color, description string
}

// The kinds of items.
const (
	issues = "issues"
	merges = "merge_requests"
)

type item struct {
	p                        *project
	kind                     string
	id                       int64
	iid                      int
	title, body, state       string
	author                   *user
	labels                   []string
	assignees                []*user
	created, updated         time.Time
	notes, drafts            []*note
	awards                   []*award
	events                   []*event
	locked, confidential     bool
	movedTo                  int64
	source, target, sha, old string // of a merge request; old is the target's commit
	from                     *project
	reviewers                []*reviewer
	approvals                []*user
	pipeline                 object
}

type reviewer struct {
	user  *user
	state string
	at    time.Time
}

type event struct {
	id    int64
	user  *user
	label string
	add   bool
	at    time.Time
}

type note struct {
	id                         int64
	kind, body, thread         string // kind is "", "DiscussionNote" or "DiffNote"
	author                     *user
	created, updated           time.Time
	system, internal, resolved bool
	path, head                 string // of a DiffNote
	line                       int
	awards                     []*award
}

type status struct {
	id                                 int64
	sha, name, state, description, log string
	mayFail, external                  bool
	pipeline                           int64
}

func (s *Server) find(id string) (p *project, moved bool) {
	for _, p := range s.projects {
		if strconv.FormatInt(p.id, 10) == id || strings.EqualFold(p.path, id) {
			return p, false
		}
	}
	for _, p := range s.projects {
		if slices.Contains(p.old, id) {
			return p, true
		}
	}
	return nil, false
}

func (s *Server) user(login string) *user {
	for _, u := range s.users {
		if strings.EqualFold(u.login, login) {
			return u
		}
	}
	return nil
}

func (s *Server) must(login string) *user {
	u := s.user(login)
	if u == nil {
		s.t.Fatalf("gitlabtest: no account %q", login)
	}
	return u
}

func (p *project) level(u *user) int { return p.members[u.id] }

func (p *project) readable(u *user) bool {
	return p.visibility != "private" || p.level(u) >= levelGuest
}

func (p *project) item(kind string, iid int) *item {
	if iid < 1 || iid > len(p.items[kind]) {
		return nil
	}
	return p.items[kind][iid-1]
}

// sees reports whether somebody sees an item at all.
func (i *item) sees(u *user) bool {
	return !i.confidential || i.p.level(u) >= levelReporter || i.author == u || slices.Contains(i.assignees, u)
}

func (p *project) open(kind string, by *user, title, body string) *item {
	now := p.s.now()
	i := &item{p: p, kind: kind, id: p.s.id(), iid: len(p.items[kind]) + 1, title: title, body: body, state: "opened", author: by, created: now, updated: now}
	p.items[kind] = append(p.items[kind], i)
	return i
}

func (i *item) touch() { i.updated = i.p.s.now() }

// say adds a note; the item changes with it.
func (i *item) say(by *user, body string, system bool) *note {
	now := i.p.s.now()
	n := &note{id: i.p.s.id(), body: body, author: by, created: now, updated: now, system: system}
	n.thread = fmt.Sprintf("%040x", n.id)
	i.notes = append(i.notes, n)
	i.touch()
	return n
}

func (i *item) note(id int64) *note {
	for _, n := range i.notes {
		if n.id == id {
			return n
		}
	}
	return nil
}

func (i *item) drop(id int64) {
	i.notes = slices.DeleteFunc(i.notes, func(n *note) bool { return n.id == id })
	i.touch()
}

// label puts a label on or takes it off; one that the project has not is made.
func (i *item) label(by *user, name string, on bool) {
	if has := slices.Contains(i.labels, name); has == on {
		return
	}
	if on {
		i.p.label(name)
		i.labels = append(i.labels, name)
	} else {
		i.labels = slices.DeleteFunc(i.labels, func(l string) bool { return l == name })
	}
	i.events = append(i.events, &event{id: i.p.s.id(), user: by, label: name, add: on, at: i.p.s.now()})
	i.touch()
}

func (p *project) label(name string) *label {
	for _, l := range p.labels {
		if l.name == name {
			return l
		}
	}
	l := &label{id: p.s.id(), name: name, color: "#6699cc"}
	p.labels = append(p.labels, l)
	return l
}

// retitle gives an item another title and text, and notes it as the real server does.
func (i *item) retitle(by *user, title, body string) {
	if title != i.title {
		was, is := isDraft(i.title), isDraft(title)
		switch {
		case i.kind == merges && was && !is:
			i.say(by, "marked this merge request as **ready**", true)
		case i.kind == merges && is && !was:
			i.say(by, "marked this merge request as **draft**", true)
		default:
			i.say(by, fmt.Sprintf("changed title from **%s** to **%s**", i.title, title), true)
		}
	}
	if body != i.body {
		i.say(by, "changed the description", true)
	}
	i.title, i.body = title, body
	i.touch()
}

func isDraft(title string) bool {
	t := strings.ToLower(title)
	return strings.HasPrefix(t, "draft:") || strings.HasPrefix(t, "[draft]") || strings.HasPrefix(t, "(draft)")
}

// assign says who works on an item.
func (i *item) assign(by *user, to []*user) {
	var parts []string
	name := func(word string, all, without []*user) {
		var names []string
		for _, u := range all {
			if !slices.Contains(without, u) {
				names = append(names, "@"+u.login)
			}
		}
		if names != nil {
			parts = append(parts, word+strings.Join(names, ", "))
		}
	}
	name("assigned to ", to, i.assignees)
	name("unassigned ", i.assignees, to)
	i.assignees = to
	if parts != nil {
		i.say(by, strings.Join(parts, " and "), true)
	}
}
