package turn

import (
	"context"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// Director decides what a Loop does between its requests, and sees what it does. It is
// called on the loop's goroutine. One that decides a part embeds the Director that decides
// the rest, at last NoDirector.
type Director interface {
	// Before returns what the model is to hear before it is asked again, most often
	// nothing. Its error ends Run.
	Before(ctx context.Context) ([]contextstore.Message, error)
	// Stream gets the text of an answer as it comes; it begins anew where a request
	// is repeated.
	Stream(delta string)
	// Read may change an answer before it is on record: take out calls that were
	// written as text.
	Read(r *llm.Reply)
	// Results fills in the results of calls that the director answers, before they
	// are on record. It returns a question for the model, its kind and text, that
	// goes with the last of them; kind is "" for none. whole is false where calls of
	// the answer stay open because people are waited for.
	Results(results []contextstore.Message, whole bool) (kind, text string)
	// After is told each message once it is on disk and in the window, in order. Its
	// error ends Run.
	After(m contextstore.Message) error
	// Ends reports whether Run ends with an answer: one whose results are on record,
	// or one that calls nothing.
	Ends(answer contextstore.Message) bool
	// Waited reports whether the call of that id (tool.CallID) ended in a
	// *tool.WaitError.
	Waited(id string) bool
	// Remind returns a text that repeats what the model needs and the window shows
	// no more, of at most room bytes; "" for nothing. from is the number of the
	// first message in view behind the front, masked that of the last message whose
	// calls and results are stubs. It is called before each request after the
	// window was rewritten.
	Remind(from, masked int64, room int) (kind, text string)
}

// NoDirector is the Director of a loop that works until the model answers without a call.
type NoDirector struct{}

// Before implements Director.
func (NoDirector) Before(context.Context) ([]contextstore.Message, error) { return nil, nil }

// Stream implements Director.
func (NoDirector) Stream(string) {}

// Read implements Director.
func (NoDirector) Read(*llm.Reply) {}

// Results implements Director.
func (NoDirector) Results([]contextstore.Message, bool) (kind, text string) { return "", "" }

// After implements Director.
func (NoDirector) After(contextstore.Message) error { return nil }

// Ends implements Director.
func (NoDirector) Ends(answer contextstore.Message) bool { return len(answer.ToolCalls) == 0 }

// Waited implements Director.
func (NoDirector) Waited(string) bool { return false }

// Remind implements Director.
func (NoDirector) Remind(int64, int64, int) (kind, text string) { return "", "" }
