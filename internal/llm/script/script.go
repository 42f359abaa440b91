// Package script is a provider without a model: it answers with the steps of a recorded or
// written conversation, for demos and tests. It reads one file and calls nobody; its answers
// report the usage that the file holds, if any.
package script

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// Provider is the name of this provider.
const Provider = "script"

// step is one answer.
type step struct {
	say, reasoning, opaque string
	calls                  []llm.ToolCall
	finish                 string     // "" is what the calls imply
	usage                  *llm.Usage // nil reports none
	by                     string
	delay                  time.Duration // before the answer
}

// reply is the answer as its caller may keep and change it.
func (s *step) reply(model string) *llm.Reply {
	r := &llm.Reply{
		Message:      llm.Message{Role: llm.RoleAssistant, Content: s.say, Reasoning: s.reasoning, Opaque: s.opaque, ToolCalls: slices.Clone(s.calls)},
		FinishReason: s.finish, Model: model, By: s.by,
	}
	switch {
	case s.finish != "":
	case len(s.calls) > 0:
		r.FinishReason = llm.FinishToolCalls
	default:
		r.FinishReason = llm.FinishStop
	}
	if s.usage != nil {
		u := *s.usage
		if u.Cost != nil {
			cost := *u.Cost
			u.Cost = &cost
		}
		r.Usage = &u
	}
	return r
}

type client struct {
	name   string
	steps  []step
	stepOf map[string]int // call id -> index of the step that makes the call
}

// maxFile is the longest script, in bytes: the messages of a long run. One of YAML
// is a document, which is far shorter.
const maxFile = 64 << 20

// Open reads the script at path; see Parse.
func Open(path string) (llm.Client, error) {
	data, err := disk.Read(path, maxFile)
	if err != nil {
		return nil, i18n.E("script.read", err)
	}
	return Parse(path, data)
}

// Parse reads a script. The ending of name tells its form:
//
//   - .jsonl: messages as the ledger holds them, one JSON object a line. Those
//     of the assistant are the steps, with their reasoning, provider's parts,
//     reason of the end, usage and who answered; but what an assistant said
//     before the first user message is an inherited summary and no answer. A
//     usage that was estimated was reported by nobody and is left out.
//   - .yaml, .yml: a list of steps, each with "say", "calls" (a list of "tool",
//     "args", "id"), "finish" (why the answer ends, where that is not plain),
//     "usage" (as in the ledger) and "delay_ms". One of the first three is
//     needed, the others are optional.
//
// The n-th Send of a conversation gives the n-th step. Errors are i18n errors
// that name the file and the line.
func Parse(name string, data []byte) (llm.Client, error) {
	var steps []step
	var err error
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jsonl":
		steps, err = parseJSONL(name, data)
	case ".yaml", ".yml":
		steps, err = parseYAML(name, data)
	default:
		return nil, i18n.E("script.format", name)
	}
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, i18n.E("script.no_answers", name)
	}
	c := &client{name: filepath.Base(name), steps: steps, stepOf: map[string]int{}}
	seen := map[string]bool{}
	for i := range steps {
		for j := range steps[i].calls {
			id := &steps[i].calls[j].ID
			if *id == "" {
				*id = generatedID(i, j)
			}
			c.stepOf[*id] = i
			if seen[*id] { // such an id does not tell the step
				c.stepOf[*id] = -1
			}
			seen[*id] = true
		}
	}
	return c, nil
}

func (c *client) Provider() string { return Provider }
func (c *client) Model() string    { return c.name }

// Open starts a conversation; a script does not look at the tools.
func (c *client) Open(llm.Settings) llm.Conversation { return &conversation{client: c} }

// conversation needs no more than the messages to know the step that comes
// next, so a resumed run goes on where it was.
type conversation struct {
	client *client
	wire   []byte
	next   int  // the step that answers next
	asked  bool // a user message was appended
}

func (v *conversation) Append(m llm.Message) {
	switch m.Role {
	case llm.RoleUser:
		if !v.asked { // what stood before it is an inherited summary, not an answer
			v.asked, v.next = true, 0
		}
	case llm.RoleAssistant:
		v.next++
		// A window that was compressed holds fewer answers than were given;
		// the id of a call tells the step all the same.
		for _, call := range m.ToolCalls {
			if i, ok := v.client.stepOf[call.ID]; ok && i >= 0 {
				v.next = i + 1
			}
		}
	}
	v.encode(&m)
}

// line is a message in the form of the scripts themselves.
type line struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
	ToolName   string `json:"tool_name,omitempty"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (v *conversation) encode(m *llm.Message) {
	l := line{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID, ToolName: m.ToolName}
	for _, c := range m.ToolCalls {
		l.ToolCalls = append(l.ToolCalls, call(c))
	}
	if len(v.wire) > 0 {
		v.wire = append(v.wire, ',')
	}
	text, _ := jsonl.Marshal(l) // texts cannot fail
	v.wire = append(v.wire, text...)
}

func (v *conversation) Reset() { *v = conversation{client: v.client} }

func (v *conversation) Serialized() []byte { return v.wire[:len(v.wire):len(v.wire)] }

func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	c := v.client
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if v.next >= len(c.steps) {
		err := i18n.E("script.ended", c.name, len(c.steps))
		return nil, &llm.Error{Kind: llm.KindScriptEnded, Provider: Provider, Endpoint: c.name,
			Message: err.Error(), Attempts: 1, Err: err}
	}
	s := c.steps[v.next]
	if err := wire.Sleep(ctx, s.delay); err != nil {
		return nil, err
	}
	for rest := s.say; rest != "" && onText != nil; {
		n := pieceLen(rest)
		onText(rest[:n])
		rest = rest[n:]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return s.reply(c.name), nil
}

// pieceLen is the length of the first 16 characters of s, a piece as models
// stream them.
func pieceLen(s string) int {
	n := 0
	for i := 0; i < 16 && n < len(s); i++ {
		_, size := utf8.DecodeRuneInString(s[n:])
		n += size
	}
	return n
}
