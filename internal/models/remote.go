package models

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/ollama"
)

// seenFirst is a client of a model of Ollama that its server did not tell anything
// of when the client was made. A server passes some models on to a cloud, under
// any name, so none is called before the server has said that it is not one:
// what is sent to it was not masked, and may not be allowed to leave.
type seenFirst struct {
	llm.Client
	look func(context.Context) (*ollama.Model, error)

	mu sync.Mutex
	ok bool
}

func (c *seenFirst) Open(set llm.Settings) llm.Conversation {
	return &seenConversation{c.Client.Open(set), c}
}

// check asks the server until it has answered.
func (c *seenFirst) check(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ok {
		return nil
	}
	shown, err := c.look(ctx)
	if e, ok := errors.AsType[*llm.Error](err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
		return nil // no such model, which the call will say, or a server too old to have remote ones
	}
	if err != nil {
		return err
	}
	if shown.RemoteHost != "" {
		err := i18n.E("models.remote", c.Model(), shown.RemoteHost)
		return &llm.Error{Kind: llm.KindForbidden, Provider: c.Provider(), Message: err.Error(), Err: err}
	}
	c.ok = true
	return nil
}

type seenConversation struct {
	llm.Conversation
	client *seenFirst
}

func (v *seenConversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if err := v.client.check(ctx); err != nil {
		return nil, err
	}
	return v.Conversation.Send(ctx, onText)
}
