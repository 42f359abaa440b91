package conversation

import (
	"context"
	"errors"
	"path"
	"strconv"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// leg is the record of one leg: the ledger of its loop. It is held in memory, where it
// grows no longer than a turn lasts, and written to legs/ of its session for people. A leg
// that a kill ended is begun anew: it only read.
type leg struct {
	e    *Engine
	x    session
	name string // "12.1": the turn and the number of the leg in it

	messages []contextstore.Message
	tools    []contextstore.ToolRun
	window   []contextstore.WindowEvent
	images   map[string][]byte
	state    contextstore.State
	sum      int64 // tokens of all messages
}

// errNoSummary: a leg makes no summaries; its window drops what does not fit.
var errNoSummary = errors.New("a leg keeps no summaries")

// file is the leg's log below the session's directory.
func (l *leg) file() string { return path.Join(legsDir, l.name+".jsonl") }

// Append implements turn.Ledger.
func (l *leg) Append(msgs ...contextstore.Message) ([]contextstore.Message, error) {
	out := make([]contextstore.Message, len(msgs))
	lines := make([]any, len(msgs))
	for i, m := range msgs {
		m.Content, m.Reasoning = l.e.Redact(m.Content), l.e.Redact(m.Reasoning)
		m.Seq, m.Timestamp = int64(len(l.messages)+1), contextstore.Time{Time: l.e.Now()}
		m.Tokens = contextstore.CountTokens(m.Content)
		l.sum += int64(m.Tokens)
		m.Sum, m.Offset = l.sum, int64(len(l.messages))
		if m.Role == llm.RoleAssistant {
			l.state.LLMCallCount++
			l.state.TotalTokensUsed += m.Usage.Sum()
			if m.Usage != nil {
				l.state.CompletionTokens += int64(m.Usage.Completion)
			}
		}
		l.messages = append(l.messages, m)
		out[i], lines[i] = m, m
	}
	if err := l.x.Write(context.Background(), func(w *contextstore.SessionWriter) error { return w.Note(l.file(), lines...) }); err != nil {
		l.e.Log.Error("A leg is not on record: " + err.Error())
	}
	return out, nil
}

// AppendTools implements turn.Ledger.
func (l *leg) AppendTools(runs ...contextstore.ToolRun) error {
	l.tools = append(l.tools, runs...)
	l.state.ToolCallCount += int64(len(runs))
	return nil
}

// LastTools implements turn.Ledger.
func (l *leg) LastTools(n int) ([]contextstore.ToolRun, error) {
	return l.tools[max(0, len(l.tools)-n):], nil
}

// SaveImage implements turn.Ledger.
func (l *leg) SaveImage(data []byte, mediaType string) (contextstore.Image, error) {
	if l.images == nil {
		l.images = map[string][]byte{}
	}
	name := path.Join("images", strconv.Itoa(len(l.images)))
	l.images[name] = data
	return contextstore.Image{Path: name, MediaType: mediaType, Bytes: int64(len(data))}, nil
}

// ReadImage implements memory.Ledger.
func (l *leg) ReadImage(i contextstore.Image) ([]byte, error) { return l.images[i.Path], nil }

// Activity implements turn.Ledger.
func (l *leg) Activity(string, string) error { return nil }

// TurnDone implements turn.Ledger.
func (l *leg) TurnDone(context.Context) error { return nil }

// State implements turn.Ledger.
func (l *leg) State() contextstore.State { return l.state }

// Messages implements memory.Ledger; offsets count messages.
func (l *leg) Messages(offset int64, f func(contextstore.Message) bool) error {
	for _, m := range l.messages[min(offset, int64(len(l.messages))):] {
		if !f(m) {
			break
		}
	}
	return nil
}

// LastWindow implements memory.Ledger.
func (l *leg) LastWindow() (*contextstore.WindowEvent, error) {
	if len(l.window) == 0 {
		return nil, nil
	}
	last := l.window[len(l.window)-1]
	return &last, nil
}

// AppendWindow implements memory.Ledger.
func (l *leg) AppendWindow(w contextstore.WindowEvent) error {
	w.ID, w.Timestamp, w.AtSeq = int64(len(l.window)+1), contextstore.Time{Time: l.e.Now()}, int64(len(l.messages))
	l.window = append(l.window, w)
	return nil
}

// LatestSummary implements memory.Ledger.
func (l *leg) LatestSummary() (*contextstore.Summary, error) { return nil, nil }

// SummaryOf implements memory.Ledger.
func (l *leg) SummaryOf(int64) (*contextstore.Summary, error) { return nil, errNoSummary }

// AppendSummary implements memory.Ledger.
func (l *leg) AppendSummary(s contextstore.Summary) (contextstore.Summary, error) {
	return s, errNoSummary
}

// ContextTokens implements memory.Ledger.
func (l *leg) ContextTokens(n int) { l.state.CurrentContextTokens = int64(n) }

// CompressionFailed implements memory.Ledger.
func (l *leg) CompressionFailed() {}

// Spent implements memory.Ledger.
func (l *leg) Spent(*contextstore.Usage) {}
