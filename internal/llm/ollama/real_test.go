package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// real is a server that is there, and a model of it that calls tools: with
// TORI_TEST_OLLAMA=URL (and TORI_TEST_OLLAMA_MODEL, else the first that does). What
// it answers stands recorded in the other tests.
func real(t *testing.T) Config {
	t.Helper()
	cfg := Config{BaseURL: os.Getenv("TORI_TEST_OLLAMA"), Model: os.Getenv("TORI_TEST_OLLAMA_MODEL"), NumCtx: 4096, MaxTokens: 400}
	if cfg.BaseURL == "" {
		t.Skip("set TORI_TEST_OLLAMA to the address of an Ollama")
	}
	list, err := ListModels(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		named := cfg
		named.Model = l.Name
		if m, err := Show(t.Context(), named); cfg.Model == "" && err == nil && m.Chat && m.Tools && m.RemoteHost == "" {
			cfg.Model = l.Name
		}
	}
	if cfg.Model == "" {
		t.Skip("it has no model that calls tools")
	}
	return cfg
}

// What the conformance suite demands holds of a server that is there, as far as it
// does not decide on the answers.
func TestARealServer(t *testing.T) {
	cfg := real(t)
	t.Run("conformance", func(t *testing.T) { conforms(t, cfg) })
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := Version(t.Context(), cfg); err != nil || v == "" {
		t.Errorf("version %q, %v", v, err)
	}
	look := llm.Tool{Name: "read_file", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}
	v := c.Open(llm.Settings{Tools: []llm.Tool{look}})
	v.Append(llm.Message{Role: llm.RoleUser, Content: "Call the tool read_file with the path notes.txt."})
	reply, err := v.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Usage == nil || reply.Usage.PromptTokens < 20 {
		t.Errorf("usage %+v", reply.Usage)
	}
	if calls := reply.Message.ToolCalls; len(calls) == 0 {
		t.Logf("it called nothing: %q", reply.Message.Content)
	} else {
		v.Append(reply.Message)
		v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: calls[0].ID, ToolName: calls[0].Name, Content: "the notes"})
		streamed := ""
		if reply, err = v.Send(t.Context(), func(s string) { streamed += s }); err != nil || reply.Message.Content != streamed {
			t.Errorf("%v; streamed %q", err, streamed)
		}
	}
	var e *llm.Error
	long := c.Open(llm.Settings{})
	long.Append(llm.Message{Role: llm.RoleUser, Content: strings.Repeat("設定を読み込めない理由を表示する。", 1500)})
	if _, err := long.Send(t.Context(), nil); !errors.As(err, &e) || e.Kind != llm.KindContext {
		t.Errorf("a request of 76 KB in 4096 tokens: %v", err)
	}
	cfg.Model = "no-such-model-here"
	if _, err := Show(t.Context(), cfg); !errors.As(err, &e) || e.Kind != llm.KindNotFound {
		t.Errorf("a model that is not there: %v", err)
	}
	if c, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	none := c.Open(llm.Settings{})
	none.Append(llm.Message{Role: llm.RoleUser, Content: "x"})
	if _, err := none.Send(t.Context(), nil); !errors.As(err, &e) || e.Kind != llm.KindNotFound {
		t.Errorf("a call of it: %v", err)
	}
}

// conforms runs the conformance suite against a server that is there. A proxy notes
// what it is sent.
func conforms(t *testing.T, cfg Config) {
	address, err := url.Parse(cfg.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	llmtest.Conformance(t, func(t *testing.T, o llmtest.Options, _ ...llmtest.Answer) llmtest.Rig {
		var mu sync.Mutex
		var seen []llmtest.Request
		forward := httputil.NewSingleHostReverseProxy(address)
		forward.FlushInterval = -1
		forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // the client left
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			if parsed, err := llmtest.ParseOllama(body); err != nil {
				t.Errorf("%s: %v", body, err)
			} else {
				mu.Lock()
				parsed.Number, parsed.Remote = len(seen)+1, r.RemoteAddr
				seen = append(seen, *parsed)
				mu.Unlock()
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			forward.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.Close)
		own := cfg
		own.BaseURL, own.MaxRetries, own.HTTP, own.MaxTokens = srv.URL, o.Retries, o.HTTP, 64
		return llmtest.Rig{Client: testClient(t, own), Lacks: map[llmtest.Feature]string{llmtest.Dictated: "it is a real one"}, Requests: func() []llmtest.Request {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(seen)
		}}
	})
}

// The test of real servers holds of the one that the other tests know.
func TestTheRealServersTest(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewOllama(t, func(*llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Text: strings.Repeat("words of its own ", 20), Usage: &llm.Usage{PromptTokens: 60, CompletionTokens: 90, TotalTokens: 150}}
	})
	conforms(t, Config{Model: "m:latest", BaseURL: srv.URL, NumCtx: 4096})
}
