// Package turn is the loop of a run: ask the model, append its answer, run the tools it calls,
// append their results, again. The ledger is written before anything is done (DESIGN §2.3), so
// a run can stop at any instant and be resumed.
package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/texttool"
	"toritsugi/internal/memory"
	"toritsugi/internal/redact"
	"toritsugi/internal/tool"
)

// Ledger is where a turn is written. *contextstore.Context is one.
type Ledger interface {
	Append(...contextstore.Message) ([]contextstore.Message, error)
	AppendTools(...contextstore.ToolRun) error
	SaveImage(data []byte, mediaType string) (contextstore.Image, error)
	LastTools(n int) ([]contextstore.ToolRun, error)
	Activity(status, activity string) error
	TurnDone(context.Context) error
	State() contextstore.State
}

// Tools run the calls of the model. *tool.Registry is one.
type Tools interface {
	Call(ctx context.Context, name, args string) (tool.Result, error)
	ReadOnly(name string) bool
	Waits(name string) bool
	Own(name string) string // a tool's own name
}

// Settings are what a Loop works with.
type Settings struct {
	Ledger Ledger
	Window *memory.Window
	Tools  Tools
	Budget Budget
	Days   Days // of all runs together; nil where no day has a limit
	Log    *slog.Logger
	Now    func() time.Time

	// KeepLast ends Run before the last call that the budget has room for, with a
	// *BudgetError whose Last is set: that call is kept for Once.
	KeepLast   bool
	Scripted   bool // no model is called, so nothing is estimated
	MaxResults int  // bytes that all results of one answer may take together; 0 for no limit
}

// Loop works on one task. It is used by one goroutine.
type Loop struct {
	Settings
	ToolTime time.Duration // spent in tools since the loop was made, side by side counted once each

	director Director
	cache    cacheWatch
	last     *contextstore.Usage // of the latest answer of this owner
}

// New returns a loop that d directs.
func New(s Settings, d Director) *Loop { return &Loop{Settings: s, director: d} }

// maxNudges is how often in a row an empty answer is answered with a request
// to go on before the run is given up.
const maxNudges = 3

// maxOverflows is how often in a row a request is shortened because the provider
// refused it as too long. Each time a quarter of it leaves the window; after the
// last time less than half of it is left.
const maxOverflows = 3

// ErrNonsense ends a run whose model keeps giving empty answers.
var ErrNonsense = errors.New("the model keeps answering with neither text nor a tool call")

// ErrCutOff ends a run whose answers reach the output limit inside a tool call
// again and again.
var ErrCutOff = errors.New("the model's answers keep being cut off inside a tool call")

// Run takes turns until the model answers without calling a tool, or the director ends it, and
// returns the last answer. An error is ctx's, a *BudgetError, one of Days, ErrNonsense, ErrCutOff,
// an *llm.Error, a *memory.TooSmallError, a *tool.WaitError, or the ledger's; the
// ledger is consistent after each.
func (l *Loop) Run(ctx context.Context) (contextstore.Message, error) {
	if err := l.closeOpen(ctx, ""); err != nil {
		return contextstore.Message{}, err
	}
	unread := l.Owes() // the model was told of a call that it wrote as text
	if last := l.Window.Last(); last.Role == llm.RoleAssistant && len(last.ToolCalls) == 0 {
		// The process was killed after it recorded an answer that does not end the
		// run, and before it recorded the message that asks the model to go on.
		word := nudge(last.FinishReason)
		if unread {
			word = unreadCall
		}
		if _, err := l.append(contextstore.Message{Role: llm.RoleUser, Content: word}); err != nil {
			return contextstore.Message{}, err
		}
	}
	for nudges, told := 0, false; ; {
		if err := l.reserve(ctx, l.KeepLast); err != nil {
			return contextstore.Message{}, err
		}
		if _, err := l.Hear(ctx); err != nil {
			return contextstore.Message{}, err
		}
		reply, err := l.ask(ctx)
		if err != nil {
			return contextstore.Message{}, err
		}
		l.director.Read(reply)
		for i := range reply.Message.ToolCalls {
			c := &reply.Message.ToolCalls[i]
			c.Name = l.Tools.Own(c.Name)
		}
		answer, err := l.append(l.fromReply(reply))
		if err != nil {
			return contextstore.Message{}, err
		}
		l.Log.Info(fmt.Sprintf("LLM call #%d: %d tokens", l.Ledger.State().LLMCallCount, answer.Usage.Sum()), said(answer.Content)...)
		switch {
		case len(reply.Message.ToolCalls) > 0:
			if nudges++; reply.FinishReason != llm.FinishLength || len(reply.Message.ToolCalls) > 1 {
				nudges = 0 // at least one call was whole
			}
			told = !told && texttool.Unread(answer.Content) // not twice in a row
			switch err = l.act(ctx, reply, answer); {
			case err != nil:
			case told: // also where all is over otherwise
				_, err = l.append(contextstore.Message{Role: llm.RoleUser, Content: unreadBeside})
			case l.director.Ends(answer):
				return answer, nil
			case nudges > maxNudges:
				return answer, ErrCutOff
			}
		case !Final(answer):
			if nudges++; nudges > maxNudges {
				return answer, ErrNonsense
			}
			_, err = l.append(contextstore.Message{Role: llm.RoleUser, Content: nudge(reply.FinishReason)})
		case !unread && l.Owes(): // else it is asked on anyway
			unread = true
			_, err = l.append(contextstore.Message{Role: llm.RoleUser, Content: unreadCall})
		default:
			return answer, l.Ledger.TurnDone(ctx)
		}
		if err != nil {
			return contextstore.Message{}, err
		}
	}
}

// Owes reports that the last answer, which would end the work, holds a call as text
// that the model was not asked about: the process was killed in between.
func (l *Loop) Owes() bool {
	last := l.Window.Last()
	return Final(last) && texttool.Unread(last.Content) && l.Window.Before() != unreadCall && l.director.Ends(last)
}

// Hear appends what the director has to say before a request, and reports whether there was any.
func (l *Loop) Hear(ctx context.Context) (bool, error) {
	news, err := l.director.Before(ctx)
	if err != nil || len(news) == 0 {
		return false, err
	}
	_, err = l.append(news...)
	return err == nil, err
}

// Final reports whether a message is an answer that ends the work: text that
// calls nothing and was not cut off.
func Final(m contextstore.Message) bool {
	return m.Role == llm.RoleAssistant && len(m.ToolCalls) == 0 && m.FinishReason != llm.FinishLength && strings.TrimSpace(m.Content) != ""
}

func nudge(finish string) string {
	if finish == llm.FinishLength {
		return "Your answer was cut off at the output limit. Go on from where it ended, in smaller steps."
	}
	return "Your answer was empty. Call a tool to go on, or say in a sentence what was done if the work is finished."
}

// unreadCall asks once whether a call that the model wrote as text was meant. Without
// it the run would end, and the model would believe that the call was made.
const unreadCall = "Your answer holds a tool call as text, and it was not run. If it was meant, make the call again, by itself and with valid JSON. If it was not, or the work is finished, say so in words."

// unreadBeside tells the model of a call as text beside others that were made.
const unreadBeside = "Beside your calls your answer holds a tool call as text, and that one was not run. If it was meant, make it again as a call."

// append writes messages to the ledger and takes them into the window; it
// returns the last of them as it was written.
func (l *Loop) append(msgs ...contextstore.Message) (contextstore.Message, error) {
	written, err := l.Ledger.Append(msgs...)
	if err != nil {
		return contextstore.Message{}, err
	}
	for _, m := range written {
		l.Window.Add(m)
	}
	for _, m := range written {
		if err := l.director.After(m); err != nil {
			return m, err
		}
	}
	return written[len(written)-1], nil
}

// ask sends the window and returns the answer, making room where it is needed.
func (l *Loop) ask(ctx context.Context) (*llm.Reply, error) {
	if err := l.Ledger.Activity(contextstore.Processing, "llm_call"); err != nil {
		return nil, err
	}
	if err := l.fit(ctx); err != nil {
		return nil, err
	}
	for overflows := 0; ; overflows++ {
		reply, err := l.Window.Conversation().Send(llm.LimitAnswer(ctx, l.Budget.next(l.Ledger.State())), l.director.Stream)
		var e *llm.Error
		if errors.As(err, &e) && e.Kind == llm.KindContext && overflows < maxOverflows {
			l.Log.Warn("The provider found the request too long; room is made", "error", err)
			if room := l.Window.Overflowed(ctx, e.Read); room != nil {
				if e.Read > 0 && errors.As(room, new(*memory.TooSmallError)) {
					return nil, err // which says what the server holds, and what to set
				}
				return nil, room
			}
			if _, err := l.remind(); err != nil {
				return nil, err
			}
			continue
		}
		if err == nil {
			l.watchCache(reply)
		}
		return reply, err
	}
}

func (l *Loop) fromReply(r *llm.Reply) contextstore.Message {
	m := contextstore.Message{Role: llm.RoleAssistant, Content: r.Message.Content, Reasoning: r.Message.Reasoning,
		Provider: redact.Opaque(r.Message.Opaque), FinishReason: r.FinishReason, AnsweredBy: r.By}
	if r.FinishReason == llm.FinishStop || r.FinishReason == llm.FinishToolCalls && len(r.Message.ToolCalls) > 0 {
		m.FinishReason = ""
	}
	for _, c := range r.Message.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, contextstore.ToolCall{ID: redact.Opaque(c.ID), Name: c.Name, Arguments: c.Arguments})
	}
	if u := r.Usage; u != nil {
		m.Usage = &contextstore.Usage{Prompt: u.PromptTokens, Completion: u.CompletionTokens, Cached: u.CachedTokens, CacheWrite: u.CacheWriteTokens,
			Reasoning: u.ReasoningTokens, Cost: u.Cost}
		if u.TotalTokens != u.PromptTokens+u.CompletionTokens {
			m.Usage.Total = u.TotalTokens
		}
	} else if !l.Scripted {
		// The budget counts the answers of a server that reports no usage, too.
		m.Usage = &contextstore.Usage{Prompt: l.Window.Tokens(), Completion: contextstore.CountTokens(m.Content), Estimated: true}
	}
	l.last = m.Usage
	return m
}

// Tell appends a message to the model that the run itself has to say. Calls
// that an interruption left open are closed first.
func (l *Loop) Tell(ctx context.Context, text string) error { return l.Ask(ctx, "", text) }

// Ask is Tell for a message of a kind (contextstore.Message.Kind).
func (l *Loop) Ask(ctx context.Context, kind, text string) error {
	if err := l.closeOpen(ctx, ""); err != nil {
		return err
	}
	_, err := l.append(contextstore.Message{Role: llm.RoleUser, Content: text, Kind: kind})
	return err
}
