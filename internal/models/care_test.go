package models

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// A model that has left the memory is loaded again after the call, with the
// settings of the calls.
func TestCareWarmsUp(t *testing.T) {
	t.Parallel()
	var o *llmtest.Ollama
	o = llmtest.NewOllama(t, func(r *llmtest.Request) llmtest.Answer {
		if o.Unload("chat-v1"); r.Number == 1 { // as for a model that needs the memory
			return llmtest.Answer{Status: 500, ErrorText: "llama runner process has terminated"}
		}
		return llmtest.Answer{Text: "fine"}
	})
	h := openHouse(t, fmt.Sprintf("llm: {max_retries: 0, ollama: {endpoint: %q}}\nproviders: {ollama: {keep_alive: 30m}}", o.URL), nil)
	c := h.client(t, Use{Role: Chat, Route: "CHAT"})
	for n := 1; n <= 2; n++ {
		if reply, err := say(t.Context(), c, "go"); err != nil || reply.Message.Content != "fine" { // the first time it is made once more
			t.Fatalf("%v, %v", reply, err)
		}
		h.log.await(t, n, "works again")
	}
	for _, r := range append(o.Requests(), o.Loads()...) {
		if r.NumCtx != 8192 || string(r.KeepAlive) != `"30m"` {
			t.Errorf("asked for %d tokens and kept for %s", r.NumCtx, r.KeepAlive)
		}
	}
	loads := o.Loads()
	if len(o.Requests()) != 3 || len(loads) < 2 || len(loads) > 3 || loads[1].Model != "chat-v1:latest" || loads[1].Stream {
		t.Errorf("%d calls, loads %+v", len(o.Requests()), loads)
	}
	// Once more where the next call comes just as it looks whether the server works again.
	if got := h.log.with("loads a model: chat-v1:latest"); len(got) != len(loads) {
		t.Errorf("logged %q", got)
	}
}

// mended is a server that goes down before a call and comes back when its
// restart command has run, which is a small program of its own.
type mended struct {
	*llmtest.Ollama
	marker string // a line for each time that the command ran
	text   string // settings
}

func newMended(t *testing.T, answer llmtest.Handler) *mended {
	t.Helper()
	dir := t.TempDir()
	m := &mended{Ollama: llmtest.NewOllama(t, answer), marker: filepath.Join(dir, "marker")}
	command := filepath.Join(dir, "restart ollama")
	disktest.Program(t, command, "#!/bin/sh\necho \"$1\" >> \"$2\"\n")
	m.text = fmt.Sprintf("llm: {max_retries: 0, state_dir: %q, ollama: {endpoint: %q}}\nproviders: {ollama_restart_command: '%q again %q'}", filepath.Join(dir, "state"), m.URL, command, m.marker)
	return m
}

func (m *mended) restarts() int {
	raw, _ := os.ReadFile(m.marker)
	return strings.Count(string(raw), "again\n")
}

// crash takes the server down until its command has run once more.
func (m *mended) crash() {
	n := m.restarts()
	m.Down(func() bool { return m.restarts() > n })
}

// The server is looked after when a call has failed, and not only when the last
// of its repetitions has (route §13.6: the health check comes after each call).
func TestCareAfterEachFailedCall(t *testing.T) {
	t.Parallel()
	m := newMended(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}))
	h := openHouse(t, strings.Replace(m.text, "max_retries: 0", "max_retries: 3", 1), nil)
	c := h.client(t, Use{Role: Chat, Route: "CHAT"})
	m.crash()
	reply, err := say(t.Context(), c, "go")
	if err != nil || reply.Message.Content != "fine" || m.restarts() != 1 {
		t.Fatalf("%v, %v after %d restarts", reply, err, m.restarts())
	}
	if failed := h.log.with("will be repeated"); len(failed) != 1 {
		t.Errorf("%d calls had failed when the server was restarted:\n%s", len(failed), strings.Join(failed, "\n"))
	}
}

// A server that is down is restarted, three times within ten minutes by all
// processes together, and the call is made once more.
func TestCareRestarts(t *testing.T) {
	t.Parallel()
	m := newMended(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}))
	var clock atomic.Int64 // seconds that are passed over; it goes on, for a repair ends by it
	at := func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(clock.Load()) * time.Second) }
	}
	ask := func(role string) (*llm.Reply, *house, error) {
		h := openHouse(t, m.text, at)
		reply, err := say(t.Context(), h.client(t, Use{Role: role, Route: "CHAT"}), "go")
		if err := h.Close(); err != nil { // the look after the call is over, and sees no later crash
			t.Fatal(err)
		}
		return reply, h, err
	}
	for n := 1; n <= 3; n++ {
		m.crash()
		reply, _, err := ask([]string{Chat, Worker}[n%2])
		if err != nil || reply.Message.Content != "fine" || m.restarts() != n || len(m.Requests()) != n {
			t.Fatalf("%v, %v after %d restarts and %d calls", reply, err, m.restarts(), len(m.Requests()))
		}
		clock.Add(40) // no wait before the next
	}
	m.crash()
	for _, role := range []string{Chat, Worker} {
		_, h, err := ask(role)
		if kind(err) != llm.KindUnreachable || m.restarts() != 3 {
			t.Errorf("%s: %v after %d restarts", role, err, m.restarts())
		}
		if got := h.log.with("was restarted 3 times within 10m0s already"); len(got) == 0 {
			t.Errorf("logged %q", h.log.all)
		}
	}
	clock.Add(600)
	if reply, _, err := ask(Chat); err != nil || m.restarts() != 4 {
		t.Fatalf("%v, %v after %d restarts", reply, err, m.restarts())
	}
	if raw, err := os.ReadFile(m.marker); err != nil || string(raw) != strings.Repeat("again\n", 4) {
		t.Errorf("%q, %v", raw, err)
	}
}

// A context length that another program has set is told once, and nobody's
// model is thrown out for it.
func TestContextMismatchIsOnlyTold(t *testing.T) {
	t.Parallel()
	var m *mended
	m = newMended(t, func(*llmtest.Request) llmtest.Answer {
		m.Load("chat-v1:latest", 32768)
		return llmtest.Answer{Text: "fine"}
	})
	h := openHouse(t, m.text, nil)
	c := h.client(t, Use{Role: Chat, Route: "CHAT"})
	for range 3 {
		if _, err := say(t.Context(), c, "go"); err != nil {
			t.Fatal(err)
		}
		h.log.await(t, 1, "a restart would not change it")
	}
	if err := h.Close(); err != nil { // the last look is over
		t.Fatal(err)
	}
	got := h.log.with("chat-v1:latest")
	if len(got) != 1 || !strings.Contains(got[0], "is loaded with a context length of 32768, outside of 0 to 8192") || m.restarts() != 0 || len(m.Loads()) != 0 || len(m.Requests()) != 3 {
		t.Errorf("%d restarts, %d loads, logged %q", m.restarts(), len(m.Loads()), got)
	}
}

// A context longer than the model was made for is not asked for.
func TestContextOfTheModel(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}), llmtest.OllamaModel{Name: "m", ContextLength: 4096, Capabilities: []string{"tools"}})
	h := openHouse(t, fmt.Sprintf("llm: {provider: ollama, ollama: {endpoint: %q, model: m}}", o.URL), nil)
	c, spec, err := h.Client(t.Context(), Use{})
	if err != nil || spec.Context != 4096 {
		t.Fatalf("%+v, %v", spec, err)
	}
	if _, err := say(t.Context(), c, "go"); err != nil || o.Requests()[0].NumCtx != 4096 {
		t.Errorf("%v, %d", err, o.Requests()[0].NumCtx)
	}
	if got := h.log.with("ollama/m was made for a context of 4096 tokens, not 32768"); len(got) != 1 {
		t.Errorf("logged %q", h.log.all)
	}
}

// A model is being loaded where its server answers and has it not in memory, or is down and
// restarted; one that nobody restarts is not there, and nobody waits for it.
func TestLoaded(t *testing.T) {
	t.Parallel()
	m := newMended(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}))
	restarted, not := openHouse(t, m.text, nil), openHouse(t, strings.Split(m.text, "\nproviders")[0], nil)
	for _, c := range []struct {
		name          string
		before        func()
		with, without bool
	}{
		{"not in memory", func() {}, false, false},
		{"loaded", func() { m.Load("chat-v1:latest", 8192) }, true, true},
		{"down", func() { m.Down(nil) }, false, true},
	} {
		c.before()
		for h, want := range map[*house]bool{restarted: c.with, not: c.without} {
			s, err := h.Spec(t.Context(), Use{Role: Chat, Route: "CHAT"})
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Loaded(t.Context(), &s); got != want {
				t.Errorf("%s, restarted %t: %t", c.name, h == restarted, got)
			}
		}
	}
}
