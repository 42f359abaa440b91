// Package texttool lets models without tool calls use tools: it tells the tools in the system
// text, reads calls out of answers, and writes calls and results as plain messages. It makes
// no call but those of the client that it wraps.
package texttool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// New returns a client whose conversations carry tools as text. The form is one for
// both directions: an answer that calls tools ends with
//
//	```json
//	{"comment": "why", "call_tool": [{"tool": "NAME", "args": {…}}]}
//	```
//
// and each result is a user's message that begins with "Result of ID (NAME):". An
// answer without such a block is the last one. More is read than is told; see parse.
func New(inner llm.Client) llm.Client { return &client{inner} }

type client struct{ llm.Client }

func (c *client) Open(set llm.Settings) llm.Conversation {
	v := &conversation{offered: names(set.Tools)}
	if len(set.Tools) > 0 {
		var err error
		if v.manual, err = manual(set); err != nil {
			v.broken = &llm.Error{Kind: llm.KindBadRequest, Provider: c.Provider(), Message: "a schema is not JSON: " + err.Error(), Err: err}
		}
	}
	v.inner = c.Client.Open(llm.Settings{})
	v.Reset()
	return v
}

// conversation translates message by message, so that what the inner one
// holds only ever grows at its end.
type conversation struct {
	inner   llm.Conversation
	offered map[string]bool
	manual  string // how tools are called; "" where there are none
	broken  error
	begun   bool
	ids     ids
}

func names(tools []llm.Tool) map[string]bool {
	offered := make(map[string]bool, len(tools))
	for _, t := range tools {
		offered[t.Name] = true
	}
	return offered
}

func (v *conversation) Serialized() []byte { return v.inner.Serialized() }

func (v *conversation) Reset() {
	v.inner.Reset()
	v.begun, v.ids = false, ids{}
}

func (v *conversation) Append(m llm.Message) {
	if !v.begun && v.manual != "" {
		if m.Role == llm.RoleSystem {
			m.Content += "\n\n" + v.manual
		} else {
			v.inner.Append(llm.Message{Role: llm.RoleSystem, Content: v.manual})
		}
	}
	v.begun = true
	v.ids.note(m.ToolCalls)
	switch {
	case m.Role == llm.RoleTool:
		m = llm.Message{Role: llm.RoleUser, Content: resultHead(m.ToolCallID, m.ToolName) + m.Content}
	case len(m.ToolCalls) > 0:
		block := writeCalls(m.ToolCalls)
		if m.Content != "" {
			block = m.Content + "\n\n" + block
		}
		m = llm.Message{Role: m.Role, Content: block, Reasoning: m.Reasoning, Opaque: m.Opaque}
	}
	v.inner.Append(m)
}

func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.broken != nil {
		return nil, v.broken
	}
	if len(v.offered) == 0 {
		return v.inner.Send(ctx, onText)
	}
	s := &stream{out: onText}
	var through func(string)
	if onText != nil {
		through = s.add
	}
	reply, err := v.inner.Send(ctx, through)
	if err != nil {
		return nil, err
	}
	m := &reply.Message
	text, calls := parse(m.Content, v.offered)
	m.Content = text
	m.ToolCalls = append(calls, m.ToolCalls...)
	v.ids.name(m.ToolCalls)
	if len(m.ToolCalls) > 0 && reply.FinishReason == llm.FinishStop {
		reply.FinishReason = llm.FinishToolCalls
	}
	s.end(text)
	return reply, nil
}

// ids are those of the calls in a conversation.
type ids struct {
	used map[string]bool
	last int // the highest n of the ids "call_n"
}

// note takes in the ids of calls.
func (s *ids) note(calls []llm.ToolCall) {
	for _, c := range calls {
		if s.used == nil {
			s.used = map[string]bool{}
		}
		s.used[c.ID] = true
		s.last = max(s.last, wire.GeneratedID(c.ID))
	}
}

// name gives each call an id of its own. One that the model chose stays if it
// is new.
func (s *ids) name(calls []llm.ToolCall) {
	last := s.last
	seen := map[string]bool{}
	for i := range calls {
		id := &calls[i].ID
		for !plainID(*id) || s.used[*id] || seen[*id] {
			last++
			*id = wire.NewID(last)
		}
		seen[*id] = true
	}
}

func plainID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// manual tells how tools are called, and which there are. It fails where a
// schema is not JSON.
func manual(set llm.Settings) (string, error) {
	var b bytes.Buffer
	b.WriteString(intro)
	for _, t := range set.Tools {
		fmt.Fprintf(&b, "\n\n## %s\n", t.Name)
		if d := strings.TrimSpace(t.Description); d != "" {
			b.WriteString(d + "\n")
		}
		b.WriteString("args: ")
		schema, err := wire.AppendSchema(nil, t.Schema)
		if err != nil {
			return "", err
		}
		b.Write(schema)
	}
	return b.String(), nil
}

const intro = `# Tools

You use tools by text. To call tools, end your answer with one block of this form, and write nothing after it:

` + "```" + `json
{"comment": "why, in one sentence", "call_tool": [{"tool": "NAME", "args": {}}]}
` + "```" + `

- "call_tool" is a list. Several calls are run, and answered, in its order.
- "args" is an object that matches the schema of the tool.
- It must be valid JSON: double quotes, line breaks in texts as \n, no comments, no comma behind the last item.
- Never write a result yourself. Results come in the next messages; each begins with the line "Result of ID (NAME):".
- When no tool is needed any more, answer in plain text without such a block.

These are the tools, each with the JSON Schema of its args:`

func resultHead(id, name string) string {
	if name == "" {
		return "Result of " + id + ":\n"
	}
	return "Result of " + id + " (" + name + "):\n"
}

// writeCalls writes calls in the form in which they are read. The same calls
// give the same bytes, also after a resume.
func writeCalls(calls []llm.ToolCall) string {
	var b bytes.Buffer
	put := func(s string) {
		text, _ := jsonl.Marshal(s) // a string cannot fail
		b.Write(text)
	}
	b.WriteString("```json\n{\"call_tool\": [")
	for i, c := range calls {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`{"id": `)
		put(c.ID)
		b.WriteString(`, "tool": `)
		put(c.Name)
		b.WriteString(`, "args": `)
		switch args := strings.TrimSpace(c.Arguments); {
		case args == "":
			b.WriteString("{}")
		case args[0] == '{' && json.Valid([]byte(args)):
			b.WriteString(args)
		default: // what is no object would break the block for good
			b.WriteString(`{"malformed_arguments": `)
			put(c.Arguments)
			b.WriteByte('}')
		}
		b.WriteByte('}')
	}
	b.WriteString("]}\n```")
	return b.String()
}
