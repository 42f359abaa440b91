package models

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"toritsugi/internal/llm"
)

// cleanIDs is a client whose answers have no id of a call that masking would
// change: ids pass the sanitizer by, because they must return as they came, so a
// server that puts a secret into one gets another id back.
type cleanIDs struct {
	llm.Client
	redact func(string) string
}

func (c *cleanIDs) Open(set llm.Settings) llm.Conversation {
	v := &cleanConversation{c.Client.Open(set), c.redact}
	if r, ok := v.Conversation.(llm.Refillable); ok {
		return &cleanRefillable{v, r}
	}
	return v
}

type cleanConversation struct {
	llm.Conversation
	redact func(string) string
}

type cleanRefillable struct {
	*cleanConversation
	llm.Refillable
}

func (v *cleanConversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	reply, err := v.Conversation.Send(ctx, onText)
	if err != nil {
		return nil, err
	}
	for i := range reply.Message.ToolCalls {
		id := &reply.Message.ToolCalls[i].ID
		if v.redact(*id) != *id {
			sum := sha256.Sum256([]byte(*id))
			*id = "call_x" + hex.EncodeToString(sum[:8])
		}
	}
	return reply, nil
}
