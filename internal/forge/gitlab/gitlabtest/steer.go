package gitlabtest

import (
	"slices"
	"strconv"
	"strings"
)

// AddUser makes an account and returns its number.
func (s *Server) AddUser(login string, bot bool) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &user{id: s.id(), login: login, bot: bot, state: "active"}
	s.users = append(s.users, u)
	return u.id
}

// Rename gives an account another name; Block keeps it from logging in.
func (s *Server) Rename(login, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(login).login = to
}

// Block keeps an account from logging in.
func (s *Server) Block(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(login).state = "blocked"
}

// Token makes a token of an account.
func (s *Server) Token(login string, scopes ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := "glpat-" + login + "-" + strings.Join(scopes, "-") + string(rune('a'+len(s.tokens)))
	s.tokens[t] = &token{s.id(), s.must(login), scopes}
	return t
}

// Revoke takes a token back.
func (s *Server) Revoke(t string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, t)
}

// Project is a project of the server.
type Project struct {
	s *Server
	p *project
}

// AddProject makes a project below a group, which is made, too. It has a branch main.
func (s *Server) AddProject(path, visibility string) *Project {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &project{s: s, id: s.id(), path: path, visibility: visibility, branch: "main", members: map[int64]int{}, items: map[string][]*item{}, branches: map[string]string{}}
	for group := path; strings.Contains(group, "/"); {
		group = group[:strings.LastIndexByte(group, '/')]
		s.groups[strings.ToLower(group)] = true
	}
	s.projects = append(s.projects, p)
	p.initialise()
	return &Project{s, p}
}

// do changes a project.
func (p *Project) do(f func()) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	f()
}

// on changes an item: of a merge request the number is written "!7".
func (p *Project) on(number string, f func(*item)) {
	p.do(func() {
		kind, iid := issues, number
		if rest, is := strings.CutPrefix(number, "!"); is {
			kind, iid = merges, rest
		}
		n, err := strconv.Atoi(iid)
		i := p.p.item(kind, n)
		if err != nil || i == nil {
			p.s.t.Fatalf("gitlabtest: no item %s", number)
		}
		f(i)
	})
}

// Member gives an account an access level; 0 takes it away.
func (p *Project) Member(login string, level int) {
	p.do(func() { p.p.members[p.s.must(login).id] = level })
}

// Move gives the project another path; the old one leads there.
func (p *Project) Move(path string) {
	p.do(func() { p.p.old, p.p.path = append(p.p.old, p.p.path), path })
}

// Archive makes the project read-only.
func (p *Project) Archive() { p.do(func() { p.p.archived = true }) }

// Open opens an issue and returns its number.
func (p *Project) Open(by, title, body string, labels ...string) (iid int) {
	p.do(func() {
		i := p.p.open(issues, p.s.must(by), title, body)
		for _, l := range labels {
			i.label(p.s.must(by), l, true)
		}
		iid = i.iid
	})
	return iid
}

// OpenFor opens an issue that is given to somebody at once: there is no note of that.
func (p *Project) OpenFor(by, title, to string) (iid int) {
	iid = p.Open(by, title, "")
	p.on(strconv.Itoa(iid), func(i *item) { i.assignees = []*user{p.s.must(to)} })
	return iid
}

// Imported opens an issue whose labels have no history.
func (p *Project) Imported(by, title string, labels ...string) (iid int) {
	iid = p.Open(by, title, "", labels...)
	p.on(strconv.Itoa(iid), func(i *item) { i.events = nil })
	return iid
}

// Merge opens a merge request from a branch of another project, or of its own.
func (p *Project) Merge(by string, from *Project, source, target, title, body string) (iid int) {
	p.do(func() {
		i := p.p.open(merges, p.s.must(by), title, body)
		i.source, i.target, i.from, i.sha, i.old = source, target, from.p, from.p.branches[source], p.p.branches[target]
		iid = i.iid
	})
	return iid
}

// Merges are the branches of the merge requests, by their numbers from one on.
func (p *Project) Merges() (sources []string) {
	p.do(func() {
		for _, i := range p.p.items[merges] {
			sources = append(sources, i.source)
		}
	})
	return sources
}

// Has reports whether there is a merge request of that number.
func (p *Project) Has(iid int) (has bool) {
	p.do(func() { has = p.p.item(merges, iid) != nil })
	return has
}

// Close closes an item; Confidential, Lock and Moved mark one.
func (p *Project) Close(n string)        { p.on(n, func(i *item) { i.state = "closed"; i.touch() }) }
func (p *Project) Confidential(n string) { p.on(n, func(i *item) { i.confidential = true; i.touch() }) }
func (p *Project) Lock(n string)         { p.on(n, func(i *item) { i.locked = true }) }
func (p *Project) Moved(n string)        { p.on(n, func(i *item) { i.movedTo, i.state = 4711, "closed" }) }

// State, Title and Body are what an item has.
func (p *Project) State(n string) (s string) { p.on(n, func(i *item) { s = i.state }); return s }
func (p *Project) Title(n string) (s string) { p.on(n, func(i *item) { s = i.title }); return s }
func (p *Project) Body(n string) (s string)  { p.on(n, func(i *item) { s = i.body }); return s }

// Retitle gives an item another title and text.
func (p *Project) Retitle(n, by, title, body string) {
	p.on(n, func(i *item) { i.retitle(p.s.must(by), title, body) })
}

// Comment adds a note and returns its number.
func (p *Project) Comment(n, by, body string) (id int64) {
	p.on(n, func(i *item) { id = i.say(p.s.must(by), body, false).id })
	return id
}

// System adds a note that the server writes.
func (p *Project) System(n, by, body string) {
	p.on(n, func(i *item) { i.say(p.s.must(by), body, true) })
}

// Internal adds a note that reporters and their betters see.
func (p *Project) Internal(n, by, body string) {
	p.on(n, func(i *item) { i.say(p.s.must(by), body, false).internal = true })
}

// Edit changes a note, Delete removes one.
func (p *Project) Edit(n string, id int64, body string) {
	p.on(n, func(i *item) { i.edit(i.note(id), body) })
}

// Delete removes a note.
func (p *Project) Delete(n string, id int64) { p.on(n, func(i *item) { i.drop(id) }) }

// Notes are the texts that people wrote on an item.
func (p *Project) Notes(n string) (all []string) {
	p.on(n, func(i *item) {
		for _, t := range i.notes {
			if !t.system {
				all = append(all, t.body)
			}
		}
	})
	return all
}

// Label puts a label on or takes it off.
func (p *Project) Label(n, by, label string, on bool) {
	p.on(n, func(i *item) { i.label(p.s.must(by), label, on) })
}

// LabelsOf are the labels of an item, Labels those of the project.
func (p *Project) LabelsOf(n string) (all []string) {
	p.on(n, func(i *item) { all = slices.Clone(i.labels) })
	return all
}

// Labels are the labels of the project.
func (p *Project) Labels() (all []string) {
	p.do(func() {
		for _, l := range p.p.labels {
			all = append(all, l.name)
		}
	})
	return all
}

// Assign says who works on an item.
func (p *Project) Assign(n, by string, to ...string) {
	p.on(n, func(i *item) {
		var all []*user
		for _, login := range to {
			all = append(all, p.s.must(login))
		}
		i.assign(p.s.must(by), all)
	})
}

// Remark says something on a line of a merge request, as an answer where thread is not 0;
// it returns the note's number.
func (p *Project) Remark(n, by, path string, line int, body string, thread int64) (id int64) {
	p.on(n, func(i *item) {
		t := i.say(p.s.must(by), body, false)
		t.kind, t.path, t.line, t.head = "DiffNote", path, line, i.sha
		if thread != 0 {
			t.thread = i.note(thread).thread
		}
		id = t.id
	})
	return id
}

// Remarks are what was said on lines of a merge request: "path:line text".
func (p *Project) Remarks(n string) (all []string) {
	p.on(n, func(i *item) {
		for _, t := range i.notes {
			if t.kind == "DiffNote" {
				all = append(all, t.path+":"+strconv.Itoa(t.line)+" "+t.body)
			}
		}
	})
	return all
}

// Resolve settles the thread of a remark.
func (p *Project) Resolve(n string, id int64) {
	p.on(n, func(i *item) {
		for _, t := range i.notes {
			if t.thread == i.note(id).thread {
				t.resolved, t.updated = true, p.s.now()
			}
		}
		i.touch()
	})
}

// Verdict gives a reviewer's: "approved", "unapproved" or "requested_changes".
func (p *Project) Verdict(n, by, verdict string) {
	p.on(n, func(i *item) {
		u := p.s.must(by)
		r := slices.IndexFunc(i.reviewers, func(r *reviewer) bool { return r.user == u })
		if r < 0 {
			r, i.reviewers = len(i.reviewers), append(i.reviewers, &reviewer{user: u, at: p.s.now()})
		}
		i.reviewers[r].state = verdict
		i.approvals = slices.DeleteFunc(i.approvals, func(a *user) bool { return a == u })
		if verdict == "approved" {
			i.approvals = append(i.approvals, u)
		}
		i.say(u, map[string]string{"approved": "approved this merge request", "unapproved": "unapproved this merge request", "requested_changes": "requested changes"}[verdict], true)
	})
}

// Reset takes back all approvals, as a push does, and asks for all reviews again.
func (p *Project) Reset(n string) {
	p.on(n, func(i *item) {
		i.approvals = nil
		for _, r := range i.reviewers {
			r.state = "unreviewed"
		}
	})
}

// Reviewers are the logins of who is asked to review and has not answered.
func (p *Project) Reviewers(n string) (all []string) {
	p.on(n, func(i *item) {
		for _, r := range i.reviewers {
			if r.state == "unreviewed" {
				all = append(all, r.user.login)
			}
		}
	})
	return all
}

// Job is a job of a commit's pipeline, or another service's check of it.
type Job struct {
	Name, State, Log string
	Description      string // of another service's check
	External         bool
	MayFail          bool
}

// Job adds a job to a commit.
func (p *Project) Job(sha string, j Job) {
	p.do(func() {
		p.p.statuses = append(p.p.statuses, &status{id: p.s.id(), sha: sha, name: j.Name, state: j.State, description: j.Description, log: j.Log, mayFail: j.MayFail, external: j.External, pipeline: 1})
	})
}

// Pipeline says what a merge request's last pipeline ran on.
func (p *Project) Pipeline(n, sha string) {
	p.on(n, func(i *item) { i.pipeline = object{"id": 1, "sha": sha, "status": "failed"} })
}
