package planning

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
	"toritsugi/internal/turn"
)

// feed makes messages as a ledger would have them and has them heeded.
type feed struct {
	tb   testing.TB
	lead *Coordinator
	h    *History
	seq  int64
	all  []contextstore.Message
	keep bool
}

func (f *feed) Messages(offset int64, see func(contextstore.Message) bool) error {
	for _, m := range f.all[offset:] { // a message's offset is its place
		if !see(m) {
			break
		}
	}
	return nil
}

func newFeed(tb testing.TB, h *History, s Settings) *feed {
	f := &feed{tb: tb, h: h}
	f.open(s)
	return f
}

func (f *feed) open(s Settings) {
	var err error
	if f.lead, err = Open(f, f.h, turn.NoDirector{}, Prompts{}, s, slog.New(slog.DiscardHandler)); err != nil {
		f.tb.Fatal(err)
	}
}

func (f *feed) add(m contextstore.Message) {
	m.Seq, m.Offset = f.seq+1, f.seq
	f.seq++
	if f.keep {
		f.all = append(f.all, m)
	}
	if err := f.lead.After(m); err != nil {
		f.tb.Fatal(err)
	}
}

func (f *feed) ask(kind string) { f.add(contextstore.Message{Role: llm.RoleUser, Kind: kind}) }

// say is an answer, with the results of the calls that it makes.
func (f *feed) say(text string) {
	rest, calls := said(text)
	m := contextstore.Message{Role: llm.RoleAssistant, Content: rest}
	for i, c := range calls {
		m.ToolCalls = append(m.ToolCalls, contextstore.ToolCall{ID: redact.Opaque(fmt.Sprint("p", i)), Name: c.Name, Arguments: c.Arguments})
	}
	f.add(m)
	for _, c := range m.ToolCalls {
		f.add(contextstore.Message{Role: llm.RoleTool, ToolName: c.Name, ToolCallID: c.ID})
	}
}

// step is a call, its result, and what the run says then; the model reflects on it
// where it is asked to.
func (f *feed) step(reflect bool) {
	n := f.seq
	calls := []contextstore.ToolCall{{ID: "c", Name: "do", Arguments: fmt.Sprintf(`{"n":%d}`, n)}}
	results := []contextstore.Message{{Role: llm.RoleTool, ToolName: "do", ToolCallID: "c", Content: fmt.Sprint("result ", n)}}
	if f.lead.s.Asked == askReflect && reflect {
		calls = append(calls, contextstore.ToolCall{ID: "r", Name: ToolReflect, Arguments: fine})
		results = append(results, contextstore.Message{Role: llm.RoleTool, ToolName: ToolReflect, ToolCallID: "r"})
	}
	f.add(contextstore.Message{Role: llm.RoleAssistant, ToolCalls: calls})
	results[len(results)-1].Kind, _ = f.lead.Results(results, true)
	for _, m := range results {
		f.add(m)
	}
}

// chain is a plan of n subtasks with long ids, each after the one before it.
func chain(n int) string {
	var all []string
	before := ""
	for i := range n {
		id := fmt.Sprintf("%s_%d", strings.Repeat("x", 50), i)
		all = append(all, id+before)
		before = "<" + id
	}
	return plans(all...)
}

// What a step costs does not depend on how many there were, nor does what a line
// of the history holds.
func BenchmarkStep(b *testing.B) {
	for _, at := range []int64{100, 10_000, 100_000} {
		b.Run(fmt.Sprint("message ", at), func(b *testing.B) {
			store, err := contextstore.Open(b.Context(), contextstore.Options{BaseDir: b.TempDir(), NoSync: true, Now: clock, Redact: func(s string) string { return s }})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = store.Close() }()
			id, err := store.Enqueue(b.Context(), contextstore.Metadata{})
			if err != nil {
				b.Fatal(err)
			}
			c, _, err := store.Claim(b.Context(), id)
			if err != nil {
				b.Fatal(err)
			}
			h, _, err := OpenHistory(c, HistoryOptions{File: HistoryFile("", "", id), Now: clock})
			if err != nil {
				b.Fatal(err)
			}
			s := defaults()
			s.MaxSubtasks = 100
			f := newFeed(b, h, s)
			f.ask(askPlan)
			f.say(chain(20))
			first := f.lead.order[0]
			f.ask(askSubtask + "/" + first)
			for f.seq < at {
				f.step(true)
			}
			b.ReportAllocs()
			for b.Loop() {
				f.step(true)
			}
			b.StopTimer()
			e, err := h.Latest(func(e *Entry) bool { return e.Checkpoint != nil })
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(e.Raw)), "B/line")
			if err := h.Close(); err != nil {
				b.Fatal(err)
			}
			_ = c.Close()
		})
	}
}

// Lines that say how far a run is stay small with a hundred subtasks and with a
// model that has much to say; a run that is taken up reads back a bounded way also
// where nothing was decided, and knows what it knew.
func TestLinesStaySmallAndResumeReadsFewMessages(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	c := begin(t, store)
	h := history(t, c, nil)
	s := defaults()
	s.MaxSubtasks, s.Reflect = 100, true
	f := newFeed(t, h, s)
	f.keep = true
	f.ask(askPlan)
	f.say(chain(90))
	long := strings.Repeat("長い話 ", 2000)
	for _, id := range f.lead.order[:89] {
		f.ask(askSubtask + "/" + id)
		f.say(fmt.Sprintf(`{"task_id":%q,"status":"done","summary":%q}`, id, long))
	}
	f.ask(askSubtask + "/" + f.lead.order[89])
	for range 1000 { // without a word, whatever is asked
		f.step(false)
	}
	read := 0
	before := f.lead.s
	words := f.lead.Words(i18n.English)
	l, err := Open(counted{f, &read}, h, turn.NoDirector{}, Prompts{}, s, slog.New(slog.DiscardHandler))
	must(t, err)
	if read > stride+10 {
		t.Errorf("%d of %d messages were read again", read, len(f.all))
	}
	if l.s.Seq != before.Seq || l.s.Asked != before.Asked || l.s.Current != before.Current || l.Words(i18n.English) != words || l.left() != 1 {
		t.Errorf("found %+v\nwas %+v", l.s, before)
	}
	f.say(done(f.lead.order[89]))
	f.ask(askVerify)
	var issues []string
	for range 20 {
		issues = append(issues, long)
	}
	f.say(strings.Replace(fail("Mend it"), `["it does not work"]`, encode(issues), 1))
	largest := 0
	must(t, eachOf(h, func(e Entry) bool {
		if e.Checkpoint != nil {
			largest = max(largest, len(e.Raw))
		}
		return true
	}))
	t.Logf("the largest line has %d bytes", largest)
	if largest > 24<<10 {
		t.Errorf("a line of %d bytes", largest)
	}
	if f.lead.left() != 1 {
		t.Errorf("%d left", f.lead.left())
	}
}

// Reflections that decide nothing are lines of their own, without one that says how
// far the run is; a run that is taken up behind them knows what it knew, and records
// none of them again.
func TestReflectionsThatDecideNothing(t *testing.T) {
	t.Parallel()
	h := history(t, begin(t, newStore(t)), nil)
	f := newFeed(t, h, defaults())
	f.keep = true
	f.ask(askPlan)
	f.say(chain(2))
	f.ask(askSubtask + "/" + f.lead.order[0])
	for range 30 {
		f.step(true)
	}
	count := func() (reflections, checkpoints int) {
		must(t, eachOf(h, func(e Entry) bool {
			switch {
			case e.Reflection != nil:
				reflections++
			case e.Checkpoint != nil:
				checkpoints++
			}
			return true
		}))
		return reflections, checkpoints
	}
	reflections, checkpoints := count()
	if reflections < 9 || checkpoints != 1 {
		t.Errorf("%d reflections, %d checkpoints", reflections, checkpoints)
	}
	before := encode(f.lead.s)
	f.open(defaults())
	if d := cmp.Diff(before, encode(f.lead.s)); d != "" {
		t.Error(d)
	}
	if again, _ := count(); again != reflections {
		t.Errorf("%d reflections on record, %d were", again, reflections)
	}
}

type counted struct {
	*feed
	n *int
}

func (c counted) Messages(offset int64, f func(contextstore.Message) bool) error {
	return c.feed.Messages(offset, func(m contextstore.Message) bool { *c.n++; return f(m) })
}
