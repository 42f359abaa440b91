package gitlabtest

import (
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/forge/gittest"
)

// gitPaths are those that git asks for below a project's path.
var gitPaths = regexp.MustCompile(`^/(.+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`)

func gitPath(path string) bool { return gitPaths.MatchString(path) }

// initialise makes the bare repository, with a commit on main.
func (p *project) initialise() {
	p.dir = strconv.FormatInt(p.id, 10) + ".git"
	if err := gittest.Init(filepath.Join(p.s.dir, p.dir), p.branch, "GitLab", "noreply@gitlab.example"); err != nil {
		p.s.t.Fatalf("gitlabtest: make a repository: %v", err)
	}
	p.commit(p.branch, "README.md", "hello\n")
}

func (p *project) run(in string, args ...string) string {
	out, err := gittest.Run(filepath.Join(p.s.dir, p.dir), in, p.s.now(), args...)
	if err != nil {
		p.s.t.Errorf("gitlabtest: %v", err)
	}
	return out
}

// git is run for what may fail.
func (p *project) git(args ...string) (string, error) {
	return gittest.Run(filepath.Join(p.s.dir, p.dir), "", p.s.now(), args...)
}

// commit puts a file into a branch, from main where it is new, and returns the commit.
func (p *project) commit(branch, file, text string) string {
	blob := p.run(text, "hash-object", "-w", "--stdin")
	files, parent := []string{}, p.branches[branch]
	if parent == "" {
		parent = p.branches[p.branch]
	}
	args := []string{"commit-tree", "-m", "work on " + file}
	if parent != "" {
		args = append(args, "-p", parent)
		for line := range strings.Lines(p.run("", "ls-tree", parent)) {
			if !strings.HasSuffix(line, "\t"+file+"\n") && !strings.HasSuffix(line, "\t"+file) {
				files = append(files, strings.TrimSpace(line))
			}
		}
	}
	files = append(files, "100644 blob "+blob+"\t"+file)
	tree := p.run(strings.Join(files, "\n")+"\n", "mktree")
	sha := p.run("", append(args, tree)...)
	p.run("", "update-ref", "refs/heads/"+branch, sha)
	p.sync()
	return sha
}

// sync looks at the branches and lets the merge requests follow them.
func (p *project) sync() {
	p.branches = map[string]string{}
	for line := range strings.Lines(p.run("", "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads")) {
		if sha, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			p.branches[name] = sha
		}
	}
	for _, other := range p.s.projects {
		for _, i := range other.items[merges] {
			if head := p.branches[i.source]; i.from == p && i.state == "opened" && head != "" && head != i.sha {
				i.sha = head
				i.say(i.author, "added 1 commit", true)
			}
		}
	}
}

// Commit puts a file into a branch, from main where it is new, and returns the commit.
func (p *Project) Commit(branch, file, text string) (sha string) {
	p.do(func() { sha = p.p.commit(branch, file, text) })
	return sha
}

// Branch is the commit of a branch, "" where it is not there.
func (p *Project) Branch(name string) (sha string) {
	p.do(func() { sha = p.p.branches[name] })
	return sha
}

// Git runs git in the project's repository.
func (p *Project) Git(args ...string) (out string, err error) {
	p.do(func() { out, err = gittest.Run(filepath.Join(p.s.dir, p.p.dir), "", p.s.now(), args...) })
	return out, err
}

// git answers git's smart protocol: a token is the password of any name.
func (s *Server) git(w http.ResponseWriter, r *http.Request) {
	m := gitPaths.FindStringSubmatch(strings.TrimPrefix(r.URL.Path, s.o.Path))
	push := m[2] == "git-receive-pack" || r.URL.Query().Get("service") == "git-receive-pack"
	s.mu.Lock()
	defer s.mu.Unlock()
	_, secret, _ := r.BasicAuth()
	t := s.tokens[secret]
	p, _ := s.find(m[1]) // an old path is served, too
	switch {
	case t == nil || !slices.Contains(t.scopes, "write_repository"):
		w.Header().Set("WWW-Authenticate", `Basic realm="GitLab"`)
		http.Error(w, "HTTP Basic: Access denied", http.StatusUnauthorized)
		return
	case p == nil || !p.readable(t.user):
		http.Error(w, "The project you were looking for could not be found or you don't have permission to view it.", http.StatusNotFound)
		return
	case push && p.level(t.user) < levelDeveloper:
		http.Error(w, "You are not allowed to push code to this project.", http.StatusForbidden)
		return
	}
	rec, err := gittest.Serve(s.backend, s.dir, p.dir, m[2], t.user.login, r)
	if err != nil {
		return
	}
	if push {
		p.sync()
	}
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}
