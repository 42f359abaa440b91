package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
)

// ownerRole names, in the environment, the provider that this test binary runs a
// loop with instead of testing: processes that are killed must be real ones.
const ownerRole = "TORI_TEST_OWNER"

func TestMain(m *testing.M) {
	if provider := os.Getenv(ownerRole); provider != "" {
		if err := own(context.Background(), provider, os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// own takes a run up and works on it to its end.
func own(ctx context.Context, provider, base, id, url string) error {
	client, err := clientOf(provider, url)
	if err != nil {
		return err
	}
	store, err := contextstore.Open(ctx, contextstore.Options{BaseDir: base, NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		return err
	}
	c, _, err := store.Claim(ctx, id)
	if err != nil {
		return err
	}
	if c.LastSeq() == 0 {
		if _, err := c.Append(contextstore.Message{Role: "system", Content: "SYSTEM"}, contextstore.Message{Role: "user", Content: "Work on pkg/a.go."}); err != nil {
			return err
		}
	}
	tools := []llm.Tool{{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "write", Description: "Writes.", Schema: json.RawMessage(`{"type":"object"}`)}}
	fixed := 0
	for _, t := range tools {
		fixed += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	w, err := memory.Open(c, client.Open(llm.Settings{Tools: tools}), memory.Policy{Limit: 6000, Fixed: fixed, Context: 8000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5,
		Masking: memory.Masking{Enabled: true, KeepTurns: 10, MinShare: 0.1}, Summarizer: func(context.Context) (memory.Summarizer, error) {
			return memory.Summarizer{Name: "test/short", Window: 16_000, Ask: func(context.Context, string, int) (memory.Answer, error) {
				return memory.Answer{Text: "Work on pkg/a.go went on."}, nil
			}}, nil
		}})
	if err != nil {
		return err
	}
	work := func(ctx context.Context, args string) (tool.Result, error) {
		var a struct {
			N   int
			Die bool
		}
		if err := json.Unmarshal([]byte(args), &a); err != nil {
			return tool.Result{}, err
		}
		// Killed in the middle of a call, once.
		if mark := filepath.Join(base, fmt.Sprint("died-", a.N)); a.Die && os.Mkdir(mark, 0o700) == nil {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				return tool.Result{}, err
			}
			select {}
		}
		return tool.Result{Text: strings.Repeat(fmt.Sprintf("%d the quick brown fox 速い茶色の狐 <&>\n", a.N), 5+a.N*37%40)}, nil
	}
	l := New(Settings{Ledger: c, Window: w, Tools: hands{"look": work, "write": work}, Log: slog.New(slog.DiscardHandler), Now: time.Now}, NoDirector{})
	if _, err := l.Run(ctx); err != nil {
		return err
	}
	return errors.Join(c.Close(), store.Close())
}

func clientOf(provider, url string) (llm.Client, error) {
	switch provider {
	case "anthropic":
		return anthropic.New(anthropic.Config{Provider: provider, Model: "m", BaseURL: url, APIKey: "k", MaxTokens: 1000})
	case "ollama":
		return ollama.New(ollama.Config{Provider: provider, Model: "m", BaseURL: url, NumCtx: 16_384})
	}
	return openai.New(openai.Config{Provider: provider, Model: "m", BaseURL: url + "/v1", APIKey: "k"})
}

// watcher is the server's side of a run that is killed again and again.
type watcher struct {
	t       *testing.T
	decided func() int // decisions about the window that are on disk

	mu      sync.Mutex
	owner   *os.Process
	last    llmtest.Request
	events  int
	turn    int // of the latest request
	killed  map[int]bool
	told    map[int]llm.Usage // by turn
	repeats int
	breaks  int
}

const killTurns = 300

// answer checks a request against the one before and gives the answer of its turn.
func (w *watcher) answer(r *llmtest.Request) llmtest.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, same := w.decided(), 0
	head := func(body []byte) []byte { b, _, _ := bytes.Cut(body, []byte(`"messages":[`)); return b }
	switch before, now := bytes.TrimSuffix(w.last.Raw, []byte("]")), bytes.TrimSuffix(r.Raw, []byte("]")); {
	case w.turn == 0:
		w.turn++
	case !bytes.Equal(head(w.last.Body), head(r.Body)):
		w.t.Errorf("turn %d: what precedes the messages changed", w.turn)
	case bytes.Equal(before, now):
		w.repeats++ // of the owner that was killed before it had the answer
		same = len(now)
	case bytes.HasPrefix(now, before):
		same = len(before)
		w.turn++
	case events == w.events:
		w.t.Errorf("turn %d: the prefix changed without a decision", w.turn+1)
		w.turn++
	default:
		w.breaks++
		w.turn++
	}
	w.last, w.events = *r, events
	if n := w.turn; n%60 == 40 && !w.killed[n] {
		w.killed[n] = true
		if err := w.owner.Kill(); err != nil {
			w.t.Error(err)
		}
	}
	if w.turn >= killTurns {
		return llmtest.Answer{Text: "done"}
	}
	n := w.turn
	u := llm.Usage{PromptTokens: len(r.Body) / 4, CachedTokens: same / 4, CompletionTokens: 5}
	w.told[n] = u
	call := func(k int, name string) llm.ToolCall {
		return llm.ToolCall{ID: fmt.Sprintf("call_%d_%d", n, k), Name: name, Arguments: fmt.Sprintf(`{"n":%d,"die":%t,"why":%q}`, n, n%90 == 70, strings.Repeat("w", n%3*100))}
	}
	a := llmtest.Answer{Text: fmt.Sprint("step ", n), Usage: &u, Calls: []llm.ToolCall{call(0, "write")}}
	if n%4 == 1 || n == 160 {
		a.Calls = []llm.ToolCall{call(0, "look"), call(1, "look")}
	}
	return a
}

// Over 300 turns with stubs and summaries, of an owner that is killed as a request
// is under way and in the middle of calls, what a server receives only grows at
// its end between decisions; and what it reports of its cache is on record.
func TestRequestsOnlyGrowAcrossKills(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic", "ollama"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			store, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, NoSync: true, Redact: func(s string) string { return s }})
			if err != nil {
				t.Fatal(err)
			}
			id, err := store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "1"}})
			if err = errors.Join(err, store.Close()); err != nil {
				t.Fatal(err)
			}
			w := &watcher{t: t, killed: map[int]bool{}, told: map[int]llm.Usage{}, decided: func() int {
				b, _ := os.ReadFile(filepath.Join(base, "running", id, "window.jsonl")) // none where nothing was decided
				return bytes.Count(b, []byte("\n"))
			}}
			var url string
			if provider == "ollama" {
				url = llmtest.NewOllama(t, w.answer).URL
			} else {
				url = llmtest.NewServer(t, w.answer).URL
			}
			deaths := w.work(provider, base, id, url)
			if kills := len(w.killed) + 3; deaths != kills || w.repeats != len(w.killed) {
				t.Errorf("%d owners died, %d were killed; %d requests were repeated", deaths, kills, w.repeats)
			}
			if w.breaks < 10 || w.breaks > w.events {
				t.Errorf("%d requests begin anew, %d decisions", w.breaks, w.events)
			}
			w.checkUsage(base, id)
		})
	}
}

// work lets owners work until one comes to the end; it returns how many died.
func (w *watcher) work(provider, base, id, url string) (deaths int) {
	for ; deaths < 50; deaths++ {
		cmd := exec.CommandContext(w.t.Context(), os.Args[0], base, id, url)
		cmd.Env = append(os.Environ(), ownerRole+"="+provider)
		cmd.Stderr = os.Stderr
		w.mu.Lock() // no request is answered before its owner is known
		err := cmd.Start()
		w.owner = cmd.Process
		w.mu.Unlock()
		if err != nil {
			w.t.Fatal(err)
		}
		err = cmd.Wait()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return deaths
		case !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL:
			w.t.Fatalf("turn %d: %v", w.turn, err)
		}
	}
	w.t.Fatal("owners die for ever")
	return deaths
}

// checkUsage compares what the ledger has of each call with what was reported.
func (w *watcher) checkUsage(base, id string) {
	w.t.Helper()
	v, err := contextstore.Find(base, id, contextstore.Viewer{Admin: true})
	if err != nil {
		w.t.Fatal(err)
	}
	n, cached := 0, 0
	err = v.Tail(contextstore.Messages, -1, func(line []byte) error {
		m, err := contextstore.DecodeMessage(line)
		if err != nil || m.Role != llm.RoleAssistant || len(m.ToolCalls) == 0 {
			return err
		}
		n++
		u := w.told[n]
		if m.Usage == nil || m.Usage.Prompt != u.PromptTokens || m.Usage.Cached != u.CachedTokens {
			return fmt.Errorf("call %d: on record is %+v, reported was %+v", n, m.Usage, u)
		}
		cached += m.Usage.Cached
		return nil
	})
	if err != nil || n != killTurns-1 || cached == 0 {
		w.t.Errorf("%v; %d calls, %d tokens from the cache", err, n, cached)
	}
}
