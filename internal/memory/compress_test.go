package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
)

// writes is a summariser that gives the same answer each time, and counts.
func writes(asked *int, f func(prompt string, limit int) (Answer, error)) func(context.Context) (Summarizer, error) {
	return func(context.Context) (Summarizer, error) {
		return Summarizer{Name: "test/says", Window: 100_000, Ask: func(_ context.Context, prompt string, limit int) (Answer, error) {
			*asked++
			return f(prompt, limit)
		}}, nil
	}
}

// rule is store-v3's, of a small window without masks.
func rule(s func(context.Context) (Summarizer, error)) Policy {
	return Policy{Limit: 20_000, Context: 10_000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5, Summarizer: s}
}

func window(t *testing.T, l *ledger, p Policy) *Window {
	t.Helper()
	w, err := Open(l, &wire{}, p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Store-v3 §7.1 and §7.2: both conditions; the system prompt, the request and
// the last five stay; a call and its results stay together.
func TestWhatIsSummarisedAndWhen(t *testing.T) {
	t.Parallel()
	asked, seen := 0, ""
	good := writes(&asked, func(p string, _ int) (Answer, error) {
		seen = p
		return Answer{Text: "Tests were written.", Usage: &contextstore.Usage{Prompt: 100, Completion: 10}}, nil
	})
	l := &ledger{}
	w := window(t, l, rule(good))
	story(l, w, 3, 11_000) // 8 messages, more than 7,000 tokens
	if err := w.Fit(t.Context()); err != nil || asked > 0 {
		t.Fatalf("%v, asked %d times: fewer than ten messages", err, asked)
	}
	l = &ledger{}
	w = window(t, l, rule(good))
	story(l, w, 20, 1000) // 42 messages, about 6,000 tokens
	if err := w.Fit(t.Context()); err != nil || asked > 0 {
		t.Fatalf("%v, asked %d times: below the threshold", err, asked)
	}
	story(l, w, 6, 1000)
	before := w.Tokens()
	if err := w.Fit(t.Context()); err != nil || asked != 1 {
		t.Fatalf("%v, asked %d times", err, asked)
	}
	// 54 messages: the last five begin with a result, so its call stays, too.
	e := l.events[0]
	s := l.summaries[0]
	if s.StartSeq != 3 || s.EndSeq != 48 || e.FromSeq != 49 || e.Type != contextstore.WindowSummary || e.Summary != 1 || len(w.entry) != 8 {
		t.Errorf("summary %+v, event %+v, %d messages", s, e, len(w.entry))
	}
	if !strings.HasPrefix(seen, "あなたは会話履歴を要約するアシスタントです。\n以下のメッセージ履歴を簡潔かつ包括的に要約してください。\n\n要約には以下を含めてください：\n1. 重要な決定事項\n") ||
		!strings.Contains(seen, "[TOOL]: shell -> xxx") || !strings.HasSuffix(seen, "要約のみを出力してください。") || strings.Contains(seen, "SYSTEM") || strings.Contains(seen, "REQUEST") {
		t.Errorf("the prompt: %.600s", seen)
	}
	b := string(w.Conversation().Serialized())
	if i, j, k := strings.Index(b, "SYSTEM"), strings.Index(b, "REQUEST"), strings.Index(b, "Tests were written."); i < 0 || j < i || k < j {
		t.Errorf("the order: %.300s", b)
	}
	if w.Tokens() > before/3 || l.tokens != w.Tokens() || l.spent != 110 {
		t.Errorf("%d tokens, %d before, %d told; %d spent", w.Tokens(), before, l.tokens, l.spent)
	}
	if l.states[0] != contextstore.Compressing || l.states[len(l.states)-1] != contextstore.Processing {
		t.Errorf("states %v", l.states)
	}
	// The next one folds the one before in.
	story(l, w, 26, 1000)
	if err := w.Fit(t.Context()); err != nil || asked != 2 || !strings.Contains(seen, "[SUMMARY]: Tests were written.") || l.summaries[1].StartSeq != 49 {
		t.Errorf("%v, asked %d times, %+v", err, asked, l.summaries[len(l.summaries)-1])
	}
}

// A few messages can be over the threshold and never become ten: below the cap
// they stay as they are, over it a summary takes in what does not fit, and nothing
// is dropped without one (decisions/027).
func TestFewMessagesThatAreLarge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turns, size, want, from int
	}{
		{3, 11_000, 0, 0}, // 8,250 tokens: over the threshold of 7,000, below the cap of 20,000
		{3, 30_000, 1, 7}, // 22,500: the last five alone are over the cap, so the latest turn stays
		{4, 22_000, 1, 5}, // 22,000 in ten: the last five and the call of the first of them
	} {
		asked := 0
		var log bytes.Buffer
		p := rule(writes(&asked, func(string, int) (Answer, error) { return Answer{Text: "Tests were written."}, nil }))
		p.Log = slog.New(slog.NewTextHandler(&log, nil))
		l := &ledger{}
		w := window(t, l, p)
		story(l, w, c.turns, c.size)
		if err := w.Fit(t.Context()); err != nil || asked != c.want || len(l.summaries) != c.want {
			t.Errorf("%+v: asked %d times, %v", c, asked, err)
		}
		if c.want > 0 && (l.events[0].Type != contextstore.WindowSummary || l.events[0].FromSeq != int64(c.from) || len(l.events) != 1 || w.Tokens() > p.Limit) {
			t.Errorf("%+v: %+v, %d tokens", c, l.events, w.Tokens())
		}
		// The log's lines are store-v2 §9.3's.
		if triggered := strings.Contains(log.String(), `msg="Context compression triggered"`); triggered != (c.want > 0) || triggered != strings.Contains(log.String(), `msg="Compression completed: `) {
			t.Errorf("%+v: %s", c, log.String())
		}
	}
}

// A summary that cannot be one changes nothing; after three the oldest messages
// are dropped, and what the model reads says which.
func TestBadSummaries(t *testing.T) {
	t.Parallel()
	long := func(p string) string { return strings.Repeat("a word ", len(p)/7) }
	for name, c := range map[string]func(p string) (Answer, error){
		"the call fails":    func(string) (Answer, error) { return Answer{}, errors.New("connection refused") },
		"empty":             func(string) (Answer, error) { return Answer{Text: " \n"}, nil },
		"longer":            func(p string) (Answer, error) { return Answer{Text: long(p)}, nil },
		"hardly shorter":    func(p string) (Answer, error) { return Answer{Text: long(p)[:len(p)*19/20]}, nil },
		"an error text":     func(string) (Answer, error) { return Answer{Text: "[LLM error: request failed with status 500]"}, nil },
		"a refusal":         func(string) (Answer, error) { return Answer{Text: "I'm sorry, but I can't help with that."}, nil },
		"a page of a proxy": func(string) (Answer, error) { return Answer{Text: "<html><body>502 Bad Gateway</body></html>"}, nil },
		"the wrong language": func(string) (Answer, error) {
			return Answer{Text: strings.Repeat("Ошибка исправлена в файле. ", 3)}, nil
		},
		"Chinese": func(string) (Answer, error) {
			return Answer{Text: strings.Repeat("修复了认证模块中的错误并更新了测试文件", 4)}, nil
		},
		"cut off":     func(string) (Answer, error) { return Answer{Text: "pkg/a.go was", Cut: true}, nil },
		"a path lost": func(string) (Answer, error) { return Answer{Text: "A file was written."}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			l := &ledger{}
			w := window(t, l, rule(writes(&asked, func(p string, _ int) (Answer, error) { return c(p) })))
			story(l, w, 0, 0)
			w.Add(l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "w", Name: "write_file", Arguments: `{"path":"pkg/a.go","content":"x"}`}}}))
			w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: "w", ToolName: "write_file", Content: "written"}))
			story(l, w, 26, 1000)
			before := bytes.Clone(w.Conversation().Serialized())
			for i := 1; i <= 3; i++ {
				if len(l.events) > 0 || !bytes.Equal(before, w.Conversation().Serialized()) {
					t.Fatalf("%d failures changed the window", i-1)
				}
				if err := w.Fit(t.Context()); err != nil || asked != i {
					t.Fatalf("%v, asked %d times", err, asked)
				}
			}
			if len(l.summaries) != 0 || len(l.events) != 1 || l.failures != 3 {
				t.Fatalf("%d summaries, %d events, %d failures", len(l.summaries), len(l.events), l.failures)
			}
			e := l.events[0]
			if b := string(w.Conversation().Serialized()); e.Type != contextstore.WindowTruncate || !strings.Contains(e.Reason, "failed 3 times") || !strings.Contains(b, "SYSTEM") || !strings.Contains(b, "REQUEST") ||
				!strings.Contains(b, "(m-3 to m-") || !strings.Contains(b, "1 of write_file (pkg/a.go)") {
				t.Errorf("%+v\n%.900s", e, b)
			}
			if w.Tokens() > w.policy.Limit/2+500 {
				t.Errorf("%d tokens are left", w.Tokens())
			}
		})
	}
}

// Over the cap nothing can wait for the next turn.
func TestOverTheCapFailuresAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	asked := 0
	l := &ledger{}
	p := rule(writes(&asked, func(string, int) (Answer, error) { return Answer{}, errors.New("down") }))
	p.Limit = 7000
	w := window(t, l, p)
	story(l, w, 40, 1000)
	if err := w.Fit(t.Context()); err != nil || asked != 3 || w.Tokens() > 7000 || len(l.events) != 1 {
		t.Errorf("%v, asked %d times, %d tokens, %d events", err, asked, w.Tokens(), len(l.events))
	}
}

// A path that is still in view need not be in the summary.
func TestIdentifiersInViewMayBeLeftOut(t *testing.T) {
	t.Parallel()
	asked := 0
	l := &ledger{}
	w := window(t, l, rule(writes(&asked, func(string, int) (Answer, error) { return Answer{Text: "Work went on."}, nil })))
	w.Add(l.append(contextstore.Message{Role: "system", Content: "SYSTEM"}))
	w.Add(l.append(contextstore.Message{Role: "user", Content: "Change pkg/a.go as #12 says"}))
	w.Add(l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "w", Name: "edit_file", Arguments: `{"path":"pkg/a.go"}`}}}))
	w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: "w", Content: "done, see #12"}))
	story(l, w, 26, 1000)
	if err := w.Fit(t.Context()); err != nil || len(l.summaries) != 1 {
		t.Errorf("%v, %d summaries", err, len(l.summaries))
	}
	if p := l.events[0].Pinned; len(p) != 2 {
		t.Errorf("pinned %v", p)
	}
}

// Five hundred messages that arrive while the summary is written stay, each once.
func TestMessagesThatArriveDuringASummary(t *testing.T) {
	t.Parallel()
	for _, added := range []bool{true, false} { // to the window, too, or to the ledger alone
		l := &ledger{}
		var w *Window
		asked := 0
		var late []contextstore.Message
		w = window(t, l, rule(writes(&asked, func(string, int) (Answer, error) {
			if asked == 1 {
				for i := range 500 {
					m := l.append(contextstore.Message{Role: "user", Content: fmt.Sprintf("late-%03d.", i)})
					if late = append(late, m); added {
						w.Add(m)
					}
				}
			}
			return Answer{Text: "Work went on."}, nil
		})))
		story(l, w, 26, 1000)
		if err := w.Fit(t.Context()); err != nil || len(l.summaries) != 1 || l.summaries[0].EndSeq > 54 {
			t.Fatalf("%v, %+v", err, l.summaries)
		}
		for _, m := range late {
			w.Add(m) // who appended them does not know that they were read already
		}
		b := w.Conversation().Serialized()
		for i := range 500 {
			if n := bytes.Count(b, fmt.Appendf(nil, "late-%03d.", i)); n != 1 {
				t.Fatalf("message %d is there %d times", i, n)
			}
		}
	}
}

// Where so much arrives meanwhile that the window is full again, it is summarised
// in its turn; nothing is dropped.
func TestMuchArrivesDuringASummary(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	var w *Window
	asked, seen := 0, ""
	w = window(t, l, rule(writes(&asked, func(p string, _ int) (Answer, error) {
		seen += p
		if asked == 1 {
			for i := range 500 {
				w.Add(l.append(contextstore.Message{Role: "user", Content: fmt.Sprintf("late-%03d. %s", i, strings.Repeat("y", 1000))}))
			}
		}
		return Answer{Text: "Work went on."}, nil
	})))
	story(l, w, 26, 1000)
	if err := w.Fit(t.Context()); err != nil || w.Tokens() > w.cap {
		t.Fatalf("%v, %d tokens", err, w.Tokens())
	}
	b := string(w.Conversation().Serialized())
	for i := range 500 {
		if id := fmt.Sprintf("late-%03d.", i); !strings.Contains(b, id) && !strings.Contains(seen, id) {
			t.Fatalf("message %d was neither summarised nor is it shown", i)
		}
	}
	for _, e := range l.events {
		if e.Type != contextstore.WindowSummary {
			t.Errorf("%+v", e)
		}
	}
}

// A summary of what is no longer the window is not applied.
func TestSnapshotNoLongerHolds(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	asked := 0
	w := window(t, l, rule(writes(&asked, func(string, int) (Answer, error) {
		if asked == 1 {
			_ = l.AppendWindow(contextstore.WindowEvent{Type: contextstore.WindowTruncate, FromSeq: 11, Offset: 1100, Dropped: 8})
		}
		return Answer{Text: "Work went on."}, nil
	})))
	story(l, w, 26, 1000)
	if err := w.Fit(t.Context()); err != nil || len(l.summaries) != 0 || l.failures != 1 {
		t.Errorf("%v, %d summaries, %d failures", err, len(l.summaries), l.failures)
	}
}

// The end of the run ends the summary, and nothing was decided.
func TestCancelledSummary(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l := &ledger{}
	asked := 0
	w := window(t, l, rule(writes(&asked, func(string, int) (Answer, error) { cancel(); return Answer{Text: "Work went on."}, nil })))
	story(l, w, 26, 1000)
	if err := w.Fit(ctx); !errors.Is(err, context.Canceled) || len(l.summaries)+len(l.events)+l.failures != 0 {
		t.Errorf("%v, %d summaries, %d events, %d failures", err, len(l.summaries), len(l.events), l.failures)
	}
}

// What does not fit the summariser's own window is summarised in parts.
func TestSummaryOfSummaries(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	asked, longest := 0, 0
	p := rule(func(context.Context) (Summarizer, error) {
		return Summarizer{Window: 2000, Ask: func(_ context.Context, prompt string, limit int) (Answer, error) {
			asked++
			longest = max(longest, len(prompt)/bytesPerToken+limit)
			if strings.Contains(prompt, "[SUMMARY 1/") {
				return Answer{Text: "All of it."}, nil
			}
			return Answer{Text: fmt.Sprintf("Part %d, %s", asked, text(asked, 200))}, nil
		}}, nil
	})
	w := window(t, l, p)
	story(l, w, 0, 0)
	for i := range 26 {
		w.Add(l.append(contextstore.Message{Role: "assistant", Content: text(i, 1300)}))
	}
	if err := w.Fit(t.Context()); err != nil || len(l.summaries) != 1 {
		t.Fatalf("%v, %d summaries, %d failures", err, len(l.summaries), l.failures)
	}
	if asked < 5 || longest > 2000 || l.summaries[0].Summary != "All of it." {
		t.Errorf("asked %d times, %d tokens at most, %q", asked, longest, l.summaries[0].Summary)
	}
}

// What is kept fills the window again at once: summaries end, the run does not.
func TestThrashStops(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	asked := 0
	p := rule(writes(&asked, func(string, int) (Answer, error) { return Answer{Text: "Work went on."}, nil }))
	p.Limit = 7000
	w := window(t, l, p)
	story(l, w, 0, 0)
	for range 60 {
		story(l, w, 1, 8000) // three of them fill it
		if err := w.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if asked > 3 {
		t.Errorf("asked %d times", asked)
	}
	stopped := false
	for _, e := range l.events {
		stopped = stopped || strings.Contains(e.Reason, "did not help")
	}
	if !stopped {
		t.Error("no event says that summaries did not help")
	}
}

// A message that is larger than the window is shown in part, and the rest can
// be recalled; also where it is the request itself.
func TestMessageLargerThanTheWindow(t *testing.T) {
	t.Parallel()
	big := text(1, 60_000) + "THE END"
	for name, all := range map[string][]contextstore.Message{
		"request": {{Role: "system", Content: "SYSTEM"}, {Role: "user", Content: big}, {Role: "assistant", Content: "ok"}},
		"latest":  {{Role: "system", Content: "SYSTEM"}, {Role: "user", Content: "REQUEST"}, {Role: "assistant", Content: "ok"}, {Role: "user", Content: big}},
		"thinking": {{Role: "system", Content: "SYSTEM"}, {Role: "user", Content: "REQUEST"},
			{Role: "assistant", Reasoning: big, ToolCalls: []contextstore.ToolCall{{ID: "1", Name: "shell", Arguments: `{"command":"ls"}`}}},
			{Role: "tool", ToolCallID: "1", Content: "a.go"}},
		"signed thinking": {{Role: "system", Content: "SYSTEM"}, {Role: "user", Content: "REQUEST"},
			{Role: "assistant", Provider: redact.Opaque(big), ToolCalls: []contextstore.ToolCall{{ID: "1", Name: "shell", Arguments: `{"command":"ls"}`}}},
			{Role: "tool", ToolCallID: "1", Content: text(2, 40_000)}},
		"call": {{Role: "system", Content: "SYSTEM"}, {Role: "user", Content: "REQUEST"},
			{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "1", Name: "write_file", Arguments: fmt.Sprintf(`{"path":"a.go","content":%q}`, big)}}},
			{Role: "tool", ToolCallID: "1", Content: "written"}},
	} {
		l := &ledger{}
		asked := 0
		p := rule(writes(&asked, func(string, int) (Answer, error) { return Answer{Text: "Work went on."}, nil }))
		p.Limit = 7000
		w := window(t, l, p)
		for _, m := range all {
			w.Add(l.append(m))
		}
		if err := w.Fit(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := string(w.Conversation().Serialized())
		if w.Tokens() > 7000 || name != "thinking" && !strings.Contains(b, "recall ref m-") || !strings.Contains(b, "SYSTEM") {
			t.Errorf("%s: %d tokens, %.300s", name, w.Tokens(), b)
		}
		again := window(t, l, p)
		if !bytes.Equal(again.Conversation().Serialized(), w.Conversation().Serialized()) {
			t.Errorf("%s: other bytes after a resume", name)
		}
	}
}

// A run that was killed between a summary and the decision takes it up; one
// that was killed while the summary was written finds a torn line and goes on.
func TestKilledAroundASummary(t *testing.T) {
	t.Parallel()
	client := openaiClient(t)
	asked := 0
	o := &owner{t: t, base: t.TempDir(), open: func() llm.Conversation { return client.Open(llm.Settings{}) }, p: rule(scribe(&asked))}
	o.claim()
	defer func() { o.kill() }()
	o.append(contextstore.Message{Role: "system", Content: "SYSTEM"}, contextstore.Message{Role: "user", Content: "REQUEST"})
	for n := range 10 {
		for _, m := range turnOf(n) {
			o.append(m...)
		}
	}
	s, err := o.ctx.AppendSummary(contextstore.Summary{StartSeq: 3, EndSeq: 12, Summary: "Ten messages."})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.ctx.Dir(), "summaries.jsonl")
	o.kill()
	o.claim()
	e, _ := o.win.Decision()
	if b := o.win.Conversation().Serialized(); e.Summary != s.ID || !bytes.Contains(b, []byte("Ten messages.")) || bytes.Contains(b, []byte(`"step 1"`)) {
		t.Errorf("%+v\n%.400s", e, b)
	}
	before := bytes.Clone(o.win.Conversation().Serialized())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"id":2,"start_seq":13,"end_seq":20,"summary":"half a li`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	o.kill()
	o.claim()
	if !bytes.Equal(before, o.win.Conversation().Serialized()) {
		t.Error("a torn line changed the window")
	}
	for n := 10; n < 40; n++ {
		for _, m := range turnOf(n) {
			o.append(m...)
		}
		if err := o.win.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if last, err := o.ctx.LatestSummary(); err != nil || last.ID < 2 {
		t.Errorf("%+v, %v", last, err)
	}
	// The file is lost: that is told, and the run goes on.
	o.kill()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	o.claim()
	if b := o.win.Conversation().Serialized(); !bytes.Contains(b, []byte("is missing or damaged")) {
		t.Errorf("%.600s", b)
	}
}

// Old output becomes stubs in batches, the latest turns stay, and each stub
// names what it stands for.
func TestMaskingInBatches(t *testing.T) {
	t.Parallel()
	l := &ledger{images: map[string][]byte{"a": picture(1000)}}
	w := window(t, l, Policy{Limit: 1_000_000, Masking: Masking{true, 10, 0.1}})
	story(l, w, 0, 0)
	w.Add(l.append(contextstore.Message{Role: "assistant", Provider: "opaque", Reasoning: "thought", ToolCalls: []contextstore.ToolCall{{ID: "w", Name: "write_file",
		Arguments: fmt.Sprintf(`{"path":"a.go","content":%q}`, text(0, 2000))}}}))
	w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: "w", Content: "written"}))
	w.Add(l.append(contextstore.Message{Role: "user", Content: "Images of the results above:", Images: []contextstore.Image{{Path: "a", Source: "tool:look"}}}))
	w.Add(l.append(contextstore.Message{Role: "user", Content: "Mine.", Images: []contextstore.Image{{Path: "a", Source: "/home/a.png"}}}))
	masks := 0
	for i := range 100 {
		story(l, w, 1, 2000)
		if err := w.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := string(w.Conversation().Serialized())
		if n := strings.Count(b, strings.Repeat("x", 2000)); n < min(i+1, 10) {
			t.Fatalf("turn %d: %d results are whole", i, n)
		}
		masks = len(l.events)
	}
	if masks < 5 || masks > 60 {
		t.Errorf("%d batches", masks)
	}
	b := string(w.Conversation().Serialized())
	for _, s := range []string{`[tool output omitted: 1 line, 2.0 KB; recall ref m-8]`, `{\"path\":\"a.go\",\"content\":\"[omitted: `, `recall ref m-3]`, `"opaque"`, `"thought"`,
		`Images of the results above:\n[1 image omitted; recall ref m-5]`, `"written"`} {
		if !strings.Contains(b, s) {
			t.Errorf("%s is not in %.900s", s, b)
		}
	}
	if w.taken.images != 1 {
		t.Errorf("%d images are left", w.taken.images)
	}
}

func TestStubArguments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a\n", 300)
	for in, want := range map[string]string{
		`{"a":1}`: `{"a":1}`,
		fmt.Sprintf(`{"z":%q,"a":[1,2],"b":{"c":%q}}`, long, long): `{"z":"[omitted: 300 lines, 600 B; recall ref m-7]","a":[1,2],"b":"[omitted: 1 line, 908 B; recall ref m-7]"}`,
		long:                  `{"arguments":"[omitted: 300 lines, 600 B; recall ref m-7]"}`,
		`{"a":"` + long + `"`: `{"arguments":"[omitted: 301 lines, 607 B; recall ref m-7]"}`,
	} {
		if got := stubArguments(in, bulky, 7); got != want {
			t.Errorf("%.80q: %s", in, got)
		}
	}
	if s, ok := FindStub("x " + stub("tool output omitted", long, 3)); !ok || s != "[tool output omitted: 300 lines, 600 B; recall ref m-3]" {
		t.Error(s, ok)
	}
	if s, ok := FindStub("see [omitted: 3 parts]"); ok {
		t.Error(s)
	}
}

// Events that an earlier version wrote are read.
func TestOldEvents(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	story(l, nil, 20, 100)
	l.events = append(l.events, contextstore.WindowEvent{ID: 1, Type: "truncate", FromSeq: 21, Offset: 2100, Dropped: 18, Reason: "over"})
	w := window(t, l, rule(nil))
	if b := w.Conversation().Serialized(); len(w.entry) != 2+22 || !bytes.Contains(b, []byte("[18 earlier messages (up to number 20) are no longer shown because")) {
		t.Errorf("%d messages\n%.500s", len(w.entry), b)
	}
}

// What an earlier run left stands between the system prompt and the request,
// and never leaves.
func TestInheritedSummaryStays(t *testing.T) {
	t.Parallel()
	asked := 0
	l := &ledger{}
	w := window(t, l, rule(writes(&asked, func(string, int) (Answer, error) { return Answer{Text: "Work went on."}, nil })))
	for _, m := range []contextstore.Message{{Role: "system", Content: "SYSTEM"}, {Role: "assistant", Content: "INHERITED"}, {Role: "user", Content: "REQUEST"}} {
		w.Add(l.append(m))
	}
	for i := range 40 {
		id := redact.Opaque(fmt.Sprint("c", i))
		w.Add(l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: id, Name: "shell", Arguments: "{}"}}}))
		w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: id, Content: strings.Repeat("x", 1000)}))
		if err := w.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 || l.summaries[0].StartSeq != 4 {
		t.Fatalf("asked %d times, %+v", asked, l.summaries)
	}
	b := string(window(t, l, rule(nil)).Conversation().Serialized())
	if i, j, k := strings.Index(b, "INHERITED"), strings.Index(b, "REQUEST"), strings.Index(b, "Work went on."); i < 0 || j < i || k < j {
		t.Errorf("%.500s", b)
	}
}

// The prompt is in the language of the settings, the seed's text word for word in
// Japanese, and the one that follows a refusal says what was wrong.
func TestPromptSpeaksTheLanguage(t *testing.T) {
	t.Parallel()
	for lang, c := range map[i18n.Lang]struct{ head, refused, tail string }{
		i18n.Japanese: {"あなたは会話履歴を要約するアシスタントです。\n", "前回の要約は採用されませんでした。理由：残すべき識別子 1 個が失われました（pkg/a.go）。その点を直してください。\n", "\n要約のみを出力してください。"},
		i18n.English:  {"You are an assistant that summarises the history of a conversation.\n", "An earlier summary was refused: it left out identifiers that it was to keep, 1 of them: pkg/a.go. Mend that.\n", "\nOutput the summary alone."},
	} {
		asked := 0
		var prompts []string
		p := rule(writes(&asked, func(p string, _ int) (Answer, error) {
			prompts = append(prompts, p)
			if asked == 1 {
				return Answer{Text: "A file was written."}, nil
			}
			return Answer{Text: "pkg/a.go was written."}, nil
		}))
		p.Lang, p.Limit = lang, 7000
		l := &ledger{}
		w := window(t, l, p)
		story(l, w, 0, 0)
		did(l, w, "write_file", `{"path":"pkg/a.go","content":"x"}`, false)
		story(l, w, 26, 1000)
		if err := w.Fit(t.Context()); err != nil || len(prompts) != 2 || len(l.summaries) != 1 {
			t.Fatalf("%v, asked %d times", err, len(prompts))
		}
		if !strings.HasPrefix(prompts[0], c.head) || !strings.HasSuffix(prompts[0], c.tail) || strings.Contains(prompts[0], "refused") || !strings.Contains(prompts[1], c.refused) {
			t.Errorf("%s: %.700s", lang, prompts[1])
		}
		story(l, w, 26, 1000)
		if err := w.Fit(t.Context()); err != nil || len(prompts) < 3 || strings.Contains(prompts[2], c.refused) {
			t.Errorf("%v: the refusal is over: %.700s", err, prompts[len(prompts)-1])
		}
		english := strings.ContainsFunc(prompts[1], func(r rune) bool { return r > 0x3000 })
		if english == (lang == i18n.English) {
			t.Errorf("%s: two languages in one text: %.700s", lang, prompts[1])
		}
	}
}

// did appends a call and its result.
func did(l *ledger, w *Window, name, args string, failed bool) {
	id := redact.Opaque(fmt.Sprintf("d%d", len(l.msgs)))
	w.Add(l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: id, Name: name, Arguments: args}}}))
	w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: id, ToolName: name, Content: "result", Failed: failed}))
}

// Whatever is tried: of what succeeded the paths and the latest commands are in
// view after a compression, or nothing was compressed; of what failed alone
// nothing is asked for.
func TestPinsAreOfWhatSucceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &ledger{}
		asked, forgets := 0, rapid.Bool().Draw(t, "forgets")
		prompt := ""
		p := rule(writes(&asked, func(p string, _ int) (Answer, error) {
			prompt = p
			_, list, _ := strings.Cut(p, "letter by letter:\n")
			keep, _, _ := strings.Cut(list, "\n=== ")
			if forgets && asked%2 == 1 {
				keep = ""
			}
			return Answer{Text: "Work went on with\n" + keep}, nil
		}))
		p.Lang = i18n.English
		w, err := Open(l, &wire{}, p)
		if err != nil {
			t.Fatal(err)
		}
		story(l, w, 0, 0)
		good, bad, ran := map[string]bool{}, map[string]bool{}, []string{}
		for i := range rapid.IntRange(1, 15).Draw(t, "steps") {
			failed := rapid.Bool().Draw(t, "failed")
			if rapid.Bool().Draw(t, "edit") {
				path := fmt.Sprintf("pkg/f%d.go", rapid.IntRange(0, 9).Draw(t, "file"))
				did(l, w, "edit_file", fmt.Sprintf(`{"path":%q}`, path), failed)
				good[path], bad[path] = good[path] || !failed, true
			} else {
				command := fmt.Sprintf("go test ./pkg%d", i)
				did(l, w, "shell", fmt.Sprintf(`{"command":%q}`, command), failed)
				if bad[command] = true; !failed {
					good[command], ran = true, append(ran, command)
				}
			}
		}
		for range 3 {
			story(l, w, 26, 1000)
			for range 2 {
				if err := w.Fit(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		view := string(w.Conversation().Serialized())
		if len(l.summaries) == 0 {
			t.Fatal("nothing was compressed")
		}
		for id := range bad {
			old := strings.HasPrefix(id, "go test") && !slices.Contains(ran[max(0, len(ran)-maxRan):], id)
			switch {
			case good[id] && !old && !strings.Contains(view, id):
				t.Fatalf("%s is lost: %.900s", id, view)
			case !good[id] && strings.Contains(prompt, "- "+id+"\n"):
				t.Fatalf("%s, which failed, is to be kept", id)
			}
		}
	})
}

// Before anything is summarised, what is old becomes stubs: where that is enough,
// no model is asked. Of a small window fewer turns stay whole.
func TestStubsBeforeASummary(t *testing.T) {
	t.Parallel()
	asked := 0
	p := rule(writes(&asked, func(string, int) (Answer, error) { return Answer{Text: "Work went on."}, nil }))
	p.Masking = Masking{Enabled: true, KeepTurns: 10, MinShare: 2} // no batch pays
	l := &ledger{}
	w := window(t, l, p)
	story(l, w, 30, 1000)
	if err := w.Fit(t.Context()); err != nil || asked != 0 || len(l.events) != 1 || l.events[0].Type != contextstore.WindowMask || l.events[0].MaskSeq != l.msgs[len(l.msgs)-2*10-1].Seq {
		t.Errorf("%v, asked %d times: %+v", err, asked, l.events)
	}
	p.Limit, p.Context = 2000, 0
	l = &ledger{}
	w = window(t, l, p)
	story(l, w, 30, 1000)
	if err := w.Fit(t.Context()); err != nil || l.events[0].Type != contextstore.WindowMask || l.events[0].MaskSeq < l.msgs[len(l.msgs)-2*5].Seq || l.events[0].MaskSeq > l.msgs[len(l.msgs)-2].Seq {
		t.Errorf("%v: %+v of %d", err, l.events[0], len(l.msgs))
	}
}

// The forms of a plan's phases do not stand in what is summarised: what was
// written into them does.
func TestFormsAreNotSummarised(t *testing.T) {
	t.Parallel()
	ask := contextstore.Message{Role: "user", Kind: "plan", Content: `{"phase": "planning", "goal_understanding": {}}`}
	answer := contextstore.Message{Role: "assistant", Content: "```json\n" + `{"phase":"planning","goal_understanding":{"main_objective":"Keep the line ends","success_criteria":["go test passes"]},"ok":true}` + "\n```"}
	for _, got := range []string{rendered(ask) + rendered(answer), shownAs(ask, false, 1000) + shownAs(answer, false, 1000)} {
		if strings.ContainsAny(got, "{}\"`") || strings.Contains(got, "goal_understanding") || !strings.Contains(got, "Keep the line ends\ngo test passes") || !strings.Contains(got, "plan") {
			t.Error(got)
		}
	}
	said := contextstore.Message{Role: "assistant", Content: "I call f({}) next."}
	if got := rendered(said); !strings.Contains(got, said.Content) {
		t.Error(got)
	}
}
