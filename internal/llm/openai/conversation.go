package openai

import (
	"context"
	"io"
	"net/http"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// conversation is a request body that grows: head, then the messages.
type conversation struct {
	client *client
	wire.Body
	offered map[string]bool
	lastID  int // the highest n of the ids "call_n" appended
	broken  error
}

func (c *client) Open(set llm.Settings) llm.Conversation {
	v := &conversation{client: c, offered: make(map[string]bool, len(set.Tools))}
	for _, t := range set.Tools {
		v.offered[t.Name] = true
	}
	head, err := c.appendHead(nil, &set)
	if err != nil {
		v.broken = &llm.Error{Kind: llm.KindBadRequest, Provider: c.provider, Endpoint: c.wire.Endpoint(), Message: "a schema is not JSON: " + err.Error(), Err: err}
	}
	v.Body = wire.NewBody(head)
	return v
}

func (v *conversation) Append(m llm.Message) {
	v.Next()
	v.B = v.client.appendMessage(v.B, &m, v.offered)
	for _, call := range m.ToolCalls {
		v.lastID = max(v.lastID, wire.GeneratedID(call.ID))
	}
}

func (v *conversation) Reset() {
	v.Body.Reset()
	v.lastID = 0
}

func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.broken != nil {
		return nil, v.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tail := v.tail(ctx)
	return v.client.wire.Send(ctx, func() (*llm.Reply, *llm.Error) { return v.call(ctx, tail, onText) })
}

// call makes one call and reads its whole answer.
func (v *conversation) call(ctx context.Context, tail []byte, onText func(string)) (reply *llm.Reply, e *llm.Error) {
	c := v.client
	e = c.wire.Once(ctx, func(ctx context.Context) (*http.Request, error) {
		return c.wire.Post(ctx, v.B, tail)
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
