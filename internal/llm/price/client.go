package price

import (
	"cmp"
	"context"

	"toritsugi/internal/llm"
)

// Priced wraps client: where an answer reports usage without a cost, and price
// knows the model, the cost is set. price is asked by the name of the client
// that answered, PROVIDER/MODEL: Reply.By, or that of client itself. It is
// called on the goroutine of Send. Conversations are llm.Refillable where those
// of client are.
func Priced(client llm.Client, price func(by string) (Price, bool)) llm.Client {
	return &priced{client, price}
}

type priced struct {
	llm.Client
	price func(by string) (Price, bool)
}

func (c *priced) Open(set llm.Settings) llm.Conversation {
	inner := c.Client.Open(set)
	return llm.Wrap(&conversation{inner, c}, inner)
}

type conversation struct {
	llm.Conversation
	client *priced
}

// Send is that of the wrapped conversation; see Priced.
func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	reply, err := v.Conversation.Send(ctx, onText)
	if err != nil || reply.Usage == nil || reply.Usage.Cost != nil {
		return reply, err
	}
	by := cmp.Or(reply.By, v.client.Provider()+"/"+v.client.Model())
	if p, ok := v.client.price(by); ok {
		u, cost := *reply.Usage, p.Micros(*reply.Usage)
		u.Cost = &cost
		reply.Usage = &u
	}
	return reply, nil
}
