package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/planning"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// prose makes text as runs have it: source, listings, compilers' and tests' words, in which words
// are as frequent as words are (Zipf). gzip makes a fifth of it, as of recorded runs.
type prose struct {
	rnd   *rand.Rand
	often *rand.Zipf
	pool  string // output of tools, of which pieces are taken
}

const poolBytes = 2 << 20

func newProse(rnd *rand.Rand) *prose {
	p := &prose{rnd: rnd, often: rand.NewZipf(rnd, 1.15, 6, 20_000)}
	var b strings.Builder
	for b.Len() < poolBytes {
		p.block(&b)
	}
	p.pool = b.String()
	return p
}

// word is a word: the same number gives the same.
func (p *prose) word() string {
	const syllables = "relanotivesudakomipatoresenigafulibocheru"
	n := p.often.Uint64()
	var b strings.Builder
	for n += 20; n > 0; n /= 20 {
		b.WriteString(syllables[n%20*2 : n%20*2+2])
	}
	return b.String()
}

func (p *prose) words(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = p.word()
	}
	return strings.Join(all, " ")
}

func (p *prose) path() string { return "internal/" + p.word() + "/" + p.word() + ".go" }

// block is some lines of one kind.
func (p *prose) block(b *strings.Builder) {
	path, name := p.path(), p.word()
	switch p.rnd.IntN(4) {
	case 0: // a file
		fmt.Fprintf(b, "// %s %s.\nfunc (s *%s) %s(ctx context.Context, %s string) (%s, error) {\n", name, p.words(9), p.word(), name, p.word(), p.word())
		for range 4 + p.rnd.IntN(24) {
			v := p.word()
			fmt.Fprintf(b, "\t%s, err := s.%s(ctx, %s.%s)\n\tif err != nil {\n\t\treturn nil, fmt.Errorf(\"%s: %%w\", err)\n\t}\n", v, p.word(), v, p.word(), p.words(3))
		}
		b.WriteString("\treturn " + name + ", nil\n}\n\n")
	case 1: // what grep finds
		for range 3 + p.rnd.IntN(20) {
			fmt.Fprintf(b, "%s:%d:\t%s := %s(%s, %q)\n", path, p.rnd.IntN(900), p.word(), p.word(), p.word(), p.words(2))
		}
	case 2: // tests
		for range 5 + p.rnd.IntN(20) {
			fmt.Fprintf(b, "=== RUN   Test%s\n    %s_test.go:%d: got %d, want %s\n--- FAIL: Test%s (0.%02ds)\n", name, name, p.rnd.IntN(400), p.rnd.IntN(1e6), p.word(), name, p.rnd.IntN(100))
		}
	default: // words
		for range 3 + p.rnd.IntN(8) {
			b.WriteString(p.words(14) + ".\n")
		}
	}
}

// output is n bytes of what a tool printed.
func (p *prose) output(n int) string {
	at := p.rnd.IntN(len(p.pool) - n)
	return p.pool[at : at+n]
}

// size is a number around a median, seldom much larger: lognormal.
func (p *prose) size(median, spread float64, least, most int) int {
	return min(max(int(median*math.Exp(spread*p.rnd.NormFloat64())), least), most)
}

// begin begins a run as far as its first messages. word is in its request and summary, and in those
// of no other.
func (y *year) begin(key task.Key, word string) (*contextstore.Context, error) {
	p := y.prose
	title := "Mend " + p.words(4) + " in " + p.path()
	meta := contextstore.Metadata{TaskKey: key, Title: title, User: fmt.Sprint("user", p.often.Uint64()%40), Run: []byte(`{}`),
		Config: contextstore.MetadataConfig{Provider: "openai", Model: "model-" + string(rune('a'+p.rnd.IntN(3))), ContextLength: 128_000, CompressionThreshold: 0.7, MaxMemoryMessages: 20}}
	uuid, err := y.store.Enqueue(y.t.Context(), meta)
	if err != nil {
		return nil, err
	}
	c, _, err := y.store.Claim(y.t.Context(), uuid)
	if err != nil {
		return nil, err
	}
	_, err = c.Append(contextstore.Message{Role: "system", Content: y.rules}, contextstore.Message{Role: "user", Content: "<issue>\n" + title + "\n\n" + word + " 一覧が空になる。" + p.words(p.size(120, 0.7, 10, 800)) + "\n</issue>"})
	return c, err
}

// work is what a model does in a run, in so many turns, and its plan for every other one. The sizes
// are those of recorded runs of coding agents: 14 turns in the middle, some ten times as many; an
// answer and its call 300 bytes each, what the tool says 900, 1,850 on average, up to 18,000.
func (y *year) work(c *contextstore.Context, word string, turns int) error {
	p, prompt := y.prose, 3000
	if p.rnd.IntN(2) == 0 {
		if err := y.plan(c, word); err != nil {
			return err
		}
	}
	for i := range turns {
		y.clock.pass(time.Duration(2+p.rnd.IntN(20)) * time.Second)
		command := "grep -rn " + p.word() + " " + p.path()
		args, err := json.Marshal(map[string]string{"command": command, "reason": p.words(p.size(20, 0.9, 1, 400))})
		if err != nil {
			return err
		}
		id := redact.Opaque(fmt.Sprintf("call_%08x%08x", p.rnd.Uint32(), p.rnd.Uint32()))
		out := p.output(p.size(900, 1.2, 20, 18_000))
		cost := int64(prompt) / 4
		said := contextstore.Message{Role: "assistant", Content: p.words(p.size(30, 0.8, 3, 600)), ToolCalls: []contextstore.ToolCall{{ID: id, Name: "shell", Arguments: string(args)}},
			Usage: &contextstore.Usage{Prompt: prompt, Completion: 150, Cached: prompt * 9 / 10, Cost: &cost}}
		if _, err := c.Append(said); err != nil {
			return err
		}
		c.Spent(said.Usage)
		err = c.AppendTools(contextstore.ToolRun{Tool: "shell", Args: args, Result: out, Status: "success", DurationMS: int64(p.rnd.IntN(3000)), CallID: id})
		if err != nil {
			return err
		}
		got := contextstore.Message{Role: "tool", ToolName: "shell", ToolCallID: id, Content: out}
		if _, err := c.Append(got); err != nil {
			return err
		}
		prompt += (len(said.Content) + len(args) + len(out)) / 4
		if i%40 == 39 {
			if err := y.sumUp(c); err != nil {
				return err
			}
			prompt = 8000
		}
	}
	if err := c.AppendCheck(contextstore.CheckRun{Round: 1, Command: "make test", Output: p.output(p.size(1500, 0.6, 100, 8000)), DurationMS: 4000}); err != nil {
		return err
	}
	_, err := c.Append(contextstore.Message{Role: "assistant", Content: "It is done. " + p.words(p.size(60, 0.6, 10, 300))})
	return err
}

// sumUp puts a summary in the place of all but the last messages, as a full window asks for.
func (y *year) sumUp(c *contextstore.Context) error {
	seq := c.LastSeq()
	s, err := c.AppendSummary(contextstore.Summary{StartSeq: 2, EndSeq: seq - 10, Summary: y.prose.words(350), OriginalTokens: 30_000, SummaryTokens: 500, Ratio: 1.0 / 60})
	if err != nil {
		return err
	}
	at, err := c.MessageLog().OffsetOf(seq - 9)
	if err != nil {
		return err
	}
	return c.AppendWindow(contextstore.WindowEvent{Type: contextstore.WindowSummary, FromSeq: seq - 9, Offset: at, Reason: "the window is full", Summary: s.ID, Tokens: 90_000, Freed: 60_000})
}

func (y *year) plan(c *contextstore.Context, word string) error {
	p := y.prose
	h, _, err := planning.OpenHistory(c, planning.HistoryOptions{File: y.inheritance().HistoryOf(c.UUID()), Now: y.clock.now})
	if err != nil {
		return err
	}
	plan := &planning.Plan{Phase: "planning", Goal: planning.Goal{MainObjective: word + " " + p.words(15), SuccessCriteria: []string{p.words(12), p.words(12)}}}
	for i := range 2 + p.rnd.IntN(4) {
		id := fmt.Sprint("task_", i+1)
		plan.Decomposition.Subtasks = append(plan.Decomposition.Subtasks, planning.Subtask{ID: id, Description: p.words(18), Dependencies: []string{}})
		plan.Actions.ExecutionOrder = append(plan.Actions.ExecutionOrder, id)
	}
	if _, err = h.Append(planning.Entry{Type: "plan", Plan: plan}); err != nil {
		return err
	}
	return h.Close()
}

// outcome is how a run ends: 6 % fail, 4 % are stopped.
func (y *year) outcome(word string) task.Outcome {
	o := task.Outcome{Status: task.Completed, Summary: word + ": " + y.prose.words(y.prose.size(90, 0.5, 20, 400))}
	switch n := y.prose.rnd.IntN(100); {
	case n < 6:
		o.Status, o.Reason = task.Failed, "the checks failed"
	case n < 10:
		o.Status, o.Reason = task.Stopped, "somebody stopped it"
	}
	return o
}

// end ends a run with what the world is to see of it, which was delivered: that stands in house.db
// before the end, as this is how many ends need no sync each.
func (y *year) end(c *contextstore.Context, o task.Outcome) error {
	var effects []contextstore.Effect
	tx, err := y.house.BeginTx(y.t.Context(), nil)
	if err != nil {
		return err
	}
	for _, kind := range []string{"push", "pull_request", "comment"} {
		e := contextstore.Effect{Key: c.UUID() + "/" + kind, Kind: kind, Data: json.RawMessage(`{"branch":"tori/` + c.Metadata().TaskKey.ID + `"}`)}
		effects = append(effects, e)
		_, xerr := tx.ExecContext(y.t.Context(), `INSERT INTO outbox_acks (key, uuid, kind, acked_at, result) VALUES (?,?,?,?,?)`, e.Key, c.UUID(), kind,
			contextstore.Time{Time: y.clock.now()}.String(), "https://github.example/"+c.Metadata().TaskKey.Owner+"/"+c.Metadata().TaskKey.Repo+"/pull/"+c.Metadata().TaskKey.ID)
		err = errors.Join(err, xerr)
	}
	_, xerr := tx.ExecContext(y.t.Context(), `INSERT INTO marks (scope, name, value, marked_at) VALUES (?,'act','{"actor":"hanako"}',?)`, c.UUID(), contextstore.Time{Time: y.clock.now()}.String())
	if err = errors.Join(err, xerr, tx.Commit()); err != nil {
		return err
	}
	return c.Transition(y.t.Context(), o, effects...)
}
