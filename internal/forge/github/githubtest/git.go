package githubtest

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"

	"toritsugi/internal/forge/gittest"
)

var gitPaths = regexp.MustCompile(`^/([^/]+)/([^/]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`)

func gitPath(path string) bool { return gitPaths.MatchString(path) }

// initialise makes the bare repository.
func (r *repo) initialise() {
	r.path = fmt.Sprintf("%d.git", r.id)
	r.dir = filepath.Join(r.s.dir, r.path)
	if err := gittest.Init(r.dir, r.o.Branch, "GitHub", "noreply@github.com"); err != nil {
		r.s.t.Fatalf("githubtest: make a repository: %v", err)
	}
}

// gitOut runs git in the bare repository and returns what it prints, trimmed.
func (r *repo) gitOut(args ...string) (string, error) { return r.gitIn("", args...) }

func (r *repo) gitIn(in string, args ...string) (string, error) {
	return gittest.Run(r.dir, in, r.s.now(), args...)
}

// gitMust is gitOut for what cannot fail unless the machine does.
func (r *repo) gitMust(args ...string) string {
	out, err := r.gitOut(args...)
	if err != nil {
		r.s.t.Errorf("githubtest: %v", err)
	}
	return out
}

// commits are the messages of what head has beyond base, oldest first, at most 250 as the real server.
func (r *repo) commits(base, head string) []string {
	at := base + " " + head
	if all, known := r.log[at]; known || base == "" || head == "" {
		return all
	}
	all := strings.Split(r.gitMust("log", "--reverse", "-n", "250", "--format=%B%x1e", base+".."+head), "\x1e")
	all = all[:len(all)-1] // what follows the last one
	r.log[at] = all
	return all
}

// bring fetches the commits of a fork's branch.
func (r *repo) bring(from *repo, branch string) {
	if from != r && from != nil {
		r.gitMust("fetch", "-q", "--no-tags", "--no-write-fetch-head", from.dir, "refs/heads/"+branch)
	}
}

// keep holds on to the head of a pull request, whatever becomes of its branch.
func (r *repo) keep(i *issue) {
	r.gitMust("update-ref", fmt.Sprintf("refs/pull/%d/head", i.number), i.pull.headSHA)
}

// mergeable computes whether a pull request merges into its base as it is now;
// known is false as often as the options say. Only asked answers count.
func (i *issue) mergeable(asked bool) (merges, known bool) {
	p, r := i.pull, i.repo
	if !p.merged.IsZero() || i.closed {
		return false, false
	}
	if p.unknown > 0 {
		if asked {
			p.unknown--
		}
		return false, false
	}
	base := r.refs["refs/heads/"+p.base]
	at := base + " " + p.headSHA
	if m, is := r.merges[at]; is {
		return m, true
	}
	_, err := r.gitOut("merge-tree", "--write-tree", "--no-messages", base, p.headSHA)
	r.merges[at] = err == nil
	return err == nil, true
}

// sync looks at the branches and lets the pull requests follow them.
func (r *repo) sync() {
	out, err := r.gitOut("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads")
	if err != nil {
		r.s.t.Errorf("githubtest: %v", err)
		return
	}
	old := r.refs
	r.refs = map[string]string{}
	for line := range strings.Lines(out) {
		if sha, name, is := strings.Cut(strings.TrimSpace(line), " "); is {
			r.refs[name] = sha
		}
	}
	changed := len(old) != len(r.refs)
	for name, sha := range r.refs {
		changed = changed || old[name] != sha
	}
	if !changed {
		return
	}
	r.pushed = r.s.now()
	for _, other := range r.s.repos {
		for _, i := range other.issues {
			if p := i.pull; p != nil && !i.closed && (p.headRepo == r || other == r) {
				i.follow(old)
			}
		}
	}
}

// follow takes a pull request along with its branches.
func (i *issue) follow(old map[string]string) {
	p, r := i.pull, i.repo
	base := r.refs["refs/heads/"+p.base]
	if p.headRepo != nil {
		head := p.headRepo.refs["refs/heads/"+p.head]
		switch {
		case head == "":
			i.close(p.headUser, "", "")
			i.happened("head_ref_deleted", p.headUser)
			return
		case head != p.headSHA:
			r.bring(p.headRepo, p.head)
			i.push(head)
			p.baseSHA, p.unknown = base, r.s.o.MergeableLater
			r.keep(i)
			i.touch()
		}
	}
	if before := old["refs/heads/"+p.base]; before == base || base == "" {
		return
	}
	p.unknown = r.s.o.MergeableLater
	if _, err := r.gitOut("merge-base", "--is-ancestor", p.headSHA, base); err == nil && len(r.commits(base, p.headSHA)) == 0 {
		i.merged(r.owner, base) // somebody merged it by hand
	}
}

// push moves the head; remarks on files that changed are outdated from now on.
func (i *issue) push(head string) {
	for _, l := range i.pull.lines {
		if l.outdated {
			continue
		}
		if _, err := i.repo.gitOut("diff", "--quiet", l.commit, head, "--", l.path); err != nil {
			l.outdated = true
		} else {
			l.commit = head
		}
	}
	i.pull.headSHA = head
}

// gitPlan is what a request of git comes to once it is allowed.
type gitPlan struct {
	repo *repo
	user string
	push bool
}

// git answers git's smart protocol with git's own http-backend.
func (s *Server) git(w http.ResponseWriter, r *http.Request) {
	m := gitPaths.FindStringSubmatch(r.URL.Path)
	service, pattern := m[3], m[3]
	if service == "info/refs" {
		service = r.URL.Query().Get("service")
		pattern = service + " refs"
	}
	q := &Request{Method: r.Method, Path: r.URL.Path, Pattern: pattern, Query: r.URL.Query(), Header: r.Header}
	s.through(w, q, func() *reply {
		plan, refused := s.admit(r, m[1], m[2], service)
		if refused != nil {
			return refused
		}
		out := s.runBackend(r, plan, m[3])
		if plan.push && m[3] != "info/refs" {
			s.mu.Lock()
			plan.repo.sync()
			s.mu.Unlock()
		}
		return out
	})
}

// admit checks the login of a request of git.
func (s *Server) admit(r *http.Request, owner, name, service string) (gitPlan, *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(status int, text string) *reply {
		o := &reply{answer: &answer{status: status}, header: http.Header{"Content-Type": {"text/plain"}}, data: []byte(text)}
		if status == http.StatusUnauthorized {
			o.header.Set("WWW-Authenticate", `Basic realm="GitHub"`)
		}
		return o
	}
	push := service == "git-receive-pack"
	if !push && service != "git-upload-pack" {
		return gitPlan{}, refuse(http.StatusForbidden, "Please upgrade your git client.\nGitHub.com no longer supports git over dumb-http.")
	}
	secret, given := credential(r)
	var t *token
	if given {
		if t = s.known(secret); t == nil || t.app != nil && t.install == nil {
			return gitPlan{}, refuse(http.StatusUnauthorized, "Invalid username or token. Password authentication is not supported for Git operations.")
		}
	}
	at := s.repo(owner, name)
	if at == nil {
		if to := s.moved(owner, name); to != nil && t.role(to) >= roleRead {
			o := refuse(http.StatusMovedPermanently, "")
			o.header.Set("Location", fmt.Sprintf("http://%s/%s.git/%s?%s", r.Host, to.full(), gitPaths.FindStringSubmatch(r.URL.Path)[3], r.URL.RawQuery))
			return gitPlan{}, o
		}
	}
	if at == nil || t.role(at) < roleRead {
		if t == nil {
			return gitPlan{}, refuse(http.StatusUnauthorized, "Repository not found.")
		}
		return gitPlan{}, refuse(http.StatusNotFound, "Repository not found.")
	}
	plan := gitPlan{repo: at, push: push}
	if t != nil {
		plan.user = t.user.login
	}
	switch {
	case push && t == nil:
		return plan, refuse(http.StatusUnauthorized, "No anonymous write access.")
	case push && at.o.Archived:
		return plan, refuse(http.StatusForbidden, "This repository was archived so it is read-only.")
	case push && t.role(at) < roleWrite && !at.lent(t):
		return plan, refuse(http.StatusForbidden, fmt.Sprintf("Permission to %s.git denied to %s.", at.full(), plan.user))
	}
	return plan, nil
}

// lent reports whether a pull request lets the maintainers of its base push here.
func (r *repo) lent(t *token) bool {
	if r.fork == nil || t.role(r.fork) < roleWrite {
		return false
	}
	for _, i := range r.fork.issues {
		if p := i.pull; p != nil && !i.closed && p.headRepo == r && p.editable {
			return true
		}
	}
	return false
}

// runBackend runs http-backend to its end, so that what a push did is known
// before its answer is.
func (s *Server) runBackend(r *http.Request, plan gitPlan, tail string) *reply {
	rec, err := gittest.Serve(s.backend, s.dir, plan.repo.path, tail, plan.user, r)
	if err != nil {
		return &reply{answer: &answer{status: http.StatusBadRequest}, header: http.Header{}}
	}
	return &reply{answer: &answer{status: rec.Code}, header: rec.Header(), data: rec.Body.Bytes(), user: plan.user}
}
