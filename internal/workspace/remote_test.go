package workspace

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
)

const token = "tok-S3cret/with+chars=&%41"

// gitServer serves the bare repositories below a directory as git's own
// http-backend does, to who knows the token.
type gitServer struct {
	*httptest.Server
	dir      string
	requests atomic.Int64
	echo     bool // repeats the login in its refusals, as careless servers do
}

func newGitServer(t testing.TB, tls bool) *gitServer {
	t.Helper()
	backend := strings.TrimSpace(git(t, "/", "--exec-path")) + "/git-http-backend"
	s := &gitServer{dir: t.TempDir()}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		user, password, ok := r.BasicAuth()
		if !ok || password != token {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			status := http.StatusUnauthorized
			if ok && s.echo {
				w.Header().Del("WWW-Authenticate")
				w.Header().Set("Content-Type", "text/plain")
				status = http.StatusTeapot
			}
			http.Error(w, fmt.Sprintf("bad login %s:%s, %s", user, password, r.Header.Get("Authorization")), status)
			return
		}
		(&cgi.Handler{Path: backend, Dir: s.dir, Env: []string{"GIT_PROJECT_ROOT=" + s.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + user,
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
			Logger: nil, Stderr: &bytes.Buffer{}}).ServeHTTP(w, r)
	})
	if tls {
		s.Server = httptest.NewTLSServer(h)
	} else {
		s.Server = httptest.NewServer(h)
	}
	t.Cleanup(s.Close)
	return s
}

// add makes a repository of the server from one on disk.
func (s *gitServer) add(t testing.TB, from, name string) string {
	t.Helper()
	bare := filepath.Join(s.dir, name)
	git(t, s.dir, "clone", "-q", "--bare", from, bare)
	git(t, bare, "config", "http.receivepack", "true")
	return bare
}

func (s *gitServer) remote(t testing.TB, name string) Remote {
	r := Remote{URL: s.URL + "/" + name, Credential: login(token)}
	if s.TLS != nil {
		r.CAFile = filepath.Join(t.TempDir(), "ca.pem")
		write(t, r.CAFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	}
	return r
}

func login(password string) func(context.Context) (Credential, error) {
	return func(context.Context) (Credential, error) { return Credential{Password: password}, nil }
}

func mirrorsIn(dir string) *Mirrors { return &Mirrors{Dir: dir, Now: time.Now, FS: &disk.FS{}} }

func fromMirror(t testing.TB, m *Mirrors, r Remote, branch string) *Source {
	t.Helper()
	s, err := m.Source(t.Context(), r, branch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func workspaceOf(t testing.TB, s *Source, dir string) *Workspace {
	t.Helper()
	w, err := Create(t.Context(), CreateOptions{Box: walls(), Source: s, Dir: dir, Branch: "tori/issue-1-x", Now: func() time.Time { return when }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// The whole way of a task of a remote: mirror, clone, commit, push, push again.
func TestRemote(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"https", "file"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			path := newRepo(t, "repo")
			git(t, path, "branch", "side")
			git(t, path, "tag", "v1")
			git(t, path, "update-ref", "refs/pull/1/head", "HEAD")
			server := newGitServer(t, scheme == "https")
			bare := server.add(t, path, "team/project.git")
			remote := server.remote(t, "team/project.git")
			if scheme == "file" {
				remote = Remote{URL: "file://" + bare}
			}
			house := t.TempDir()
			m := mirrorsIn(filepath.Join(house, "mirrors"))
			s := fromMirror(t, m, remote, "")
			head := strings.TrimSpace(git(t, path, "rev-parse", "HEAD"))
			if s.Head != head || s.Branch != "main" || s.Name() != "project" || s.Path != remote.URL {
				t.Errorf("%+v", s)
			}
			if refs := git(t, s.GitDir, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main\nrefs/heads/side\nrefs/tags/v1\n" {
				t.Errorf("mirrored: %s", refs)
			}
			w := workspaceOf(t, s, filepath.Join(house, "workspaces/1"))
			write(t, filepath.Join(w.Tree(), "new"), "x\n")
			id := commit(t, w, "x")
			if err := w.Deliver(t.Context()); err == nil {
				t.Error("delivered into a mirror")
			}
			for range 2 { // twice is once
				if got, err := w.Push(t.Context(), PushOptions{Remote: remote}); err != nil || got != id {
					t.Fatalf("%s, %v", got, err)
				}
			}
			if got := strings.TrimSpace(git(t, bare, "rev-parse", "refs/heads/tori/issue-1-x")); got != id {
				t.Errorf("pushed %s, want %s", got, id)
			}
			if refs := git(t, bare, "for-each-ref", "--format=%(refname)", "refs/tori"); refs != "" {
				t.Errorf("also pushed: %s", refs)
			}
			// A later commit replaces the first one, if that is still there.
			write(t, filepath.Join(w.Tree(), "new"), "y\n")
			second := commit(t, w, "y")
			if _, err := w.Push(t.Context(), PushOptions{Remote: remote, Expect: w.Base()}); key(err) != "workspace.remote_moved" {
				t.Errorf("over another commit: %v", err)
			}
			if got, err := w.Push(t.Context(), PushOptions{Remote: remote, Expect: id}); err != nil || got != second {
				t.Errorf("%s, %v", got, err)
			}
			// The remote goes on; the mirror follows, and forgets what is gone.
			git(t, path, "commit", "-q", "--allow-empty", "-m", "next")
			git(t, path, "push", "-q", bare, "main")
			git(t, bare, "branch", "-D", "side")
			next := fromMirror(t, m, remote, "main")
			if want := strings.TrimSpace(git(t, path, "rev-parse", "HEAD")); next.Head != want {
				t.Errorf("head %s, want %s", next.Head, want)
			}
			if _, err := m.Source(t.Context(), remote, "side"); key(err) != "workspace.no_branch" {
				t.Errorf("a branch that is gone: %v", err)
			}
			// What the branch is called there, and what is in its way.
			if name, err := FreeBranch(t.Context(), next, "tori/issue-1-x"); err != nil || name != "tori/issue-1-x-2" {
				t.Errorf("%s, %v", name, err)
			}
			found := grep(t, house, token)
			if found != "" {
				t.Errorf("the token stands in %s", found)
			}
		})
	}
}

// grep returns the first file below dir that holds text.
func grep(t *testing.T, dir, text string) (found string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(text)) {
				found = path
			}
		}
		return nil
	})
	return found
}

// The lease holds at the server too: between our look and the push somebody
// else may have pushed.
func TestPushLease(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	server := newGitServer(t, false)
	bare := server.add(t, path, "r.git")
	house := t.TempDir()
	w := workspaceOf(t, fromMirror(t, mirrorsIn(filepath.Join(house, "m")), server.remote(t, "r.git"), ""), filepath.Join(house, "w"))
	write(t, filepath.Join(w.Tree(), "f"), "x\n")
	commit(t, w, "x")
	remote := server.remote(t, "r.git")
	asked := 0
	remote.Credential = func(context.Context) (Credential, error) {
		if asked++; asked == 2 { // after the look, before the push
			git(t, bare, "branch", "tori/issue-1-x", "main")
		}
		return Credential{Password: token}, nil
	}
	if _, err := w.Push(t.Context(), PushOptions{Remote: remote}); key(err) != "workspace.remote_moved" {
		t.Errorf("%v", err)
	}
	if a, b := git(t, bare, "rev-parse", "tori/issue-1-x"), git(t, bare, "rev-parse", "main"); a != b {
		t.Error("somebody's branch was overwritten")
	}
	// A server that refuses says why.
	git(t, bare, "branch", "-D", "tori/issue-1-x")
	disktest.Program(t, filepath.Join(bare, "hooks/pre-receive"), "#!/bin/sh\nprintf 'error: GH013: Rule \\033[31mviolations\\n\\n- Signed commits are needed\\n' >&2\nexit 1\n")
	if _, err := w.Push(t.Context(), PushOptions{Remote: server.remote(t, "r.git")}); key(err) != "workspace.remote_refused" ||
		!strings.HasSuffix(err.Error(), "(pre-receive hook declined): error: GH013: Rule [31mviolations; - Signed commits are needed") {
		t.Errorf("%v", err)
	}
}

func TestRemoteRefusals(t *testing.T) {
	t.Parallel()
	server := newGitServer(t, true)
	server.add(t, newRepo(t, "repo"), "r.git")
	empty := filepath.Join(server.dir, "empty.git")
	git(t, server.dir, "init", "-q", "--bare", empty)
	with := func(name, password string) Remote {
		r := server.remote(t, name)
		r.Credential = login(password)
		return r
	}
	strange := server.remote(t, "r.git")
	strange.CAFile = ""
	failing := server.remote(t, "r.git")
	failing.Credential = func(context.Context) (Credential, error) { return Credential{}, errors.New("expired") }
	for name, c := range map[string]struct {
		r    Remote
		key  string
		text string
	}{
		"wrong token":        {with("r.git", "wrong-token"), "workspace.remote_denied", ""},
		"no token":           {Remote{URL: server.URL + "/r.git", CAFile: with("r.git", "x").CAFile}, "workspace.remote_denied", ""},
		"nothing there":      {with("other.git", token), "workspace.remote_missing", ""},
		"empty":              {with("empty.git", token), "workspace.no_commits", ""},
		"unknown authority":  {strange, "workspace.remote_failed", "certificate"},
		"no login to be had": {failing, "", "expired"},
		"line break":         {with("r.git", "a\nhost=evil"), "", "line break"},
		"login in address":   {Remote{URL: "https://user:secret@example.org/x.git"}, "workspace.remote_login", "example.org"},
		"http to the world":  {Remote{URL: "http://example.org/x.git"}, "workspace.remote_url", ""},
		"ext":                {Remote{URL: "ext::sh -c true"}, "workspace.remote_url", ""},
		"ssh":                {Remote{URL: "ssh://example.org/x"}, "workspace.remote_url", ""},
		"option":             {Remote{URL: "--upload-pack=touch x"}, "workspace.remote_url", ""},
		"scp":                {Remote{URL: "git@example.org:x.git"}, "workspace.remote_url", ""},
		"path":               {Remote{URL: server.dir + "/r.git"}, "workspace.remote_url", ""},
		"file of a host":     {Remote{URL: "file://host/x"}, "workspace.remote_url", ""},
		"no such file":       {Remote{URL: "file:///nonexistent/x.git"}, "workspace.remote_missing", ""},
		"bad escape":         {Remote{URL: "https://user:" + token + "@%zz"}, "workspace.remote_url", ""},
		"nobody listens":     {Remote{URL: "https://127.0.0.1:1/x"}, "workspace.remote_failed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "m")
			_, err := mirrorsIn(dir).Source(t.Context(), c.r, "")
			if err == nil || key(err) != c.key || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v", err)
			}
			if err != nil && (strings.Contains(err.Error(), token) || strings.Contains(i18n.Japanese.Error(err), token)) {
				t.Errorf("the token is in %v", err)
			}
		})
	}
}

// What a server echoes is masked, and every command that git starts is looked
// at while it runs: the token is in none's arguments or environment.
func TestTokenStaysHidden(t *testing.T) {
	t.Parallel()
	server := newGitServer(t, false)
	server.echo = true
	server.add(t, newRepo(t, "repo"), "r.git")
	remote := server.remote(t, "r.git")
	secret := "wrong-but-secret-0123456789"
	remote.Credential = login(secret)
	_, err := mirrorsIn(t.TempDir()).Source(t.Context(), remote, "")
	if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "d3JvbmctYnV0") {
		t.Errorf("%v", err)
	}
	for _, v := range []any{Credential{"u", secret}, &Credential{"u", secret}} {
		if s := fmt.Sprintf("%v %+v %#v %s", v, v, v, v); strings.Contains(s, secret) {
			t.Error(s)
		}
	}

	seen := make(chan string, 1)
	var looked atomic.Int64
	watch := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// git and its helpers wait for this answer: all of them can be seen.
		procs, _ := filepath.Glob("/proc/[0-9]*")
		for _, p := range procs {
			for _, file := range []string{"cmdline", "environ"} {
				b, err := os.ReadFile(filepath.Join(p, file))
				if err != nil || !bytes.Contains(b, []byte("git")) {
					continue
				}
				looked.Add(1)
				if bytes.Contains(b, []byte("canary-of-the-process-list")) {
					select {
					case seen <- p + "/" + file + ": " + string(b):
					default:
					}
				}
			}
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(watch.Close)
	_, err = mirrorsIn(t.TempDir()).Source(t.Context(), Remote{URL: watch.URL + "/x", Credential: login("canary-of-the-process-list")}, "")
	if key(err) != "workspace.remote_denied" {
		t.Errorf("%v", err)
	}
	select {
	case where := <-seen:
		t.Errorf("the token is to be seen in %s", where)
	default:
	}
	if looked.Load() == 0 {
		t.Error("nothing was looked at: the test proves nothing")
	}
}

// The login goes to its own server only, also where that sends git elsewhere.
func TestTokenOfAnotherServer(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := r.Header.Get("Authorization"); a != "" {
			got.Store(a)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(thief.Close)
	honest := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(honest.Close)
	_, err := mirrorsIn(t.TempDir()).Source(t.Context(), Remote{URL: honest.URL + "/x.git", Credential: login(token)}, "")
	if err == nil || got.Load() != nil {
		t.Errorf("%v; the other server got %v", err, got.Load())
	}
}

// Clones of a mirror outlive it.
func TestMirrorIsShared(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	git(t, path, "repack", "-adq")
	house := t.TempDir()
	m := mirrorsIn(filepath.Join(house, "mirrors"))
	remote := Remote{URL: "file://" + path}
	s := fromMirror(t, m, remote, "")
	w := workspaceOf(t, s, filepath.Join(house, "workspaces/1"))
	packs, _ := filepath.Glob(filepath.Join(w.GitDir(), "objects/pack/*.pack"))
	if len(packs) != 1 {
		t.Fatalf("%v", packs)
	}
	a, _ := os.Stat(packs[0])
	b, err := os.Stat(filepath.Join(s.GitDir, "objects/pack", filepath.Base(packs[0])))
	if err != nil || !os.SameFile(a, b) {
		t.Errorf("the pack was copied: %v", err)
	}
	if err := os.RemoveAll(m.Dir); err != nil {
		t.Fatal(err)
	}
	git(t, w.GitDir(), "fsck", "--strict")
	write(t, filepath.Join(w.Tree(), "f"), "x\n")
	commit(t, w, "x")

	// A mirror that was never finished, or whose record is lost, is made anew.
	dir := filepath.Join(m.Dir, mirrorName(remote.URL))
	write(t, filepath.Join(dir, "git/HEAD"), "half")
	again := fromMirror(t, m, remote, "")
	if again.Head != s.Head {
		t.Errorf("%+v", again)
	}
	write(t, filepath.Join(dir, "mirror.json"), `{"format":99}`)
	_ = again.Close()
	if _, err := m.Source(t.Context(), remote, ""); err != nil {
		t.Errorf("made by a newer version: %v", err)
	}
}

// Many packs become few; two who ask at once fetch once.
func TestMirrorKeepsTidy(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	house := t.TempDir()
	m := mirrorsIn(filepath.Join(house, "m"))
	remote := Remote{URL: "file://" + path}
	s := fromMirror(t, m, remote, "")
	for i := range maxPacks {
		write(t, filepath.Join(s.GitDir, fmt.Sprintf("f%d", i)), fmt.Sprint(i))
		id := strings.TrimSpace(git(t, s.GitDir, "hash-object", "-w", fmt.Sprintf("f%d", i)))
		pack := exec.Command("git", "pack-objects", "-q", "objects/pack/pack")
		pack.Dir, pack.Stdin = s.GitDir, strings.NewReader(id+"\n")
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	git(t, path, "commit", "-q", "--allow-empty", "-m", "next")
	s = fromMirror(t, m, remote, "")
	if packs, _ := filepath.Glob(filepath.Join(s.GitDir, "objects/pack/*.pack")); len(packs) > 5 {
		t.Errorf("%d packs", len(packs))
	}
	git(t, s.GitDir, "fsck")
}

func TestMirrorLock(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	m := mirrorsIn(filepath.Join(t.TempDir(), "m"))
	remote := Remote{URL: "file://" + path}
	s := fromMirror(t, m, remote, "")
	if f, err := takeLock(filepath.Dir(s.GitDir)+".lock", exclusive); !errors.Is(err, errBusy) {
		t.Errorf("a mirror in use can be locked: %v, %v", f, err)
	}
	// Others may use and fetch it meanwhile, but one fetches at a time.
	other := fromMirror(t, m, remote, "")
	fetching, err := takeLock(filepath.Dir(s.GitDir)+".fetch", exclusive)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := m.Source(ctx, remote, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	_, _ = release(fetching), other.Close()
	_ = s.Close()
	began, err := readMirror(filepath.Dir(s.GitDir))
	if err != nil {
		t.Fatal(err)
	}
	// Who asked before the last fetch began is served by it.
	early := mirrorsIn(m.Dir)
	early.Now = func() time.Time { return began.Began.Add(-time.Second) }
	s = fromMirror(t, early, Remote{URL: remote.URL}, "")
	after, err := readMirror(filepath.Dir(s.GitDir))
	if err != nil || !after.Began.Equal(began.Began) {
		t.Errorf("fetched again: %v, %v", after, err)
	}
}

// A push that is called off while its repository is made is an error like others.
func TestPushIsCalledOff(t *testing.T) {
	t.Parallel()
	house := t.TempDir()
	server := newGitServer(t, false)
	server.add(t, newRepo(t, "repo"), "r.git")
	w := workspaceOf(t, fromMirror(t, mirrorsIn(filepath.Join(house, "m")), server.remote(t, "r.git"), ""), filepath.Join(house, "w"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.objectsOnly(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(house, "w/push")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// What a remote on this machine has in its configuration and for hooks runs nothing
// when it is read (docs/decisions/032 says what a push does).
func TestRemoteOnThisMachine(t *testing.T) {
	t.Parallel()
	path, trace := newRepo(t, "repo"), filepath.Join(t.TempDir(), "trace")
	run := trap(t, filepath.Join(path, ".git/run"), trace)
	for _, hook := range []string{"post-receive", "reference-transaction", "post-upload-pack", "pre-auto-gc"} {
		trap(t, filepath.Join(path, ".git/hooks", hook), trace)
	}
	for _, key := range []string{"uploadpack.packObjectsHook", "core.fsmonitor", "core.alternateRefsCommand", "core.sshCommand", "core.gitProxy", "core.pager",
		"remote.origin.uploadpack", "credential.helper", "gc.recentObjectsHook", "diff.external"} {
		git(t, path, "config", key, run)
	}
	remote := Remote{URL: "file://" + path}
	dir := t.TempDir()
	m := mirrorsIn(filepath.Join(dir, "mirrors"))
	w := workspaceOf(t, fromMirror(t, m, remote, ""), filepath.Join(dir, "w"))
	write(t, filepath.Join(w.Tree(), "new"), "x\n")
	commit(t, w, "x")
	if _, err := w.Push(t.Context(), PushOptions{Remote: remote, DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if exists(trace) {
		t.Fatalf("reading it ran:\n%s", read(t, trace))
	}
}
