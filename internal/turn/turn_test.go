package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
)

// model answers from a list and remembers what it was sent.
type model struct {
	answers []func() (*llm.Reply, error)
	msgs    []llm.Message
	sent    [][]llm.Message
}

func (m *model) Append(x llm.Message) { m.msgs = append(m.msgs, x) }
func (m *model) Reset()               { m.msgs = nil }
func (m *model) Serialized() []byte {
	b, _ := json.Marshal(m.msgs)
	return b
}
func (m *model) Send(ctx context.Context, _ func(string)) (*llm.Reply, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	m.sent = append(m.sent, append([]llm.Message(nil), m.msgs...))
	if len(m.answers) == 0 {
		return nil, &llm.Error{Kind: llm.KindScriptEnded}
	}
	a := m.answers[0]
	m.answers = m.answers[1:]
	return a()
}

func say(text string, calls ...llm.ToolCall) func() (*llm.Reply, error) {
	return func() (*llm.Reply, error) {
		finish := llm.FinishStop
		if len(calls) > 0 {
			finish = llm.FinishToolCalls
		}
		return &llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Content: text, ToolCalls: calls}, FinishReason: finish, Usage: &llm.Usage{PromptTokens: 7, CompletionTokens: 3, TotalTokens: 10}}, nil
	}
}

func call(id, name string) llm.ToolCall { return llm.ToolCall{ID: id, Name: name, Arguments: `{}`} }

// hands are tools by name; those called look… only read, those called ask… wait for people.
type hands map[string]func(ctx context.Context, args string) (tool.Result, error)

func (h hands) Call(ctx context.Context, name, args string) (tool.Result, error) {
	f, ok := h[name]
	if !ok {
		return tool.Result{Text: "unknown tool " + name, IsError: true}, nil
	}
	return f(ctx, args)
}
func (h hands) ReadOnly(name string) bool { return strings.HasPrefix(name, "look") || h.Waits(name) }
func (h hands) Own(name string) string    { return name }
func (h hands) Waits(name string) bool    { return strings.HasPrefix(name, "ask") }

type bench struct {
	store *contextstore.Store
	ctx   *contextstore.Context
	model *model
	loop  *Loop
	fs    *disk.FS
}

func setup(t *testing.T, h hands, answers ...func() (*llm.Reply, error)) *bench {
	t.Helper()
	return setupAt(t, nil, h, answers...)
}

// setupAt is setup with a clock of its own.
func setupAt(t *testing.T, now func() time.Time, h hands, answers ...func() (*llm.Reply, error)) *bench {
	t.Helper()
	b := &bench{model: &model{answers: answers}, fs: &disk.FS{}}
	var err error
	b.store, err = contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, FS: b.fs, Now: now, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.store.Close() })
	id, err := b.store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	b.claim(t, id, h)
	if _, err := b.ctx.Append(contextstore.Message{Role: "system", Content: "S"}, contextstore.Message{Role: "user", Content: "U"}); err != nil {
		t.Fatal(err)
	}
	b.open(t, h)
	return b
}

func (b *bench) claim(t *testing.T, id string, _ hands) {
	t.Helper()
	var err error
	if b.ctx, _, err = b.store.Claim(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.ctx.Close() })
}

func (b *bench) open(t *testing.T, h hands) {
	t.Helper()
	b.openWith(t, b.model, h)
}

// openWith is open with a conversation that speaks to the model.
func (b *bench) openWith(t *testing.T, conv llm.Conversation, tools Tools) {
	t.Helper()
	b.model.msgs = nil
	w, err := memory.Open(b.ctx, conv, memory.Policy{Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	b.loop = New(Settings{Ledger: b.ctx, Window: w, Tools: tools, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: time.Now}, NoDirector{})
}

// roles is the ledger in short: one letter per message.
func (b *bench) roles(t *testing.T) string {
	t.Helper()
	var s strings.Builder
	if err := b.ctx.Messages(0, func(m contextstore.Message) bool { s.WriteString(m.Role[:1]); return true }); err != nil {
		t.Fatal(err)
	}
	return s.String()
}

func ok(text string) func(context.Context, string) (tool.Result, error) {
	return func(context.Context, string) (tool.Result, error) { return tool.Result{Text: text}, nil }
}

func TestLoopCallsToolsAndReacts(t *testing.T) {
	t.Parallel()
	b := setup(t, hands{"write": ok("written")},
		say("", call("1", "write"), call("2", "nothing")), say("", call("3", "write")), say("done"))
	final, err := b.loop.Run(t.Context())
	if err != nil || final.Content != "done" {
		t.Fatal(final, err)
	}
	if r := b.roles(t); r != "suattata" {
		t.Errorf("messages %s", r)
	}
	last := b.model.sent[1]
	if last[3].Content != "written" || last[4].Content != "unknown tool nothing" || last[4].ToolCallID != "2" {
		t.Errorf("the model saw %+v", last)
	}
	if s := b.ctx.State(); s.LLMCallCount != 3 || s.ToolCallCount != 3 || s.TotalTokensUsed != 30 {
		t.Errorf("%+v", s)
	}
}

// Whatever is called first, results follow the calls.
func TestResultsFollowTheCalls(t *testing.T) {
	t.Parallel()
	var made []string
	by := func(name string) func(context.Context, string) (tool.Result, error) {
		return func(context.Context, string) (tool.Result, error) {
			made = append(made, name)
			return tool.Result{Text: name}, nil
		}
	}
	b := setup(t, hands{"ask": by("ask"), "write": by("write"), "look": by("look")},
		say("", call("1", "ask"), call("2", "write"), call("3", "look")), say("done"))
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(made) != "[write look ask]" {
		t.Errorf("made in the order %v", made)
	}
	for i, want := range []string{"ask", "write", "look"} {
		if m := b.model.sent[1][3+i]; m.Content != want || m.ToolCallID != fmt.Sprint(i+1) {
			t.Errorf("result %d is %s of call %s", i+1, m.Content, m.ToolCallID)
		}
	}
}

func TestReadOnlyCallsRunSideBySide(t *testing.T) {
	t.Parallel()
	var running atomic.Int32
	both := make(chan struct{})
	look := func(ctx context.Context, _ string) (tool.Result, error) {
		if running.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
			return tool.Result{Text: "seen"}, nil
		case <-time.After(2 * time.Minute):
			return tool.Result{Text: "alone", IsError: true}, nil
		}
	}
	b := setup(t, hands{"look1": look, "look2": look}, say("", call("1", "look1"), call("2", "look2")), say("done"))
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.model.sent[1]; got[3].Content != "seen" || got[4].Content != "seen" {
		t.Errorf("%+v", got[3:])
	}
}

func TestEmptyAnswersAreNudgedThenGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, hands{}, say(""), say(" \n"), say("done"))
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b = setup(t, hands{}, say(""), say(""), say(""), say(""), say("too late"))
	if _, err := b.loop.Run(t.Context()); !errors.Is(err, ErrNonsense) {
		t.Fatal(err)
	}
}

func TestCallCutOffIsNotRun(t *testing.T) {
	t.Parallel()
	ran := false
	cutOff := func() (*llm.Reply, error) {
		r, _ := say("", call("1", "write"))()
		r.FinishReason = llm.FinishLength
		return r, nil
	}
	b := setup(t, hands{"write": func(context.Context, string) (tool.Result, error) { ran = true; return tool.Result{}, nil }}, cutOff, say("done"))
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ran || !strings.Contains(b.model.sent[1][3].Content, "cut off") {
		t.Errorf("ran=%v, the model saw %q", ran, b.model.sent[1][3].Content)
	}
}

func TestBudgetEndsAModelThatNeverStops(t *testing.T) {
	t.Parallel()
	var answers []func() (*llm.Reply, error)
	for i := range 20 {
		answers = append(answers, say("", call(fmt.Sprint(i), "write")))
	}
	b := setup(t, hands{"write": ok("w")}, answers...)
	b.loop.Budget.Turns = 7
	_, err := b.loop.Run(t.Context())
	var over *BudgetError
	if !errors.As(err, &over) || over.Key != "budget.max_turns" {
		t.Fatal(err)
	}
	// A restart does not refill it.
	id := b.ctx.UUID()
	_ = b.ctx.Close()
	b.claim(t, id, nil)
	b.open(t, hands{"write": ok("w")})
	b.loop.Budget.Turns = 7
	if _, err := b.loop.Run(t.Context()); !errors.As(err, &over) || b.ctx.State().LLMCallCount != 7 {
		t.Errorf("%v after %d calls", err, b.ctx.State().LLMCallCount)
	}
}

func TestOverflowCutsTheWindowAndGoesOn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	tooLong := func() (*llm.Reply, error) { return nil, &llm.Error{Kind: llm.KindContext} }
	answers := []func() (*llm.Reply, error){}
	for i := range 8 {
		answers = append(answers, say("", call(fmt.Sprint(i), "write")))
	}
	b := setup(t, hands{"write": ok(long)}, append(answers, tooLong, say("done"))...)
	if final, err := b.loop.Run(t.Context()); err != nil || final.Content != "done" {
		t.Fatal(final, err)
	}
	n := len(b.model.sent)
	if len(b.model.sent[n-1]) >= len(b.model.sent[n-2]) {
		t.Errorf("%d messages after the cut, %d before", len(b.model.sent[n-1]), len(b.model.sent[n-2]))
	}
}

// However an interruption leaves the calls of an answer, the next owner closes
// each exactly once, and runs again only what reads.
func TestOpenCallsAreClosed(t *testing.T) {
	t.Parallel()
	looked := 0
	h := hands{
		"write": func(context.Context, string) (tool.Result, error) {
			t.Error("a call that writes ran again")
			return tool.Result{}, nil
		},
		"look": func(context.Context, string) (tool.Result, error) { looked++; return tool.Result{Text: "fresh"}, nil },
	}
	b := setup(t, h, say("done"))
	asked := contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{
		{ID: "1", Name: "write", Arguments: "{}"}, {ID: "2", Name: "write", Arguments: "{}"}, {ID: "3", Name: "look", Arguments: "{}"}, {ID: "4", Name: "write", Arguments: "{}"}}}
	if _, err := b.ctx.Append(asked); err != nil {
		t.Fatal(err)
	}
	// Call 1 has its message, call 2 finished without one, 3 and 4 were under way.
	if err := b.ctx.AppendTools(contextstore.ToolRun{Tool: "write", CallID: "1", Status: "success", Result: "one"},
		contextstore.ToolRun{Tool: "write", CallID: "2", Status: "success", Result: "two"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ctx.Append(contextstore.Message{Role: "tool", ToolCallID: "1", Content: "one"}); err != nil {
		t.Fatal(err)
	}
	id := b.ctx.UUID()
	_ = b.ctx.Close()
	b.claim(t, id, h)
	b.open(t, h)
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range b.model.sent[0] {
		if m.Role == "tool" {
			got[m.ToolCallID] += m.Content
		}
	}
	if got["1"] != "one" || got["2"] != "two" || got["3"] != "fresh" || got["4"] != UnknownOutcome || looked != 1 {
		t.Errorf("%v, looked %d times", got, looked)
	}
}

// The calls of an answer have the same limits where an interruption came between.
func TestOpenCallsKeepTheLimitsOfAnAnswer(t *testing.T) {
	t.Parallel()
	long, ran := strings.Repeat("x", 1000), 0
	h := hands{"look": func(context.Context, string) (tool.Result, error) { ran++; return tool.Result{Text: long}, nil }}
	for _, c := range []struct {
		calls  int
		finish string
		runs   int
		last   string
	}{
		{maxCalls + 5, "", maxCalls, "an answer may make 64 calls"},
		{3, llm.FinishLength, 2, "cut off at the output limit"},
		{8, "", 8, "[cut: "},
	} {
		b := setup(t, h, say("done"))
		asked := contextstore.Message{Role: "assistant", FinishReason: c.finish}
		for i := range c.calls {
			asked.ToolCalls = append(asked.ToolCalls, contextstore.ToolCall{ID: redact.Opaque(fmt.Sprint(i)), Name: "look", Arguments: "{}"})
		}
		if _, err := b.ctx.Append(asked); err != nil {
			t.Fatal(err)
		}
		b.open(t, h)
		b.loop.MaxResults, ran = 5000, 0
		if _, err := b.loop.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		total, got := 0, b.model.sent[0]
		for _, m := range got[3:] {
			total += len(m.Content)
		}
		if last := got[len(got)-1].Content; ran != c.runs || total > 5000+200*c.calls || !strings.Contains(last, c.last) {
			t.Errorf("%d calls: %d ran, %d bytes, the last is %.200q", c.calls, ran, total, last)
		}
	}
}

func TestInterruptedCallStaysOpen(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	h := hands{"write": ok("first"), "slow": func(ctx context.Context, _ string) (tool.Result, error) {
		cancel()
		return tool.Result{}, ctx.Err()
	}}
	b := setup(t, h, say("", call("1", "write"), call("2", "slow"), call("3", "write")))
	if _, err := b.loop.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if r := b.roles(t); r != "suat" {
		t.Errorf("messages %s: the finished call has its result, the others none", r)
	}
	open, _ := b.loop.Window.Unanswered()
	if len(open) != 2 || open[0].ID != "2" {
		t.Errorf("open %v", open)
	}
}

// Killed in the middle of an answer with several calls, none that had finished
// is forgotten.
func TestFinishedCallsOfAKilledAnswerAreKnown(t *testing.T) {
	t.Parallel()
	h := hands{"write": ok("first result"), "die": func(context.Context, string) (tool.Result, error) {
		panic("killed here")
	}}
	b := setup(t, h, say("", call("1", "write"), call("2", "die")), say("done"))
	func() {
		defer func() { _ = recover() }()
		_, _ = b.loop.Run(t.Context())
	}()
	if r := b.roles(t); r != "sua" {
		t.Fatalf("messages %s", r)
	}
	id := b.ctx.UUID()
	_ = b.ctx.Close()
	b.claim(t, id, h)
	b.open(t, h)
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := b.model.sent[len(b.model.sent)-1]
	if last[3].Content != "first result" || last[4].Content != UnknownOutcome {
		t.Errorf("the model saw %+v", last[3:])
	}
	runs, err := b.ctx.LastTools(10)
	if err != nil || len(runs) != 2 {
		t.Errorf("%d lines in tools.jsonl, %v", len(runs), err)
	}
}

func TestResultsOfOneAnswerShareTheirRoom(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("長", 1000)
	for name, prefix := range map[string]string{"side by side": "look", "in order": "write"} {
		b := setup(t, hands{prefix: ok(long)}, say("", call("1", prefix), call("2", prefix), call("3", prefix)), say("done"))
		b.loop.MaxResults = 5000
		if _, err := b.loop.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, m := range b.model.sent[1][3:] {
			total += len(m.Content)
		}
		if got := b.model.sent[1]; total > 5500 || got[3].Content != long || !strings.Contains(got[5].Content, "[cut: 3000 more bytes") {
			t.Errorf("%s: %d bytes, the last is %q", name, total, got[5].Content)
		}
	}
}

// Killed between an answer that was cut off and our word on it, the run asks again.
func TestCutOffAnswerIsNotTheLastWord(t *testing.T) {
	t.Parallel()
	b := setup(t, hands{}, say("done"))
	if _, err := b.ctx.Append(contextstore.Message{Role: "assistant", Content: "I will now", FinishReason: "length"}); err != nil {
		t.Fatal(err)
	}
	id := b.ctx.UUID()
	_ = b.ctx.Close()
	b.claim(t, id, nil)
	b.open(t, hands{})
	if Final(b.loop.Window.Last()) {
		t.Fatal("a cut answer is final")
	}
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := b.roles(t); r != "suaua" {
		t.Errorf("messages %s", r)
	}
}

// Killed between a call as text that could not be read and the question about it, the
// run asks, once.
func TestAnUnreadCallIsAskedForAfterAKill(t *testing.T) {
	t.Parallel()
	const broken = "<tool_call>{\"name\": \"look\", \"arg"
	for _, asked := range []bool{false, true} {
		b := setup(t, hands{}, say("done"))
		said := []contextstore.Message{{Role: "assistant", Content: broken, FinishReason: "stop"}}
		if asked {
			said = append(said, contextstore.Message{Role: "user", Content: unreadCall}, said[0])
		}
		if _, err := b.ctx.Append(said...); err != nil {
			t.Fatal(err)
		}
		id := b.ctx.UUID()
		_ = b.ctx.Close()
		b.claim(t, id, nil)
		b.open(t, hands{})
		if b.loop.Owes() == asked {
			t.Fatalf("asked %v, owes %v", asked, !asked)
		}
		if asked {
			continue
		}
		if _, err := b.loop.Run(t.Context()); err != nil || b.model.msgs[3].Content != unreadCall {
			t.Error(err, b.model.msgs)
		}
		if r := b.roles(t); r != "suaua" {
			t.Errorf("messages %s", r)
		}
	}
}

func TestAnAnswerWithTooManyCalls(t *testing.T) {
	t.Parallel()
	var calls []llm.ToolCall
	for i := range maxCalls + 5 {
		calls = append(calls, call(fmt.Sprint(i), "write"))
	}
	ran := 0
	b := setup(t, hands{"write": func(context.Context, string) (tool.Result, error) { ran++; return tool.Result{Text: "w"}, nil }}, say("", calls...), say("done"))
	if _, err := b.loop.Run(t.Context()); err != nil || ran != maxCalls {
		t.Errorf("%d ran, %v", ran, err)
	}
	if got := b.model.sent[1]; len(got) != 3+len(calls) || !strings.Contains(got[len(got)-1].Content, "Not run") {
		t.Errorf("%d messages", len(got))
	}
}

func TestDiskFullStopsBeforeTheToolRuns(t *testing.T) {
	t.Parallel()
	ran := false
	b := setup(t, hands{"write": func(context.Context, string) (tool.Result, error) { ran = true; return tool.Result{}, nil }}, say("", call("1", "write")))
	b.fs.Before = func(op disk.Op) error {
		if op.Kind == disk.Append {
			return &disk.ShortWrite{N: 3, Err: syscall.ENOSPC}
		}
		return nil
	}
	if _, err := b.loop.Run(t.Context()); !errors.Is(err, syscall.ENOSPC) || ran {
		t.Errorf("err %v, ran %v", err, ran)
	}
	if r := b.roles(t); r != "su" {
		t.Errorf("messages %s", r)
	}
}

// A model whose only call is cut off at its limit again and again gets nowhere,
// and each such call may cost the whole limit.
func TestCallsThatAreAlwaysCutOff(t *testing.T) {
	t.Parallel()
	cut := func() (*llm.Reply, error) {
		r, err := say("", call("1", "write"))()
		r.FinishReason = llm.FinishLength
		return r, err
	}
	b := setup(t, hands{"write": ok("written")}, cut, cut, say("", call("2", "write")), cut, cut, cut, cut, cut)
	if _, err := b.loop.Run(t.Context()); !errors.Is(err, ErrCutOff) {
		t.Fatal(err)
	}
	if n := b.ctx.State().LLMCallCount; n != 7 { // a whole call begins the count anew
		t.Errorf("%d calls", n)
	}
}

// What was done is on record as it was done; what the model said, as it was said.
func TestArgumentsAreRecordedAsUsed(t *testing.T) {
	t.Parallel()
	h := hands{"look": func(context.Context, string) (tool.Result, error) {
		return tool.Result{Text: "seen", Args: json.RawMessage(`{"limit":3}`)}, nil
	}, "lost": func(context.Context, string) (tool.Result, error) { return tool.Failf("not valid"), nil }}
	b := setup(t, h, say("", llm.ToolCall{ID: "1", Name: "look", Arguments: `{"limit": "3"}`}, llm.ToolCall{ID: "2", Name: "lost", Arguments: `{"limit": `}), say("done"))
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs, err := b.ctx.LastTools(2)
	if err != nil || len(runs) != 2 || string(runs[1].Args) != `{"limit":3}` || !strings.Contains(string(runs[0].Args), "limit") {
		t.Errorf("%+v, %v", runs, err)
	}
	if m := b.model.msgs[2]; m.ToolCalls[0].Arguments != `{"limit": "3"}` || m.ToolCalls[1].Arguments != `{"limit": ` {
		t.Errorf("the answer became %v", m.ToolCalls)
	}
}

// A call that waited for people is made again, whatever it does, and so are those
// that had to wait for it; once it may have had an effect none is.
func TestACallThatWaitedIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, waited := range []bool{true, false} {
		waits, made := true, map[string][]string{}
		does := func(name string) func(context.Context, string) (tool.Result, error) {
			return func(ctx context.Context, _ string) (tool.Result, error) {
				made[name] = append(made[name], tool.CallID(ctx))
				if name == "drop" && waits {
					return tool.Result{}, &tool.WaitError{For: "an answer"}
				}
				return tool.Text(name + " done"), nil
			}
		}
		h := hands{"first": does("first"), "drop": does("drop"), "write": does("write")}
		b := setup(t, h, say("", call("1", "first"), call("2", "drop"), call("3", "write")), say("end"))
		if _, err := b.loop.Run(t.Context()); !errors.As(err, new(*tool.WaitError)) {
			t.Fatal(err)
		}
		waits = false
		b.open(t, h)
		b.loop.director = hooks{waited: func(id string) bool { return waited && id == made["drop"][0] }}
		if _, err := b.loop.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"first": 1, "drop": 1, "write": 0}
		if waited {
			want = map[string]int{"first": 1, "drop": 2, "write": 1}
		}
		for name, n := range want {
			if len(made[name]) != n || n == 2 && made[name][0] != made[name][1] {
				t.Errorf("waited %t: %s was called as %q", waited, name, made[name])
			}
		}
	}
}

// A model that makes the same call again is told so, and ended where it goes on.
func TestCircles(t *testing.T) {
	t.Parallel()
	var answers []func() (*llm.Reply, error)
	for i := range 12 {
		answers = append(answers, say("", call(fmt.Sprint(i), "look")))
	}
	b := setup(t, hands{"look": func(context.Context, string) (tool.Result, error) { return tool.Text("the same"), nil }}, answers...)
	b.loop.director = NoCircles(NoDirector{})
	var circle *CircleError
	_, err := b.loop.Run(t.Context())
	if roles := b.roles(t); !errors.As(err, &circle) || circle.Kind != LoopRepeat || strings.Count(roles[2:], "u") != 2 || len(b.model.sent) > 8 {
		t.Errorf("%v after %d requests: %s", err, len(b.model.sent), roles)
	}
}

// hooks is a Director of a test.
type hooks struct {
	NoDirector
	waited func(id string) bool
	after  func(contextstore.Message) error
}

func (h hooks) Waited(id string) bool { return h.waited != nil && h.waited(id) }

func (h hooks) After(m contextstore.Message) error {
	if h.after == nil {
		return nil
	}
	return h.after(m)
}
