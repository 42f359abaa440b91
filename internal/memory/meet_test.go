package memory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
)

// What the provider reported for a request counts for the window of that request
// alone, also where the clock was set back before a decision.
func TestCalibrationWhereTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() contextstore.Time { return contextstore.Time{Time: now} }
	l := &ledger{now: clock}
	p := Policy{Limit: 100_000, Masking: Masking{true, 2, 0.05}}
	w := window(t, l, p)
	story(l, w, 0, 0)
	put := func(m contextstore.Message) {
		m = l.append(m)
		now = now.Add(time.Second)
		m.Timestamp = clock()
		l.msgs[len(l.msgs)-1] = m
		w.Add(m)
	}
	for range 20 {
		put(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "c", Name: "shell", Arguments: `{}`}},
			Usage: &contextstore.Usage{Prompt: w.Tokens()}})
		put(contextstore.Message{Role: "tool", ToolCallID: "c", ToolName: "shell", Content: strings.Repeat("x", 2000)})
	}
	rate := w.rate
	now = now.Add(-24 * time.Hour)
	if err := w.mask(0.1, true, "test"); err != nil {
		t.Fatal(err)
	}
	if len(l.events) != 1 || w.rate < rate*0.9 || w.rate > rate*1.1 {
		t.Errorf("%d events; %.2f bytes each before, %.2f after", len(l.events), rate, w.rate)
	}
	if again := window(t, l, p); again.rate < rate*0.9 || again.rate > rate*1.1 {
		t.Errorf("%.2f bytes each before, %.2f after a resume", rate, again.rate)
	}
}

// The first answer of a run is no part of the front: what only it mentions is out
// of view once a summary took its place, and the next summary must keep it.
func TestTheFirstAnswerIsNotInView(t *testing.T) {
	t.Parallel()
	asked := 0
	texts := []string{"Wrote pkg/a.go.", "Work went on.", "Work went on in pkg/a.go."}
	l := &ledger{}
	w := window(t, l, rule(writes(&asked, func(string, int) (Answer, error) { return Answer{Text: texts[min(asked, len(texts))-1]}, nil })))
	story(l, w, 0, 0)
	w.Add(l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "w", Name: "write_file", Arguments: `{"path":"pkg/a.go","content":"x"}`}}}))
	w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: "w", ToolName: "write_file", Content: "written"}))
	for range 2 {
		story(l, w, 26, 1000)
		if err := w.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.summaries) != 1 || l.failures != 1 {
		t.Errorf("%d summaries, %d failures: a path was lost", len(l.summaries), l.failures)
	}
	story(l, w, 1, 1000)
	if err := w.Fit(t.Context()); err != nil || len(l.summaries) != 2 {
		t.Errorf("%v, %d summaries", err, len(l.summaries))
	}
}

// A summary must be shorter than what leaves for it: what people said stays, and
// so makes no room.
func TestARemarkMakesNoRoom(t *testing.T) {
	t.Parallel()
	asked := 0
	l := &ledger{}
	w := window(t, l, rule(writes(&asked, func(string, int) (Answer, error) {
		return Answer{Text: strings.Repeat("Work went on. ", 800)}, nil
	})))
	story(l, w, 8, 100)
	said(l, w, strings.Repeat("because ", 2400))
	story(l, w, 4, 3000)
	before := w.Tokens()
	if err := w.Fit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked != 1 || len(l.summaries) != 0 || w.Tokens() > before {
		t.Errorf("asked %d times, %d summaries; %d tokens before, %d after", asked, len(l.summaries), before, w.Tokens())
	}
}

// Files that a list of the project names do not push out those that were changed.
func TestAListOfFilesIsNoReasonToForgetAChange(t *testing.T) {
	t.Parallel()
	list := ""
	for i := range 2 * maxPins {
		list += fmt.Sprintf("pkg/file%d.go\n", i)
	}
	for _, role := range []string{"system", "user"} {
		asked := 0
		l := &ledger{}
		w := window(t, l, rule(writes(&asked, func(string, int) (Answer, error) { return Answer{Text: "Work went on."}, nil })))
		for _, r := range []string{"system", "user"} {
			text := "TEXT"
			if r == role {
				text = list
			}
			w.Add(l.append(contextstore.Message{Role: r, Content: text}))
		}
		w.Add(l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "w", Name: "write_file", Arguments: `{"path":"cmd/new.go","content":"x"}`}}}))
		w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: "w", ToolName: "write_file", Content: "written"}))
		w.Add(l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "l", Name: "list_files", Arguments: `{}`}}}))
		w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: "l", ToolName: "list_files", Content: list}))
		story(l, w, 26, 1000)
		if err := w.Fit(t.Context()); err != nil || asked != 1 || len(l.summaries) != 0 {
			t.Errorf("list in the %s message: %v, asked %d times; %d summaries without the path that was changed", role, err, asked, len(l.summaries))
		}
	}
}

// Where little room is left beside the front, the messages of one turn are cut to
// the least that is shown, and the run goes on.
func TestATurnIsCutToTheLeast(t *testing.T) {
	t.Parallel()
	for _, rest := range []int{1600, 1700, 1800, 1900, 2000, 2200, 2500} {
		l := &ledger{}
		w := window(t, l, Policy{Limit: 7700, Fixed: 4 * (7700 - rest)})
		story(l, w, 0, 0)
		w.Add(l.append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "a", Name: "shell", Arguments: `{}`}, {ID: "b", Name: "shell", Arguments: `{}`}}}))
		for _, id := range []redact.Opaque{"a", "b"} {
			w.Add(l.append(contextstore.Message{Role: "tool", ToolCallID: id, ToolName: "shell", Content: strings.Repeat("x", 9000)}))
		}
		if err := w.Fit(t.Context()); err != nil {
			t.Errorf("%d tokens left: %v", rest, err)
		}
	}
}

// A summariser that fails keeps the run from no server that answers it.
func TestSummariesAreAskedForBesideTheWork(t *testing.T) {
	t.Parallel()
	c := says("Work went on.")
	if _, err := ByModel(c, 0).Ask(t.Context(), "prompt", 100); err != nil || !c.aside {
		t.Errorf("%v, aside: %t", err, c.aside)
	}
}

// A decision about messages that are lost holds no longer: what is left is shown,
// what comes next too, also after a kill, and no summary of what was lost takes
// the place of other messages.
func TestADecisionAboutLostMessages(t *testing.T) {
	t.Parallel()
	asked := 0
	o := &owner{t: t, base: t.TempDir(), open: func() llm.Conversation { return &wire{} },
		p: Policy{Limit: 7000, Context: 10_000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5, Masking: Masking{true, 3, 0.05}, Summarizer: scribe(&asked)}}
	o.claim()
	o.append(contextstore.Message{Role: "system", Content: "SYSTEM"}, contextstore.Message{Role: "user", Content: "REQUEST"})
	turn := 0
	work := func() {
		t.Helper()
		if err := o.win.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, m := range turnOf(turn) {
			o.append(m...)
		}
		turn++
	}
	for asked < 2 {
		work()
	}
	end := o.ctx.LastSeq()
	o.kill()
	file := filepath.Join(o.view().Dir, "messages.jsonl")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const left = 6
	lines := bytes.SplitAfterN(b, []byte("\n"), left+1)
	if err := os.WriteFile(file, bytes.Join(lines[:left], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	o.claim()
	defer func() { o.kill() }()
	if n := len(o.win.entry); n != left {
		t.Fatalf("%d messages are shown of %d", n, left)
	}
	summaries := asked
	for o.ctx.LastSeq() < end+20 {
		work()
		if turn%7 > 0 {
			continue
		}
		want := bytes.Clone(o.win.Conversation().Serialized())
		o.kill()
		o.claim()
		if got := o.win.Conversation().Serialized(); !bytes.Equal(got, want) {
			t.Fatalf("message %d: other bytes after a kill\n%.1500s\n%.1500s", o.ctx.LastSeq(), want, got)
		}
		if asked == summaries && bytes.Contains(want, []byte("[Summary")) {
			t.Fatalf("message %d: a summary of what was lost is shown", o.ctx.LastSeq())
		}
	}
	if asked == summaries {
		t.Error("no summary was made")
	}
}

// A model that thinks before it writes has room for that, as far as its window
// goes; what it writes is bounded all the same.
func TestASummariserMayThink(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ window, prompt, limit, want int }{
		{128_000, 30_000, 500, 500 + maxThought},
		{0, 30_000, 500, 500 + maxThought},
		{8000, 15_000, 1000, 3000},
		{8000, 23_000, 1000, 1000},
		{8000, 90_000, 1000, 1000},
	} {
		m := says("Work went on.")
		if _, err := ByModel(m, c.window).Ask(t.Context(), strings.Repeat("p", c.prompt), c.limit); err != nil || m.limit != c.want {
			t.Errorf("%+v: %v, limit %d", c, err, m.limit)
		}
	}
	asked := 0
	l := &ledger{}
	w := window(t, l, rule(writes(&asked, func(_ string, limit int) (Answer, error) {
		return Answer{Text: strings.Repeat("x", 2*bytesPerToken*limit+1)}, nil
	})))
	story(l, w, 26, 1500)
	if err := w.Fit(t.Context()); err != nil || asked != 1 || len(l.summaries) != 0 {
		t.Errorf("%v, asked %d times, %d summaries", err, asked, len(l.summaries))
	}
}
