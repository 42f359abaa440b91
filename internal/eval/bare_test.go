package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
)

// spoken is a conversation whose answers are given.
type spoken struct {
	llm.Conversation
	said    []llm.Message
	answers []llm.Reply
	err     error
}

func (s *spoken) Append(m llm.Message) { s.said = append(s.said, m) }
func (s *spoken) Serialized() []byte   { return []byte(strings.Repeat("x", 400)) }

func (s *spoken) Send(context.Context, func(string)) (*llm.Reply, error) {
	if len(s.answers) == 0 {
		return nil, s.err
	}
	r := s.answers[0]
	s.answers = s.answers[1:]
	return &r, nil
}

func says(text string) llm.Reply {
	return llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Content: text}, FinishReason: llm.FinishStop}
}

func calls(n int) llm.Reply {
	r := says("")
	for i := range n {
		r.Message.ToolCalls = append(r.Message.ToolCalls, llm.ToolCall{ID: fmt.Sprint(i), Name: "shell", Arguments: "{}"})
	}
	return r
}

func costs(r llm.Reply, prompt, completion, cached int, micro int64) llm.Reply {
	r.Usage = &llm.Usage{PromptTokens: prompt, CompletionTokens: completion, TotalTokens: prompt + completion, CachedTokens: cached}
	if micro >= 0 {
		r.Usage.Cost = &micro
	}
	return r
}

type hand struct{}

func (hand) Definition() tool.Definition {
	return tool.Definition{Name: "shell", Schema: json.RawMessage(`{"type":"object"}`)}
}
func (hand) Call(context.Context, json.RawMessage) (tool.Result, error) {
	return tool.Text("result"), nil
}

func bareLoop(t *testing.T, s *spoken, b turn.Budget) *loop {
	t.Helper()
	tools, err := tool.NewRegistry(tool.Limits{}, hand{})
	if err != nil {
		t.Fatal(err)
	}
	return &loop{conv: s, tools: tools, tally: memory.NewTally(0), budget: b, log: slog.New(slog.DiscardHandler)}
}

func TestTheLoop(t *testing.T) {
	t.Parallel()
	auth := &llm.Error{Kind: llm.KindAuth, Provider: "p", Message: "no key"}
	for name, tt := range map[string]struct {
		answers []llm.Reply
		err     error
		budget  turn.Budget
		want    task.Status
		roles   string // of all that was said
	}{
		"acts and answers": {answers: []llm.Reply{calls(2), says("done")}, want: task.Completed, roles: "system user assistant tool tool assistant"},
		"says nothing":     {answers: []llm.Reply{says(" "), says("done")}, want: task.Completed, roles: "system user assistant user assistant"},
		"never says": {answers: []llm.Reply{says(""), says(""), says(""), says("")}, want: task.Failed,
			roles: "system user assistant user assistant user assistant user assistant"},
		"acts between":  {answers: []llm.Reply{says(""), says(""), says(""), calls(1), says(""), says("x")}, want: task.Completed, roles: "system user assistant user assistant user assistant user assistant tool assistant user assistant"},
		"turns used up": {answers: []llm.Reply{calls(1), calls(1), says("done")}, budget: turn.Budget{Turns: 2}, want: task.Failed, roles: "system user assistant tool assistant tool"},
		"tokens used":   {answers: []llm.Reply{costs(calls(1), 90, 20, 0, -1), says("done")}, budget: turn.Budget{Tokens: 100}, want: task.Failed, roles: "system user assistant tool"},
		"money spent":   {answers: []llm.Reply{costs(calls(1), 9, 2, 0, 1000), says("done")}, budget: turn.Budget{Cost: 1000}, want: task.Failed, roles: "system user assistant tool"},
		"model fails":   {answers: []llm.Reply{calls(1)}, err: auth, want: task.Failed, roles: "system user assistant tool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &spoken{answers: tt.answers, err: tt.err}
			end, err := bareLoop(t, s, tt.budget).within(t.Context(), "issue", i18n.English)
			if err != nil || end.status != tt.want || end.reason == "" {
				t.Errorf("ended as %+v, %v", end, err)
			}
			var roles []string
			for _, m := range s.said {
				roles = append(roles, m.Role)
			}
			if got := strings.Join(roles, " "); got != tt.roles {
				t.Errorf("said %s\nwant %s", got, tt.roles)
			}
		})
	}
}

func TestTheLoopEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := bareLoop(t, &spoken{err: context.Canceled}, turn.Budget{}).within(ctx, "issue", i18n.English)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestTheLoopCountsWhatItTook(t *testing.T) {
	t.Parallel()
	l := bareLoop(t, &spoken{answers: []llm.Reply{costs(calls(3), 100, 10, 50, 7), costs(calls(1), 200, 20, 150, -1), says("four")}}, turn.Budget{})
	if _, err := l.run(t.Context(), "issue", i18n.English); err != nil {
		t.Fatal(err)
	}
	s := l.taken
	// The last answer reported nothing, so it is estimated: 400 bytes were sent, 4 characters came.
	if s.LLMCallCount != 3 || s.ToolCallCount != 4 || s.PromptTokens != 400 || s.CompletionTokens != 31 || s.CachedTokens != 200 || s.CostMicroUSD != 7 || s.UnpricedCalls != 2 || s.TotalTokensUsed != 431 {
		t.Errorf("%+v", s)
	}
}
