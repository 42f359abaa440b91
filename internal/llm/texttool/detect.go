package texttool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"toritsugi/internal/llm"
)

// Detect returns a client that offers tools as the inner one does, until its
// endpoint answers that the model takes none (llm.KindNoTools); from then on
// all conversations carry them as text. onSwitch, if not nil, is told once, on
// the goroutine of Send.
//
// A conversation switches once it was told, as an llm.Refillable, how to be filled
// again; Serialized begins anew then.
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
	return &undecided{Conversation: d.Client.Open(set), client: d, set: set}
}

// undecided is a conversation whose endpoint was not yet heard on tools.
type undecided struct {
	llm.Conversation
	client *detecting
	set    llm.Settings
	asText bool // it has switched
	refill func() error
	undone bool // a refill failed: what is held is not all
}

func (v *undecided) OnMove(refill func() error) { v.refill = refill }

func (v *undecided) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.undone {
		if err := v.fill(); err != nil {
			return nil, err
		}
	}
	reply, err := v.Conversation.Send(ctx, onText)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindNoTools {
		return reply, err
	}
	if !v.client.asText.Swap(true) && v.client.onSwitch != nil {
		v.client.onSwitch(err)
	}
	if v.asText || v.refill == nil {
		return nil, err
	}
	v.Conversation, v.asText = v.client.text.Open(v.set), true
	if err := v.fill(); err != nil {
		return nil, err
	}
	return v.Conversation.Send(ctx, onText)
}

// fill asks for all messages again.
func (v *undecided) fill() error {
	err := v.refill()
	if v.undone = err != nil; v.undone {
		return fmt.Errorf("fill the conversation again, with tools as text: %w", err)
	}
	return nil
}
