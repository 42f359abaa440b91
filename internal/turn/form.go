package turn

import (
	"context"
	"errors"

	"toritsugi/internal/llm"
)

// send sends the window, with the form that the answer is to have. What is asked
// for stands in the messages, so a provider that refuses the form gets the same
// request without it, and no form any more.
func (l *Loop) send(ctx context.Context) (*llm.Reply, error) {
	conv := l.Window.Conversation()
	if l.Form == nil || l.formless {
		return conv.Send(ctx, nil)
	}
	form := l.Form()
	if form == nil {
		return conv.Send(ctx, nil)
	}
	reply, err := conv.Send(llm.WithForm(ctx, form), nil)
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.KindBadRequest {
		return reply, err
	}
	l.Log.Warn("The provider refused the form of an answer; it is asked without", "error", err)
	l.formless = true
	return conv.Send(ctx, nil)
}
