package texttool

import (
	"context"
	"errors"
	"sync/atomic"

	"toritsugi/internal/llm"
)

// Detect returns a client that offers tools as the inner one does, until its
// endpoint answers that the model takes none (llm.KindNoTools); from then on
// all conversations carry them as text. onSwitch, if not nil, is told once, on
// the goroutine of Send.
//
// A conversation can switch until its first answer; its messages are kept so
// long, and Serialized begins anew then.
func Detect(inner llm.Client, onSwitch func(because error)) llm.Client {
	return &detecting{Client: inner, text: New(inner), onSwitch: onSwitch}
}

type detecting struct {
	llm.Client
	text     llm.Client
	asText   atomic.Bool
	onSwitch func(error)
}

func (d *detecting) Open(set llm.Settings) llm.Conversation {
	if len(set.Tools) == 0 || d.asText.Load() {
		return d.text.Open(set)
	}
	return &undecided{Conversation: d.Client.Open(set), client: d, set: set, open: true}
}

// undecided is a conversation whose endpoint was not yet heard on tools.
type undecided struct {
	llm.Conversation
	client *detecting
	set    llm.Settings
	open   bool
	kept   []llm.Message
}

func (v *undecided) Append(m llm.Message) {
	if v.open {
		v.kept = append(v.kept, m)
	}
	v.Conversation.Append(m)
}

func (v *undecided) Reset() {
	v.kept = nil
	v.Conversation.Reset()
}

func (v *undecided) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	reply, err := v.Conversation.Send(ctx, onText)
	var e *llm.Error
	switch {
	case err == nil:
		v.open, v.kept = false, nil
	case errors.As(err, &e) && e.Kind == llm.KindNoTools:
		if !v.client.asText.Swap(true) && v.client.onSwitch != nil {
			v.client.onSwitch(err)
		}
		if !v.open {
			return nil, err
		}
		text := v.client.text.Open(v.set)
		for _, m := range v.kept {
			text.Append(m)
		}
		v.Conversation, v.open, v.kept = text, false, nil
		return text.Send(ctx, onText)
	}
	return reply, err
}
