package texttool

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"toritsugi/internal/llm"
	"toritsugi/internal/loosejson"
)

// Lift returns a client whose answers are those of the inner one, but that calls
// which the model wrote as text are calls: where they are all that it says, or
// stand in the marks that models are taught, and are for tools that are offered.
func Lift(inner llm.Client) llm.Client { return &lifting{inner} }

type lifting struct{ llm.Client }

func (c *lifting) Open(set llm.Settings) llm.Conversation {
	inner := c.Client.Open(set)
	if len(set.Tools) == 0 {
		return inner
	}
	return &lifted{Conversation: inner, offered: names(set.Tools)}
}

type lifted struct {
	llm.Conversation
	offered map[string]bool
	ids     ids
}

func (v *lifted) Reset() {
	v.ids = ids{}
	v.Conversation.Reset()
}

func (v *lifted) Append(m llm.Message) {
	v.ids.note(m.ToolCalls)
	v.Conversation.Append(m)
}

func (v *lifted) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	reply, err := v.Conversation.Send(ctx, onText)
	if err != nil || len(reply.Message.ToolCalls) > 0 || reply.FinishReason != llm.FinishStop {
		return reply, err
	}
	text, calls := lift(reply.Message.Content, v.offered)
	if len(calls) == 0 {
		return reply, nil
	}
	v.ids.name(calls)
	reply.Message.Content, reply.Message.ToolCalls, reply.FinishReason = text, calls, llm.FinishToolCalls
	return reply, nil
}

var (
	thoughts = pattern(`(?s)^\s*(?:<think(?:ing)?>)?.*?</think(?:ing)?>`)
	marks    = pattern("(?s)<tool_call>\\s*(?:```[a-z]*\\s*)?(.*?)\\s*(?:```\\s*)?(?:</tool_call>|$)")
	fence    = pattern("(?s)^```[A-Za-z_]*\\s*\n(.*)\n\\s*```$")
)

// lift takes the calls out of an answer: none where one of them cannot be read.
func lift(answer string, offered map[string]bool) (text string, calls []llm.ToolCall) {
	body := bare(answer)
	var found []string
	if marked(body) {
		for _, m := range marks().FindAllStringSubmatch(body, -1) {
			found = append(found, m[1])
		}
		text = strings.TrimSpace(marks().ReplaceAllString(body, ""))
	} else if body = unfenced(body); strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") {
		found = []string{body}
	}
	for _, f := range found {
		fixed, whole, ok := loosejson.Repair(f)
		if !ok || !whole {
			return answer, nil
		}
		var list []json.RawMessage
		if json.Unmarshal([]byte(fixed), &list) != nil {
			list = []json.RawMessage{json.RawMessage(fixed)}
		}
		for _, raw := range list {
			var o object
			if json.Unmarshal(raw, &o) != nil || !o.read(offered) {
				return answer, nil
			}
			for _, c := range o.calls {
				if !offered[c.Name] || !bytes.HasPrefix(bytes.TrimSpace([]byte(c.Arguments)), []byte("{")) {
					return answer, nil
				}
			}
			calls = append(calls, o.calls...)
			if text == "" {
				text = strings.TrimSpace(o.Comment)
			}
		}
	}
	if len(calls) == 0 {
		return answer, nil
	}
	return text, calls
}

// bare is an answer without what the model thought before it.
func bare(answer string) string {
	return strings.TrimSpace(thoughts().ReplaceAllString(answer, ""))
}

// marked reports the marks of a call that are no quotation.
func marked(body string) bool {
	before, _, found := strings.Cut(body, "<tool_call>")
	return found && strings.Count(before, "```")%2 == 0 && !strings.HasSuffix(before, "`")
}

// unfenced is what stands in a fence that is all of a text.
func unfenced(body string) string {
	if m := fence().FindStringSubmatch(body); m != nil && !strings.Contains(m[1], "\n```") {
		return strings.TrimSpace(m[1])
	}
	return body
}

var attempt = pattern(`(?m)^\s*\{\s*"(?:name|tool|function|call_tool|function_call|tool_calls)"\s*:`)

// Unread reports that an answer without calls seems to hold one, which could not be
// read or does not stand alone.
func Unread(answer string) bool {
	body := bare(answer)
	if marked(body) {
		return true
	}
	at := attempt().FindStringIndex(body)
	if whole := unfenced(body); json.Valid([]byte(whole)) {
		at = attempt().FindStringIndex(whole)
		return at != nil && at[0] == 0
	}
	return at != nil
}
