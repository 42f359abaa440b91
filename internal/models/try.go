package models

import (
	"cmp"
	"context"
	"time"

	"toritsugi/internal/llm"
)

// Trial is what one call showed.
type Trial struct {
	Role       string        `json:"role"`
	Model      string        `json:"model"`           // PROVIDER/MODEL that was asked
	AnsweredBy string        `json:"answered_by"`     // PROVIDER/MODEL that answered
	Named      string        `json:"named,omitempty"` // as the provider named it
	First      time.Duration `json:"first_token_ns"`  // until the first text; the whole call where none streamed
	Total      time.Duration `json:"total_ns"`
	PerSecond  float64       `json:"tokens_per_second,omitempty"` // of the answer, after its first text; 0 where it cannot be told
	Usage      *llm.Usage    `json:"usage"`                       // nil where the provider reports none
	Text       string        `json:"text"`
}

// tryPrompt makes an answer that is long enough to be timed, and cheap.
const (
	tryPrompt = "Write the whole numbers from 1 to 60, separated by single spaces, and nothing else."
	tryTokens = 400
)

// leastTimed is how long the rest of an answer must have taken to tell a speed.
const leastTimed = 10 * time.Millisecond

// Try makes one call of the model that fills a role. Errors are those of
// Client and of llm.Conversation.Send. Where u names no route it is the one that
// the role is asked on.
func (m *Models) Try(ctx context.Context, u Use) (Trial, error) {
	if u.Route == "" {
		u.Route = routeOf(u.Role)
	}
	c, s, err := m.Client(ctx, u)
	t := Trial{Role: s.Role, Model: s.Name()}
	if err != nil {
		return t, err
	}
	conv := c.Open(llm.Settings{})
	conv.Append(llm.Message{Role: llm.RoleUser, Content: tryPrompt})
	began := m.Now()
	var first time.Time
	reply, err := conv.Send(llm.LimitAnswer(ctx, tryTokens), func(string) {
		if first.IsZero() {
			first = m.Now()
		}
	})
	ended := m.Now()
	if err != nil {
		return t, err
	}
	t.Total = ended.Sub(began)
	t.First = t.Total
	if !first.IsZero() {
		t.First = first.Sub(began)
	}
	t.Usage, t.Text, t.Named, t.AnsweredBy = reply.Usage, reply.Message.Content, reply.Model, cmp.Or(reply.By, t.Model)
	if rest := t.Total - t.First; reply.Usage != nil && rest >= leastTimed {
		t.PerSecond = float64(reply.Usage.CompletionTokens) / rest.Seconds()
	}
	return t, nil
}
