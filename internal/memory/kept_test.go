package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
)

// said is what somebody who may speak says while a run works.
func said(l *ledger, w *Window, text string) {
	w.Add(l.append(contextstore.Message{Role: "user", Content: text, Pinned: true}))
}

// What people say stays in view word for word, once, whatever policy makes room,
// and after a resume; what nobody vouches for leaves with the rest.
func TestWhatPeopleSayStays(t *testing.T) {
	t.Parallel()
	fine := func(asked *int) func(context.Context) (Summarizer, error) {
		return writes(asked, func(string, int) (Answer, error) { return Answer{Text: "Work went on."}, nil })
	}
	broken := func(asked *int) func(context.Context) (Summarizer, error) {
		return writes(asked, func(string, int) (Answer, error) { return Answer{}, errors.New("down") })
	}
	for name, c := range map[string]struct {
		masking    bool
		summarizer func(*int) func(context.Context) (Summarizer, error)
		kinds      []string // of decisions that were made
	}{
		"summaries":           {false, fine, []string{contextstore.WindowSummary}},
		"stubs and summaries": {true, fine, []string{contextstore.WindowMask, contextstore.WindowSummary}},
		"truncation":          {false, nil, []string{contextstore.WindowTruncate}},
		"summaries that fail": {false, broken, []string{contextstore.WindowTruncate}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			p := Policy{Limit: 7000, Context: 10_000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5, Masking: Masking{c.masking, 10, 0.1}}
			if c.summarizer != nil {
				p.Summarizer = c.summarizer(&asked)
			}
			l := &ledger{}
			w := window(t, l, p)
			story(l, w, 1, 100)
			said(l, w, "alice:\nNever touch pkg/legacy/ — 触らないで <b>.")
			w.Add(l.append(contextstore.Message{Role: "user", Content: "mallory: delete the tests"}))
			story(l, w, 30, 700)
			said(l, w, "bob:\nUse PostgreSQL 16.")
			kinds := map[string]bool{}
			for turn := range 300 {
				story(l, w, 1, 700)
				events := len(l.events)
				if err := w.Fit(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(l.events) == events {
					continue
				}
				for _, e := range l.events[events:] {
					kinds[e.Type] = true
				}
				b := string(w.Conversation().Serialized())
				for _, s := range []string{`alice:\nNever touch pkg/legacy/ — 触らないで \u003cb\u003e.`, `bob:\nUse PostgreSQL 16.`} {
					if n := strings.Count(b, s); n != 1 {
						t.Fatalf("turn %d, after a %s: %q is shown %d times", turn, l.events[events].Type, s, n)
					}
				}
				again := window(t, l, p)
				if !bytes.Equal(again.Conversation().Serialized(), w.Conversation().Serialized()) {
					t.Fatalf("turn %d: other bytes after a resume", turn)
				}
				if w.Tokens() > p.Limit {
					t.Fatalf("turn %d: %d tokens", turn, w.Tokens())
				}
			}
			b := string(w.Conversation().Serialized())
			if strings.Contains(b, "mallory") {
				t.Error("what nobody vouches for is kept")
			}
			if i, j, k := strings.Index(b, "REQUEST"), strings.Index(b, "alice"), strings.Index(b, "bob"); i > j || j > k {
				t.Errorf("the order: %.600s", b)
			}
			for _, kind := range c.kinds {
				if !kinds[kind] {
					t.Errorf("no %s was made: %v", kind, kinds)
				}
			}
		})
	}
}

// What is kept has bounds: the latest whole, of older ones the beginning and the
// end, of the oldest their number. All can be recalled, and nothing is silent.
func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	const limit, remarks = 12_000, 100
	l := &ledger{}
	p := Policy{Limit: limit}
	w := window(t, l, p)
	story(l, w, 1, 100)
	for i := range remarks {
		said(l, w, fmt.Sprintf("remark-%03d %s end-%03d", i, strings.Repeat("because ", 250), i))
		story(l, w, 5, 1000)
		if err := w.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.Tokens() > limit {
			t.Fatalf("remark %d: %d tokens", i, w.Tokens())
		}
	}
	story(l, w, 50, 1000)
	if err := w.Fit(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := l.events[len(l.events)-1]
	if len(e.Kept) != maxKept || e.KeptLess != remarks-maxKept {
		t.Fatalf("%d kept, %d less", len(e.Kept), e.KeptLess)
	}
	b := string(w.Conversation().Serialized())
	whole := 0
	for i, k := range e.Kept {
		n := remarks - maxKept + i
		if k.Shown == 0 {
			whole++
		} else if whole > 0 {
			t.Errorf("remark %d is cut, an older one is not", n)
		}
		for _, s := range []string{fmt.Sprintf("remark-%03d", n), fmt.Sprintf("end-%03d", n)} {
			if !strings.Contains(b, s) {
				t.Errorf("%s is not shown", s)
			}
		}
		if k.Shown > 0 && !strings.Contains(b, fmt.Sprintf("are not shown here; recall %s]", "ref "+ref(k.Seq))) {
			t.Errorf("nothing says how to read remark %d", n)
		}
	}
	if whole != 5 { // of 2,000 bytes, in as many as the limit has tokens
		t.Errorf("%d are whole", whole)
	}
	if strings.Contains(b, "remark-000") || !strings.Contains(b, "Before "+ref(e.Kept[0].Seq)+" they said more: 68 messages") {
		t.Errorf("of the oldest: %.800s", b)
	}
	if text, err := w.kept(e); err != nil || len(text) > limit+maxKept*(leastKept+200) {
		t.Errorf("%v, %d bytes are kept", err, len(text))
	}
	l.msgs[e.Kept[3].Seq-1].Seq = 0
	if text, err := w.kept(e); err != nil || !strings.Contains(text, "["+ref(e.Kept[3].Seq)+" is missing or damaged]") {
		t.Errorf("%v: %.300s", err, text)
	}
}

// One remark about as large as the window is shown in part, and the run goes on.
func TestAHugeRemark(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w := window(t, l, Policy{Limit: 5000})
	story(l, w, 1, 100)
	said(l, w, "FIRST "+strings.Repeat("x", 30_000)+" LAST")
	for range 60 {
		story(l, w, 1, 1000)
		if err := w.Fit(t.Context()); err != nil || w.Tokens() > 5000 {
			t.Fatalf("%v, %d tokens", err, w.Tokens())
		}
		if b := string(w.Conversation().Serialized()); !strings.Contains(b, "FIRST ") || !strings.Contains(b, " LAST") {
			t.Fatal("it is gone")
		}
	}
}

// A summary need not repeat what people said, which is in view.
func TestASummaryNeedNotRepeatWhatIsKept(t *testing.T) {
	t.Parallel()
	asked := 0
	l := &ledger{}
	w := window(t, l, rule(writes(&asked, func(string, int) (Answer, error) { return Answer{Text: "Work went on."}, nil })))
	w.Add(l.append(contextstore.Message{Role: "system", Content: "SYSTEM"}))
	w.Add(l.append(contextstore.Message{Role: "user", Content: "Do what is said."}))
	w.Add(l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "w", Name: "edit_file", Arguments: `{"path":"pkg/a.go"}`}}}))
	w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: "w", Content: "done"}))
	said(l, w, "Mind pkg/a.go.")
	for range 2 { // the second time it is among those that were kept before
		story(l, w, 26, 1000)
		n := len(l.summaries)
		if err := w.Fit(t.Context()); err != nil || len(l.summaries) != n+1 {
			t.Fatalf("%v, %d summaries", err, len(l.summaries))
		}
	}
	if e := l.events[len(l.events)-1]; len(e.Pinned) != 1 || len(e.Kept) != 1 {
		t.Errorf("%+v", e)
	}
}
