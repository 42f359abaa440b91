package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/channel"
	"toritsugi/internal/channel/inbox"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	talks "toritsugi/internal/conversation"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/redact"
	"toritsugi/internal/routing"
)

// chatSize is how much is measured of the chat door.
type chatSize struct {
	routed   int // times that each message is routed
	turns    int // of one session, to Chat alone
	pieces   int // of an answer
	sessions int // at once
	each     int // turns of each
	onDisk   int // sessions that a new process finds
	starts   int // of that process
	events   int // that a vendor sends, 300 a second
}

func fullChat() chatSize {
	return chatSize{routed: 20, turns: 400, pieces: 300, sessions: 200, each: 10, onDisk: 10_000, starts: 9, events: 3000}
}

// The budgets of the chat door (docs: DESIGN §9).
const (
	maxRouted   = 50.0  // µs of a message
	maxChatTurn = 2.0   // ms above the bare call and the syncs
	maxSession  = 64.0  // KiB of an idle session
	maxRestart  = 200.0 // ms
	maxTaken    = 50.0  // ms until a vendor is told that its event came
)

// The figures of the chat door.
const (
	routedMedian, routedLate, routedWorst = "routed", "routed p99", "routed worst" // µs of a message
	routedCount                           = "routed messages"

	bareCall                                         = "bare call" // ms, as all of a turn
	chatTurn, chatSync, chatOwn, chatFirst, chatLast = "turn", "turn syncs ms", "turn own", "turn own, first", "turn own, last"
	chatSyncs, chatCPU                               = "turn syncs", "turn CPU" // above the bare call's

	manyRate, manyWrong                = "many per second", "many wrong"
	manyHeap, manyRoutines, manyFiles  = "many KiB", "many goroutines", "many files"           // of an idle session
	takenMedian, takenLate, takenWorst = "event taken", "event taken p99", "event taken worst" // ms
	startNone, startMany, startResumed = "start none", "start many", "start resumed"           // ms
)

// chat measures the chat door: routing here, the rest in processes of their own.
func (b *bench) chat(ctx context.Context, size chatSize) (sample, error) {
	note("chat: routing")
	all, err := measureRouting(size.routed)
	if err != nil {
		return nil, err
	}
	note("chat: events of vendors")
	taken, err := measureInbox(ctx, b.dir, size.events)
	if err != nil {
		return nil, fmt.Errorf("chat, events: %w", err)
	}
	maps.Copy(all, taken)
	base, stop, err := startLLMServer(ctx, b.self)
	if err != nil {
		return nil, err
	}
	defer stop()
	for _, part := range []string{partTurn, partMany} {
		note("chat: %s", part)
		s, err := b.chatPart(ctx, part, base, size)
		if err != nil {
			return nil, fmt.Errorf("chat, %s: %w", part, err)
		}
		maps.Copy(all, s)
	}
	if b.tori == "" {
		return all, nil
	}
	note("chat: starts with %d sessions on disk", size.onDisk)
	return all, b.measureStarts(ctx, size, all)
}

func (b *bench) chatPart(ctx context.Context, part, base string, size chatSize) (sample, error) {
	dir, err := os.MkdirTemp(b.dir, "chat-")
	if err != nil {
		return nil, err
	}
	s, _, err := b.part(ctx, dir, "chat", part, dir, base, size.arg())
	return s, errors.Join(err, os.RemoveAll(dir))
}

// The parts that are processes.
const (
	partTurn = "turn"
	partMany = "many"
	partFill = "fill"
)

// arg is what a part is told of the size.
func (z chatSize) arg() string {
	raw, _ := json.Marshal([5]int{z.turns, z.pieces, z.sessions, z.each, z.onDisk}) // numbers always encode
	return string(raw)
}

// chatMain is the process of a part.
func chatMain(ctx context.Context, part, dir, base, sizes string) (err error) {
	var n [5]int
	if err := json.Unmarshal([]byte(sizes), &n); err != nil {
		return err
	}
	z := chatSize{turns: n[0], pieces: n[1], sessions: n[2], each: n[3], onDisk: n[4]}
	var s sample
	switch part {
	case partTurn:
		s, err = measureChatTurns(ctx, dir, base, z)
	case partMany:
		s, err = measureSessions(ctx, dir, z)
	case partFill:
		err = fillSessions(ctx, dir, base, z.onDisk)
	default:
		err = fmt.Errorf("chat: no part named %q", part)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// labelled are the messages that the tests of routing route, below the directory of the
// module.
const labelled = "internal/routing/testdata/*.tsv"

// measureRouting routes messages of people by commands and the shipped dictionary.
func measureRouting(times int) (sample, error) {
	files, err := filepath.Glob(labelled)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("the messages to route, %s, are not below the working directory, which is to be that of the module (%w)", labelled, err)
	}
	router, err := newRouter()
	if err != nil {
		return nil, err
	}
	var each []float64
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		messages, err := routing.ReadLabelled(path, strings.NewReader(string(raw)))
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			took := make([]float64, times)
			for i := range took {
				start := time.Now()
				router.Decide(context.Background(), routing.Input{Channel: channel.Terminal, Text: m.Text})
				took[i] = float64(time.Since(start).Nanoseconds()) / 1000
			}
			each = append(each, median(took))
		}
	}
	return sample{routedCount: float64(len(each)), routedMedian: median(each), routedLate: quantile(each, 0.99), routedWorst: quantile(each, 1)}, nil
}

// measureInbox has a vendor send events of many conversations, 300 a second, each by a connection
// of its own.
func measureInbox(ctx context.Context, parent string, events int) (s sample, err error) {
	dir, err := os.MkdirTemp(parent, "inbox-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := openStore(ctx, dir, contextstore.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	in, err := inbox.Open(ctx, store, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	took, failed := make([]float64, events), make([]error, events)
	tick := time.NewTicker(time.Second / 300)
	defer tick.Stop()
	var all sync.WaitGroup
	for i := range events {
		<-tick.C
		all.Go(func() {
			took[i], failed[i] = stopwatch(func() error {
				return in.Put(ctx, channel.Event{Channel: channel.Slack, ID: fmt.Sprint(i), Queue: fmt.Sprint(i % 50), Body: fmt.Appendf(nil, `{"text":"%0500d"}`, i), ReceivedAt: time.Now()})
			})
		})
	}
	all.Wait()
	return sample{takenMedian: median(took), takenLate: quantile(took, 0.99), takenWorst: quantile(took, 1)}, errors.Join(failed...)
}

func newRouter() (*routing.Router, error) {
	rules, err := routing.OpenRules("", func(error) {})
	return routing.New(rules, routing.Settings{}), err
}

// sink is a channel whose posts and streams somebody hears.
type sink struct {
	mu    sync.Mutex
	posts []channel.Post
}

func (*sink) Kind() channel.Kind            { return channel.Terminal }
func (*sink) Stream(string, string, string) {}

func (k *sink) Post(_ context.Context, p channel.Post) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.posts = append(k.posts, p)
	return nil
}

// door is what answers messages, as tori chat makes it, without jobs.
func door(store *contextstore.Store, m talks.Models, to *sink) (*talks.Engine, error) {
	router, err := newRouter()
	if err != nil {
		return nil, err
	}
	mask := redact.New(nil, nil)
	e, err := talks.New(talks.Options{Store: store, Models: m, Router: router, Limits: routing.Limits{MaxLoops: 3, Max: 90 * time.Second}, Cutover: 4 * time.Hour,
		Lang: i18n.English, Redact: mask.String, Strict: mask.Strict().String, Settled: mask.Strict().Settled,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err == nil {
		e.Add(to)
	}
	return e, err
}

func chatMessage(session string, n int, text string) channel.Message {
	return channel.Message{Channel: channel.Terminal, SessionID: session, User: "terminal:bench", ID: fmt.Sprintf("%s/%d", session, n), UserText: text, ReceivedAt: time.Now()}
}

// overheard are models whose calls can be made again.
type overheard struct {
	*models.Models
	calls []*overheardTalk
}

func (o *overheard) Client(ctx context.Context, u models.Use) (llm.Client, models.Spec, error) {
	c, s, err := o.Models.Client(ctx, u)
	return overhearing{c, o}, s, err
}

type overhearing struct {
	llm.Client
	o *overheard
}

func (c overhearing) Open(s llm.Settings) llm.Conversation {
	return &overheardTalk{Conversation: c.Client.Open(s), client: c.Client, o: c.o}
}

type overheardTalk struct {
	llm.Conversation
	client llm.Client
	o      *overheard
	msgs   []llm.Message
}

func (t *overheardTalk) Append(m llm.Message) {
	t.msgs = append(t.msgs, m)
	t.Conversation.Append(m)
}

func (t *overheardTalk) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	t.o.calls = append(t.o.calls, t)
	return t.Conversation.Send(ctx, onText)
}

// again makes the call by itself.
func (t *overheardTalk) again(ctx context.Context) error {
	c := t.client.Open(llm.Settings{})
	for _, m := range t.msgs {
		c.Append(m)
	}
	_, err := c.Send(ctx, nil)
	return err
}

// measureChatTurns has one session go on, with answers of a server that takes no time, and
// sends what Chat sent last by a bare client after each turn. A turn after which the short
// memory was renewed has made two calls, and is left out.
func measureChatTurns(ctx context.Context, dir, base string, size chatSize) (sample, error) {
	var syncing time.Duration
	fs := &disk.FS{Flush: func(f *os.File) error {
		start := time.Now()
		defer func() { syncing += time.Since(start) }()
		return syscall.Fdatasync(int(f.Fd())) //nolint:gosec // a descriptor
	}}
	store, err := openStore(ctx, filepath.Join(dir, "base"), contextstore.Options{FS: fs})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	base = fmt.Sprintf("%s/%d", base, size.pieces)
	cfg, err := config.Parse("bench.yaml", fmt.Appendf(nil, "routing: {llm: {chat_provider: openai, chat_model: bench}}\nllm: {openai: {base_url: %q, api_key: %s}}\n", base, dummyKey), func(string) string { return "" }, nil)
	if err != nil {
		return nil, err
	}
	m, err := models.Open(models.Options{Config: cfg, Redact: redact.New(nil, nil).String, Personal: redact.New(nil, nil).String, Strict: redact.New(nil, nil).String,
		Log: slog.New(slog.DiscardHandler), Lang: i18n.English, Getenv: func(string) string { return "" }, Now: time.Now})
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	to := &sink{}
	heard := &overheard{Models: m}
	e, err := door(store, heard, to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Close() }()
	var calls, turns, syncTimes, syncs, owns, cpus []float64
	for n := range size.turns {
		heard.calls, syncing = nil, 0
		before := fs.Counts().Syncs
		took, used, err := spent(func() error {
			return e.Handle(ctx, chatMessage("terminal:bench:0", n, "And what do you say to this, which is the next of many messages?"))
		})
		if err != nil {
			return nil, err
		}
		turn, made, synced := ms(took), fs.Counts().Syncs-before, ms(syncing)
		if len(heard.calls) == 0 || len(to.posts) != n+1 || to.posts[n].Kind != channel.Answer {
			return nil, fmt.Errorf("turn %d: %d calls, %+v", n+1, len(heard.calls), to.posts[min(n, len(to.posts)):])
		}
		bare, bareUsed, err := spent(func() error { return heard.calls[0].again(ctx) })
		if err != nil {
			return nil, err
		}
		if len(heard.calls) == 1 && n > 0 { // the first one connects
			call := ms(bare)
			calls, turns, syncTimes, syncs, owns = append(calls, call), append(turns, turn), append(syncTimes, synced), append(syncs, float64(made)), append(owns, turn-call-synced)
			cpus = append(cpus, ms(used-bareUsed))
		}
	}
	tenth := max(len(owns)/10, 1)
	return sample{bareCall: median(calls), chatTurn: median(turns), chatSync: median(syncTimes), chatSyncs: median(syncs), chatOwn: median(owns), chatCPU: median(cpus),
		chatFirst: median(owns[:tenth]), chatLast: median(owns[len(owns)-tenth:])}, nil
}

// echo is a model that says what it was told last, and after how many messages.
type echo struct{ msgs []llm.Message }

func (*echo) Spec(context.Context, models.Use) (models.Spec, error) {
	return models.Spec{Role: models.Chat, Provider: "script", Model: "echo", Context: 131072}, nil
}

func (e *echo) Client(ctx context.Context, u models.Use) (llm.Client, models.Spec, error) {
	s, err := e.Spec(ctx, u)
	return e, s, err
}

func (*echo) Loaded(context.Context, *models.Spec) bool { return true }
func (*echo) Provider() string                          { return "script" }
func (*echo) Model() string                             { return "echo" }
func (*echo) Open(llm.Settings) llm.Conversation        { return &echo{} }
func (e *echo) Append(m llm.Message)                    { e.msgs = append(e.msgs, m) }
func (e *echo) Reset()                                  { e.msgs = nil }
func (*echo) Serialized() []byte                        { return nil }

func (e *echo) Send(_ context.Context, onText func(string)) (*llm.Reply, error) {
	text := echoed(e.msgs[len(e.msgs)-1].Content)
	if onText != nil {
		onText(text)
	}
	return &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Content: text}, FinishReason: llm.FinishStop}, nil
}

func echoed(text string) string { return "You said: " + text }

// measureSessions has many sessions talk at once, on two cores, and counts what was lost,
// doubled or crossed; then what a session takes in which nobody speaks.
func measureSessions(ctx context.Context, dir string, size chatSize) (sample, error) {
	runtime.GOMAXPROCS(2)
	store, err := openStore(ctx, filepath.Join(dir, "base"), contextstore.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	to := &sink{}
	e, err := door(store, &echo{}, to)
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Close() }()
	session := func(k int) string { return fmt.Sprintf("terminal:bench:%d", k) }
	talk := func(k, from, turns int) error {
		for n := from; n < from+turns; n++ {
			if err := e.Handle(ctx, chatMessage(session(k), n, fmt.Sprintf("This is message %d of session %d.", n, k))); err != nil {
				return err
			}
		}
		return nil
	}
	if err := talk(size.sessions, 0, 1); err != nil { // what is made once
		return nil, err
	}
	to.posts = nil
	before, err := standing()
	if err != nil {
		return nil, err
	}
	failed := make([]error, size.sessions)
	took, _ := stopwatch(func() error {
		var all sync.WaitGroup
		for k := range size.sessions {
			all.Go(func() { failed[k] = talk(k, 0, size.each) })
		}
		all.Wait()
		return nil
	})
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	want := map[[2]string]int{}
	for k := range size.sessions {
		for n := range size.each {
			want[[2]string{chatMessage(session(k), n, "").ID, echoed(fmt.Sprintf("This is message %d of session %d.", n, k))}] = 1
		}
	}
	wrong := 0
	for _, p := range to.posts {
		at := [2]string{p.ReplyTo, p.Text}
		if want[at]--; want[at] < 0 || !strings.HasPrefix(p.ReplyTo, p.SessionID+"/") {
			wrong++
		}
	}
	for _, n := range want {
		wrong += max(n, 0)
	}
	to.posts = nil
	after, err := standing()
	each := func(f func(stand) int64) float64 { return float64(f(after)-f(before)) / float64(size.sessions) }
	return sample{manyRate: float64(size.sessions*size.each) / took * 1000, manyWrong: float64(wrong), manyHeap: each(func(s stand) int64 { return s.heap + s.stacks }) / 1024,
		manyRoutines: each(func(s stand) int64 { return s.goroutines }), manyFiles: each(func(s stand) int64 { return s.files })}, err
}

// fillSessions writes sessions, one in a hundred of whoever runs this.
func fillSessions(ctx context.Context, dir, user string, count int) error {
	store, err := openStore(ctx, filepath.Join(dir, "base"), contextstore.Options{NoSync: true})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	e, err := door(store, &echo{}, &sink{})
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	for k := range count {
		of := user
		if k%100 > 0 {
			of = fmt.Sprint("user", k%100)
		}
		m := chatMessage(fmt.Sprintf("terminal:%s:none:s%d", of, k), 0, fmt.Sprintf("The only message of session %d.", k))
		m.User = "terminal:" + of
		if err := e.Handle(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// measureStarts measures tori chat from its start to its end, with one answer of a script
// between: in an empty base directory, and in one with many sessions.
func (b *bench) measureStarts(ctx context.Context, size chatSize, all sample) error {
	took := map[string][]float64{}
	for _, many := range []bool{false, true} {
		dir, err := os.MkdirTemp(b.dir, "starts-")
		if err != nil {
			return err
		}
		script, settings := filepath.Join(dir, "answers.yaml"), filepath.Join(dir, "config.yaml")
		err = errors.Join(os.WriteFile(script, []byte(strings.Repeat("- say: Good morning.\n", 20)), 0o600), os.WriteFile(settings, fmt.Appendf(nil, "language: en\nllm: {script: {file: %q}}\n"+
			"routing: {classifier: {enabled: false}, llm: {chat_provider: script}}\ncontext_storage: {base_dir: %q}\n", script, filepath.Join(dir, "base")), 0o600))
		if err == nil && many {
			_, _, err = b.part(ctx, dir, "chat", partFill, dir, app.LocalUser(), size.arg())
		}
		if err != nil {
			return err
		}
		start := func(name string, args ...string) error {
			_, u, err := b.measure(ctx, dir, append([]string{b.tori, "chat", "--config", settings, "-m", "Hello?"}, args...)...)
			took[name] = append(took[name], float64(u.WallUS)/1000)
			return err
		}
		for n := range size.starts {
			name := startNone
			if many {
				name = startMany
				if err := start(startResumed, "--continue"); err != nil {
					return err
				}
			}
			if err := start(name, "--session", fmt.Sprint("new", n)); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	for name, each := range took {
		all[name] = median(each)
	}
	return nil
}

// chat prints what was measured of the chat door.
func (r *report) chat(s sample) {
	if s == nil {
		return
	}
	none := math.NaN()
	r.title(fmt.Sprintf("Chat: %.0f messages by commands and dictionary", s[routedCount]), "median", "p99", "worst")
	r.row("µs per message", "%.1f", []float64{s[routedMedian], s[routedLate], s[routedWorst]}, r.verdict(maxRouted, " µs", s[routedLate]))
	r.title("Chat: an event is taken, 300 a second", "median", "p99", "worst")
	r.row("ms", "%.1f", []float64{s[takenMedian], s[takenLate], s[takenWorst]}, r.verdict(maxTaken, " ms", s[takenLate]))
	r.title("Chat: a turn of Chat alone", "bare call", "turn", "its syncs", "own", "own first", "own last", "own CPU")
	r.row("ms", "%.2f", []float64{s[bareCall], s[chatTurn], s[chatSync], s[chatOwn], s[chatFirst], s[chatLast], s[chatCPU]}, r.verdict(maxChatTurn, " ms own", s[chatOwn], s[chatLast]))
	r.row("fdatasync", "%.0f", []float64{none, s[chatSyncs]}, "")
	r.title("Chat: many sessions at once, two cores", "turns/s", "wrong", "KiB idle", "goroutines", "files")
	r.row("", "%.2f", []float64{s[manyRate], s[manyWrong], s[manyHeap], s[manyRoutines], s[manyFiles]},
		"none lost, doubled or crossed "+r.verdict(0, "", s[manyWrong])+"; idle "+r.verdict(maxSession, " KiB", s[manyHeap]))
	if _, ok := s[startMany]; !ok {
		return
	}
	r.title("Chat: tori chat -m, with sessions on disk", "none", "many", "--continue")
	r.row("ms", "%.0f", []float64{s[startNone], s[startMany], s[startResumed]}, "")
	r.row("  that the sessions take", "%.0f", []float64{none, s[startMany] - s[startNone], s[startResumed] - s[startNone]}, r.verdict(maxRestart, " ms", s[startMany]-s[startNone], s[startResumed]-s[startNone]))
}
