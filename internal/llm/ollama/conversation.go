package ollama

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/gauge"
	"toritsugi/internal/llm/wire"
)

// conversation is a request body that grows: head, then the messages.
type conversation struct {
	client *client
	wire.Body
	lastID int // the highest n of the ids "call_n" appended
	names  map[string]string
	size   gauge.Gauge
	broken error
}

func (c *client) Open(set llm.Settings) llm.Conversation {
	v := &conversation{client: c}
	head, err := c.appendHead(nil, set)
	if err != nil {
		v.broken = c.refuse(llm.KindBadRequest, "a tool's schema or the schema of the answer is not JSON: "+err.Error(), err)
	}
	v.Body = wire.NewBody(head)
	return v
}

// refuse is the error of a call that was not made.
func (c *client) refuse(kind llm.ErrorKind, message string, err error) *llm.Error {
	return &llm.Error{Kind: kind, Provider: c.provider, Endpoint: c.wire.Endpoint(), Message: message, Err: err}
}

func (v *conversation) Append(m llm.Message) {
	v.Next()
	before := len(v.B)
	v.B = appendMessage(v.B, &m, cmp.Or(m.ToolName, v.names[m.ToolCallID]))
	shown, bytes := 0, 0
	for i := range m.Images {
		if leftOut(&m.Images[i]) == "" {
			shown, bytes = shown+1, bytes+base64.StdEncoding.EncodedLen(len(m.Images[i].Data))
		}
	}
	v.size.Add(&m, len(v.B)-before-bytes, shown)
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

func (v *conversation) Reset() {
	v.Body.Reset()
	v.lastID = 0
	clear(v.names)
	v.size.Reset()
}

func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.broken != nil {
		return nil, v.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(v.B) == v.Head { // it would only load the model
		return nil, v.client.refuse(llm.KindBadRequest, "there is no message to send", nil)
	}
	if n := v.size.Tokens(v.Head); n > v.client.numCtx {
		return nil, v.client.refused(llm.KindContext, i18n.E("ollama.too_long", n, v.client.numCtx))
	}
	tail := v.tail(ctx)
	return v.client.wire.Send(ctx, func() (*llm.Reply, *llm.Error) { return v.call(ctx, tail, onText) })
}

// call makes one call and reads its whole answer.
func (v *conversation) call(ctx context.Context, tail []byte, onText func(string)) (reply *llm.Reply, e *llm.Error) {
	c := v.client
	read := 0
	e = c.wire.Once(ctx, func(ctx context.Context) (*http.Request, error) {
		return c.wire.Post(ctx, v.B, tail)
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

// tail is what stands behind the messages, with the output limit of ctx.
func (v *conversation) tail(ctx context.Context) []byte {
	c := v.client
	return append(c.appendOptions([]byte{']'}, llm.AnswerLimit(ctx, c.maxTokens)), '}')
}

// measure learns from the tokens that the server says it read, 0 where it does
// not. It fails where they were not all that it was sent: an answer to a part of
// a conversation is none.
func (v *conversation) measure(ctx context.Context, read int) *llm.Error {
	numCtx := v.client.numCtx
	if read == 0 {
		return nil
	}
	switch verdict, sent := v.size.Judge(read, v.Head, numCtx), v.size.Tokens(v.Head); {
	case verdict == gauge.Credible:
		v.size.Learn(read, v.Head)
	case read < numCtx && v.client.countsNew(ctx):
	case verdict == gauge.Full:
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
