package texttool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/llm"
	"toritsugi/internal/loosejson"
)

// Lift returns a client whose answers are those of the inner one, but that calls
// which the model wrote as text are calls, also beside others. The rule: they stand in
// the marks that models are taught; or the answer ends with them, in blocks of code of
// which each is one, or as objects that begin on a line of their own. All of them can
// be read and are for tools that are offered, or none is made, and whoever reads the
// answer tells the model (Unread). One that is made beside the text already is not made
// twice. So an example in the middle of words, or in a quotation, is none.
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
	if err != nil || reply.FinishReason != llm.FinishStop && reply.FinishReason != llm.FinishToolCalls {
		return reply, err
	}
	m := &reply.Message
	text, calls := lift(m.Content, v.offered)
	if len(calls) == 0 {
		return reply, nil
	}
	calls = slices.DeleteFunc(calls, func(c llm.ToolCall) bool {
		return slices.ContainsFunc(m.ToolCalls, func(o llm.ToolCall) bool { return o.Name == c.Name && same(o.Arguments, c.Arguments) })
	})
	v.ids.note(m.ToolCalls)
	v.ids.name(calls)
	m.Content, m.ToolCalls, reply.FinishReason = text, append(calls, m.ToolCalls...), llm.FinishToolCalls
	return reply, nil
}

// same reports whether two texts of JSON say the same.
func same(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

var (
	thoughts = lazyregexp.New(`(?s)^\s*(?:<think(?:ing)?>)?.*?</think(?:ing)?>`)
	marks    = lazyregexp.New("(?s)<tool_call>\\s*(?:```[a-z]*\\s*)?(.*?)\\s*(?:```\\s*)?(?:</tool_call>|$)")
	fences   = lazyregexp.New("(?s)```[A-Za-z_]*[ \\t]*\n(.*?)\n\\s*```")
	// startOfJSON is the beginning of a line that begins a value.
	startOfJSON = lazyregexp.New(`(?m)^[{\[]`)
	fence       = lazyregexp.New("(?s)^```[A-Za-z_]*\\s*\n(.*)\n\\s*```$")
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
	} else if whole := unfenced(body); !strings.Contains(whole, "```") {
		text, found = trailing(whole)
	} else if strings.HasSuffix(body, "```") { // words, and what they lead to
		for _, m := range fences().FindAllStringSubmatch(body, -1) {
			found = append(found, m[1])
		}
		text = strings.TrimSpace(fences().ReplaceAllString(body, ""))
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
			text = cmp.Or(text, strings.TrimSpace(o.Comment))
		}
	}
	if len(calls) == 0 {
		return answer, nil
	}
	return text, calls
}

// trailing are the values of JSON that a text ends with, from the first line on that
// begins one, and what stands before them.
func trailing(text string) (before string, found []string) {
	at := startOfJSON().FindStringIndex(text)
	if at == nil {
		return text, nil
	}
	before, text = strings.TrimSpace(text[:at[0]]), text[at[0]:]
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var raw json.RawMessage
		switch err := d.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return before, found
		case err != nil:
			return before, []string{text} // which may be mended
		}
		found = append(found, string(raw))
	}
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

var attempt = lazyregexp.New(`(?m)^\s*\{\s*"(?:(?:name|tool|function)"\s*:\s*"[^"]*"\s*,\s*"(?:arg|param|input)|(?:function|call_tool|function_call|tool_calls)"\s*:)`)

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
