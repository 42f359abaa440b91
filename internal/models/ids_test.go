package models

import (
	"context"
	"strings"
	"testing"

	"toritsugi/internal/llm"
)

type fixed struct {
	llm.Client
	reply llm.Reply
}

func (f *fixed) Open(llm.Settings) llm.Conversation { return &fixedConversation{client: f} }

type fixedConversation struct {
	llm.Conversation
	client *fixed
}

func (v *fixedConversation) Send(context.Context, func(string)) (*llm.Reply, error) {
	r := v.client.reply
	r.Message.ToolCalls = append([]llm.ToolCall(nil), r.Message.ToolCalls...)
	return &r, nil
}

func (*fixedConversation) Serialized() []byte { return nil }

// A secret that a server puts into the id of a call goes no further; the same
// one gives the same id again, and all other ids stay.
func TestIDsWithSecrets(t *testing.T) {
	t.Parallel()
	inner := &fixed{reply: llm.Reply{Message: llm.Message{ToolCalls: []llm.ToolCall{{ID: "call_s3cret"}, {ID: "call_1"}, {ID: "call_s3cret"}}}}}
	c := &cleanIDs{inner, func(s string) string { return strings.ReplaceAll(s, "s3cret", "[REDACTED]") }, func(int) (func(string), func()) { return func(string) {}, func() {} }}
	r, err := c.Open(llm.Settings{}).Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := r.Message.ToolCalls
	if strings.Contains(calls[0].ID, "s3cret") || !strings.HasPrefix(calls[0].ID, "call_x") || calls[1].ID != "call_1" || calls[2].ID != calls[0].ID {
		t.Errorf("%+v", calls)
	}
	if inner.reply.Message.ToolCalls[0].ID != "call_s3cret" {
		t.Error("the provider's own answer was changed")
	}
}
