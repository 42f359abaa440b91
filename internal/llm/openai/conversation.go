package openai

import (
	"context"
	"io"
	"net/http"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// conversation is a request body that grows: head, then the messages. Bytes
// once written are never written again, since the transport may still read
// them after an early answer.
type conversation struct {
	client  *client
	body    []byte
	head    int // length of the part before the first message
	offered map[string]bool
	lastID  int // the highest n of the ids "call_n" appended
	broken  error
}

func (c *client) Open(set llm.Settings) llm.Conversation {
	v := &conversation{client: c, offered: make(map[string]bool, len(set.Tools))}
	for _, t := range set.Tools {
		v.offered[t.Name] = true
	}
	var err error
	if v.body, err = c.appendHead(nil, &set); err != nil {
		v.broken = &llm.Error{Kind: llm.KindBadRequest, Provider: c.provider, Endpoint: c.wire.Endpoint(),
			Message: "a schema is not JSON: " + err.Error(), Err: err}
	}
	v.head = len(v.body)
	return v
}

func (v *conversation) Append(m llm.Message) {
	if len(v.body) > v.head {
		v.body = append(v.body, ',')
	}
	v.body = v.client.appendMessage(v.body, &m, v.offered)
	for _, call := range m.ToolCalls {
		v.lastID = max(v.lastID, wire.GeneratedID(call.ID))
	}
}

func (v *conversation) Reset() {
	v.body = v.body[:v.head:v.head] // the next append moves to new memory
	v.lastID = 0
}

func (v *conversation) Serialized() []byte { return v.body[v.head:len(v.body):len(v.body)] }

func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.broken != nil {
		return nil, v.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var reply *llm.Reply
	err := v.client.wire.Repeat(ctx, func() (e *llm.Error) {
		reply, e = v.client.call(ctx, v.body, v.lastID, onText)
		return e
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// call makes one call with the messages in body and reads its whole answer.
func (c *client) call(ctx context.Context, body []byte, lastID int, onText func(string)) (reply *llm.Reply, e *llm.Error) {
	e = c.wire.Once(ctx, func(ctx context.Context) (*http.Request, error) {
		return c.wire.Post(ctx, body, c.tail(ctx))
	}, func(ctx context.Context, res *http.Response, in io.Reader) (*llm.Error, error) {
		a := &answer{maxSize: c.maxAnswer, onText: onText}
		e, broken := c.read(ctx, a, res.Header.Get("Content-Type"), in)
		if e == nil && broken == nil {
			reply, e = a.reply(lastID)
		}
		return e, broken
	})
	return reply, e
}
