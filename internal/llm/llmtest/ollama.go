package llmtest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// OllamaModel is a model that an Ollama has on its disk.
type OllamaModel struct {
	Name          string   // with its tag
	ContextLength int      // tokens it was made for; 0 is not told
	Capabilities  []string // "completion", "tools", "vision", "thinking"; nil names none, as servers before 0.6.4
	RemoteHost    string   // of the cloud that it is passed on to; "" runs it here
	Modified      string   // when it came, as the list tells it; "" for a day of November
	Listed        bool     // the list tells the capabilities, too, as newer servers do
}

// OllamaCall is any call that an Ollama received, in its own words.
type OllamaCall struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// Ollama is a server that takes what Ollama takes by its own API, and answers in
// its words. It has models on its disk and in its memory, loads one that is
// called, and can go down. A call that Ollama would refuse, or take in silence
// for something else, fails the test. Its methods are safe for concurrent use,
// also from its Handler.
type Ollama struct {
	URL   string                 // without a path
	Embed func(string) []float32 // makes embeddings; set before the first call for one

	handler Handler
	http    *httptest.Server
	closed  chan struct{}

	mu     sync.Mutex
	disk   []OllamaModel
	loaded map[string]int // model to context length
	down   func() bool    // nil is up
	chats  []Request
	loads  []Request
	calls  []OllamaCall
	bad    []error // calls that were refused
	finals finals

	progress Progress
}

// NewOllama starts a server that is stopped when the test ends. h answers the
// chats; a nil h is that of NewServer. Without models every one is there that is
// asked for, with tools, vision and thinking.
func NewOllama(tb testing.TB, h Handler, models ...OllamaModel) *Ollama {
	tb.Helper()
	if h == nil {
		h = Loop(3, "bash", `{"command":"echo {{turn}}"}`, "done")
	}
	o := &Ollama{handler: h, closed: make(chan struct{}), disk: models, loaded: map[string]int{}}
	o.http = httptest.NewServer(http.HandlerFunc(o.serve))
	o.URL = o.http.URL
	tb.Cleanup(func() {
		close(o.closed) // ends stalled answers, which Close would wait for
		o.http.CloseClientConnections()
		o.http.Close()
		for _, err := range o.bad {
			tb.Errorf("a request that is not Ollama's: %v", err)
		}
	})
	return o
}

// Requests returns the chats that were received so far: of all paths only
// /api/chat, without those that load a model.
func (o *Ollama) Requests() []Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.chats)
}

// Loads returns the requests that load a model, received so far.
func (o *Ollama) Loads() []Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.loads)
}

// Calls returns all that was received so far, except while the server was down.
func (o *Ollama) Calls() []OllamaCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.calls)
}

// Quiet waits until no answer is in progress, as Server.Quiet.
func (o *Ollama) Quiet(ctx context.Context) error { return o.progress.Quiet(ctx) }

// Load puts a model into the memory with a context length in tokens; 0 is not told.
func (o *Ollama) Load(model string, contextLength int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loaded[tagged(model)] = contextLength
}

// Unload takes a model out of the memory.
func (o *Ollama) Unload(model string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.loaded, tagged(model))
}

// Loaded returns the context length of each model in the memory.
func (o *Ollama) Loaded() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]int{}
	for m, n := range o.loaded {
		all[m] = n
	}
	return all
}

// Down ends the server, with all that is in its memory, until Up is called or up,
// if not nil, reports true; up is called by other goroutines. Meanwhile every
// connection is broken without an answer.
func (o *Ollama) Down(up func() bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if up == nil {
		up = func() bool { return false }
	}
	o.down, o.loaded = func() bool { return !up() }, map[string]int{}
}

// Up ends what Down began.
func (o *Ollama) Up() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = nil
}

func (o *Ollama) isDown() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down != nil && !o.down() {
		o.down = nil
	}
	return o.down != nil
}

// tagged is a name as Ollama shows it.
func tagged(model string) string {
	if !strings.Contains(model[strings.LastIndexByte(model, '/')+1:], ":") {
		model += ":latest"
	}
	return model
}

// find returns a model of the disk.
func (o *Ollama) find(name string) (OllamaModel, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.disk) == 0 {
		return OllamaModel{Name: tagged(name), Capabilities: []string{"completion", "tools", "vision", "thinking"}}, true
	}
	for _, m := range o.disk {
		if strings.EqualFold(tagged(m.Name), tagged(name)) {
			return m, true
		}
	}
	return OllamaModel{}, false
}

func (o *Ollama) serve(w http.ResponseWriter, hr *http.Request) {
	defer o.progress.Enter()()
	if o.isDown() {
		panic(http.ErrAbortHandler) // the documented way to break the connection
	}
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client left
	}
	o.mu.Lock()
	o.calls = append(o.calls, OllamaCall{hr.Method, hr.URL.Path, hr.Header.Clone(), body})
	o.mu.Unlock()
	switch hr.Method + " " + hr.URL.Path {
	case "GET /api/version":
		o.document(w, http.StatusOK, object{"version": "0.33.2"})
	case "GET /api/tags":
		o.document(w, http.StatusOK, object{"models": o.tags()})
	case "GET /api/ps":
		o.document(w, http.StatusOK, object{"models": o.ps()})
	case "POST /api/show":
		err = o.show(w, body)
	case "POST /api/chat":
		err = o.chat(w, hr, body)
	case "POST /api/embed":
		err = o.embed(w, body)
	default:
		err = fmt.Errorf("%s %s", hr.Method, hr.URL.Path)
	}
	if err != nil {
		o.mu.Lock()
		o.bad = append(o.bad, fmt.Errorf("%w: %s", err, body))
		o.mu.Unlock()
		o.document(w, http.StatusBadRequest, object{"error": err.Error()})
	}
}

func (o *Ollama) document(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(unescaped(v)) // the client may have left
}

// tags is the list of models. Source: api.ListModelResponse of Ollama.
func (o *Ollama) tags() []object {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := []object{}
	for _, m := range o.disk {
		v := object{"name": tagged(m.Name), "model": tagged(m.Name), "size": 5 << 30, "modified_at": cmp.Or(m.Modified, "2026-11-20T08:00:00Z")}
		if m.Listed {
			v["capabilities"] = m.Capabilities
		}
		if m.RemoteHost != "" {
			v["remote_host"], v["remote_model"] = m.RemoteHost, m.Name
		}
		all = append(all, v)
	}
	return all
}

// ps is what is in the memory. Source: api.ProcessModelResponse of Ollama.
func (o *Ollama) ps() []object {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := []object{}
	for name, n := range o.loaded {
		v := object{"name": name, "model": name, "size": 5 << 30, "size_vram": 4 << 30, "expires_at": "2318-01-01T00:00:00Z"}
		if n > 0 {
			v["context_length"] = n
		}
		all = append(all, v)
	}
	return all
}

// show tells of one model. Source: api.ShowResponse of Ollama.
func (o *Ollama) show(w http.ResponseWriter, body []byte) error {
	var asked struct {
		Model string `json:"model"`
	}
	if err := strictly(body, &asked); err != nil {
		return err
	}
	m, ok := o.find(asked.Model)
	if !ok {
		o.document(w, http.StatusNotFound, object{"error": fmt.Sprintf("model '%s' not found", asked.Model)})
		return nil
	}
	info := object{"general.architecture": "qwen3"}
	if m.ContextLength > 0 {
		info["qwen3.context_length"] = m.ContextLength
	}
	v := object{"template": "{{ .Prompt }}", "model_info": info, "modified_at": "2026-11-20T08:00:00Z"}
	if m.Capabilities != nil {
		v["capabilities"] = m.Capabilities
	}
	if m.RemoteHost != "" {
		v["remote_host"], v["remote_model"] = m.RemoteHost, m.Name
	}
	o.document(w, http.StatusOK, v)
	return nil
}

// chat answers a conversation, or loads a model.
func (o *Ollama) chat(w http.ResponseWriter, hr *http.Request, body []byte) error {
	r, err := ParseOllama(body)
	if err != nil {
		return err
	}
	if kind := hr.Header.Get("Content-Type"); kind != "application/json" {
		return fmt.Errorf("content type %q", kind)
	}
	r.Header, r.Path, r.Remote = hr.Header.Clone(), hr.URL.Path, hr.RemoteAddr
	load := len(r.Messages) == 0
	kept := &o.chats
	if load {
		kept = &o.loads
	}
	summary, final := o.finals.take(r)
	if !final {
		o.mu.Lock()
		r.Number = len(*kept) + 1
		*kept = append(*kept, *r)
		o.mu.Unlock()
	}
	m, ok := o.find(r.Model)
	switch {
	case !ok:
		o.document(w, http.StatusNotFound, object{"error": fmt.Sprintf("model '%s' not found", r.Model)})
		return nil
	case len(r.Tools) > 0 && m.Capabilities != nil && !slices.Contains(m.Capabilities, "tools"):
		o.document(w, http.StatusBadRequest, object{"error": fmt.Sprintf("registry.ollama.ai/library/%s does not support tools", r.Model)})
		return nil
	case r.Think && m.Capabilities != nil && !slices.Contains(m.Capabilities, "thinking"):
		o.document(w, http.StatusBadRequest, object{"error": fmt.Sprintf("%q does not support thinking", r.Model)})
		return nil
	}
	if m.RemoteHost == "" {
		o.Load(r.Model, r.NumCtx)
	}
	a := Answer{Plain: !r.Stream, Finish: "load"}
	if final {
		a = summary
	} else if !load {
		a = o.handler(r)
	}
	out := &writer{w: w, rc: http.NewResponseController(w), request: hr, closed: o.closed, answer: &a,
		format: format{failed: ollamaError, plain: (*writer).ollamaPlain, stream: (*writer).ollamaStream}}
	out.send(r)
	return nil
}

// ollamaError is the body of an error.
func ollamaError(_ int, code, text string) object {
	return object{"error": strings.TrimPrefix(code+": "+text, ": ")}
}
