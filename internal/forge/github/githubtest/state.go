package githubtest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// object is a JSON object on its way out.
type object = map[string]any

// The roles of people in a repository, weakest first.
var roles = []string{"none", "read", "triage", "write", "maintain", "admin"}

const (
	roleNone = iota
	roleRead
	roleTriage
	roleWrite
	roleMaintain
	roleAdmin
)

type account struct {
	id    int64
	login string
	kind  string // "User", "Bot", "Organization"
	gone  bool   // deleted: its words are the ghost's
}

type token struct {
	user    *account
	app     *app // of JWTs and installation tokens
	install *installation
	expires time.Time // zero: never
	revoked bool
	scopes  *string // of a classic token, as it is shown
	used    int
	reset   time.Time
}

type label struct {
	id                       int64
	name, color, description string
}

type repo struct {
	s       *Server
	id      int64
	owner   *account
	name    string
	former  []string // names that it had, "owner/name"
	o       RepoOptions
	dir     string // bare repository
	path    string // below the server's directory
	fork    *repo  // what it was copied from
	roles   map[int64]int
	labels  []*label
	issues  []*issue // by number - 1
	checks  []*check
	hooks   []*webhook
	created time.Time
	pushed  time.Time
	refs    map[string]string // refs/heads/* to commits, as of the last look
	merges  map[string]bool   // "base head" to whether it merges
	log     map[string][]string
}

func (r *repo) full() string { return r.owner.login + "/" + r.name }

type issue struct {
	signs     []*reaction
	id        int64
	repo      *repo
	number    int
	title     string
	body      string
	author    *account
	labels    []*label
	assignees []*account
	closed    bool
	reason    string
	locked    bool
	deleted   bool
	created   time.Time
	updated   time.Time
	closedAt  time.Time
	closedBy  *account
	comments  []*comment
	events    []*event
	edits     []edit // of the body; with the first that it was written
	namedBy   []*issue
	pull      *pull
}

// edit is that somebody wrote a text.
type edit struct {
	by *account
	at time.Time
}

type comment struct {
	signs   []*reaction
	id      int64
	issue   *issue
	author  *account
	body    string
	created time.Time
	updated time.Time
}

type event struct {
	id       int64
	kind     string
	actor    *account
	at       time.Time
	label    *label
	assignee *account // of assigned, and the reviewer of review_requested
	from, to string   // of renamed
	commit   string
}

type pull struct {
	draft     bool
	base      string // branch
	head      string // branch
	headRepo  *repo  // nil where the fork is gone
	headUser  *account
	baseSHA   string
	headSHA   string
	editable  bool
	merged    time.Time
	mergedBy  *account
	mergeSHA  string
	reviewers []*account
	reviews   []*review
	lines     []*lineComment
	unknown   int // answers left that do not know whether it merges
}

type review struct {
	id     int64
	author *account
	state  string
	body   string
	commit string
	at     time.Time
}

type lineComment struct {
	id       int64
	issue    *issue
	review   *review
	author   *account
	body     string
	path     string
	line     int
	commit   string
	original string
	replyTo  int64
	outdated bool
	resolved bool // of one that began its thread
	created  time.Time
	updated  time.Time
}

type check struct {
	id   int64
	sha  string
	made CheckRun
	at   time.Time
}

func (s *Server) account(login string) *account {
	for _, a := range s.accounts {
		if !a.gone && strings.EqualFold(a.login, login) {
			return a
		}
	}
	return nil
}

// must is the account of that name; a test that names another has a mistake in it.
func (s *Server) must(login string) *account {
	s.t.Helper()
	a := s.account(login)
	if a == nil {
		s.t.Fatalf("githubtest: no account %q: add it with AddUser", login)
	}
	return a
}

func (s *Server) repo(owner, name string) *repo {
	for _, r := range s.repos {
		if strings.EqualFold(r.owner.login, owner) && strings.EqualFold(r.name, name) {
			return r
		}
	}
	return nil
}

// moved is the repository that had that name and that nothing has taken since.
func (s *Server) moved(owner, name string) *repo {
	for _, r := range s.repos {
		if slices.ContainsFunc(r.former, func(f string) bool { return strings.EqualFold(f, owner+"/"+name) }) {
			return r
		}
	}
	return nil
}

// role is what an account may do to a repository.
func (r *repo) role(a *account) int {
	n := roleNone
	if !r.o.Private {
		n = roleRead
	}
	if a == nil {
		return n
	}
	if a.id == r.owner.id {
		return roleAdmin
	}
	return max(n, r.roles[a.id])
}

// collaborator reports whether an account was given a role of its own.
func (r *repo) collaborator(a *account) bool { return a.id == r.owner.id || r.roles[a.id] > roleNone }

func (r *repo) label(name string) *label {
	for _, l := range r.labels {
		if strings.EqualFold(l.name, name) {
			return l
		}
	}
	return nil
}

func (r *repo) issue(n int) *issue {
	if n < 1 || n > len(r.issues) {
		return nil
	}
	return r.issues[n-1]
}

func (r *repo) addLabel(name, color, description string) *label {
	l := &label{id: r.s.id(), name: name, color: color, description: description}
	r.labels = append(r.labels, l)
	return l
}

func (i *issue) has(name string) bool {
	return slices.ContainsFunc(i.labels, func(l *label) bool { return strings.EqualFold(l.name, name) })
}

func (i *issue) touch() { i.updated = i.repo.s.now() }

func (i *issue) happened(kind string, by *account) *event {
	e := &event{id: i.repo.s.id(), kind: kind, actor: by, at: i.repo.s.now()}
	i.events = append(i.events, e)
	return e
}

// putLabel does nothing where the label is there already.
func (i *issue) putLabel(name string, by *account) {
	if i.has(name) {
		return
	}
	l := i.repo.label(name)
	if l == nil { // as the real one does for who may push
		l = i.repo.addLabel(name, "ededed", "")
	}
	i.labels = append(i.labels, l)
	i.happened("labeled", by).label = l
	i.touch()
	i.changed("labeled", by, object{"label": i.repo.s.label(i.repo, l)})
}

// takeLabel reports whether the label was there.
func (i *issue) takeLabel(name string, by *account) bool {
	n := slices.IndexFunc(i.labels, func(l *label) bool { return strings.EqualFold(l.name, name) })
	if n < 0 {
		return false
	}
	l := i.labels[n]
	i.happened("unlabeled", by).label = l
	i.labels = slices.Delete(slices.Clone(i.labels), n, n+1)
	i.touch()
	i.changed("unlabeled", by, object{"label": i.repo.s.label(i.repo, l)})
	return true
}

// assign passes over whom the repository does not know, as the real one does.
func (i *issue) assign(who, by *account) {
	if slices.Contains(i.assignees, who) || !i.repo.collaborator(who) || len(i.assignees) == 10 {
		return
	}
	i.assignees = append(i.assignees, who)
	i.happened("assigned", by).assignee = who
	i.touch()
	i.changed("assigned", by, object{"assignee": i.repo.s.user(who)})
}

func (i *issue) unassign(who, by *account) {
	n := slices.Index(i.assignees, who)
	if n < 0 {
		return
	}
	i.assignees = slices.Delete(slices.Clone(i.assignees), n, n+1)
	i.happened("unassigned", by).assignee = who
	i.touch()
	i.changed("unassigned", by, object{"assignee": i.repo.s.user(who)})
}

func (i *issue) setTitle(title string, by *account) {
	if title == i.title {
		return
	}
	e := i.happened("renamed", by)
	e.from, e.to = i.title, title
	i.title = title
	i.touch()
	i.changed("edited", by, object{"changes": object{"title": object{"from": e.from}}})
}

func (i *issue) setBody(body string, by *account) {
	if body == i.body {
		return
	}
	if len(i.edits) == 0 { // the history begins with the text as it was written
		i.edits = append(i.edits, edit{i.author, i.created})
	}
	i.edits = append(i.edits, edit{by, i.repo.s.now()})
	was := i.body
	i.body = body
	i.touch()
	i.changed("edited", by, object{"changes": object{"body": object{"from": was}}})
}

func (i *issue) close(by *account, reason, commit string) {
	if i.closed {
		return
	}
	i.closed, i.reason, i.closedAt, i.closedBy = true, reason, i.repo.s.now(), by
	i.happened("closed", by).commit = commit
	i.touch()
	i.changed("closed", by, nil)
}

func (i *issue) reopen(by *account) {
	if !i.closed {
		return
	}
	i.closed, i.reason, i.closedAt, i.closedBy = false, "reopened", time.Time{}, nil
	i.happened("reopened", by)
	i.touch()
	i.changed("reopened", by, nil)
}

func (r *repo) open(by *account, title, body string) *issue {
	now := r.s.now()
	i := &issue{id: r.s.id(), repo: r, number: len(r.issues) + 1, title: title, body: body, author: by, created: now, updated: now}
	r.issues = append(r.issues, i)
	i.crossReference(body)
	return i
}

func (i *issue) comment(by *account, body string) *comment {
	now := i.repo.s.now()
	c := &comment{id: i.repo.s.id(), issue: i, author: by, body: body, created: now, updated: now}
	i.comments = append(i.comments, c)
	i.touch()
	i.crossReference(body)
	c.told("created", by, nil)
	return c
}

// crossReference dates the issues that a text names.
func (i *issue) crossReference(text string) {
	for _, m := range mentioned.FindAllStringSubmatch(text, 50) {
		var n int
		if _, err := fmt.Sscan(m[1], &n); err != nil {
			continue
		}
		other := i.repo.issue(n)
		if other == nil || other == i || other.deleted {
			continue
		}
		if !slices.Contains(other.namedBy, i) {
			other.namedBy = append(other.namedBy, i)
			other.touch()
		}
	}
}
