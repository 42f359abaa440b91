package anthropic

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// conversation is a request body that grows: lead, the output limit, head, a tape,
// and what closes the tape's open ends. Bytes that were sent are never written to
// again, since a transport may still read them when the answer is here.
//
// Two cache marks stand in fixed places, after the tools and after the system
// field. Two more move and are put in while sending, so that the tape itself
// has none: at the end of the request, to be found by the next one, and where
// the request before this one ended, to find what that one left (the vendor
// looks back over twenty blocks only). Both places follow from the messages
// alone, so that a resumed conversation sends the same bytes.
// Source: "Prompt caching" of Anthropic's documentation.
type conversation struct {
	client *client
	lead   []byte // the request up to what appendPace writes
	tape   tape
	head   int // length of the part before the tape
	names  names
	uses   map[string]int // how often an id was asked for on the wire
	open   []call         // of the latest answer, without a result so far
	lastID int            // the highest n of the ids "call_n" appended
	broken error
}

// call is a call's id as it was appended and as it was written.
type call struct{ id, sent string }

func (c *client) Open(set llm.Settings) llm.Conversation {
	v := &conversation{client: c, uses: map[string]int{}}
	head, err := v.encodeHead(set)
	if err != nil {
		v.broken = &llm.Error{Kind: llm.KindBadRequest, Provider: c.provider, Endpoint: c.wire.Endpoint(), Message: err.Error(), Err: err}
	}
	v.head = len(head)
	v.tape = tape{b: head}
	return v
}

func (v *conversation) Reset() {
	v.tape = tape{b: bytes.Clone(v.tape.b[:v.head])}
	clear(v.uses)
	v.open, v.lastID = nil, 0
}

// Serialized returns the tape: what was appended as it is transmitted, but for
// the moving cache marks. Its last array and object are open. Where a Send found
// that the API takes back no thinking, that is gone from it.
func (v *conversation) Serialized() []byte {
	return v.tape.b[v.head:len(v.tape.b):len(v.tape.b)]
}

func (v *conversation) Append(m llm.Message) {
	switch m.Role {
	case llm.RoleAssistant:
		v.appendAnswer(&m)
	case llm.RoleTool:
		v.appendResult(&m)
	case llm.RoleSystem:
		v.appendSystem(m.Content)
	default:
		v.closeCalls()
		if !blank(m.Content) || len(m.Images) == 0 {
			v.tape.line(m.Content)
		}
		for _, i := range m.Images {
			v.tape.picture(i)
		}
	}
}

// appendSystem writes the system messages that open a conversation where the
// API has a field for them, and later ones as text. A blank one says nothing.
func (v *conversation) appendSystem(text string) {
	switch {
	case blank(text):
	case v.tape.at == atStart || v.tape.at == inSystem:
		v.tape.system(text)
	default:
		v.closeCalls()
		v.tape.line(systemLine + text)
	}
}

// appendAnswer writes an assistant's turn: its thinking first, or, where the
// provider gave it in between, in the order in which it came.
func (v *conversation) appendAnswer(m *llm.Message) {
	t := &v.tape
	v.closeCalls()
	t.assistant()
	text, calls := m.Content, m.ToolCalls
	for _, p := range parseParts(m) {
		switch p.Type {
		case "text":
			if piece := text[:p.Bytes]; !blank(piece) {
				t.block()
				t.text(piece)
			}
			text = text[p.Bytes:]
		case "tool_use":
			v.use(&calls[0])
			calls = calls[1:]
		default:
			t.block()
			t.raw(p.raw)
		}
	}
	if !blank(text) {
		t.block()
		t.text(text)
	}
	for i := range calls {
		v.use(&calls[i])
	}
	if t.sep != openBlock { // nothing visible was said, and no turn may end with thinking
		t.block()
		t.text(emptyLine)
	}
}

func (v *conversation) use(c *llm.ToolCall) {
	v.lastID = max(v.lastID, wire.GeneratedID(c.ID))
	id := v.unused(plainID(c.ID))
	v.open = append(v.open, call{c.ID, id})
	v.tape.block()
	v.tape.use(id, v.names.sent(c.Name), c.Arguments)
}

// unused returns id, or, since no two calls of a conversation may share one,
// id with the next number that makes it new.
func (v *conversation) unused(id string) string {
	free := id
	for v.uses[free] > 0 {
		v.uses[id]++
		free = id + "_" + strconv.Itoa(v.uses[id])
	}
	v.uses[free]++
	return free
}

// appendResult writes the result of an open call. One of a call that is not
// there (any more) becomes text: the API would refuse the whole conversation.
func (v *conversation) appendResult(m *llm.Message) {
	for i, c := range v.open {
		if c.id == m.ToolCallID {
			v.open = append(v.open[:i:i], v.open[i+1:]...)
			v.tape.result(c.sent, m.Content, m.Images, m.Failed)
			return
		}
	}
	v.closeCalls()
	v.tape.line(orphanLine + m.ToolName + "]\n" + m.Content)
	for _, i := range m.Images {
		v.tape.picture(i)
	}
}

// closeCalls gives each open call a result that says that there is none; the
// API demands one for each, before anything else.
func (v *conversation) closeCalls() {
	v.missing(&v.tape)
	v.open = nil
}

func (v *conversation) missing(t *tape) {
	for _, c := range v.open {
		t.result(c.sent, missingLine, nil, true)
	}
}

// request is the body in parts: the tape with the moving marks put in, what is open
// closed, and the output limit of ctx.
func (v *conversation) request(ctx context.Context) [][]byte {
	c, t := v.client, &v.tape
	parts := [][]byte{v.lead, c.appendPace(nil, llm.AnswerLimit(ctx, c.maxTokens), v.thinks())}
	if t.prior > 0 {
		parts = append(parts, t.b[:t.prior], []byte(cacheMark))
	}
	return append(parts, t.b[t.prior:], v.tail())
}

// tail is what closes the tape.
func (v *conversation) tail() []byte {
	end := tape{at: v.tape.at, sep: v.tape.sep}
	v.missing(&end)
	end.ask()
	tail := append(append(end.b, cacheMark...), `}]}]`...)
	if (v.tape.tools || end.tools) && v.names.none() {
		tail = append(tail, noTools...)
	}
	return append(tail, '}')
}

func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.broken != nil {
		return nil, v.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return v.client.wire.Send(ctx, func() (*llm.Reply, *llm.Error) { return v.call(ctx, onText) })
}

// call makes one call and reads its whole answer.
func (v *conversation) call(ctx context.Context, onText func(string)) (reply *llm.Reply, e *llm.Error) {
	c := v.client
	e = c.wire.Once(ctx, func(ctx context.Context) (*http.Request, error) {
		return c.wire.Post(ctx, v.request(ctx)...)
	}, func(ctx context.Context, res *http.Response, in io.Reader) (*llm.Error, error) {
		a := &answer{maxSize: c.maxAnswer, onText: onText}
		e, broken := c.read(ctx, a, res.Header.Get("Content-Type"), in)
		if e == nil && broken == nil {
			reply, e = a.reply(v.lastID, v.names)
		}
		return e, broken
	})
	if e != nil && refusesThoughts(e) && len(v.tape.thoughts) > 0 {
		v.tape.forget()
		return v.call(ctx, onText)
	}
	return reply, e
}

// plainID is id where the API accepts it, and else a name that follows from
// it. Source: the pattern of id in RequestToolUseBlock.
func plainID(id string) string {
	const plain = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"
	if id == "" || strings.Trim(id, plain) != "" {
		return "id_" + hash(id)
	}
	return id
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
