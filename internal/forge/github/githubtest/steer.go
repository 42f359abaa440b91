package githubtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// User is an account.
type User struct {
	Login string
	ID    int64             // default: a number of the server's
	Type  string            // "User" (default), "Bot", "Organization"
	Roles map[string]string // "owner/name" to none, read, triage, write, maintain, admin
}

// RepoOptions are a repository's settings.
type RepoOptions struct {
	Branch   string // the default one; default "main"
	Private  bool
	Archived bool // read-only
	NoIssues bool // switched off: 410
	NoDrafts bool // as private repositories of some plans
	Created  time.Time
}

// Repo steers a repository as people do by its pages. People are named by their
// logins, issues and pull requests by their numbers.
type Repo struct {
	s *Server
	r *repo
}

// Line is a remark of a review on a line, or on the file where Line is 0.
type Line struct {
	Path    string
	Line    int
	Body    string
	ReplyTo int64 // id of the remark that it answers
}

func (r *Repo) lock() (unlock func()) {
	r.s.mu.Lock()
	return r.s.mu.Unlock
}

// AddUser adds an account. A name that another account has is a mistake.
func (s *Server) AddUser(u User) User {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account(u.Login) != nil {
		s.t.Fatalf("githubtest: there is an account %q already", u.Login)
	}
	if u.ID == 0 {
		u.ID = s.id()
	}
	u.Type = cmp.Or(u.Type, "User")
	a := s.addAccount(u.ID, u.Login, u.Type)
	for name, role := range u.Roles {
		s.mustRepo(name).allow(a, role)
	}
	return u
}

func (s *Server) addAccount(id int64, login, kind string) *account {
	a := &account{id: id, login: login, kind: kind}
	s.accounts = append(s.accounts, a)
	return a
}

// Rename gives an account another name; its number stays, and the old name is free.
func (s *Server) Rename(from, to string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account(to) != nil {
		s.t.Fatalf("githubtest: there is an account %q already", to)
	}
	s.must(from).login = to
}

// DeleteUser deletes an account: its tokens are refused, what it said is the ghost's.
func (s *Server) DeleteUser(login string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must(login).gone = true
}

// Token makes a personal token.
func (s *Server) Token(login string) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	secret := fmt.Sprintf("ghp_%036d", s.id())
	s.tokens[secret] = &token{user: s.must(login)}
	return secret
}

// InstallationToken is a token of an installation of an app, as each job of GitHub Actions has one
// of the app github-actions.
func (s *Server) InstallationToken(installation int64) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.installs {
		if n.id == installation {
			secret := fmt.Sprintf("ghs_%036d", s.id())
			s.tokens[secret] = &token{user: n.app.bot, app: n.app, install: n, expires: s.now().Add(time.Hour)}
			return secret
		}
	}
	s.t.Fatalf("githubtest: no installation %d", installation)
	return ""
}

// Scope makes a token a classic one whose scopes are shown: "repo, workflow". They do not limit it.
func (s *Server) Scope(secret, scopes string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[secret].scopes = &scopes
}

// Revoke makes a token of any kind worthless.
func (s *Server) Revoke(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tokens[secret]; t != nil {
		t.revoked = true
	}
}

// Tokens are the installation tokens that were given out and are still good.
func (s *Server) Tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for secret, t := range s.tokens {
		if t.install != nil && s.known(secret) != nil {
			out = append(out, secret)
		}
	}
	slices.Sort(out)
	return out
}

// AddRepo adds a repository with one commit of the files; without files it is
// empty. An owner that is not there becomes an organization.
func (s *Server) AddRepo(owner, name string, o RepoOptions, files map[string]string) *Repo {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.addRepo(owner, name, o)
	r.initialise()
	if len(files) > 0 {
		r.commit(r.o.Branch, r.owner.login, "Initial commit", files)
	}
	return &Repo{s, r}
}

func (s *Server) addRepo(owner, name string, o RepoOptions) *repo {
	s.t.Helper()
	a := s.account(owner)
	if a == nil {
		a = s.addAccount(s.id(), owner, "Organization")
	}
	if s.repo(owner, name) != nil {
		s.t.Fatalf("githubtest: there is a repository %s/%s already", owner, name)
	}
	o.Branch = cmp.Or(o.Branch, "main")
	r := &repo{s: s, id: s.id(), owner: a, name: name, o: o, roles: map[int64]int{}, created: s.now(), pushed: s.now(),
		refs: map[string]string{}, merges: map[string]bool{}, log: map[string][]string{}}
	if !o.Created.IsZero() {
		r.created = o.Created
	}
	s.repos = append(s.repos, r)
	return r
}

// Fork copies a repository to another owner, under its name.
func (r *Repo) Fork(owner string) *Repo {
	r.s.t.Helper()
	defer r.lock()()
	o := r.r.o
	o.Created = time.Time{}
	f := r.s.addRepo(owner, r.r.name, o)
	f.fork = r.r
	f.initialise()
	f.gitMust("fetch", "-q", r.r.dir, "+refs/heads/*:refs/heads/*")
	f.sync()
	return &Repo{r.s, f}
}

// Delete takes the repository away; pull requests from it stay.
func (r *Repo) Delete() {
	defer r.lock()()
	r.s.repos = slices.DeleteFunc(r.s.repos, func(o *repo) bool { return o == r.r })
	for _, o := range r.s.repos {
		for _, i := range o.issues {
			if i.pull != nil && i.pull.headRepo == r.r {
				i.pull.headRepo = nil
			}
		}
	}
}

// Rename gives the repository another "owner/name": by another owner it is
// transferred. Who asks for it by a former name is sent on, until another
// repository takes that name. People keep their roles.
func (r *Repo) Rename(to string) {
	r.s.t.Helper()
	defer r.lock()()
	owner, name, _ := strings.Cut(to, "/")
	if r.s.repo(owner, name) != nil {
		r.s.t.Fatalf("githubtest: there is a repository %s already", to)
	}
	a := r.s.account(owner)
	if a == nil {
		a = r.s.addAccount(r.s.id(), owner, "Organization")
	}
	r.r.former = append(r.r.former, r.r.full())
	r.r.owner, r.r.name = a, name
	for _, other := range r.s.repos {
		for _, i := range other.issues {
			if i.pull != nil && i.pull.headRepo == r.r {
				i.pull.headUser = a
			}
		}
	}
	for _, o := range r.s.repos { // a name that is in use again belongs to who uses it
		o.former = slices.DeleteFunc(o.former, func(f string) bool { return strings.EqualFold(f, to) })
	}
}

// Repo is the repository of that "owner/name".
func (s *Server) Repo(name string) *Repo {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Repo{s, s.mustRepo(name)}
}

func (s *Server) mustRepo(name string) *repo {
	s.t.Helper()
	owner, base, _ := strings.Cut(name, "/")
	r := s.repo(owner, base)
	if r == nil {
		s.t.Fatalf("githubtest: no repository %q", name)
	}
	return r
}

// Name is "owner/name".
func (r *Repo) Name() string {
	defer r.lock()()
	return r.r.full()
}

// ID is the repository's number.
func (r *Repo) ID() int64 { return r.r.id }

// Set changes the repository's settings.
func (r *Repo) Set(change func(*RepoOptions)) {
	defer r.lock()()
	change(&r.r.o)
}

// Allow gives a person a role: none, read, triage, write, maintain, admin.
func (r *Repo) Allow(login, role string) {
	r.s.t.Helper()
	defer r.lock()()
	r.r.allow(r.s.must(login), role)
}

func (r *repo) allow(a *account, role string) {
	r.s.t.Helper()
	n := slices.Index(roles, role)
	if n < 0 {
		r.s.t.Fatalf("githubtest: no role %q, expected one of %v", role, roles)
	}
	r.roles[a.id] = n
}

func (r *Repo) mustIssue(n int) *issue {
	r.s.t.Helper()
	i := r.r.issue(n)
	if i == nil {
		r.s.t.Fatalf("githubtest: no issue %s#%d", r.r.full(), n)
	}
	return i
}

func (r *Repo) mustPull(n int) *issue {
	r.s.t.Helper()
	i := r.mustIssue(n)
	if i.pull == nil {
		r.s.t.Fatalf("githubtest: %s#%d is no pull request", r.r.full(), n)
	}
	return i
}

// OpenIssue opens an issue and returns its number. Labels are put on by its author.
func (r *Repo) OpenIssue(by, title, body string, labels ...string) int {
	r.s.t.Helper()
	defer r.lock()()
	i := r.r.open(r.s.must(by), title, body)
	i.changed("opened", i.author, nil)
	for _, l := range labels {
		i.putLabel(l, i.author)
	}
	return i.number
}

// OpenPull opens a pull request of a branch, or of "owner:branch" of a fork,
// and returns its number.
func (r *Repo) OpenPull(by, head, base, title, body string) int {
	r.s.t.Helper()
	defer r.lock()()
	who := r.s.must(by)
	from, branch := r.r.head(head)
	r.r.sync()
	if from == nil || from.refs["refs/heads/"+branch] == "" || r.r.refs["refs/heads/"+base] == "" {
		r.s.t.Fatalf("githubtest: no branch %q or %q of %s", head, base, r.r.full())
	}
	r.r.bring(from, branch)
	i := r.r.propose(who, from, branch, base, title, body)
	i.pull.editable = from != r.r
	return i.number
}

// Edit gives an issue or a pull request another title and body.
func (r *Repo) Edit(n int, by, title, body string) {
	r.s.t.Helper()
	defer r.lock()()
	i := r.mustIssue(n)
	i.setTitle(title, r.s.must(by))
	i.setBody(body, r.s.must(by))
}

// Label puts a label on; one that the repository lacks is made.
func (r *Repo) Label(n int, label, by string) {
	r.s.t.Helper()
	defer r.lock()()
	r.mustIssue(n).putLabel(label, r.s.must(by))
}

// Unlabel takes a label away.
func (r *Repo) Unlabel(n int, label, by string) {
	r.s.t.Helper()
	defer r.lock()()
	r.mustIssue(n).takeLabel(label, r.s.must(by))
}

// Assign assigns somebody who has a role in the repository.
func (r *Repo) Assign(n int, who, by string) {
	r.s.t.Helper()
	defer r.lock()()
	r.mustIssue(n).assign(r.s.must(who), r.s.must(by))
}

// Unassign takes an assignment back.
func (r *Repo) Unassign(n int, who, by string) {
	r.s.t.Helper()
	defer r.lock()()
	r.mustIssue(n).unassign(r.s.must(who), r.s.must(by))
}

// Close closes an issue or a pull request, the latter without merging it.
func (r *Repo) Close(n int, by string) {
	r.s.t.Helper()
	defer r.lock()()
	i := r.mustIssue(n)
	reason := "completed"
	if i.pull != nil {
		reason = ""
	}
	i.close(r.s.must(by), reason, "")
}

// Reopen opens it again.
func (r *Repo) Reopen(n int, by string) {
	r.s.t.Helper()
	defer r.lock()()
	r.mustIssue(n).reopen(r.s.must(by))
}

// Lock leaves the item to people with write permission.
func (r *Repo) Lock(n int, by string) {
	r.s.t.Helper()
	defer r.lock()()
	i := r.mustIssue(n)
	i.locked = true
	i.happened("locked", r.s.must(by))
	i.touch()
}

// DeleteIssue deletes an issue: 410 from now on.
func (r *Repo) DeleteIssue(n int) {
	r.s.t.Helper()
	defer r.lock()()
	r.mustIssue(n).deleted = true
}

// Comment says something and returns the comment's id.
func (r *Repo) Comment(n int, by, body string) int64 {
	r.s.t.Helper()
	defer r.lock()()
	return r.mustIssue(n).comment(r.s.must(by), body).id
}

// EditComment changes a comment, or a remark on a line.
func (r *Repo) EditComment(id int64, body string) {
	r.s.t.Helper()
	defer r.lock()()
	if m := r.r.comment(id); m != nil {
		m.edit(body)
		return
	}
	for _, i := range r.r.issues {
		if i.pull == nil {
			continue
		}
		for _, l := range i.pull.lines {
			if l.id == id {
				l.body, l.updated = body, r.s.now()
				return
			}
		}
	}
	r.s.t.Fatalf("githubtest: no comment %d in %s", id, r.r.full())
}

// DeleteComment takes a comment away.
func (r *Repo) DeleteComment(id int64) {
	r.s.t.Helper()
	defer r.lock()()
	m := r.r.comment(id)
	if m == nil {
		r.s.t.Fatalf("githubtest: no comment %d in %s", id, r.r.full())
	}
	m.remove()
}

// Review reviews a pull request: verdict is APPROVED, CHANGES_REQUESTED,
// COMMENTED or DISMISSED. It returns the review's id and those of its remarks.
func (r *Repo) Review(n int, by, verdict, body string, lines ...Line) (id int64, remarks []int64) {
	r.s.t.Helper()
	defer r.lock()()
	i, who := r.mustPull(n), r.s.must(by)
	v := i.review(who, verdict, body, "")
	for _, l := range lines {
		remarks = append(remarks, i.line(v, who, l).id)
	}
	return v.id, remarks
}

// Resolve settles the thread that a remark on a pull request began.
func (r *Repo) Resolve(n int, remark int64) {
	r.s.t.Helper()
	defer r.lock()()
	for _, l := range r.mustPull(n).pull.lines {
		l.resolved = l.resolved || l.id == remark
	}
}

// SetDraft makes a pull request a draft or ready.
func (r *Repo) SetDraft(n int, draft bool, by string) {
	r.s.t.Helper()
	defer r.lock()()
	r.mustPull(n).setDraft(draft, r.s.must(by))
}

// SetEditable tells whether maintainers may push to the fork of a pull request.
func (r *Repo) SetEditable(n int, editable bool) {
	r.s.t.Helper()
	defer r.lock()()
	r.mustPull(n).pull.editable = editable
}

// AddCheckRun reports about a commit; a later report of the same name counts instead.
func (r *Repo) AddCheckRun(commit string, c CheckRun) int64 {
	defer r.lock()()
	if c.Status == "" {
		c.Status = "in_progress"
		if c.Conclusion != "" {
			c.Status = "completed"
		}
	}
	k := &check{id: r.s.id(), sha: commit, made: c, at: r.s.now()}
	r.r.checks = append(r.r.checks, k)
	return k.id
}
