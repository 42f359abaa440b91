package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// roomBeside is about what a message takes beside its text, in bytes.
const roomBeside = 256

// conversation is a request body that grows: head, then the messages. It is
// sent from where it lies, and moves to new memory where the transport may still
// read it when it has to grow, as after an early answer.
type conversation struct {
	client  *client
	body    []byte
	sent    []byte     // the body as it is sent, in its memory; nil where it changed since
	loan    *wire.Loan // of sent
	head    int        // length of the part before the first message
	offered map[string]bool
	lastID  int  // the highest n of the ids "call_n" appended
	formed  bool // each answer has a form that was set with the conversation
	broken  error
}

func (c *client) Open(set llm.Settings) llm.Conversation {
	v := &conversation{client: c, offered: make(map[string]bool, len(set.Tools)), formed: len(set.Schema) > 0}
	for _, t := range set.Tools {
		v.offered[t.Name] = true
	}
	var err error
	if v.body, err = c.appendHead(nil, &set); err != nil {
		v.broken = c.badSchema(err)
	}
	v.head = len(v.body)
	return v
}

func (c *client) badSchema(err error) *llm.Error {
	return &llm.Error{Kind: llm.KindBadRequest, Provider: c.provider, Endpoint: c.wire.Endpoint(), Message: "a schema is not JSON: " + err.Error(), Err: err}
}

func (v *conversation) Append(m llm.Message) {
	v.settle()
	v.body = wire.Room(v.body, len(m.Content)+len(m.Reasoning)+roomBeside)
	if len(v.body) > v.head {
		v.body = append(v.body, ',')
	}
	v.body = v.client.appendMessage(v.body, &m, v.offered)
	for _, call := range m.ToolCalls {
		v.lastID = max(v.lastID, wire.GeneratedID(call.ID))
	}
}

func (v *conversation) Reset() {
	v.settle()
	v.body = v.body[:v.head:v.head] // the next append moves to new memory
	v.lastID = 0
}

// settle ends the loan of the body.
func (v *conversation) settle() {
	if v.loan != nil && !v.loan.Back() {
		v.body = append(make([]byte, 0, cap(v.body)), v.body...)
	}
	v.sent, v.loan = nil, nil
}

func (v *conversation) Serialized() []byte { return v.body[v.head:len(v.body):len(v.body)] }

func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.broken != nil {
		return nil, v.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tail, err := v.tail(ctx)
	if err != nil {
		return nil, v.client.badSchema(err)
	}
	var reply *llm.Reply
	err = v.client.wire.Repeat(ctx, func() (e *llm.Error) {
		reply, e = v.call(ctx, tail, onText)
		return e
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// call makes one call and reads its whole answer.
func (v *conversation) call(ctx context.Context, tail []byte, onText func(string)) (reply *llm.Reply, e *llm.Error) {
	c := v.client
	e = c.wire.Once(ctx, func(ctx context.Context) (*http.Request, error) {
		v.close(tail)
		return c.wire.PostLent(ctx, v.loan, v.sent)
	}, func(ctx context.Context, res *http.Response, in io.Reader) (*llm.Error, error) {
		a := &answer{maxSize: c.maxAnswer, onText: onText}
		e, broken := c.read(ctx, a, res.Header.Get("Content-Type"), in)
		if e == nil && broken == nil {
			reply, e = a.reply(v.lastID)
		}
		return e, broken
	})
	return reply, e
}

// close makes sent of the body: with the tail of a call.
func (v *conversation) close(tail []byte) {
	if v.loan != nil && !bytes.Equal(v.sent[len(v.body):], tail) {
		v.settle()
	}
	if v.loan == nil {
		v.body = wire.Room(v.body, len(tail))
		v.sent, v.loan = v.body, &wire.Loan{}
		v.sent = append(v.sent, tail...)
	}
}
