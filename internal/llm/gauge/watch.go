package gauge

import (
	"context"
	"encoding/base64"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// DetectTruncation returns c with each answer's count compared with what was sent, for a
// server whose window nobody knows. Where it read less than any tokenizer makes of
// that, the answer is one to a part of the request: it is not used, and the call
// fails as one that is too long (llm.KindContext) with what was read, so that room
// is made. advice, where the server is known to cut, says what to do instead; nil
// where it is not known to.
func DetectTruncation(c llm.Client, advice error) llm.Client { return &watchedClient{c, advice} }

type watchedClient struct {
	llm.Client
	advice error
}

func (c *watchedClient) Open(set llm.Settings) llm.Conversation {
	v := &watched{Conversation: c.Client.Open(set), client: c}
	for _, t := range set.Tools {
		v.head += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return v
}

type watched struct {
	llm.Conversation
	client *watchedClient
	size   Gauge
	head   int // bytes of the tools
	before int // bytes of the latest request that was answered
}

func (v *watched) Append(m llm.Message) {
	before := len(v.Serialized())
	v.Conversation.Append(m)
	size := len(v.Serialized()) - before
	for i := range m.Images {
		size -= base64.StdEncoding.EncodedLen(len(m.Images[i].Data))
	}
	v.size.Add(&m, max(size, 0), len(m.Images))
}

func (v *watched) Reset() {
	v.Conversation.Reset()
	v.size.Reset()
	v.before = 0
}

func (v *watched) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	reply, err := v.Conversation.Send(ctx, onText)
	if err != nil || reply.Usage == nil {
		return reply, err
	}
	read, sent := reply.Usage.PromptTokens, v.size.Tokens(v.head)
	added := v.head + v.size.text - v.before
	if v.size.part(read) {
		// Some servers count only what their cache had not.
		if v.client.advice != nil || read > added/2 {
			err := i18n.E("llm.part", read, sent)
			if v.client.advice != nil {
				err = i18n.E("llm.part_known", read, sent, v.client.advice)
			}
			return nil, &llm.Error{Kind: llm.KindContext, Provider: v.client.Provider(), Message: err.Error(), Err: err, Read: read}
		}
	}
	v.before += added
	v.size.Learn(read, v.head)
	return reply, nil
}

// part reports whether a count is of a part of the request, whatever the window.
func (g *Gauge) part(reported int) bool {
	return reported >= leastCut && reported < g.least()*9/10
}
