package eval

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
)

// barePrompt is all that the minimal loop is told beside the issue.
//
//go:embed bare.md
var barePrompt string

// maxNudges is how often in a row an answer that neither acts nor says anything
// is answered with a request to go on.
const maxNudges = 3

// loop is the least an agent can be: it asks, runs what is called, and asks
// again, with everything that was said before, until nothing is called.
type loop struct {
	conv     llm.Conversation
	tools    *tool.Registry
	budget   turn.Budget
	scripted bool
	tally    *memory.Tally // what the requests take by estimate
	log      *slog.Logger
	taken    contextstore.State // calls and tokens, as a budget reads them
}

// ending is how a loop ended: a task's status, and why.
type ending struct {
	status task.Status
	reason string
}

// within runs the loop for as long as its budget lets it.
func (l *loop) within(ctx context.Context, issue string, lang i18n.Lang) (ending, error) {
	limit := l.budget.Time
	if limit <= 0 {
		return l.run(ctx, issue, lang)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	end, err := l.run(timed, issue, lang)
	if err != nil && timed.Err() != nil && ctx.Err() == nil {
		return ending{task.Failed, lang.T("agent.budget", limit, limit, "budget.max_minutes")}, nil
	}
	return end, err
}

// run carries on until the model answers without a call. The error is ctx's.
func (l *loop) run(ctx context.Context, issue string, lang i18n.Lang) (ending, error) {
	l.show(llm.Message{Role: llm.RoleSystem, Content: barePrompt}, memory.PartSystem)
	l.show(llm.Message{Role: llm.RoleUser, Content: issue}, memory.PartRequest)
	for nudges := 0; ; {
		var spent *turn.BudgetError
		if err := l.budget.Check(l.taken, contextstore.Amount{}); errors.As(err, &spent) {
			return ending{task.Failed, lang.T("agent.budget", spent.Taken, spent.Limit, spent.Key)}, nil
		}
		reply, err := l.ask(ctx)
		var failed *llm.Error
		switch {
		case errors.As(err, &failed) && ctx.Err() == nil:
			return ending{task.Failed, failed.Explain(lang)}, nil
		case err != nil:
			return ending{}, err
		case len(reply.Message.ToolCalls) > 0:
			nudges = 0
			if err := l.act(ctx, reply.Message.ToolCalls); err != nil {
				return ending{}, err
			}
		case reply.FinishReason != llm.FinishLength && strings.TrimSpace(reply.Message.Content) != "":
			return ending{task.Completed, lang.T("eval.answered")}, nil
		default:
			if nudges++; nudges > maxNudges {
				return ending{task.Failed, lang.T("eval.nonsense")}, nil
			}
			l.show(llm.Message{Role: llm.RoleUser, Content: "Go on."}, memory.PartRecent)
		}
	}
}

// ask sends the conversation, appends the answer and counts what it took.
func (l *loop) ask(ctx context.Context) (*llm.Reply, error) {
	reply, err := l.conv.Send(ctx, nil)
	if err != nil {
		return nil, err
	}
	sent := len(l.conv.Serialized())
	l.tally.Asked(reply.Message)
	l.show(reply.Message, memory.PartRecent)
	l.taken.LLMCallCount++
	l.log.Info("Answer", "said", reply.Message.Content, "calls", len(reply.Message.ToolCalls))
	u := reply.Usage
	if u == nil && !l.scripted { // a server that reports nothing must not get around the budget
		u = &llm.Usage{PromptTokens: sent / 4, CompletionTokens: contextstore.CountTokens(reply.Message.Content)}
		u.TotalTokens = u.PromptTokens + u.CompletionTokens
	}
	if u == nil {
		return reply, nil
	}
	s := &l.taken.Spending
	s.PromptTokens += int64(u.PromptTokens)
	s.CompletionTokens += int64(u.CompletionTokens)
	s.CachedTokens += int64(u.CachedTokens)
	s.CacheWriteTokens += int64(u.CacheWriteTokens)
	s.ReasoningTokens += int64(u.ReasoningTokens)
	l.taken.TotalTokensUsed += int64(u.TotalTokens)
	if u.Cost != nil {
		s.CostMicroUSD += *u.Cost
	} else {
		s.UnpricedCalls++
	}
	return reply, nil
}

// show appends a message to the conversation.
func (l *loop) show(m llm.Message, part string) {
	l.conv.Append(m)
	l.tally.Show(m, part, "")
}

// act runs calls one after the other and appends what they gave.
func (l *loop) act(ctx context.Context, calls []llm.ToolCall) error {
	for _, c := range calls {
		res, err := l.tools.Call(ctx, c.Name, c.Arguments)
		if err != nil {
			return err
		}
		l.taken.ToolCallCount++
		l.log.Info("Call", "tool", c.Name, "arguments", c.Arguments, "result", res.Text)
		l.show(llm.Message{Role: llm.RoleTool, Content: res.Text, ToolCallID: c.ID, ToolName: c.Name, Failed: res.IsError}, memory.PartRecent)
	}
	return nil
}

// plainShell is the house's shell tool, told of without the tools that are not
// offered beside it.
type plainShell struct{ tool.Tool }

const shellSchema = `{"type":"object","properties":{` +
	`"command":{"type":"string","description":"Script for bash."},` +
	`"timeout_seconds":{"type":"integer","minimum":1,"maximum":600}},` +
	`"required":["command"],"additionalProperties":false}`

// Definition implements tool.Tool.
func (s plainShell) Definition() tool.Definition {
	return tool.Definition{Name: "shell", Description: "Run a command with bash. Its output comes back, followed by its exit code. The directory lasts from call to call.",
		Schema: json.RawMessage(shellSchema)}
}

// onlyShell is the one tool of the loop.
func onlyShell(root *os.Root, runner sandbox.Runner, cfg *config.Config, filter func(io.Writer) io.WriteCloser) (*tool.Registry, error) {
	limits := tool.Limits{MaxOutput: cfg.Sandbox.MaxOutputBytes, Filter: filter}
	for _, t := range tool.Builtins(tool.Env{Root: root, Dir: root.Name(), Shell: shell{runner}, ShellTimeout: cfg.Sandbox.ShellTimeout(), Limits: limits}) {
		if t.Definition().Name == "shell" {
			return tool.NewRegistry(limits, plainShell{t})
		}
	}
	return nil, errors.New("there is no shell tool")
}

// offered are the tools of a registry as a model is told of them.
func offered(r *tool.Registry) (all []llm.Tool) {
	for _, d := range r.Definitions() {
		all = append(all, llm.Tool{Name: d.Name, Description: d.Description, Schema: d.Schema})
	}
	return all
}

// shell runs the tool's commands in the sandbox.
type shell struct{ runner sandbox.Runner }

// Run runs one command of the model.
func (s shell) Run(ctx context.Context, script, input, dir string, timeout time.Duration, out io.Writer) (tool.ShellExit, error) {
	e, err := s.runner.Run(ctx, sandbox.Command{Script: script, Input: input, Dir: dir, Timeout: timeout, Output: out})
	x := tool.ShellExit{Code: e.Code, TimedOut: e.TimedOut, Signal: e.Signal}
	if e.Limit != "" {
		x.Limit = fmt.Sprintf("limit of %s (%s)", e.Limit, e.Bound)
	}
	return x, err
}
