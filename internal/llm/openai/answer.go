package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// answer puts the events of one answer together.
type answer struct {
	maxSize int
	onText  func(string)

	thinking        thinking
	text, reasoning strings.Builder
	calls           []*partialCall
	finish, model   string
	usage           *llm.Usage
	done            bool // the server said so by [DONE]
	refused         bool
	size            int // bytes kept
}

type partialCall struct {
	index    int // -1 where the server gave none
	id, name string
	args     strings.Builder
}

// read reads the body of an answer into a.
func (c *client) read(ctx context.Context, a *answer, contentType string, in io.Reader) (e *llm.Error, broken error) {
	f := wire.Format{Name: "a chat completion", MaxEvent: c.maxEvent, MaxAnswer: c.maxAnswer}
	return f.Read(ctx, a, contentType, in)
}

// Event takes in one event of a stream.
func (a *answer) Event(name string, data []byte) (done bool, err error) {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		a.done = true
		return true, nil
	}
	ch := new(chunk)
	if err := json.Unmarshal(data, ch); err != nil {
		return false, err
	}
	if name == "error" && len(ch.Error) == 0 {
		ch.Error = bytes.Clone(data)
	}
	if e := a.add(ch); e != nil {
		return false, e
	}
	return false, nil
}

var errNoChoices = errors.New("neither choices nor an error")

// Document takes in a whole answer.
func (a *answer) Document(data []byte) error {
	ch := new(chunk)
	if err := json.Unmarshal(data, ch); err != nil {
		return err
	}
	if len(ch.Choices) == 0 && !wire.Given(ch.Error) {
		return errNoChoices
	}
	a.done = true
	if e := a.add(ch); e != nil {
		return e
	}
	return nil
}

// Size is how much was taken in.
func (a *answer) Size() int { return a.size }

// Begun reports whether anything was taken in.
func (a *answer) Begun() bool { return a.size > 0 || a.finish != "" }

// Finished reports whether only the end of the stream can be missing.
func (a *answer) Finished() bool { return a.finish != "" }

// add takes in one event, or a whole answer.
func (a *answer) add(c *chunk) *llm.Error {
	if wire.Given(c.Error) {
		return wire.StreamError(c.Error)
	}
	a.model = cmp.Or(a.model, string(c.Model))
	if u := c.Usage.report(); u != nil {
		a.usage = u
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 { // one answer was asked for
			continue
		}
		if wire.Given(ch.Error) {
			return wire.StreamError(ch.Error)
		}
		if ch.Message != nil && a.empty() {
			a.addDelta(ch.Message, true)
		} else {
			a.addDelta(&ch.Delta, false)
		}
		if u := ch.Usage.report(); u != nil && a.usage == nil {
			a.usage = u
		}
		if e := a.ended(string(ch.FinishReason)); e != nil {
			return e
		}
	}
	if a.size > a.maxSize {
		return wire.TooLong(a.maxSize)
	}
	return nil
}

// ended notes why the answer ended; "" is no reason.
func (a *answer) ended(reason string) *llm.Error {
	switch reason {
	case "":
	case "error", "insufficient_system_resource": // OpenRouter, DeepSeek
		return &llm.Error{Kind: llm.KindServer, Message: "the server gave up: finish_reason " + reason}
	default:
		a.finish = reason
	}
	return nil
}

func (a *answer) empty() bool { return a.size == 0 }

// addText takes in a piece of the answer's text.
func (a *answer) addText(text string) {
	a.size += len(text)
	a.take(a.thinking.split(text))
}

func (a *answer) take(thoughts, text string) {
	a.reasoning.WriteString(thoughts)
	if text == "" {
		return
	}
	a.text.WriteString(text)
	if a.onText != nil {
		a.onText(text)
	}
}

// addDelta takes in a part of the message; whole says that it is all of it, so
// that every call in it stands for itself.
func (a *answer) addDelta(d *delta, whole bool) {
	for _, t := range [...]text{d.Content, d.Refusal} {
		if t != "" {
			a.addText(string(t))
		}
	}
	a.refused = a.refused || d.Refusal != ""
	reasoning := string(cmp.Or(d.Reasoning, d.Thoughts))
	a.size += len(reasoning)
	a.reasoning.WriteString(reasoning)
	for i := range d.ToolCalls {
		a.addCall(&d.ToolCalls[i], whole)
	}
	if d.FunctionCall != nil {
		a.addCall(&callDelta{Function: *d.FunctionCall}, whole)
	}
}

func (a *answer) addCall(d *callDelta, whole bool) {
	var call *partialCall
	id, name, args := string(d.ID), string(d.Function.Name), string(d.Function.Arguments)
	if !whole {
		call = a.continued(d)
	}
	if call == nil {
		call = &partialCall{index: -1, id: id, name: name}
		if d.Index != nil {
			call.index = int(*d.Index)
		}
		a.calls = append(a.calls, call)
		a.size += len(id) + len(name) + 64 // the bookkeeping of a call counts too
	} else {
		if call.id == "" {
			call.id = id
		}
		// A name that comes again is a repetition; one that differs while no
		// argument came yet is its next piece.
		if name != call.name && call.args.Len() == 0 {
			call.name += name
			a.size += len(name)
		}
	}
	call.args.WriteString(args)
	a.size += len(args)
}

// continued finds the call that d is a further piece of; nil where d begins one.
// OpenAI tells by the index alone. Others leave the index out, repeat the id in
// every piece, or give every call of one answer the index 0.
func (a *answer) continued(d *callDelta) *partialCall {
	call := a.candidate(d)
	switch {
	case call == nil:
		return nil
	case d.ID != "" && call.id != "":
		if string(d.ID) != call.id {
			return nil
		}
		return call
	case d.ID == "" && d.Function.Name != "" && call.name != "" && json.Valid([]byte(call.args.String())):
		return nil // named again after complete arguments: the next call
	}
	return call
}

func (a *answer) candidate(d *callDelta) *partialCall {
	for i := len(a.calls) - 1; i >= 0; i-- {
		call := a.calls[i]
		switch {
		case d.Index != nil:
			if call.index == int(*d.Index) {
				return call
			}
		case d.ID == "" || string(d.ID) == call.id:
			return call
		}
	}
	return nil
}

// finishWords maps vendors' words to the common ones.
var finishWords = map[string]string{
	"function_call": llm.FinishToolCalls, "tool_use": llm.FinishToolCalls,
	"end_turn": llm.FinishStop, "eos": llm.FinishStop, "eos_token": llm.FinishStop, "stop_sequence": llm.FinishStop, "STOP": llm.FinishStop,
	"max_tokens": llm.FinishLength, "MAX_TOKENS": llm.FinishLength, "model_length": llm.FinishLength,
	"refusal": llm.FinishContentFilter, "safety": llm.FinishContentFilter, "SAFETY": llm.FinishContentFilter, "sensitive": llm.FinishContentFilter,
}

// reply returns the finished answer. Ids that are missing or repeated are made
// from the numbers after lastID.
func (a *answer) reply(lastID int) (*llm.Reply, *llm.Error) {
	if a.finish == "" {
		if !a.done || a.empty() {
			return nil, wire.Cut()
		}
		a.finish = llm.FinishStop // some gateways end with [DONE] alone
	}
	a.take(a.thinking.end())
	if word, ok := finishWords[a.finish]; ok {
		a.finish = word
	}
	switch {
	case a.finish == llm.FinishStop && len(a.calls) > 0: // Ollama
		a.finish = llm.FinishToolCalls
	case a.finish == llm.FinishStop && a.refused: // the text is the refusal, not an answer
		a.finish = llm.FinishContentFilter
	}
	m := llm.Message{Role: llm.RoleAssistant, Content: a.text.String(), Reasoning: a.reasoning.String()}
	for _, call := range a.calls {
		m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: call.id, Name: call.name, Arguments: call.args.String()})
	}
	wire.NameCalls(m.ToolCalls, lastID)
	return &llm.Reply{Message: m, FinishReason: a.finish, Usage: a.usage, Model: a.model}, nil
}
