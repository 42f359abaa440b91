// Package memory decides what the model sees of a run: the window. It is
// assembled from the ledger once and appended to after that; a decision that
// rewrites it is a line of window.jsonl before the request that follows
// (DESIGN §3). It never changes what is stored.
package memory

import (
	"errors"
	"fmt"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// pinned is how many messages at the front never leave the window: the system
// prompt and the request.
const pinned = 2

// keepRecent is how many of the latest messages always stay (store-v3 §7.2).
const keepRecent = 5

// Ledger is what the window needs of a context.
type Ledger interface {
	Messages(offset int64, f func(contextstore.Message) bool) error
	LastWindow() (*contextstore.WindowEvent, error)
	AppendWindow(contextstore.WindowEvent) error
	ReadImage(contextstore.Image) ([]byte, error)
}

// Window is the conversation with the model as far as it fits. It is owned by
// one goroutine.
type Window struct {
	ledger Ledger
	conv   llm.Conversation
	limit  int // tokens of a request
	fixed  int // bytes of a request before its messages: the tools
	entry  []entry
	open   []contextstore.ToolCall
	asked  contextstore.Message // the assistant message that open belongs to
	last   contextstore.Message
	perTok float64 // bytes of text per token; 4 until a provider reported usage

	content int // bytes that the images take in the conversation
	images  int // in the conversation
}

// entry is one message in the window.
type entry struct {
	seq, offset int64
	end         size // of the conversation up to it
	tool        bool
}

// Open assembles the window of a context into an empty conversation. limit is
// the most tokens that a request may take, fixed the bytes of what precedes its
// messages (the tools). It reads the pinned messages and what the last window
// event left, nothing before.
func Open(ledger Ledger, conv llm.Conversation, limit, fixed int) (*Window, error) {
	w := &Window{ledger: ledger, conv: conv, limit: limit, fixed: fixed, perTok: 4}
	event, err := ledger.LastWindow()
	if err != nil {
		return nil, fmt.Errorf("read the window's last event: %w", err)
	}
	if r, ok := conv.(llm.Refillable); ok {
		r.OnMove(w.refill)
	}
	return w, w.assemble(event)
}

// refill fills the conversation again, which begins anew in another form or
// with another model.
func (w *Window) refill() error {
	event, err := w.ledger.LastWindow()
	if err != nil {
		return fmt.Errorf("read the window's last event: %w", err)
	}
	return w.assemble(event)
}

// assemble fills the window from the ledger. What the provider reported for an
// answer says how big a token is only if the window was then as it is now: the
// answer came after the event.
func (w *Window) assemble(event *contextstore.WindowEvent) error {
	w.conv.Reset()
	w.entry, w.content, w.images = w.entry[:0], 0, 0
	err := w.ledger.Messages(0, func(m contextstore.Message) bool {
		if event == nil {
			w.calibrate(m)
		}
		w.add(m)
		return event == nil || len(w.entry) < pinned
	})
	if err != nil || event == nil {
		return err
	}
	w.append(llm.Message{Role: llm.RoleUser, Content: notice(*event)})
	w.entry[len(w.entry)-1].end = w.size()
	return w.ledger.Messages(event.Offset, func(m contextstore.Message) bool {
		if m.Timestamp.After(event.Timestamp.Time) && !event.Timestamp.IsZero() {
			w.calibrate(m)
		}
		w.add(m)
		return true
	})
}

// notice tells the model what it no longer sees. It follows from the event
// alone, so that a resumed run serialises the same bytes.
func notice(e contextstore.WindowEvent) string {
	return fmt.Sprintf("[%d earlier messages (up to number %d) are no longer shown because the conversation outgrew the window. "+
		"Look at the files and at git_diff again for what was done.]", e.Dropped, e.FromSeq-1)
}

// Add takes a message that was appended to the ledger into the window.
func (w *Window) Add(m contextstore.Message) {
	w.calibrate(m)
	w.add(m)
}

func (w *Window) add(m contextstore.Message) {
	w.append(w.message(m))
	w.entry = append(w.entry, entry{m.Seq, m.Offset, w.size(), m.Role == llm.RoleTool})
	w.last = m
	switch m.Role {
	case llm.RoleAssistant:
		w.asked, w.open = m, append(w.open[:0:0], m.ToolCalls...)
	case llm.RoleTool:
		for i, c := range w.open {
			if c.ID == m.ToolCallID {
				w.open = append(w.open[:i], w.open[i+1:]...)
				break
			}
		}
	default:
		w.open = nil
	}
}

// calibrate learns how many bytes make a token from what the provider reported
// for the request that m answers: everything in the window before it, and the
// tools. Less than 1.5 or more than 8 is no tokenizer but a server that counts
// something else.
func (w *Window) calibrate(m contextstore.Message) {
	if m.Usage == nil || m.Usage.Estimated {
		return
	}
	text, tokens := w.fixed+w.size().text, m.Usage.Prompt-w.images*imageTokens
	if tokens > 100 && text > 1000 {
		w.perTok = min(max(float64(text)/float64(tokens), 1.5), 8)
	}
}

// Conversation is what to send. Add may be called between two sends, Fit before each.
func (w *Window) Conversation() llm.Conversation { return w.conv }

// Last is the latest message, the zero Message where there is none.
func (w *Window) Last() contextstore.Message { return w.last }

// Unanswered returns the calls of the latest assistant message that have no
// result yet, and that message.
func (w *Window) Unanswered() ([]contextstore.ToolCall, contextstore.Message) { return w.open, w.asked }

// Tokens estimates the size of the next request.
func (w *Window) Tokens() int { return w.tokens(w.size()) }

func (w *Window) tokens(s size) int {
	return int(float64(w.fixed+s.text)/w.perTok) + s.images*imageTokens
}

// Fit makes room if the window is over its limit; it is called before a send.
func (w *Window) Fit() error {
	if w.Tokens() <= w.limit {
		return nil
	}
	return w.shrink(w.limit/2, fmt.Sprintf("about %d tokens, the limit is %d", w.Tokens(), w.limit))
}

// Overflowed makes room after the provider said that the request is too long.
func (w *Window) Overflowed() error {
	err := w.shrink(w.Tokens()/2, "the provider found the request too long")
	var small *TooSmallError
	if errors.As(err, &small) {
		small.Refused = true
	}
	return err
}

// TooSmallError says that what must stay does not fit.
type TooSmallError struct {
	Tokens, Limit int
	Refused       bool // by the provider, whatever the limit is
}

func (e *TooSmallError) Error() string {
	return fmt.Sprintf("the request and the latest messages take about %d tokens, the window holds %d", e.Tokens, e.Limit)
}

// unit is the index of the message that i belongs to: itself, or the answer
// whose call it is the result of.
func (w *Window) unit(i int) int {
	for i > pinned && w.entry[i].tool {
		i--
	}
	return i
}

// shrink drops the oldest messages after the pinned ones until about target
// tokens are left. A call and its results leave together.
func (w *Window) shrink(target int, reason string) error {
	if len(w.entry) <= pinned {
		return &TooSmallError{Tokens: w.Tokens(), Limit: w.limit}
	}
	left := func(i int) int { // tokens left when everything between the pinned messages and i is dropped
		return w.tokens(w.entry[pinned-1].end.plus(w.entry[len(w.entry)-1].end).minus(w.entry[i-1].end))
	}
	most := w.unit(len(w.entry) - keepRecent)
	if most <= pinned || left(most) > w.limit {
		most = w.unit(len(w.entry) - 1) // at the least the latest answer and its results stay
	}
	if most <= pinned || left(most) > w.limit {
		return &TooSmallError{Tokens: w.Tokens(), Limit: w.limit}
	}
	i := pinned + 1
	for i < most && (left(i) > target || w.entry[i].tool) {
		i++
	}
	e := contextstore.WindowEvent{Type: "truncate", FromSeq: w.entry[i].seq, Offset: w.entry[i].offset,
		Dropped: w.entry[i].seq - w.entry[pinned-1].seq - 1, Reason: reason}
	if err := w.ledger.AppendWindow(e); err != nil {
		return err
	}
	if err := w.assemble(&e); err != nil {
		return err
	}
	if w.Tokens() > w.limit {
		return &TooSmallError{Tokens: w.Tokens(), Limit: w.limit}
	}
	return nil
}
