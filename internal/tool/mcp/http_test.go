package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// webServer is a server of the SDK's, with what the tests ask for.
func webServer(over <-chan struct{}) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "web", Version: "1"}, nil)
	type in struct {
		Text string `json:"text,omitempty"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "echo " + a.Text}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "steps"}, func(ctx context.Context, r *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
		for i := range 3 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3}); err != nil {
				return nil, nil, err
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ in) (*sdk.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
		case <-over: // the SDK's server does not always hear of it
		}
		return nil, nil, errors.New("cancelled")
	})
	return s
}

// serveHTTP serves h until the test ends.
func serveHTTP(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	return serveUntil(t, h, make(chan struct{}))
}

// serveUntil closes over before it waits for what h is doing.
func serveUntil(t testing.TB, h http.Handler, over chan struct{}) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		close(over)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		t.Run(fmt.Sprintf("stateless %t", stateless), func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			s := webServer(over)
			var tokens sync.Map
			h := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
				tokens.Store(r.Header.Get("Authorization"), true)
				return s
			}, &sdk.StreamableHTTPOptions{Stateless: stateless})
			web := serveUntil(t, h, over)
			m := mustOpen(t, mcp.Options{}, mcp.Server{Name: "web", URL: web.URL, Header: map[string]string{"Authorization": "Bearer t0ken-t0ken"}})
			defer m.Close()
			says(t, call(t, m, "web__echo", `{"text":"hi"}`), false, "echo hi")
			says(t, call(t, m, "web__steps", ""), false, "done")
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := registry(t, m.Tools()).Call(ctx, "web__hang", ""); err == nil {
				t.Error("a cancelled call returned a result")
			}
			says(t, call(t, m, "web__echo", `{"text":"hi"}`), false, "echo hi")
			if _, ok := tokens.Load("Bearer t0ken-t0ken"); !ok {
				t.Error("the header was not sent")
			}
		})
	}
}

// TestHTTPCancellation ends the request at the server.
func TestHTTPCancellation(t *testing.T) {
	t.Parallel()
	reached, ended := make(chan struct{}), make(chan struct{})
	web := serveHTTP(t, answers(func(_ http.ResponseWriter, r *http.Request, _ any) {
		close(reached)
		<-r.Context().Done()
		close(ended)
	}))
	m := open(t, mcp.Options{}, mcp.Server{Name: "web", URL: web.URL})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reached
		cancel()
	}()
	if _, err := registry(t, m.Tools()).Call(ctx, "web__echo", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
	<-ended
}

// TestHTTPLogs: logs in the stream of a call's answer are passed over.
func TestHTTPLogs(t *testing.T) {
	t.Parallel()
	web := serveHTTP(t, answers(func(w http.ResponseWriter, _ *http.Request, id any) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, m := range []obj{
			{"jsonrpc": "2.0", "method": "notifications/message", "params": obj{"level": "info", "data": obj{"at": 1}}},
			{"jsonrpc": "2.0", "id": id, "result": text("done")},
		} {
			b, err := json.Marshal(m)
			if err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprintf(w, "data: %s\n\n", b)
		}
	}))
	m := open(t, mcp.Options{}, mcp.Server{Name: "web", URL: web.URL})
	says(t, call(t, m, "web__echo", ""), false, "done")
}

// TestHTTPServerIsReplaced: a session that the server has forgotten is made anew.
func TestHTTPServerIsReplaced(t *testing.T) {
	t.Parallel()
	handler := func() *http.Handler {
		s := webServer(nil)
		t.Cleanup(func() { // the sessions that nobody took leave of
			for ss := range s.Sessions() {
				_ = ss.Close()
			}
		})
		var h http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
		return &h
	}
	var now atomic.Pointer[http.Handler]
	now.Store(handler())
	web := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*now.Load()).ServeHTTP(w, r) }))
	m := open(t, mcp.Options{Restart: mcp.Restart{First: time.Millisecond}}, mcp.Server{Name: "web", URL: web.URL})
	says(t, call(t, m, "web__echo", ""), false, "echo")
	now.Store(handler())
	for range 100 { // the first call may be the one that finds out
		if r := call(t, m, "web__echo", ""); !r.IsError {
			return
		}
	}
	t.Errorf("it does not come back: %+v", status(t, m, "web"))
}

// answers is a server by hand: it answers the handshake, and then as each test says.
func answers(calls func(w http.ResponseWriter, r *http.Request, id any)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m obj
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		reply := func(result any) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(obj{"jsonrpc": "2.0", "id": m["id"], "result": result})
		}
		params, _ := m["params"].(obj)
		switch m["method"] {
		case "initialize":
			reply(obj{"protocolVersion": params["protocolVersion"], "serverInfo": obj{"name": "fake", "version": "1"}, "capabilities": obj{"tools": obj{}}})
		case "tools/list":
			reply(obj{"tools": []obj{aTool("echo", "")}})
		case "tools/call":
			calls(w, r, m["id"])
		case "server/discover":
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

func TestHTTPServersThatMisbehave(t *testing.T) {
	t.Parallel()
	var leaked atomic.Bool
	elsewhere := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "" {
			leaked.Store(true)
		}
	}))
	for name, tc := range map[string]struct {
		calls func(w http.ResponseWriter, r *http.Request, id any)
		says  string
	}{
		"huge JSON": {func(w http.ResponseWriter, _ *http.Request, _ any) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.Copy(w, io.LimitReader(zeros{}, 64<<20))
		}, "more than 1048576 bytes"},
		"huge event": {func(w http.ResponseWriter, _ *http.Request, _ any) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: ")
			_, _ = io.Copy(w, io.LimitReader(zeros{}, 64<<20))
		}, "MCP server web"},
		"JSON of values": {func(w http.ResponseWriter, _ *http.Request, _ any) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":3,"result":{"x":[`+strings.Repeat(`[],`, 110_000)+`1]}}`)
		}, "more than 100000 values"},
		"an event of values": {func(w http.ResponseWriter, _ *http.Request, _ any) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","id":3,"result":{"x":[`+strings.Repeat(`[],`, 110_000)+"1]}}\n\n")
		}, "MCP server web"},
		"a page": {func(w http.ResponseWriter, _ *http.Request, _ any) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>Sign in</h1>")
		}, `unsupported content type "text/html"`},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request, _ any) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":`)
		}, "failed to decode response"},
		"an error": {func(w http.ResponseWriter, _ *http.Request, _ any) { w.WriteHeader(http.StatusInternalServerError) }, "Internal Server Error"},
		"elsewhere": {func(w http.ResponseWriter, _ *http.Request, _ any) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "Temporary Redirect"},
		"never": {func(_ http.ResponseWriter, r *http.Request, _ any) { <-r.Context().Done() }, "did not answer within 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := serveHTTP(t, answers(tc.calls))
			m := open(t, mcp.Options{MaxMessage: 1 << 20, Restart: mcp.Restart{First: time.Millisecond}}, mcp.Server{Name: "web", URL: web.URL + "/?key=s3cret-s3cret", Header: map[string]string{"X-Key": "k3y-k3y-k3y"}, Timeout: limit(name)})
			r := call(t, m, "web__echo", "")
			says(t, r, true, tc.says)
			if strings.Contains(r.Text, "s3cret") || strings.Contains(r.Text, "k3y") {
				t.Errorf("it tells a secret: %s", r.Text)
			}
		})
	}
	t.Cleanup(func() {
		if leaked.Load() {
			t.Error("the header went to another host")
		}
	})
}

func limit(name string) time.Duration {
	if name == "never" {
		return 50 * time.Millisecond
	}
	return time.Minute
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestHTTPServerThatNeverAnswers lets itself be closed.
func TestHTTPServerThatNeverAnswers(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	web := serveHTTP(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(func() { close(stop) })
	m := mustOpen(t, mcp.Options{Handshake: 50 * time.Millisecond}, mcp.Server{Name: "web", URL: web.URL})
	if s := status(t, m, "web"); s.State == mcp.Ready || !strings.Contains(s.Reason, "did not answer the handshake within 50ms") {
		t.Errorf("status %+v", s)
	}
	m.Close()
}

// BenchmarkCall is a call's round trip through the registry, beside the same
// work done directly.
func BenchmarkCall(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		r := registry(b, []tool.Tool{direct{}})
		for b.Loop() {
			if res, err := r.Call(b.Context(), "echo", `{"text":"hi"}`); err != nil || res.IsError {
				b.Fatal(res, err)
			}
		}
	})
	b.Run("stdio", func(b *testing.B) {
		r := registry(b, open(b, mcp.Options{Start: self}, mode("s")).Tools())
		for b.Loop() {
			if res, err := r.Call(b.Context(), "s__echo", `{"text":"hi"}`); err != nil || res.IsError {
				b.Fatal(res, err)
			}
		}
	})
	b.Run("http", func(b *testing.B) {
		s := webServer(nil)
		web := serveHTTP(b, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
		r := registry(b, open(b, mcp.Options{}, mcp.Server{Name: "web", URL: web.URL}).Tools())
		for b.Loop() {
			if res, err := r.Call(b.Context(), "web__echo", `{"text":"hi"}`); err != nil || res.IsError {
				b.Fatal(res, err)
			}
		}
	})
}

// direct is what the servers' echo does, without a server.
type direct struct{}

func (direct) Definition() tool.Definition {
	return tool.Definition{Name: "echo", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}
}

func (direct) Call(_ context.Context, raw json.RawMessage) (tool.Result, error) {
	var a struct{ Text string }
	if err := json.Unmarshal(raw, &a); err != nil {
		return tool.Result{}, err
	}
	return tool.Text("echo " + a.Text), nil
}
