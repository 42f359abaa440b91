package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/conversation"
	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/llmtest"
)

// posts is a channel that keeps what it is given.
type posts struct {
	mu   sync.Mutex
	all  []string
	asks []channel.Question
}

func (p *posts) Kind() channel.Kind { return channel.Terminal }

func (p *posts) Post(_ context.Context, post channel.Post) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, string(post.Kind)+": "+post.Text)
	if post.Question != nil {
		p.asks = append(p.asks, *post.Question)
	}
	return nil
}

// A configuration becomes a house that answers: Chat by its model, commands without one,
// coding refused where no coder is set; what was said is there for the next process.
func TestConverse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	answers := write("chat.yaml", "- say: Good morning.\n- say: As I said.\n")
	config := write("config.yaml", "language: en\nllm: {script: {file: "+answers+"}}\nrouting: {classifier: {enabled: false}, llm: {chat_provider: script}}\n"+
		"context_storage: {base_dir: "+filepath.Join(dir, "base")+", durability: os}\nchat: {repositories: [{name: tools, path: "+dir+"}]}\n")
	say := func(id, text string) []string {
		t.Helper()
		s := &system{opt: RunOptions{Config: config}, env: Env{Getenv: func(string) string { return "" }, Log: io.Discard, Lang: i18n.English, Now: time.Now, Notice: func(string, ...any) {}}, fs: &disk.FS{}}
		if err := s.settle(); err != nil {
			t.Fatal(err)
		}
		e, end, err := s.converse(t.Context(), &conversation.Repository{Name: "here", Path: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		to := &posts{}
		e.Add(to)
		if err := e.Handle(t.Context(), channel.Message{Channel: channel.Terminal, SessionID: "terminal:hanako:x", ID: id, User: "terminal:hanako", UserText: text}); err != nil {
			t.Fatal(err)
		}
		return to.all
	}
	for _, c := range []struct{ id, text, want string }{
		{"1", "hi there", "answer: Good morning."},
		{"1", "hi there", "answer: Good morning."}, // it came again
		{"2", "and again?", "answer: As I said."},
		{"3", "/list repositories", "notice: - here\n- tools"},
		{"4", "/local", "notice: Working locally only; /cloud lifts it."},
	} {
		if got := say(c.id, c.text); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q", c.text, got)
		}
	}
	say("5", "/cloud")
	if got := say("6", "/code2 do"); len(got) != 1 || !strings.Contains(got[0], "coder") {
		t.Errorf("%q", got)
	}
}

// Where the terminal's entry is chat, no dictionary hands a message to a coder.
func TestEntry(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"router", "chat"} {
		h := newChatHouse(t, "channels: {terminal: {entry: "+entry+"}}\n")
		h.write("script.yaml", "- say: At once.\n")
		h.add(h.local())
		talks, end := h.talks()
		to := &posts{}
		talks.engine.Add(to)
		h.must(talks.engine.Handle(t.Context(), channel.Message{Channel: channel.Terminal, SessionID: inSession, ID: "m1", User: hanako, UserText: "main.go を直して"}))
		end()
		if at := slices.Contains(to.all, "answer: At once."); at != (entry == "chat") {
			t.Errorf("%s: %q", entry, to.all)
		}
	}
}

// A server of models that goes away in a conversation is restarted once, and nobody notices;
// turns that go well restart nothing, and a model that left the memory is loaded, not restarted.
func TestServerLostInAConversation(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "")
	o := llmtest.NewOllama(t, func(r *llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Text: fmt.Sprint("said to ", *r.Messages[len(r.Messages)-1].Content, " by ", r.Model)}
	}, llmtest.OllamaModel{Name: "chat-v1", Capabilities: []string{"tools"}})
	restart, marker := filepath.Join(h.dir, "restart"), filepath.Join(h.dir, "marker")
	disktest.Program(t, restart, "#!/bin/sh\necho again >> \"$1\"\n")
	restarts := func() int {
		raw, _ := os.ReadFile(marker)
		return strings.Count(string(raw), "again\n")
	}
	h.write("config.yaml", fmt.Sprintf("language: en\nllm: {max_retries: 0, state_dir: %q, ollama: {endpoint: %q}}\nproviders: {ollama_restart_command: '%q %q'}\nsandbox: {mode: none}\n"+
		"routing: {classifier: {enabled: false}, llm: {chat_provider: ollama, chat_model: chat-v1}}\ncontext_storage: {base_dir: %q, durability: os}\n", filepath.Join(h.dir, "state"), o.URL, restart, marker, h.base))
	house, end := h.talks()
	defer end()
	to := &posts{}
	house.engine.Add(to)
	for i, c := range []struct {
		before   func()
		restarts int
	}{
		{func() {}, 0},
		{func() { o.Down(func() bool { return restarts() > 0 }) }, 1},
		{func() {}, 1},
		{func() { o.Unload("chat-v1") }, 1},
		{func() {}, 1},
	} {
		c.before()
		text := fmt.Sprint("message ", i)
		h.must(house.engine.Handle(t.Context(), channel.Message{Channel: channel.Terminal, SessionID: inSession, ID: text, User: hanako, UserText: text}))
		if got, want := to.all[len(to.all)-1], "answer: said to "+text+" by chat-v1"; got != want || restarts() != c.restarts {
			t.Errorf("%d restarts, %q", restarts(), to.all)
		}
	}
	if len(o.Requests()) != 5 {
		t.Errorf("%d calls", len(o.Requests()))
	}
	for _, r := range append(o.Requests(), o.Loads()...) {
		if r.NumCtx == 0 || len(r.KeepAlive) == 0 {
			t.Errorf("asked for %d tokens, kept for %q", r.NumCtx, r.KeepAlive)
		}
	}
	said, err := house.engine.History(t.Context(), inSession, 100)
	if err != nil || len(said) != 10 {
		t.Errorf("%d on record, %v", len(said), err)
	}
}

// A server of models that cannot be reached is no model that is being loaded, and the person
// is told at once, not when a run would have given up; when it is there, the turn goes on.
func TestServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "")
	o := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}), llmtest.OllamaModel{Name: "chat-v1", Capabilities: []string{"tools"}})
	o.Down(nil)
	h.write("config.yaml", fmt.Sprintf("language: en\nllm: {state_dir: %q, ollama: {endpoint: %q}}\nsandbox: {mode: none}\n"+
		"routing: {classifier: {enabled: false}, llm: {chat_provider: ollama, chat_model: chat-v1}}\ncontext_storage: {base_dir: %q, durability: os}\n", filepath.Join(h.dir, "state"), o.URL, h.base))
	house, end := h.talks()
	defer end()
	to := &posts{}
	house.engine.Add(to)
	say := func(text string) string {
		t.Helper()
		h.must(house.engine.Handle(t.Context(), channel.Message{Channel: channel.Terminal, SessionID: inSession, ID: text, User: hanako, UserText: text}))
		return to.all[len(to.all)-1]
	}
	began := time.Now()
	if got := say("hello?"); !strings.HasPrefix(got, "notice: I cannot answer right now") || len(to.all) != 1 || time.Since(began) > 10*time.Second {
		t.Errorf("%q after %s", to.all, time.Since(began))
	}
	o.Up()
	if got := say("and now?"); got != "answer: fine" {
		t.Errorf("%q", got)
	}
}
