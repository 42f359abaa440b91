package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"toritsugi/internal/llm"
)

// cleanIDs is a client that tells who waits that it computes, and whose answers have no id of a call that masking would
// change: ids pass the sanitizer by, because they must return as they came, so a
// server that puts a secret into one gets another id back.
type cleanIDs struct {
	llm.Client
	redact func(string) string
	alive  func(sent int) (heard func(text string), stop func()) // while an answer is waited for
}

func (c *cleanIDs) Open(set llm.Settings) llm.Conversation {
	inner := c.Client.Open(set)
	return llm.Wrap(&cleanConversation{inner, c}, inner)
}

type cleanConversation struct {
	llm.Conversation
	client *cleanIDs
}

func (v *cleanConversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	heard, stop := v.client.alive(len(v.Serialized()))
	defer stop()
	reply, err := v.Conversation.Send(ctx, func(text string) {
		heard(text)
		if onText != nil {
			onText(text)
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range reply.Message.ToolCalls {
		id := &reply.Message.ToolCalls[i].ID
		if v.client.redact(*id) != *id {
			sum := sha256.Sum256([]byte(*id))
			*id = "call_x" + hex.EncodeToString(sum[:8])
		}
	}
	return reply, nil
}
