package ollama

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"toritsugi/internal/llm"
)

// shownBytes is how much of an answer that is not understood errors show.
const shownBytes = 120

// line is one line of an answer: as little of it as is used, because each is
// decoded into one. Source: api.ChatResponse of Ollama.
type line struct {
	Message      *message        `json:"message"`
	Done         bool            `json:"done"`
	DoneReason   string          `json:"done_reason"`
	Prompt       int             `json:"prompt_eval_count"`
	PromptCached int             `json:"prompt_eval_cached_count"`
	Completion   int             `json:"eval_count"`
	Error        json.RawMessage `json:"error"`
}

// firstLine is the one that also tells the model.
type firstLine struct {
	Model string `json:"model"`
	line
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
	begun           bool // a line was understood
	size            int  // bytes kept
}

// read reads the body of an answer into a. broken is a read error that left
// the answer unfinished; e is any other failure.
func (c *client) read(ctx context.Context, a *answer, contentType string, in io.Reader) (e *llm.Error, broken error) {
	buffer, _ := c.buffers.Get().(*bufio.Reader)
	if buffer == nil {
		buffer = bufio.NewReaderSize(nil, 16<<10)
	}
	buffer.Reset(in)
	defer func() {
		buffer.Reset(nil)
		c.buffers.Put(buffer)
	}()
	s := &lines{r: buffer, max: c.maxLine}
	for !a.last.Done {
		if left(ctx) { // also where all of the answer is here already
			return nil, ctx.Err()
		}
		data, whole, err := s.read()
		switch {
		case errors.Is(err, errLineTooLong):
			return tooLong("one line", c.maxLine), nil
		case errors.Is(err, io.EOF):
			return cut("the stream ended before the answer did (Ollama also ends it so where a model repeats itself)"), nil
		case err != nil:
			return nil, err
		}
		if data = trimLine(data); len(data) == 0 {
			continue
		}
		if e := a.take(data, whole, contentType); e != nil {
			return e, nil
		}
	}
	return nil, nil
}

// take takes in one line; whole says that its end came.
func (a *answer) take(data []byte, whole bool, contentType string) *llm.Error {
	a.last = line{}
	var err error
	if a.begun {
		err = json.Unmarshal(data, &a.last)
	} else {
		var first firstLine
		err = json.Unmarshal(data, &first)
		a.last, a.model = first.line, first.Model
	}
	switch {
	case err != nil && a.begun && !whole && data[0] == '{':
		return cut("the stream ended within a line")
	case err == nil && told(a.last.Error):
		return streamError(data)
	case err != nil, a.last.Message == nil && !a.last.Done: // JSON of something else
		return invalid(contentType, data)
	}
	a.begun = true
	if a.last.Message == nil {
		return nil
	}
	return a.add(a.last.Message)
}

// trimLine takes white space and a byte order mark off.
func trimLine(data []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")))
}

func cut(message string) *llm.Error {
	return &llm.Error{Kind: llm.KindCutStream, Message: message, Err: io.ErrUnexpectedEOF}
}

func invalid(contentType string, start []byte) *llm.Error {
	return &llm.Error{Kind: llm.KindInvalid,
		Message: fmt.Sprintf("not an answer of Ollama's /api/chat: content type %q, at %q", contentType, start[:min(len(start), shownBytes)])}
}

func tooLong(what string, limit int) *llm.Error {
	return &llm.Error{Kind: llm.KindInvalid, Message: fmt.Sprintf("%s is longer than %d bytes", what, limit)}
}

// told reports whether a field is there and not null.
func told(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// add takes in a part of the message.
func (a *answer) add(m *message) *llm.Error {
	if m.Content != "" {
		a.text.WriteString(m.Content)
		if a.onText != nil {
			a.onText(m.Content)
		}
	}
	a.reasoning.WriteString(m.Thinking)
	a.size += len(m.Content) + len(m.Thinking)
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		args := argumentsText(call.Function.Arguments)
		a.calls = append(a.calls, llm.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: args})
		a.size += len(call.ID) + len(call.Function.Name) + len(args) + 64 // the bookkeeping of a call counts too
	}
	if a.size > a.maxSize {
		return tooLong("the answer", a.maxSize)
	}
	return nil
}

// argumentsText is the arguments as they came: the text of the object, in its
// own order and spacing. Servers that stand in for Ollama send a string instead.
func argumentsText(raw json.RawMessage) string {
	var s string
	switch {
	case !told(raw):
		return ""
	case raw[0] == '"' && json.Unmarshal(raw, &s) == nil:
		return s
	}
	return validText(string(raw))
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
	seen := make(map[string]bool, len(a.calls))
	for _, call := range a.calls {
		lastID = max(lastID, generatedID(call.ID))
	}
	for i := range a.calls {
		if call := &a.calls[i]; call.ID == "" || seen[call.ID] {
			lastID++
			call.ID = "call_" + strconv.Itoa(lastID)
		}
		seen[a.calls[i].ID] = true
	}
	return &llm.Reply{
		Message: llm.Message{Role: llm.RoleAssistant, Content: a.text.String(), Reasoning: a.reasoning.String(), ToolCalls: a.calls},
		Usage:   a.usage(), FinishReason: finish, Model: a.model,
	}, nil
}
