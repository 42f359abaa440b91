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
// A conversation switches at any time where it is an llm.Refillable that was
// told how to be filled again. Else it can until its first answer, and keeps
// its messages so long; Serialized begins anew then.
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
	open   bool // may still switch
	kept   []llm.Message
	refill func() error
	undone bool // a refill failed: what is held is not all
}

// OnMove spares the keeping of messages. It is called before the first Append.
func (v *undecided) OnMove(refill func() error) { v.refill = refill }

func (v *undecided) Append(m llm.Message) {
	if v.open && v.refill == nil {
		v.kept = append(v.kept, m)
	}
	v.Conversation.Append(m)
}

func (v *undecided) Reset() {
	v.kept = nil
	v.Conversation.Reset()
}

func (v *undecided) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.undone {
		if err := v.fill(); err != nil {
			return nil, err
		}
	}
	reply, err := v.Conversation.Send(ctx, onText)
	var e *llm.Error
	switch {
	case err == nil:
		v.open, v.kept = v.refill != nil && v.open, nil
	case errors.As(err, &e) && e.Kind == llm.KindNoTools:
		if !v.client.asText.Swap(true) && v.client.onSwitch != nil {
			v.client.onSwitch(err)
		}
		if !v.open {
			return nil, err
		}
		kept := v.kept
		v.Conversation, v.open, v.kept = v.client.text.Open(v.set), false, nil
		if v.refill != nil {
			if err := v.fill(); err != nil {
				return nil, err
			}
		}
		for _, m := range kept {
			v.Append(m)
		}
		return v.Conversation.Send(ctx, onText)
	}
	return reply, err
}

// fill asks for all messages again.
func (v *undecided) fill() error {
	err := v.refill()
	if v.undone = err != nil; v.undone {
		return fmt.Errorf("fill the conversation again, with tools as text: %w", err)
	}
	return nil
}
