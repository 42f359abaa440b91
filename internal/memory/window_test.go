package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
)

// wire is a conversation that serialises and never sends.
type wire struct{ b []byte }

func (w *wire) Append(m llm.Message) {
	j, _ := json.Marshal(m)
	w.b = append(append(w.b, j...), ',')
}
func (w *wire) Reset()             { w.b = w.b[:0] }
func (w *wire) Serialized() []byte { return w.b }
func (w *wire) Send(context.Context, func(string)) (*llm.Reply, error) {
	return nil, errors.New("not here")
}

// ledger is a context in memory.
type ledger struct {
	msgs   []contextstore.Message
	events []contextstore.WindowEvent
	read   int
	images map[string][]byte // by path
	now    func() contextstore.Time

	summaries []contextstore.Summary
	states    []string
	tokens    int
	failures  int
	spent     int64
}

func (l *ledger) ReadImage(i contextstore.Image) ([]byte, error) {
	if b, ok := l.images[i.Path]; ok {
		return b, nil
	}
	return nil, os.ErrNotExist
}

func (l *ledger) Messages(offset int64, f func(contextstore.Message) bool) error {
	for _, m := range l.msgs {
		if m.Offset >= offset {
			l.read++
			if !f(m) {
				break
			}
		}
	}
	return nil
}

func (l *ledger) LastWindow() (*contextstore.WindowEvent, error) {
	if len(l.events) == 0 {
		return nil, nil
	}
	e := l.events[len(l.events)-1]
	return &e, nil
}

func (l *ledger) AppendWindow(e contextstore.WindowEvent) error {
	e.ID = int64(len(l.events) + 1)
	if l.now != nil {
		e.Timestamp, e.AtSeq = l.now(), int64(len(l.msgs))
	}
	l.events = append(l.events, e)
	return nil
}

func (l *ledger) SummaryOf(id int64) (*contextstore.Summary, error) {
	for _, s := range l.summaries {
		if s.ID == id {
			return &s, nil
		}
	}
	return nil, nil
}

func (l *ledger) LatestSummary() (*contextstore.Summary, error) {
	return l.SummaryOf(int64(len(l.summaries)))
}

func (l *ledger) AppendSummary(s contextstore.Summary) (contextstore.Summary, error) {
	s.ID = int64(len(l.summaries) + 1)
	l.summaries = append(l.summaries, s)
	return s, nil
}

func (l *ledger) Activity(status, _ string) error {
	l.states = append(l.states, status)
	return nil
}

func (l *ledger) ContextTokens(n int)         { l.tokens = n }
func (l *ledger) CompressionFailed()          { l.failures++ }
func (l *ledger) Spent(u *contextstore.Usage) { l.spent += u.Sum() }

func (l *ledger) append(m contextstore.Message) contextstore.Message {
	m.Seq = int64(len(l.msgs) + 1)
	m.Offset = 100 * m.Seq
	l.msgs = append(l.msgs, m)
	return m
}

// story appends the pinned messages and n turns of one call each.
func story(l *ledger, w *Window, n, size int) {
	add := func(m contextstore.Message) {
		m = l.append(m)
		if w != nil {
			w.Add(m)
		}
	}
	if len(l.msgs) == 0 {
		add(contextstore.Message{Role: "system", Content: "SYSTEM"})
		add(contextstore.Message{Role: "user", Content: "REQUEST"})
	}
	for range n {
		id := redact.Opaque(fmt.Sprint("call_", len(l.msgs)))
		add(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: id, Name: "shell", Arguments: "{}"}}})
		add(contextstore.Message{Role: "tool", ToolCallID: id, ToolName: "shell", Content: strings.Repeat("x", size)})
	}
}

func TestAppendOnlyUntilFull(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w, err := Open(l, &wire{}, Policy{Limit: 10_000, Fixed: 0})
	if err != nil {
		t.Fatal(err)
	}
	var before []byte
	for range 500 {
		story(l, w, 1, 300)
		events := len(l.events)
		if err := w.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := w.Conversation().Serialized()
		if len(l.events) == events && !bytes.HasPrefix(now, before) {
			t.Fatal("the prefix changed without an event")
		}
		if w.Tokens() > 10_000 {
			t.Fatalf("%d tokens", w.Tokens())
		}
		before = bytes.Clone(now)
	}
	if n := len(l.events); n < 2 || n > 40 {
		t.Errorf("%d rewrites of the window in 500 turns", n)
	}
	for _, s := range []string{"SYSTEM", "REQUEST", "no longer shown"} {
		if !bytes.Contains(before, []byte(s)) {
			t.Errorf("%q left the window", s)
		}
	}
}

// A window assembled from the ledger is byte for byte the one that grew, reads
// only what it shows, and never separates a call from its result.
func TestResumeSerialisesTheSameBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := &ledger{}
		w, err := Open(l, &wire{}, Policy{Limit: rapid.IntRange(1000, 4000).Draw(t, "limit"), Fixed: 0})
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			story(l, w, rapid.IntRange(1, 3).Draw(t, "turns"), rapid.IntRange(0, 400).Draw(t, "size"))
			if err := w.Fit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		l.read = 0
		again, err := Open(l, &wire{}, Policy{Limit: w.cap, Fixed: 0})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(w.Conversation().Serialized(), again.Conversation().Serialized()) {
			t.Fatal("resume serialised other bytes")
		}
		if l.read > len(w.entry)+2 { // one to know the front, one to know that the decision holds
			t.Fatalf("%d messages read for a window of %d", l.read, len(w.entry))
		}
		if len(l.events) > 0 && l.msgs[l.events[len(l.events)-1].FromSeq-1].Role == "tool" {
			t.Fatal("the window begins with a result whose call is gone")
		}
	})
}

// A provider counts the tools, too: what it reports for a short first request
// must not make the rest look four times as large.
func TestToolsAreCounted(t *testing.T) {
	t.Parallel()
	const fixed = 6600
	l := &ledger{}
	w, _ := Open(l, &wire{}, Policy{Limit: 23_000, Fixed: fixed})
	story(l, w, 0, 0)
	w.Add(l.append(contextstore.Message{Role: "assistant", Usage: &contextstore.Usage{Prompt: (fixed + len(w.Conversation().Serialized())) / 4}}))
	w.Add(l.append(contextstore.Message{Role: "user", Content: strings.Repeat("x", 40_000)}))
	if n := w.Tokens(); n < 11_000 || n > 13_000 {
		t.Errorf("%d tokens for 40 KB", n)
	}
	if err := w.Fit(t.Context()); err != nil {
		t.Error(err)
	}
}

// One answer whose results fill the window alone leaves no room for the five
// latest messages; it and its results stay.
func TestOneHugeTurn(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w, _ := Open(l, &wire{}, Policy{Limit: 10_000, Fixed: 0})
	story(l, w, 1, 25_000)
	story(l, w, 1, 30_000)
	if err := w.Fit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.entry); n != w.front()+2 || w.Tokens() > 10_000 {
		t.Errorf("%d messages, %d tokens", n, w.Tokens())
	}
}

func TestCalibration(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w, _ := Open(l, &wire{}, Policy{Limit: 1_000_000, Fixed: 0})
	story(l, w, 10, 1000)
	if n := w.Tokens(); n != len(w.Conversation().Serialized())/4 {
		t.Errorf("uncalibrated: %d tokens", n)
	}
	size := len(w.Conversation().Serialized())
	w.Add(l.append(contextstore.Message{Role: "assistant", Content: "ok", Usage: &contextstore.Usage{Prompt: size / 2}}))
	if n := w.Tokens(); n < size/2-10 || n > size/2+100 {
		t.Errorf("calibrated: %d tokens of %d bytes", n, size)
	}
}

// A provider whose tokens are not four bytes each reports usage with every
// answer; the estimate stays right through truncations and resumes.
func TestCalibrationSurvivesTruncation(t *testing.T) {
	t.Parallel()
	const perToken, limit = 3, 5000
	l := &ledger{}
	w, err := Open(l, &wire{}, Policy{Limit: limit, Fixed: 0})
	if err != nil {
		t.Fatal(err)
	}
	story(l, w, 0, 0)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 400 {
		if err := w.Fit(t.Context()); err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
		size := len(w.Conversation().Serialized())
		if n := w.Tokens(); i > 20 && (n < size/perToken*9/10 || n > size/perToken*11/10) {
			t.Fatalf("turn %d: %d tokens for %d bytes", i, n, size)
		}
		if n := len(l.events); n > 0 && l.events[n-1].Timestamp.IsZero() {
			l.events[n-1].Timestamp = contextstore.Time{Time: start.Add(time.Duration(i) * time.Second)}
		}
		at := contextstore.Time{Time: start.Add(time.Duration(i)*time.Second + 1)}
		id := fmt.Sprint("call_", i)
		w.Add(l.append(contextstore.Message{Role: "assistant", Timestamp: at, Usage: &contextstore.Usage{Prompt: size / perToken}, ToolCalls: []contextstore.ToolCall{{ID: redact.Opaque(id)}}}))
		w.Add(l.append(contextstore.Message{Role: "tool", Timestamp: at, ToolCallID: redact.Opaque(id), Content: strings.Repeat("x", 500)}))
		if i%37 == 0 {
			again, err := Open(l, &wire{}, Policy{Limit: limit, Fixed: 0})
			if err != nil {
				t.Fatal(err)
			}
			if d := again.Tokens() - w.Tokens(); d < -limit/10 || d > limit/10 {
				t.Fatalf("turn %d: %d tokens after a resume, %d before", i, again.Tokens(), w.Tokens())
			}
		}
	}
	if len(l.events) < 5 {
		t.Errorf("only %d truncations", len(l.events))
	}
}

func TestUnansweredCalls(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	story(l, nil, 1, 10)
	l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "a"}, {ID: "b"}, {ID: "c"}}})
	l.append(contextstore.Message{Role: "tool", ToolCallID: "b"})
	w, err := Open(l, &wire{}, Policy{Limit: 1000, Fixed: 0})
	if err != nil {
		t.Fatal(err)
	}
	open, asked := w.Unanswered()
	if len(open) != 2 || open[0].ID != "a" || open[1].ID != "c" || asked.Seq != 5 {
		t.Errorf("open %v of %d", open, asked.Seq)
	}
	w.Add(l.append(contextstore.Message{Role: "user", Content: "go on"}))
	if open, _ := w.Unanswered(); len(open) != 0 {
		t.Errorf("open %v", open)
	}
}

func TestTooSmall(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w, _ := Open(l, &wire{}, Policy{Limit: 50, Fixed: 0})
	story(l, w, 2, 1000)
	var small *TooSmallError
	if err := w.Fit(t.Context()); !errors.As(err, &small) {
		t.Fatal(err)
	}
	if len(l.events) != 0 {
		t.Error("a decision that does not help was recorded")
	}
	if small.Refused {
		t.Error("nobody refused it")
	}
	w, _ = Open(&ledger{}, &wire{}, Policy{Limit: 1_000_000, Fixed: 0})
	if err := w.Overflowed(t.Context(), 0); !errors.As(err, &small) || !small.Refused {
		t.Errorf("refused by the provider: %v", err)
	}
}

func TestOverflowHalvesTheWindow(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w, _ := Open(l, &wire{}, Policy{Limit: 1_000_000, Fixed: 0})
	story(l, w, 50, 1000)
	before := w.Tokens()
	if err := w.Overflowed(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if w.Tokens() > before/2+500 {
		t.Errorf("%d tokens of %d left", w.Tokens(), before)
	}
}

// A first request that is too long is clipped as any later one: by the estimate,
// where nobody has counted yet, and again where the provider refuses it; what was
// decided holds after a resume, and its whole text can be recalled.
func TestAFirstRequestThatIsTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("設定を読み込めないときは理由を表示する。", 600)
	for _, front := range [][]contextstore.Message{
		{{Role: "system", Content: "SYSTEM"}},
		{{Role: "system", Content: "SYSTEM"}, {Role: "assistant", Content: "What an earlier run left."}},
	} {
		l := &ledger{}
		p := Policy{Limit: 11_200, Fixed: 8000}
		w := window(t, l, p)
		for _, m := range append(front, contextstore.Message{Role: "user", Content: long}) {
			w.Add(l.append(m))
		}
		if err := w.Fit(t.Context()); err != nil || w.Tokens() > p.Limit || len(l.events) != 1 {
			t.Fatalf("%v; about %d tokens, %d decisions", err, w.Tokens(), len(l.events))
		}
		before := w.Tokens()
		if err := w.Overflowed(t.Context(), 0); err != nil || w.Tokens() > before*3/4 {
			t.Fatalf("refused: %v; about %d tokens, %d before", err, w.Tokens(), before)
		}
		shown := string(w.Conversation().Serialized())
		if !strings.Contains(shown, fmt.Sprintf("recall ref m-%d]", len(front)+1)) || strings.Count(shown, "設定を読み") < 80 || !strings.Contains(shown, "SYSTEM") {
			t.Errorf("%.300s", shown)
		}
		if again := window(t, l, p); string(again.Conversation().Serialized()) != shown {
			t.Error("other bytes after a resume")
		}
		story(l, w, 30, 2000)
		if err := w.Fit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Of Japanese three bytes are a token until a provider has counted, and the first
// answer corrects that in either direction.
func TestJapaneseIsEstimatedByWhatWasMeasured(t *testing.T) {
	t.Parallel()
	for _, perToken := range []int{2, 3, 6} {
		l := &ledger{}
		w := window(t, l, Policy{Limit: 100_000})
		w.Add(l.append(contextstore.Message{Role: "system", Content: "SYSTEM"}))
		text := strings.Repeat("読み込めない理由を表示する。", 1000)
		w.Add(l.append(contextstore.Message{Role: "user", Content: text}))
		if n := w.Tokens(); n < len(text)/3 || n > len(text)/3+100 {
			t.Errorf("about %d tokens, want %d", n, len(text)/3)
		}
		count := len(text) / perToken
		w.Add(l.append(contextstore.Message{Role: "assistant", Content: "OK", Usage: &contextstore.Usage{Prompt: count}}))
		if n := w.Tokens(); n < count || n > count+100 {
			t.Errorf("about %d tokens after a count of %d", n, count)
		}
	}
}
