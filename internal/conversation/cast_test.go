package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/llm/texttool"
	"toritsugi/internal/models"
	"toritsugi/internal/redact"
	"toritsugi/internal/routing"
)

// call is one client that a leg made.
type call struct {
	Role, Route string
	Local       bool
	Sent        []llm.Message // all that its conversation was given
	Tools       []string
	Temperature *float64
	Most        int // tokens of its answers, 0 for no limit of the leg's
}

// cast are the models of a test: for each role the scripts of its legs, in order. A role
// without a script left is down.
type cast struct {
	t *testing.T

	mu      sync.Mutex
	scripts map[string][]string
	calls   []*call
	cloud   map[string]bool // roles whose model is in a cloud
	cold    map[string]bool // whose model is not loaded
	context int             // window of every model, tokens; 0 for 32768
	textual bool            // no model has tool calls
	made    func(u models.Use) string
}

// says makes the script of a leg that answers with texts, one for each call.
func says(texts ...string) string {
	var b strings.Builder
	for _, s := range texts {
		q, _ := json.Marshal(s)
		fmt.Fprintf(&b, "- say: %s\n", q)
	}
	return b.String()
}

func (c *cast) Spec(_ context.Context, u models.Use) (models.Spec, error) {
	alias := map[string]string{"chat": "Mio", "worker": "Shiro", "coder": "Aka", "coder2": "Ao", "coder3": "Gin"}[u.Role]
	n := c.context
	if n == 0 {
		n = 32768
	}
	return models.Spec{Role: u.Role, Alias: alias, Provider: "script", Model: u.Role, Cloud: c.cloud[u.Role], Context: n}, nil
}

func (c *cast) Loaded(_ context.Context, s *models.Spec) bool { return !c.cold[s.Role] }

func (c *cast) Client(ctx context.Context, u models.Use) (llm.Client, models.Spec, error) {
	s, _ := c.Spec(ctx, u)
	c.mu.Lock()
	defer c.mu.Unlock()
	var text string
	switch left := c.scripts[u.Role]; {
	case c.made != nil:
		text = c.made(u)
	case len(left) > 0:
		text, c.scripts[u.Role] = left[0], left[1:]
	}
	if text == "" {
		return nil, s, &llm.Error{Kind: llm.KindUnreachable, Provider: u.Role}
	}
	inner, err := script.Parse(u.Role+".yaml", []byte(text))
	if err != nil {
		c.t.Error(err)
		return nil, s, err
	}
	k := &call{Role: u.Role, Route: u.Route, Local: u.LocalOnly, Temperature: u.Temperature}
	c.calls = append(c.calls, k)
	if c.textual {
		return &actor{texttool.New(inner), c, k}, s, nil
	}
	return &actor{inner, c, k}, s, nil
}

// actor is a script that begins anew with each leg, whatever was said before it.
type actor struct {
	llm.Client
	c *cast
	k *call
}

func (a *actor) Open(s llm.Settings) llm.Conversation {
	for _, t := range s.Tools {
		a.k.Tools = append(a.k.Tools, t.Name)
	}
	return &scene{a.Client.Open(s), a, map[string]bool{}}
}

type scene struct {
	llm.Conversation
	a     *actor
	given map[string]bool
}

func (s *scene) Append(m llm.Message) {
	s.a.c.mu.Lock()
	s.a.k.Sent = append(s.a.k.Sent, m)
	s.a.c.mu.Unlock()
	if m.Role != llm.RoleAssistant || s.given[m.Content] {
		s.Conversation.Append(m)
	}
}

func (s *scene) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	s.a.k.Most = llm.AnswerLimit(ctx, 0)
	r, err := s.Conversation.Send(ctx, onText)
	if err == nil {
		s.given[r.Message.Content] = true
	}
	return r, err
}

// stage is a channel that keeps what people see.
type stage struct {
	kind channel.Kind

	mu      sync.Mutex
	posts   []channel.Post
	streams map[string]string // by message
	began   int               // streams that began anew
	fail    int               // posts that are not taken
	onText  func(string)      // told of a delta
}

func (s *stage) Kind() channel.Kind { return s.kind }

func (s *stage) Post(_ context.Context, p channel.Post) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail > 0 {
		s.fail--
		return errors.New("the channel is away")
	}
	s.posts = append(s.posts, p)
	return nil
}

func (s *stage) Stream(_, replyTo, delta string) {
	s.mu.Lock()
	if s.streams == nil {
		s.streams = map[string]string{}
	}
	if delta == "" {
		s.streams[replyTo] = ""
		s.began++
	}
	s.streams[replyTo] += delta
	f := s.onText
	s.mu.Unlock()
	if f != nil {
		f(delta)
	}
}

// seen is what people saw, a line for each post.
func (s *stage) seen() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.posts {
		all = append(all, string(p.Kind)+": "+p.Text)
	}
	return all
}

// desk takes jobs and decisions.
type desk struct {
	mu       sync.Mutex
	jobs     []Job
	stopped  []string
	waits    string // job whose proposal waits
	refuse   error
	decided  []channel.Decision
	auto     []routing.AutoApprove
	approved channel.Approval
}

func (d *desk) Start(_ context.Context, j Job) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		return "", d.refuse
	}
	d.jobs = append(d.jobs, j)
	return fmt.Sprintf("20260301-101010-0000000%d", len(d.jobs)), nil
}

func (d *desk) List(_ context.Context, id string) (all []Running, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, j := range d.jobs {
		if j.SessionID == id {
			id := fmt.Sprintf("20260301-101010-0000000%d", i+1)
			all = append(all, Running{ID: id, Waits: id == d.waits, Title: j.Task, Route: j.Route, State: "running", Since: start, ReplyTo: j.ReplyTo})
		}
	}
	return all, nil
}

func (d *desk) Stop(_ context.Context, _, id, by string) error {
	d.stopped = append(d.stopped, id+" by "+by)
	return nil
}

func (d *desk) Told(context.Context, string) {}

func (d *desk) Decide(_ context.Context, _ channel.Message, c channel.Decision) (channel.Approval, error) {
	if d.refuse != nil {
		return channel.Approval{}, d.refuse
	}
	d.decided = append(d.decided, c)
	a := d.approved
	a.Job, a.Status = c.Job, "denied"
	if c.Grant {
		a.Status = "granted"
	}
	return a, nil
}

func (d *desk) Auto(_ context.Context, _, _ string, a routing.AutoApprove) (string, error) {
	d.auto = append(d.auto, a)
	return "auto", nil
}

var start = time.Date(2026, 3, 1, 10, 10, 10, 0, time.UTC)

// house is an engine with all that a test sees of it.
type house struct {
	*Engine
	t     *testing.T
	cast  *cast
	stage *stage
	desk  *desk
	store *contextstore.Store
	fs    *disk.FS
	sets  map[string]bool // roles that are set
	id    string          // of the session
	n     int

	mu  sync.Mutex
	now time.Time
}

func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *house) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// open makes a house in lang whose models answer by scripts; with may change what it is
// made of.
func open(t *testing.T, lang i18n.Lang, kind channel.Kind, with ...func(*house, *Options)) *house {
	t.Helper()
	h := &house{t: t, cast: &cast{t: t, scripts: map[string][]string{}}, stage: &stage{kind: kind}, desk: &desk{}, fs: &disk.FS{}, now: start,
		sets: map[string]bool{"coder": true, "coder2": true, "coder3": true}, id: string(kind) + ":hanako:1a2b3c4d"}
	mask := redact.New([]string{"hunter2-hunter2"}, nil)
	rules, err := routing.OpenRules("", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	o := Options{Models: h.cast, Limits: routing.Limits{MaxLoops: 3, Max: 90 * time.Second, ConfirmBelow: 0.6, AutoReroute: true, ChatReroute: true, MinConfidence: 0.6,
		MinConfidenceForCode: 0.8}, Cloud: []string{"CODE", "CODE1", "CODE2", "CODE3"}, Jobs: h.desk, Approvals: h.desk, Here: &Repository{Name: "widgets", Path: here},
		Cutover: 4 * time.Hour, Retention: 90 * 24 * time.Hour, Zone: time.UTC, Lang: lang, Redact: mask.String, Strict: mask.Strict().String, Settled: mask.Strict().Settled,
		Set: func(role string) bool { return h.sets[role] }, Now: h.clock,
		Router: routing.New(rules, routing.Settings{Classifier: true, MinConfidence: 0.6, MinConfidenceForCode: 0.8})}
	base := t.TempDir()
	h.store, err = contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, Redact: mask.String, FS: h.fs, NoSync: true, Now: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	o.Store = h.store
	for _, w := range with {
		w(h, &o)
	}
	if h.Engine, err = New(o); err != nil {
		t.Fatal(err)
	}
	h.Add(h.stage)
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), h.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// play sets the scripts of a role's next legs.
func (h *house) play(role string, scripts ...string) {
	h.cast.mu.Lock()
	defer h.cast.mu.Unlock()
	h.cast.scripts[role] = append(h.cast.scripts[role], scripts...)
}

// plays is play of legs that answer with a text each.
func (h *house) plays(role string, texts ...string) {
	for _, s := range texts {
		h.play(role, says(s))
	}
}

// message is the next message of hanako.
func (h *house) message(text string) channel.Message {
	h.n++
	return channel.Message{Channel: h.stage.kind, SessionID: h.id, UserText: text, ID: fmt.Sprintf("m%d", h.n), User: string(h.stage.kind) + ":hanako", ReceivedAt: h.clock()}
}

// hears handles a message and returns what people saw of it.
func (h *house) hears(text string) []string {
	h.t.Helper()
	before := len(h.stage.seen())
	if err := h.Handle(h.t.Context(), h.message(text)); err != nil {
		h.t.Fatal(err)
	}
	return h.stage.seen()[before:]
}

// saw compares what people saw.
func (h *house) saw(text string, want ...string) {
	h.t.Helper()
	if got := h.hears(text); !slices.Equal(got, want) {
		h.t.Errorf("%s\n got %s\nwant %s", text, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// legs are the legs so far, ROLE ROUTE each, with "local" where no cloud may be called.
func (h *house) legs() string {
	h.cast.mu.Lock()
	defer h.cast.mu.Unlock()
	var all []string
	for _, k := range h.cast.calls {
		s := k.Role + " " + k.Route
		if k.Local {
			s += " local"
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

// last is the latest leg of a role.
func (h *house) last(role string) *call {
	h.t.Helper()
	for _, k := range slices.Backward(h.cast.calls) {
		if k.Role == role {
			return k
		}
	}
	h.t.Fatalf("no leg of %s", role)
	return nil
}

// asked is all that a leg was sent, as a text.
func (k *call) asked() string {
	var b strings.Builder
	for _, m := range k.Sent {
		fmt.Fprintf(&b, "[%s] %s\n", m.Role, m.Content)
	}
	return b.String()
}

// events are the session's events as they are on disk.
func (h *house) events() (all []map[string]any) {
	h.t.Helper()
	err := contextstore.SessionLines(h.open(h.id, h.stage.kind).Dir, eventsFile, func(line []byte) bool {
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			h.t.Error(err)
		}
		all = append(all, v)
		return true
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// told are some fields of the events of a name: "a=1 b=null" each.
func (h *house) told(name string, fields ...string) (all []string) {
	h.t.Helper()
	for _, v := range h.events() {
		if v["event"] != name {
			continue
		}
		var f []string
		for _, k := range fields {
			value, there := v[k]
			if !there {
				h.t.Errorf("%s has no field %s", name, k)
			}
			b, _ := json.Marshal(value)
			f = append(f, k+"="+string(b))
		}
		all = append(all, strings.Join(f, " "))
	}
	return all
}

// tells compares the events of a name.
func (h *house) tells(name, fields string, want ...string) {
	h.t.Helper()
	if got := h.told(name, strings.Fields(fields)...); !slices.Equal(got, want) {
		h.t.Errorf("%s\n got %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// stateNow is the session's state on disk.
func (h *house) stateNow() State {
	h.t.Helper()
	s, err := h.open(h.id, h.stage.kind).state()
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// output is a worker's answer with some fields set over the usual ones.
func output(result string, over map[string]any) string {
	v := map[string]any{"result": json.RawMessage(result), "needs_next_loop": false, "why": "because", "next_actions": []string{}, "questions_for_user": []string{},
		"confidence": 0.9, "risk": "low"}
	for k, o := range over {
		v[k] = o
	}
	b, _ := json.Marshal(v)
	return string(b)
}

const (
	planResult     = `{"goal":"G","plan":[{"step":1,"title":"T"}]}`
	analyzeResult  = `{"data_type":"csv","findings":["F"]}`
	opsResult      = `{"diagnosis":["D"],"steps":[{"phase":"observe","title":"S","commands":[{"cmd":"df -h"}]}]}`
	researchResult = `{"research_goal":"R","queries":["Q"]}`
)

// echo are models that say what they were told last, and after how many texts.
type echo struct{ *cast }

func (e *echo) Client(ctx context.Context, u models.Use) (llm.Client, models.Spec, error) {
	s, _ := e.Spec(ctx, u)
	return &parrot{}, s, nil
}

type parrot struct{ msgs []llm.Message }

func (*parrot) Provider() string                   { return "script" }
func (*parrot) Model() string                      { return "echo" }
func (*parrot) Open(llm.Settings) llm.Conversation { return &parrot{} }
func (p *parrot) Append(m llm.Message)             { p.msgs = append(p.msgs, m) }
func (p *parrot) Reset()                           { p.msgs = nil }
func (p *parrot) Serialized() []byte               { return nil }
func (p *parrot) Send(_ context.Context, onText func(string)) (*llm.Reply, error) {
	text := fmt.Sprintf("you said %s after %d", p.msgs[len(p.msgs)-1].Content, len(p.msgs)-2)
	if onText != nil {
		onText(text)
	}
	return &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Content: text}, FinishReason: llm.FinishStop}, nil
}
