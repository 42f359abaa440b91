package turn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
)

// formal is a model that notes the form of each answer.
type formal struct {
	*model
	forms  []string
	refuse llm.ErrorKind // of a call with a form
}

func (f *formal) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	form := llm.Form(ctx)
	f.forms = append(f.forms, string(form))
	if form != nil && f.refuse != "" {
		return nil, &llm.Error{Kind: f.refuse, Message: "response_format is not supported"}
	}
	return f.model.Send(ctx, onText)
}

// A form is sent where there is one; where it is refused, the same is asked
// without, and no form is tried again. Other failures stay what they are.
func TestForm(t *testing.T) {
	t.Parallel()
	for refuse, want := range map[llm.ErrorKind][]string{
		"":                 {"", `{"a":1}`, `{"a":1}`, ""},
		llm.KindBadRequest: {"", `{"a":1}`, "", "", ""},
		llm.KindServer:     {"", `{"a":1}`},
	} {
		b := setup(t, hands{}, say("One."), say("Two."), say("Three."), say("Four."))
		f := &formal{model: b.model, refuse: refuse}
		w, err := memory.Open(b.ctx, f, memory.Policy{Limit: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		b.loop.Window = w
		asked := 0
		b.loop.Form = func() json.RawMessage {
			if asked++; asked == 2 || asked == 3 {
				return json.RawMessage(`{"a":1}`)
			}
			return nil
		}
		for range 4 {
			if err = b.loop.Tell(t.Context(), "Go on."); err != nil {
				t.Fatal(err)
			}
			if _, err = b.loop.Run(t.Context()); err != nil {
				break
			}
		}
		var e *llm.Error
		if failed := errors.As(err, &e); failed != (refuse == llm.KindServer) || failed && e.Kind != refuse {
			t.Errorf("refused as %q: %v", refuse, err)
		}
		if !slices.Equal(f.forms, want) {
			t.Errorf("refused as %q: forms %q, want %q", refuse, f.forms, want)
		}
	}
}
