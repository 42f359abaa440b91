// Package record takes down what a model answers, in the form of a script that
// llm/script replays: one assistant message of the ledger a line. It wraps a
// client and writes one file; a record that cannot be written stops no run.
package record

import (
	"context"
	"io"
	"iter"
	"sync"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// New returns client with every answer of a successful Send written to w before
// it is returned. Clients may share a Writer; their answers then stand in the
// order in which they came. Conversations are llm.Refillable where those of
// client are. A client that tells tools in text (llm/texttool) is wrapped after
// that, so that calls are recorded as calls.
func New(client llm.Client, w *Writer) llm.Client { return &recorded{client, w} }

type recorded struct {
	llm.Client
	w *Writer
}

func (c *recorded) Open(set llm.Settings) llm.Conversation {
	inner := c.Client.Open(set)
	return llm.Wrap(&conversation{inner, c.w}, inner)
}

type conversation struct {
	llm.Conversation
	w *Writer
}

// Send is that of the wrapped conversation; see New.
func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	reply, err := v.Conversation.Send(ctx, onText)
	if err == nil {
		v.w.record(reply)
	}
	return reply, err
}

// Writer writes answers as lines. It is safe for concurrent use.
type Writer struct {
	redact func(string) string
	failed func(error)

	mu     sync.Mutex
	out    io.Writer
	line   []byte
	broken bool // a write failed: what came next would replay in a wrong place
}

// NewWriter returns a Writer to out, which gets each line whole, in one call of
// Write. redact masks the texts of an answer as the ledger's redaction does; it
// is called by one goroutine at a time. failed, if not nil, is told of the first
// error of out, on the goroutine of Send; nothing is written after it.
func NewWriter(out io.Writer, redact func(string) string, failed func(error)) *Writer {
	if failed == nil {
		failed = func(error) {}
	}
	return &Writer{redact: redact, failed: failed, out: out}
}

func (w *Writer) record(reply *llm.Reply) {
	w.mu.Lock()
	err := w.write(reply)
	w.mu.Unlock()
	if err != nil {
		w.failed(err)
	}
}

// write writes one line, unless one failed before. The caller holds mu.
func (w *Writer) write(reply *llm.Reply) error {
	if w.broken {
		return nil
	}
	var err error
	if w.line, err = appendLine(w.line[:0], reply, w.redact); err == nil {
		var n int
		if n, err = w.out.Write(w.line); err == nil && n < len(w.line) {
			err = io.ErrShortWrite
		}
	}
	if cap(w.line) > maxKept {
		w.line = nil
	}
	w.broken = err != nil
	return err
}

// maxKept is how many bytes a line's buffer may have to be used again.
const maxKept = 64 << 10

// Seed writes the answers that a run got before it was interrupted, one at a
// time, so that the record of the resumed run begins with them. It is called
// before the first Send. An error is that of the answers or of the output;
// nothing is written after it, and it is not told to failed.
func (w *Writer) Seed(answers iter.Seq2[*llm.Reply, error]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for reply, err := range answers {
		if err == nil {
			err = w.write(reply)
		}
		if err != nil {
			w.broken = true
			return err
		}
	}
	return nil
}

// Answers turns the messages of a ledger into what Seed takes, without holding
// them. messages calls f for each until that returns false, as
// contextstore.Context.Messages does from offset 0. What an assistant said before
// the first user message is an inherited summary and no answer; a usage that was
// estimated was not reported and is left out.
func Answers(messages func(f func(contextstore.Message) bool) error) iter.Seq2[*llm.Reply, error] {
	return func(yield func(*llm.Reply, error) bool) {
		asked, stopped := false, false
		err := messages(func(m contextstore.Message) bool {
			asked = asked || m.Role == llm.RoleUser
			if asked && m.Role == llm.RoleAssistant {
				stopped = !yield(replyOf(&m), nil)
			}
			return !stopped
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// replyOf is the answer that m was made of.
func replyOf(m *contextstore.Message) *llm.Reply {
	r := &llm.Reply{Message: llm.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, Opaque: string(m.Provider)},
		FinishReason: m.FinishReason, By: m.AnsweredBy}
	for _, c := range m.ToolCalls {
		r.Message.ToolCalls = append(r.Message.ToolCalls, llm.ToolCall{ID: string(c.ID), Name: c.Name, Arguments: c.Arguments})
	}
	if u := m.Usage; u != nil && !u.Estimated {
		r.Usage = &llm.Usage{PromptTokens: u.Prompt, CompletionTokens: u.Completion, TotalTokens: u.Total,
			CachedTokens: u.Cached, CacheWriteTokens: u.CacheWrite, ReasoningTokens: u.Reasoning, Cost: u.Cost}
		if u.Total == 0 {
			r.Usage.TotalTokens = u.Prompt + u.Completion
		}
	}
	return r
}
