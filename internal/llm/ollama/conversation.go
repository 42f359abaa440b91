package ollama

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// roomBeside is about what a message takes beside its text, in bytes.
const roomBeside = 256

// conversation is a request body that grows: head, then the messages. It is
// sent from where it lies, and moves to new memory where the transport may still
// read it when it has to grow, as after an early answer.
type conversation struct {
	client *client
	body   []byte
	sent   []byte     // the body as it is sent, in its memory; nil where it changed since
	loan   *wire.Loan // of sent
	head   int        // length of the part before the first message
	lastID int        // the highest n of the ids "call_n" appended
	names  map[string]string
	size   gauge
	formed bool // each answer has a form that was set with the conversation
	broken error
}

func (c *client) Open(set llm.Settings) llm.Conversation {
	v := &conversation{client: c, formed: len(bytes.TrimSpace(set.Schema)) > 0}
	var err error
	if v.body, err = c.appendHead(nil, set); err != nil {
		v.broken = c.badSchema(err)
	}
	v.head = len(v.body)
	return v
}

func (c *client) badSchema(err error) *llm.Error {
	return c.refuse(llm.KindBadRequest, "a tool's schema or the schema of the answer is not JSON: "+err.Error(), err)
}

// refuse is the error of a call that was not made.
func (c *client) refuse(kind llm.ErrorKind, message string, err error) *llm.Error {
	return &llm.Error{Kind: kind, Provider: c.provider, Endpoint: c.wire.Endpoint(), Message: message, Err: err}
}

func (v *conversation) Append(m llm.Message) {
	v.settle()
	v.body = wire.Room(v.body, len(m.Content)+len(m.Reasoning)+roomBeside)
	if len(v.body) > v.head {
		v.body = append(v.body, ',')
	}
	before := len(v.body)
	v.body = appendMessage(v.body, &m, v.toolName(&m))
	v.size.add(&m, len(v.body)-before)
	if m.Role == llm.RoleAssistant {
		clear(v.names) // results follow the calls that they answer
	}
	for _, call := range m.ToolCalls {
		v.lastID = max(v.lastID, wire.GeneratedID(call.ID))
		if v.names == nil {
			v.names = map[string]string{}
		}
		v.names[call.ID] = call.Name
	}
}

func (v *conversation) toolName(m *llm.Message) string {
	if m.ToolName != "" {
		return m.ToolName
	}
	return v.names[m.ToolCallID]
}

func (v *conversation) Reset() {
	v.settle()
	v.body = v.body[:v.head:v.head] // the next append moves to new memory
	v.lastID = 0
	clear(v.names)
	v.size.reset()
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
	if len(v.body) == v.head { // it would only load the model
		return nil, v.client.refuse(llm.KindBadRequest, "there is no message to send", nil)
	}
	if n := v.size.tokens(v.head); n > v.client.numCtx {
		return nil, v.client.refused(llm.KindContext, i18n.E("ollama.too_long", n, v.client.numCtx))
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
	read := 0
	e = c.wire.Once(ctx, func(ctx context.Context) (*http.Request, error) {
		v.close(tail)
		return c.wire.PostLent(ctx, v.loan, v.sent)
	}, func(ctx context.Context, res *http.Response, in io.Reader) (*llm.Error, error) {
		a := &answer{maxSize: c.maxAnswer, onText: onText}
		e, broken := c.read(ctx, a, res.Header.Get("Content-Type"), in)
		if e != nil || broken != nil {
			return e, broken
		}
		reply, e = a.reply(v.lastID)
		read = a.promptTokens()
		return e, nil
	})
	if e == nil {
		e = v.measure(ctx, read)
	}
	if e != nil {
		return nil, e
	}
	return reply, nil
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

// tail is what stands behind the messages, with the output limit and the form of
// the answer of ctx. It fails where the form is not JSON.
func (v *conversation) tail(ctx context.Context) (b []byte, err error) {
	c := v.client
	b = append(make([]byte, 0, roomBeside), ']')
	if form := llm.Form(ctx); form != nil && !v.formed {
		if b, err = wire.AppendSchema(append(b, `,"format":`...), form); err != nil {
			return nil, err
		}
	}
	return append(c.appendOptions(b, llm.AnswerLimit(ctx, c.maxTokens)), '}'), nil
}

// measure learns from the tokens that the server says it read, 0 where it does
// not. It fails where they were not all that it was sent: an answer to a part of
// a conversation is none.
func (v *conversation) measure(ctx context.Context, read int) *llm.Error {
	numCtx := v.client.numCtx
	if read == 0 {
		return nil
	}
	switch verdict, sent := v.size.judge(read, v.head, numCtx), v.size.tokens(v.head); {
	case verdict == credible:
		v.size.learn(read, v.head)
	case read < numCtx && v.client.countsNew(ctx):
	case verdict == full:
		return v.client.refused(llm.KindContext, i18n.E("ollama.full", read, numCtx, sent))
	default:
		return v.client.refused(llm.KindCutPrompt, i18n.E("ollama.cut", read, sent, numCtx))
	}
	return nil
}

// refused is refuse with an error that says in the reader's language what to do.
func (c *client) refused(kind llm.ErrorKind, err error) *llm.Error {
	return c.refuse(kind, err.Error(), err)
}

// versionTime is how long a server may take to tell its version, when it is
// asked between two calls.
const versionTime = 5 * time.Second

// countsNew asks whether the server is older than 0.4, which counts of a prompt
// only what its cache did not have. One that does not tell counts all.
func (c *client) countsNew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	var is struct{ Version string }
	var minor int
	if c.server.ask(ctx, "api/version", nil, &is) != nil {
		return false
	}
	n, _ := fmt.Sscanf(is.Version, "0.%d.", &minor)
	return n == 1 && minor < 4
}
