package llmtest

import (
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/llm"
)

// FinalPrompt begins the system prompt of a request for the final summary of a
// run, FinalQuestion what it is asked with behind the run's own messages, which is no
// part of the run either: servers answer both apart.
const (
	FinalPrompt   = "You write the final summary of a run of a coding agent"
	FinalQuestion = "The run has ended. You write its final summary"
)

// prompts are those, in Japanese, too.
var prompts = []string{FinalPrompt, FinalQuestion, "終了したコーディングエージェントの実行の最終要約を", "この実行は終了しました。最終要約を"}

// finals keeps the requests for final summaries apart from the others.
type finals struct {
	mu     sync.Mutex
	answer Handler
	seen   []Request
}

// take answers a request for a final summary, and reports whether it is one.
func (f *finals) take(r *Request) (Answer, bool) {
	asks := func(i int, role string) bool {
		if i < 0 || i >= len(r.Messages) || r.Messages[i].Role != role || r.Messages[i].Content == nil {
			return false
		}
		return slices.ContainsFunc(prompts, func(p string) bool { return strings.HasPrefix(*r.Messages[i].Content, p) })
	}
	if !asks(0, llm.RoleSystem) && !asks(len(r.Messages)-1, llm.RoleUser) {
		return Answer{}, false
	}
	f.mu.Lock()
	r.Number = len(f.seen) + 1
	f.seen = append(f.seen, *r)
	h := f.answer
	f.mu.Unlock()
	if h == nil {
		return Answer{Text: "It was done as asked."}, true
	}
	return h(r), true
}

func (f *finals) set(h Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = h
}

func (f *finals) requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// OnFinal says how requests for final summaries are answered; they are not among
// Requests. Without it they are answered with a sentence, and no usage.
func (s *Server) OnFinal(h Handler) { s.finals.set(h) }

// Finals returns the requests for final summaries received so far.
func (s *Server) Finals() []Request { return s.finals.requests() }

// OnFinal is that of Server.
func (o *Ollama) OnFinal(h Handler) { o.finals.set(h) }

// Finals is that of Server.
func (o *Ollama) Finals() []Request { return o.finals.requests() }
