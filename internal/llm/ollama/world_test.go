package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/llm/wire"
)

// world is an Ollama, the machine it runs on and what happens to both, without
// a network, so that time can be faked.
type world struct {
	mu      sync.Mutex
	up      bool
	hung    int            // so many requests get no answer
	silent  int            // so many got none on end
	loaded  map[string]int // model to context length
	onDisk  map[string]bool
	room    int // models that fit; 0: any number
	reply   map[string]reply
	loads   []string // bodies of the loads
	loading time.Duration
	asked   int
	cmdErr  error
	comesUp bool // after the command
	takes   time.Duration

	restarts []time.Time
	running  int  // restart commands at this moment
	overlap  bool // two ran at once
	needless int  // restarts of a server that was well
}

type reply struct {
	status int
	body   string
}

func newWorld(models ...string) *world {
	w := &world{up: true, comesUp: true, loaded: map[string]int{}, onDisk: map[string]bool{}, reply: map[string]reply{}}
	for _, m := range models {
		w.loaded[m], w.onDisk[m] = DefaultNumCtx, true
	}
	return w
}

// set changes the world.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) crash() {
	w.set(func() { w.up, w.loaded = false, map[string]int{} })
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if w.silent++; w.hung == 0 {
		w.silent = 0
	}
	if w.hung > 0 {
		w.hung--
		w.mu.Unlock()
		<-r.Context().Done()
		w.mu.Lock()
		return nil, r.Context().Err()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if !w.up {
		return nil, syscall.ECONNREFUSED
	}
	if a, ok := w.reply[r.URL.Path]; ok {
		return answerWith(a.status, a.body), nil
	}
	switch r.URL.Path {
	case "/api/version":
		return answerWith(200, `{"version":"0.33.2"}`), nil
	case "/api/ps":
		return answerWith(200, w.ps()), nil
	case "/api/chat":
		res := w.load(body)
		if err := r.Context().Err(); err != nil { // nobody waits for it any more
			return nil, err
		}
		return res, nil
	}
	return answerWith(404, "404 page not found"), nil
}

func (w *world) ps() string {
	type model = map[string]any
	all := []model{}
	for name, n := range w.loaded {
		all = append(all, model{"name": name, "model": name, "size": 5 << 30, "size_vram": 4 << 30, "expires_at": "2318-01-01T00:00:00Z", "context_length": n})
	}
	raw, _ := json.Marshal(model{"models": all})
	return string(raw)
}

func (w *world) load(body []byte) *http.Response {
	w.loads = append(w.loads, string(body))
	c, err := llmtest.ParseOllama(body)
	if err != nil || len(c.Messages) > 0 || string(c.KeepAlive) != "-1" {
		return answerWith(400, fmt.Sprintf(`{"error":"not a load: %v"}`, err))
	}
	name := c.Model
	if !strings.Contains(name, ":") {
		name += ":latest"
	}
	if !w.onDisk[name] {
		return answerWith(404, fmt.Sprintf(`{"error":"model \"%s\" not found, try pulling it first"}`, name))
	}
	for other := range w.loaded {
		if w.room > 0 && len(w.loaded) >= w.room && other != name {
			delete(w.loaded, other)
		}
	}
	w.mu.Unlock()
	time.Sleep(w.loading)
	w.mu.Lock()
	w.loaded[name] = c.NumCtx
	return answerWith(200, `{"model":"m","created_at":"2026-11-21T08:00:00Z","message":{"role":"assistant","content":""},"done_reason":"load","done":true}`)
}

// run is the restart command.
func (w *world) run(ctx context.Context, _ []string, _ io.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restarts = append(w.restarts, time.Now())
	w.running++
	w.overlap = w.overlap || w.running > 1
	if w.well() {
		w.needless++
	}
	w.mu.Unlock()
	_ = wire.Sleep(ctx, w.takes)
	w.mu.Lock()
	w.running--
	if w.cmdErr == nil && w.comesUp {
		w.up, w.loaded = true, map[string]int{}
	}
	return w.cmdErr
}

// well reports whether there is nothing to mend.
func (w *world) well() bool {
	if !w.up || len(w.reply) > 0 {
		return false
	}
	for m := range w.onDisk {
		if _, ok := w.loaded[m]; !ok {
			return false
		}
	}
	return true
}

func answerWith(status int, body string, headers ...string) *http.Response {
	res := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(headers); i += 2 {
		res.Header.Set(headers[i], headers[i+1])
	}
	return res
}

// care is the care of w by one process; change may alter its configuration.
func (w *world) care(t *testing.T, dir string, change func(*CareConfig)) *Supervisor {
	t.Helper()
	cfg := CareConfig{
		BaseURL: "http://ollama.test:11434", HTTP: &http.Client{Transport: w}, Dir: dir, Restart: []string{"restart-ollama"}, Run: w.run,
		Models: []Requirement{{Model: "ollama/chat-v1:latest", MaxContext: 8192}, {Model: "ollama/worker-v1", MaxContext: 8192}},
	}
	if change != nil {
		change(&cfg)
	}
	c, err := NewSupervisor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const (
	chatModel   = "chat-v1:latest"
	workerModel = "worker-v1:latest"
)

// failed is the error of a call that may be made again.
var failed error = &llm.Error{Kind: llm.KindUnreachable, Provider: "ollama"}

// key is the key of the first i18n error in err.
func key(err error) string {
	var e *i18n.Error
	if errors.As(err, &e) {
		return e.Key
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
