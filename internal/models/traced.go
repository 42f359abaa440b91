package models

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"toritsugi/internal/llm"
	"toritsugi/internal/telemetry"
)

// traced is a client each of whose calls is a span below that of its context.
type traced struct {
	llm.Client
	content bool                // spans may show it
	mask    func(string) string // what they show of it
}

func (c traced) Open(set llm.Settings) llm.Conversation {
	inner := c.Client.Open(set)
	return llm.Wrap(&tracedConversation{Conversation: inner, client: c}, inner)
}

// tracedConversation keeps, where spans show it, what was said since the last answer.
type tracedConversation struct {
	llm.Conversation
	client traced
	since  []llm.Message
}

// mostShown is how many messages of one call a span shows: the latest.
const mostShown = 100

// Append implements llm.Conversation.
func (v *tracedConversation) Append(m llm.Message) {
	v.Conversation.Append(m)
	if !v.client.content {
		return
	}
	if v.since = append(v.since, m); len(v.since) > mostShown {
		v.since = append(v.since[:0], v.since[len(v.since)-mostShown:]...)
	}
}

// Reset implements llm.Conversation.
func (v *tracedConversation) Reset() {
	v.Conversation.Reset()
	v.since = nil
}

// Send implements llm.Conversation.
func (v *tracedConversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	said := v.since
	v.since = nil
	ctx, span := telemetry.StartCall(ctx, "chat", v.client.Model())
	if span == nil {
		return v.Conversation.Send(ctx, onText)
	}
	span.Text(telemetry.Operation, "chat")
	span.Text(telemetry.Provider, v.client.Provider())
	span.Text(telemetry.RequestModel, v.client.Model())
	if span.ShowsContent() {
		span.Content(telemetry.InputMessages, v.client.shown(said...))
	}
	began, first := time.Now(), time.Duration(0)
	reply, err := v.Conversation.Send(ctx, func(text string) {
		if first == 0 {
			first = time.Since(began)
		}
		if onText != nil {
			onText(text)
		}
	})
	if first > 0 {
		span.Float(telemetry.FirstChunk, first.Seconds())
	}
	if failed, ok := errors.AsType[*llm.Error](err); ok {
		span.Fail(string(failed.Kind))
		span.Int("tori.attempts", failed.Attempts)
	} else if err == nil {
		v.client.answered(span, reply)
	}
	span.End(err)
	return reply, err
}

// answered tells of an answer what is no text of it.
func (c traced) answered(span *telemetry.Span, r *llm.Reply) {
	span.Text(telemetry.ResponseModel, r.Model)
	span.Text("tori.answered_by", r.By)
	span.List(telemetry.FinishReasons, r.FinishReason)
	if u := r.Usage; u != nil {
		span.Int(telemetry.InputTokens, u.PromptTokens)
		span.Int(telemetry.OutputTokens, u.CompletionTokens)
		span.Int(telemetry.CacheReadTokens, u.CachedTokens)
		if u.CacheWriteTokens > 0 {
			span.Int(telemetry.CacheWriteTokens, u.CacheWriteTokens)
		}
		if u.ReasoningTokens > 0 {
			span.Int(telemetry.ReasoningTokens, u.ReasoningTokens)
		}
		if u.Cost != nil {
			span.Float("tori.cost_usd", float64(*u.Cost)/1e6)
		}
	}
	if span.ShowsContent() {
		span.Content(telemetry.OutputMessages, c.shown(r.Message))
	}
}

// part is a part of a message, as the schemas of the GenAI conventions have it.
type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
	Result    string `json:"result,omitempty"`
}

// shown are messages as JSON of the GenAI conventions.
func (c traced) shown(all ...llm.Message) string {
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	out := make([]message, 0, len(all))
	for _, m := range all {
		o := message{Role: m.Role, Parts: []part{}}
		switch {
		case m.Role == llm.RoleTool:
			o.Parts = append(o.Parts, part{Type: "tool_call_response", ID: m.ToolCallID, Result: c.mask(m.Content)})
		case m.Content != "":
			o.Parts = append(o.Parts, part{Type: "text", Content: c.mask(m.Content)})
		}
		for _, call := range m.ToolCalls {
			args := c.mask(call.Arguments)
			p := part{Type: "tool_call", ID: call.ID, Name: call.Name, Arguments: args}
			if json.Valid([]byte(args)) {
				p.Arguments = json.RawMessage(args)
			}
			o.Parts = append(o.Parts, p)
		}
		out = append(out, o)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return ""
	}
	return string(b)
}
