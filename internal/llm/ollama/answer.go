package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// line is one line of an answer: as little of it as is used, because each is
// decoded into one. Source: api.ChatResponse of Ollama.
type line struct {
	Model        string          `json:"model"`
	Message      *message        `json:"message"`
	Done         bool            `json:"done"`
	DoneReason   string          `json:"done_reason"`
	Prompt       int             `json:"prompt_eval_count"`
	PromptCached int             `json:"prompt_eval_cached_count"`
	Completion   int             `json:"eval_count"`
	Error        json.RawMessage `json:"error"`
}

type message struct {
	Content   string `json:"content"`
	Thinking  string `json:"thinking"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// answer puts the lines of one answer together.
type answer struct {
	maxSize int
	onText  func(string)

	text, reasoning strings.Builder
	calls           []llm.ToolCall
	last            line // the one that says done
	model           string
	size            int // bytes kept
}

// read reads the body of an answer into a. broken is a read error that left
// the answer unfinished; e is any other failure.
func (c *client) read(ctx context.Context, a *answer, contentType string, in io.Reader) (e *llm.Error, broken error) {
	f := wire.Format{Name: "an answer of Ollama's /api/chat", MaxEvent: c.maxLine, MaxAnswer: c.maxAnswer}
	e, broken = f.ReadLines(ctx, a, contentType, in)
	if e != nil && e.Kind == llm.KindCutStream {
		e.Err = i18n.E("ollama.broke_off")
		e.Message = e.Err.Error()
	}
	return e, broken
}

var errNoMessage = errors.New("neither a message nor the end nor an error")

// Event takes in one line.
func (a *answer) Event(_ string, data []byte) (done bool, err error) {
	a.last = line{}
	switch err := json.Unmarshal(data, &a.last); {
	case err != nil:
		return false, err
	case wire.Given(a.last.Error):
		return false, wire.StreamError(data)
	case a.last.Message == nil && !a.last.Done: // JSON of something else
		return false, errNoMessage
	}
	a.model = cmp.Or(a.model, a.last.Model)
	if a.last.Message != nil {
		if e := a.add(a.last.Message); e != nil {
			return false, e
		}
	}
	return a.last.Done, nil
}

// Size is how much was taken in.
func (a *answer) Size() int { return a.size }

// Begun reports whether any part of the answer came; lines without any, as a
// server may send to keep a connection open, are none.
func (a *answer) Begun() bool { return a.size > 0 }

// Finished reports whether only the end of the stream can be missing: never,
// since the line that ends the answer also says so.
func (a *answer) Finished() bool { return false }

// add takes in a part of the message.
func (a *answer) add(m *message) *llm.Error {
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		args := argumentsText(call.Function.Arguments)
		a.calls = append(a.calls, llm.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: args})
		a.size += len(call.ID) + len(call.Function.Name) + len(args) + 64 // the bookkeeping of a call counts too
	}
	return a.say(m.Content, m.Thinking)
}

// say takes in a piece of text and of thoughts, of which either may be empty.
func (a *answer) say(content, thinking string) *llm.Error {
	if content != "" {
		a.text.WriteString(content)
		if a.onText != nil {
			a.onText(content)
		}
	}
	a.reasoning.WriteString(thinking)
	if a.size += len(content) + len(thinking); a.size > a.maxSize {
		return wire.TooLong(a.maxSize)
	}
	return nil
}

// argumentsText is the arguments as they came: the text of the object, in its
// own order and spacing. Servers that stand in for Ollama send a string instead.
func argumentsText(raw json.RawMessage) string {
	var s string
	switch {
	case !wire.Given(raw):
		return ""
	case raw[0] == '"' && json.Unmarshal(raw, &s) == nil:
		return s
	}
	return jsonl.Valid(string(raw))
}

// promptTokens is how many tokens the server read, 0 where it does not say:
// older ones say nothing, or 0, of what their cache had.
func (a *answer) promptTokens() int { return max(a.last.Prompt, 0) }

// usage is nil where the prompt was not counted: half a report would be taken
// for a whole one.
func (a *answer) usage() *llm.Usage {
	n := a.promptTokens()
	if n == 0 {
		return nil
	}
	out := max(a.last.Completion, 0)
	return &llm.Usage{PromptTokens: n, CompletionTokens: out, TotalTokens: n + out, CachedTokens: min(max(a.last.PromptCached, 0), n)}
}

// reply returns the finished answer. Ids that are missing or repeated are made
// from the numbers after lastID.
func (a *answer) reply(lastID int) (*llm.Reply, *llm.Error) {
	finish := a.last.DoneReason
	switch {
	case (finish == "load" || finish == "unload") && a.size == 0:
		return nil, &llm.Error{Kind: llm.KindInvalid, Message: "the server answered " + strconv.Quote(finish) + ": it handled the model, not the messages"}
	case finish == "" || finish == "load" || finish == "unload": // old servers give no reason
		finish = llm.FinishStop
	}
	if finish == llm.FinishStop && len(a.calls) > 0 {
		finish = llm.FinishToolCalls
	}
	wire.NameCalls(a.calls, lastID)
	return &llm.Reply{
		Message: llm.Message{Role: llm.RoleAssistant, Content: a.text.String(), Reasoning: a.reasoning.String(), ToolCalls: a.calls},
		Usage:   a.usage(), FinishReason: finish, Model: a.model,
	}, nil
}
