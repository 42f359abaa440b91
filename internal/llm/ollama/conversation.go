package ollama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"toritsugi/internal/llm"
)

// tail closes what appendHead opened.
const tail = "]}"

// conversation is a request body that grows: head, then the messages. Bytes
// once written are never written again, since the transport may still read
// them after an early answer.
type conversation struct {
	client *client
	body   []byte
	head   int // length of the part before the first message
	lastID int // the highest n of the ids "call_n" appended
	names  map[string]string
	images []ImageAudit
	size   gauge
	broken error
}

func (c *client) Open(set llm.Settings) llm.Conversation {
	v := &conversation{client: c}
	var err error
	if v.body, err = c.appendHead(nil, set); err != nil {
		v.broken = c.refuse(llm.KindBadRequest, "a tool's schema or the schema of the answer is not JSON: "+err.Error(), err)
	}
	v.head = len(v.body)
	return v
}

// refuse is the error of a call that was not made.
func (c *client) refuse(kind llm.ErrorKind, message string, err error) *llm.Error {
	return c.fail(&llm.Error{Kind: kind, Message: message, Err: err}, c.address, nil)
}

func (v *conversation) Append(m llm.Message) {
	if len(v.body) > v.head {
		v.body = append(v.body, ',')
	}
	audit := auditImages(m.Images)
	before := len(v.body)
	v.body = appendMessage(v.body, &m, v.toolName(&m), audit)
	v.size.add(&m, len(v.body)-before, audit)
	v.images = append(v.images, audit...)
	if m.Role == llm.RoleAssistant {
		clear(v.names) // results follow the calls that they answer
	}
	for _, call := range m.ToolCalls {
		v.lastID = max(v.lastID, generatedID(call.ID))
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
	v.body = v.body[:v.head:v.head] // the next append moves to new memory
	v.lastID, v.images = 0, nil
	clear(v.names)
	v.size.reset()
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
		return nil, v.client.refuse(llm.KindContext, fmt.Sprintf(
			"the request is about %d tokens, more than the %d of num_ctx; Ollama would drop its beginning", n, v.client.numCtx), nil)
	}
	return v.client.retry(ctx, func() (*llm.Reply, *llm.Error) {
		v.audit(BeforeRequest)
		reply, e := v.call(ctx, onText)
		if e != nil && (e.Kind == llm.KindTimeout || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
			v.audit(AfterTimeout)
		}
		return reply, e
	})
}

func (v *conversation) audit(phase string) {
	if v.client.onImages != nil && len(v.images) > 0 {
		v.client.onImages(phase, v.images)
	}
}

// call makes one call and reads its whole answer.
func (v *conversation) call(ctx context.Context, onText func(string)) (*llm.Reply, *llm.Error) {
	c := v.client
	var reply *llm.Reply
	e := c.exchange(ctx, http.MethodPost, c.address, v.body, tail,
		func(ctx context.Context, res *http.Response, in io.Reader) (*llm.Error, error) {
			a := &answer{maxSize: c.maxAnswer, onText: onText}
			e, broken := c.read(ctx, a, res.Header.Get("Content-Type"), in)
			if e != nil || broken != nil {
				return e, broken
			}
			if n := a.promptTokens(); n > 0 && v.size.cut(n, v.head, c.numCtx) {
				return &llm.Error{Kind: llm.KindContext, Message: fmt.Sprintf(
					"the server read %d tokens of a request of about %d: it dropped the beginning, which did not fit num_ctx %d",
					n, v.size.tokens(v.head), c.numCtx)}, nil
			} else if n > 0 {
				v.size.learn(n, v.head)
			}
			reply, e = a.reply(v.lastID)
			return e, nil
		})
	if e != nil {
		return nil, e
	}
	return reply, nil
}

// generatedID is the n of an id "call_n" that this package made, else 0.
// Counting on from the highest keeps ids unique within the window, also after
// a resume, without any state.
func generatedID(id string) int {
	digits, found := strings.CutPrefix(id, "call_")
	if n, err := strconv.Atoi(digits); found && err == nil && 0 < n && n < 1e9 {
		return n
	}
	return 0
}
