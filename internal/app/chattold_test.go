package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// screen is a terminal that shows one session.
type screen struct {
	session string
	mu      sync.Mutex
	all     []channel.Post
	going   []string // what was said of how far jobs are
	moved   chan struct{}
}

func (s *screen) Kind() channel.Kind { return channel.Terminal }

func (s *screen) Post(_ context.Context, p channel.Post) error {
	switch {
	case p.Kind == channel.Progress && p.Text != "":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.going = append(s.going, p.Text)
		return nil
	case p.Kind == channel.Progress:
		p.Text = p.Job + " has ended"
	case p.SessionID != s.session:
		return errors.New("another session is shown")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, was := range s.all {
		if p.Key != "" && was.Key == p.Key {
			return nil
		}
	}
	s.all = append(s.all, p)
	close(s.moved)
	s.moved = make(chan struct{})
	return nil
}

// until waits for the post behind the nth that has a text, and returns it.
func (s *screen) until(t *testing.T, after int, want string) (channel.Post, int) {
	t.Helper()
	late := time.After(3 * time.Minute)
	for {
		s.mu.Lock()
		all, moved := s.all, s.moved
		s.mu.Unlock()
		for i := after; i < len(all); i++ {
			if strings.Contains(string(all[i].Kind)+": "+all[i].Text, want) {
				return all[i], i + 1
			}
		}
		select {
		case <-moved:
		case <-late:
			t.Fatalf("%q is not said: %+v", want, all[min(after, len(all)):])
		}
	}
}

// count is how often a text was said.
func (s *screen) count(want string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.all {
		if strings.Contains(string(p.Kind)+": "+p.Text, want) {
			n++
		}
	}
	return n
}

// village is a repository, a base directory and models that answer.
type village struct {
	t            *testing.T
	repo, config string
	models       *llmtest.Server
	first        func() // is called before a coder answers; nil for nothing
}

func newVillage(t *testing.T) *village {
	t.Helper()
	dir := t.TempDir()
	v := &village{t: t, repo: filepath.Join(dir, "repo"), config: filepath.Join(dir, "config.yaml")}
	v.models = llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		call := func(name string, args any) llmtest.Answer {
			raw, _ := json.Marshal(args)
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: fmt.Sprint("c", r.Number), Name: name, Arguments: string(raw)}}}
		}
		switch last := r.Messages[len(r.Messages)-1]; {
		case r.Model != "coder-m":
			return llmtest.Answer{Text: "There is a proposal."}
		case v.first != nil && last.Role == "user":
			return call("read_file", map[string]any{"path": "greet.txt"})
		case v.first != nil:
			v.first()
		}
		switch last := r.Messages[len(r.Messages)-1]; {
		case last.Content != nil && strings.Contains(*last.Content, "Verification, round"):
			return call("reflect", map[string]any{"verification_passed": true, "criteria": []any{map[string]any{"criterion": "it is done", "met": true, "evidence": "greet.txt:1"}}})
		}
		return call("propose", map[string]any{"plan": "Greet the moon.", "files": []any{map[string]any{"path": "greet.txt", "action": "modify", "content": "moon\n"}},
			"risk": map[string]any{"destructive": false, "rollback_possible": true}})
	})
	if err := os.MkdirAll(v.repo, 0o755); err != nil {
		t.Fatal(err)
	}
	v.write("hello\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=u", "-c", "user.email=u@example.org", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = v.repo, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	text := "language: en\nllm: {lmstudio: {base_url: " + v.models.URL + ", context_length: 32768}}\nsandbox: {mode: none}\n" +
		"routing: {classifier: {enabled: false}, llm: {chat_provider: lmstudio, chat_model: chat-m, coder_provider: lmstudio, coder_model: coder-m, coder2_provider: lmstudio, coder2_model: coder-m}}\n" +
		"context_storage: {base_dir: " + filepath.Join(dir, "base") + ", durability: os}\n"
	if err := os.WriteFile(v.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *village) write(text string) {
	v.t.Helper()
	if err := os.WriteFile(filepath.Join(v.repo, "greet.txt"), []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// house is what answers messages in a process that works on nothing, until stop is called.
func (v *village) house() (h *talks, stop func()) {
	v.t.Helper()
	sys := &system{opt: RunOptions{Config: v.config, AllowUnsandboxed: true, Quiet: false}, env: Env{Getenv: func(string) string { return "" }, Log: io.Discard, Lang: i18n.English, Now: time.Now, Notice: func(string, ...any) {}}, fs: &disk.FS{}}
	if err := sys.settle(); err != nil {
		v.t.Fatal(err)
	}
	src, err := workspace.Inspect(v.t.Context(), v.repo, workspace.InspectOptions{NoStatus: true})
	if err != nil {
		v.t.Fatal(err)
	}
	h, stop, err = sys.talk(v.t.Context(), src)
	if err != nil {
		v.t.Fatal(err)
	}
	return h, stop
}

// process is a tori chat that shows a session, until end is called.
func (v *village) process(session string) (h *talks, s *screen, end func()) {
	v.t.Helper()
	h, stop := v.house()
	s = &screen{session: session, moved: make(chan struct{})}
	h.engine.Add(s)
	ctx, cancel := context.WithCancel(v.t.Context())
	var running sync.WaitGroup
	work := h.alone()
	running.Go(func() { work(ctx) })
	return h, s, func() {
		cancel()
		running.Wait()
		stop()
	}
}

// says is a message of the person of a session.
func (v *village) says(h *talks, session, text string) {
	v.t.Helper()
	id := fmt.Sprint(v.t.Name(), time.Now().UnixNano())
	if err := h.engine.Handle(v.t.Context(), channel.Message{Channel: channel.Terminal, SessionID: session, ID: id, User: "terminal:hanako", UserText: text}); err != nil {
		v.t.Fatal(err)
	}
}

const hanakos, others = "terminal:hanako:0123", "terminal:hanako:0123:other"

// A proposal whose files changed is made anew by itself, once, and whoever makes it knows
// that it was stale.
func TestStaleIsMadeAnew(t *testing.T) {
	t.Parallel()
	v := newVillage(t)
	h, s, end := v.process(hanakos)
	defer end()
	v.says(h, hanakos, "/code2 greet the moon")
	first, n := s.until(t, 0, "request: ")
	v.write("something else\n")
	v.says(h, hanakos, "/approve "+first.Approval.Job+" "+first.Approval.Hash)
	told, n := s.until(t, n, "The files changed after the proposal was made")
	second, n := s.until(t, n, "request: ")
	if second.Approval.Job == first.Approval.Job || !strings.Contains(told.Text, second.Approval.Job) {
		t.Fatalf("%+v, told %q", second, told.Text)
	}
	asked := v.models.Requests()
	var inherited bool
	for _, r := range asked {
		if tools := strings.Join(r.Tools, " "); r.Model == "coder-m" && tools != "grep list_files propose read_file recall reflect report_subtask submit_plan" {
			t.Errorf("a coder has %s", tools)
		}
		inherited = inherited || r.Model == "coder-m" && strings.Contains(string(r.Body), "the files are not what they were when it was made")
	}
	if !inherited {
		t.Error("the second coder does not know of the first")
	}
	old, ok, err := h.jobView(t.Context(), first.Approval.Job)
	if err != nil || !ok || old.Status() != task.Stopped {
		t.Errorf("the stale job is %s, %v", old.Status(), err)
	}
	v.write("something else again\n")
	v.says(h, hanakos, "/approve "+second.Approval.Job+" "+second.Approval.Hash)
	s.until(t, n, "The files changed again")
	l, err := contextstore.List(t.Context(), h.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{Type: "chat"})
	if err != nil || len(l.Views) != 2 {
		t.Errorf("%d jobs, %v", len(l.Views), err)
	}
}

// What became of a job while nobody spoke with its session is told when that is opened, once:
// that it was denied elsewhere, and what another process applied.
func TestToldLater(t *testing.T) {
	t.Parallel()
	v := newVillage(t)
	h, s, end := v.process(hanakos)
	v.says(h, hanakos, "/code2 greet the moon")
	denied, n := s.until(t, 0, "request: ")
	v.says(h, hanakos, "/code2 greet the moon again")
	granted, _ := s.until(t, n, "request: ")
	end()
	h, s, end = v.process(others)
	decide := func(a *channel.Approval, grant bool, reason string) {
		t.Helper()
		if _, err := h.approvals.Decide(t.Context(), approval.Decision{Job: a.Job, Hash: a.Hash, Grant: grant, By: "terminal:hanako", How: "cli", Where: "this machine", Reason: reason}); err != nil {
			t.Fatal(err)
		}
	}
	decide(denied.Approval, false, "say sun")
	decide(granted.Approval, true, "")
	h.wake()
	s.until(t, 0, "progress: "+granted.Approval.Job+" has ended")
	end()
	if len(s.all) != s.count("progress: ") {
		t.Errorf("the other session hears %+v", s.all)
	}
	for round := range 2 {
		h, s, end = v.process(hanakos)
		if _, err := h.engine.History(t.Context(), hanakos, 0); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			s.until(t, 0, "decided: the proposal was denied by terminal:hanako: say sun")
			s.until(t, 0, "decided: Applied, not committed: ")
		}
		// What is said next comes behind all that is owed.
		v.says(h, hanakos, "hello")
		s.until(t, 0, "answer: There is")
		end() // which waits for what is owed
		if round == 1 && s.count("decided: ") > 0 {
			t.Errorf("it is told again: %+v", s.all)
		}
	}
	h, _, end = v.process(hanakos)
	defer end()
	all, err := h.engine.History(t.Context(), hanakos, 100)
	if err != nil {
		t.Fatal(err)
	}
	times := 0
	for _, x := range all {
		if x.Post != nil && regexp.MustCompile(`^Applied, not committed: |^the proposal was denied`).MatchString(x.Text) {
			times++
		}
	}
	if times != 2 {
		t.Errorf("on record %d times", times)
	}
}

// A job whose process died too often is told of, once, by whoever finds that.
func TestAJobThatWasGivenUpIsTold(t *testing.T) {
	t.Parallel()
	b := newTable(t, i18n.English, nil, onBranch)
	b.says(tableSession, hanako, "/code2 let it be 42")
	l, err := contextstore.List(t.Context(), b.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{Status: task.Queued, Limit: 9})
	if err != nil || len(l.Views) != 1 {
		t.Fatalf("%+v, %v", l.Views, err)
	}
	c, _, err := b.store.Claim(t.Context(), l.Views[0].Metadata.UUID)
	if err == nil {
		err = c.Close() // as if it had died
	}
	if err != nil {
		t.Fatal(err)
	}
	m := dispatch.Monitor{Store: b.store, Sources: map[string]bool{"terminal": true}, Lang: i18n.English, Log: b.log, Now: b.env.Now, Wake: func() {}, Stats: &dispatch.Stats{}, GaveUp: b.gaveUp}
	before := len(b.to.all)
	for range 2 {
		if err := m.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.tellGivenUp(t.Context())
	}
	if told := strings.Join(b.to.all[before:], "\n"); strings.Count(told, "answer: ") != 1 {
		t.Errorf("told %s", told)
	}
}
