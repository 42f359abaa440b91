package app

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/conversation"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
	"toritsugi/internal/task"
)

const (
	inSession = "terminal:hanako:0123456789ab"
	hanako    = "terminal:hanako"
)

// coderSays reads and proposes to say 42.
const coderSays = `- say: I look first.
  calls: [{tool: read_file, args: {path: answer.txt}}]
- calls:
  - tool: propose
    args:
      plan: The answer is 42.
      patch: "--- a/answer.txt\n+++ b/answer.txt\n@@ -1,3 +1,3 @@\n-41\n+42\n 1\n 2\n"
      risk: {destructive: false, rollback_possible: true}
      need_approval: true
`

// chatHouse is a base directory with a configuration whose coder follows a script.
type chatHouse struct {
	t                       *testing.T
	dir, base, config, repo string
	env                     map[string]string
}

// newChatHouse has a repository of this machine; more is more of the configuration.
func newChatHouse(t *testing.T, more string) *chatHouse {
	t.Helper()
	dir := t.TempDir()
	h := &chatHouse{t: t, dir: dir, base: filepath.Join(dir, "base"), config: filepath.Join(dir, "config.yaml"), repo: filepath.Join(dir, "repo"), env: map[string]string{}}
	h.write("repo/answer.txt", "41\n1\n2\n")
	h.git(h.repo, "init", "-q", "-b", "main")
	h.git(h.repo, "add", ".")
	h.git(h.repo, "commit", "-qm", "first")
	h.write("script.yaml", coderSays)
	h.write("config.yaml", "language: en\nsandbox: {mode: none}\nllm: {script: {file: "+filepath.Join(dir, "script.yaml")+"}}\nserve: {listen: ''}\npause_resume: {enabled: false}\n"+
		"routing: {llm: {chat_provider: script, coder_provider: script, coder2_provider: script}}\ncontext_storage: {base_dir: "+h.base+", durability: os}\n"+more)
	return h
}

// local is the setting of the repository of this machine.
func (h *chatHouse) local() string {
	return "chat: {repositories: [{name: tools, path: " + h.repo + "}]}\n"
}

func (h *chatHouse) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *chatHouse) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	h.must(os.MkdirAll(filepath.Dir(path), 0o700))
	h.must(os.WriteFile(path, []byte(text), 0o600))
}

// add appends to the configuration.
func (h *chatHouse) add(text string) {
	h.t.Helper()
	raw, err := os.ReadFile(h.config)
	h.must(err)
	h.write("config.yaml", string(raw)+text)
}

func (h *chatHouse) git(dir string, args ...string) string {
	h.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.org"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (h *chatHouse) environment() Env {
	return Env{Getenv: func(name string) string { return h.env[name] }, Environ: []string{}, Log: io.Discard, Lang: i18n.English, Now: time.Now, Notice: func(string, ...any) {}}
}

// talks is what answers messages in a process of its own, which end ends.
func (h *chatHouse) talks() (t *talks, end func()) {
	h.t.Helper()
	s := &system{opt: RunOptions{Config: h.config, AllowUnsandboxed: true, Quiet: true}, env: h.environment(), fs: &disk.FS{}}
	h.must(s.settle())
	t, end, err := s.talk(h.t.Context(), nil)
	h.must(err)
	return t, end
}

// ask begins a job by a process that works on none, and returns its id.
func (h *chatHouse) ask() string {
	h.t.Helper()
	t, end := h.talks()
	defer end()
	h.must(t.engine.Handle(h.t.Context(), channel.Message{Channel: channel.Terminal, SessionID: inSession, ID: "m1", User: hanako, UserText: "/help"}))
	j := conversation.Job{SessionID: inSession, Channel: channel.Terminal, User: hanako, ReplyTo: "m1", Route: routing.Code2, Role: "coder2", Repository: t.engine.Repositories[0],
		Task: "Make it 42", Input: contract.Input{UserText: "Make it 42"}, Prompt: "You propose."}
	id, err := t.Start(h.t.Context(), j)
	h.must(err)
	return id
}

// once is tori serve --once.
func (h *chatHouse) once() error {
	return Serve(h.t.Context(), h.environment(), ServeOptions{Config: h.config, AllowUnsandboxed: true, Quiet: true, Once: true}, func(ServeStarted) {})
}

// approvals are the proposals as the verbs see them, for the time of f.
func (h *chatHouse) approvals(f func(a *Approvals)) {
	h.t.Helper()
	a, err := OpenApprovals(h.t.Context(), h.environment(), "", h.config)
	h.must(err)
	defer func() { h.must(a.Close()) }()
	a.s.opt.AllowUnsandboxed = true
	f(a)
}

// job is a job as it stands, and its run.
func (h *chatHouse) job(id string) (j approval.Job, v contextstore.View) {
	h.t.Helper()
	h.approvals(func(a *Approvals) {
		var err error
		j, err = a.Find(h.t.Context(), id, contextstore.Viewer{Admin: true})
		h.must(err)
		v, err = a.Store.View(j.Run)
		h.must(err)
	})
	return j, v
}

// decide decides about a job, as the person who asked.
func (h *chatHouse) decide(id string, grant bool) error {
	h.t.Helper()
	var derr error
	h.approvals(func(a *Approvals) {
		j, err := a.Find(h.t.Context(), id, contextstore.Viewer{Admin: true})
		h.must(err)
		_, derr = a.Decide(h.t.Context(), approval.Decision{Job: id, Hash: j.Short(), Grant: grant, By: hanako, How: "cli", Where: "terminal"})
	})
	return derr
}

// said is what a terminal of the session shows that comes back.
func (h *chatHouse) said() string {
	h.t.Helper()
	t, end := h.talks()
	defer end()
	to := &posts{}
	t.engine.Add(to)
	t.engine.PostOwed(h.t.Context(), inSession)
	return strings.Join(to.all, "\n")
}

// status is how the run of a job stands.
func (h *chatHouse) status(id string, want task.Status) {
	h.t.Helper()
	if _, v := h.job(id); v.Status() != want {
		why := ""
		if v.State.Error != nil {
			why = *v.State.Error
		}
		h.t.Fatalf("%s, not %s: %s", v.Status(), want, why)
	}
}

// race runs f and g at once.
func race(f, g func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	g()
	<-done
}

// contextUntil is a context that ends with a channel.
func contextUntil(ctx context.Context, done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func readLines(dir, name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	return string(raw), err
}
