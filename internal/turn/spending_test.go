package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/memory"
	"toritsugi/internal/tool"
)

// costs is an answer with every figure of a usage, at a price in millionths of
// a dollar; nil where none is known.
func costs(by string, cost *int64, calls ...llm.ToolCall) func() (*llm.Reply, error) {
	return func() (*llm.Reply, error) {
		r, err := say("text", calls...)()
		r.By, r.Usage = by, &llm.Usage{PromptTokens: 1000, CompletionTokens: 100, TotalTokens: 1100, CachedTokens: 700, CacheWriteTokens: 200, ReasoningTokens: 40, Cost: cost}
		return r, err
	}
}

func TestWhatAnAnswerTookIsOnRecord(t *testing.T) {
	t.Parallel()
	price := int64(12_345)
	b := setup(t, hands{"write": ok("w")}, costs("", &price, call("1", "write")), costs("ollama/llama3", nil))
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []contextstore.Message
	if err := b.ctx.Messages(0, func(m contextstore.Message) bool {
		if m.Role == llm.RoleAssistant {
			got = append(got, contextstore.Message{AnsweredBy: m.AnsweredBy, Usage: m.Usage})
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	u := contextstore.Usage{Prompt: 1000, Completion: 100, Cached: 700, CacheWrite: 200, Reasoning: 40}
	priced := u
	priced.Cost = &price
	if d := cmp.Diff([]contextstore.Message{{Usage: &priced}, {Usage: &u, AnsweredBy: "ollama/llama3"}}, got); d != "" {
		t.Error(d)
	}
	want := contextstore.Spending{PromptTokens: 2000, CachedTokens: 1400, CacheWriteTokens: 400, CompletionTokens: 200, ReasoningTokens: 80, CostMicroUSD: price, UnpricedCalls: 1}
	if d := cmp.Diff(want, b.ctx.State().Spending); d != "" {
		t.Error(d)
	}
}

// A server that reports nothing has no price; a script is no call to a model.
func TestCallsWithoutUsage(t *testing.T) {
	t.Parallel()
	silent := func() (*llm.Reply, error) {
		r, err := say("done")()
		r.Usage = nil
		return r, err
	}
	for _, scripted := range []bool{false, true} {
		b := setup(t, hands{}, silent)
		b.loop.Scripted = scripted
		if _, err := b.loop.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := b.ctx.State().Spending
		if scripted && s != (contextstore.Spending{}) || !scripted && (s.UnpricedCalls != 1 || s.PromptTokens == 0) {
			t.Errorf("scripted %v: %+v", scripted, s)
		}
	}
}

func TestBudgetOfMoney(t *testing.T) {
	t.Parallel()
	price := int64(600_000)
	var answers []func() (*llm.Reply, error)
	for i := range 9 {
		answers = append(answers, costs("", &price, call(fmt.Sprint(i), "write")))
	}
	b := setup(t, hands{"write": ok("w")}, answers...)
	limit := func() error {
		b.loop.Budget.Cost = 1_000_000
		_, err := b.loop.Run(t.Context())
		return err
	}
	// A second call like the first would take more than is left.
	want := BudgetError{Key: "budget.max_cost_usd", Limit: "$1.0000", Taken: "$0.6000", Next: "$0.6000"}
	var over *BudgetError
	if err := limit(); !errors.As(err, &over) || *over != want || b.ctx.State().LLMCallCount != 1 {
		t.Errorf("%v after %d calls", err, b.ctx.State().LLMCallCount)
	}
	// A restart does not refill it.
	id := b.ctx.UUID()
	_ = b.ctx.Close()
	b.claim(t, id, nil)
	b.open(t, hands{"write": ok("w")})
	if err := limit(); !errors.As(err, &over) || *over != want || b.ctx.State().LLMCallCount != 1 {
		t.Errorf("%v after %d calls", err, b.ctx.State().LLMCallCount)
	}
	for _, c := range []struct {
		limit, taken, next int64
		over               bool
	}{{0, 1 << 50, 1 << 50, false}, {1, 0, 0, false}, {10, 9, 0, false}, {10, 10, 0, true}, {10, 7, 3, false}, {10, 7, 4, true}} {
		s := contextstore.State{Spending: contextstore.Spending{CostMicroUSD: c.taken, UnpricedCalls: 99}}
		if err := (Budget{Cost: c.limit}).Check(s, contextstore.Amount{MicroUSD: c.next}); (err != nil) != c.over {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// voice sends what a real client encodes to a model of the test.
type voice struct {
	llm.Conversation
	model *model
}

func (v voice) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	return v.model.Send(ctx, onText)
}

// That a call failed is part of what some providers are sent: a resumed run
// knows it from the ledger, however the run before it ended.
func TestAResumedRunSendsTheSameBytes(t *testing.T) {
	t.Parallel()
	client, err := anthropic.New(anthropic.Config{Provider: "anthropic", Model: "claude-sonnet-4-5", APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	bad := func(context.Context, string) (tool.Result, error) {
		return tool.Result{Text: "no such file", IsError: true}, nil
	}
	h := hands{"write": ok("written"), "bad": bad, "look": ok("seen"), "lookbad": bad, "die": func(context.Context, string) (tool.Result, error) { panic("killed here") }}
	b := setup(t, h, say("", call("1", "write"), call("2", "bad"), call("3", "nothing")), say("", call("4", "look"), call("5", "lookbad")),
		say("", call("6", "bad"), call("7", "write"), call("8", "lookbad"), call("9", "die")), say("done"))
	window := func() llm.Conversation {
		v := voice{client.Open(llm.Settings{}), b.model}
		if b.loop.Window, err = memory.Open(b.ctx, v, memory.Policy{Limit: 100_000}); err != nil {
			t.Fatal(err)
		}
		return v
	}
	live := window()
	same := func(failed int) {
		t.Helper()
		want := bytes.Clone(live.Serialized())
		if n := bytes.Count(want, []byte(`"is_error":true`)); n != failed {
			t.Errorf("%d failed calls were sent, want %d: %s", n, failed, want)
		}
		id := b.ctx.UUID()
		_ = b.ctx.Close()
		b.claim(t, id, h)
		b.open(t, h)
		live = window()
		if d := cmp.Diff(string(want), string(live.Serialized())); d != "" {
			t.Error(d)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = b.loop.Run(t.Context())
	}()
	same(3) // 2, 3 and 5
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(6) // 6 and 8 as they were recorded, 9 whose outcome nobody knows
}
