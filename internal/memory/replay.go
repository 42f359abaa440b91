package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/price"
	"toritsugi/internal/redact"
)

// Replayed is what one policy made of a recorded run. Tokens are estimates:
// four characters each. Ratios are against the full history.
type Replayed struct {
	Policy      string  `json:"policy"`
	Turns       int     `json:"turns"`
	Tokens      int64   `json:"tokens_sent"` // of all requests, those for summaries included
	Cached      int64   `json:"tokens_cached"`
	Summaries   int64   `json:"summary_calls"`
	Cost        float64 `json:"cost_usd"` // of all requests and of what the summariser wrote, at list prices
	TokensRatio float64 `json:"tokens_ratio"`
	CachedShare float64 `json:"cached_share"`
	// CostRatio is nil where the full history costs nothing.
	CostRatio  *float64 `json:"cost_ratio"`
	Masked     int      `json:"masked"`            // decisions
	Summarised int      `json:"summarised"`        //
	Truncated  int      `json:"truncated"`         //
	OutOfView  int      `json:"out_of_view"`       // messages that the last request shows as a stub or not at all; each can be recalled
	Pinned     int      `json:"pinned"`            // identifiers of the request and of edits
	PinnedSeen int      `json:"pinned_in_view"`    // of them, in the last request
	PinnedKept int      `json:"pinned_recallable"` // not there, and in a message that can be recalled
	PinnedLost int      `json:"pinned_lost"`       // neither
}

// ReplayOptions are what a recorded run is replayed with.
type ReplayOptions struct {
	Policy Policy      // its Masking, Context, Threshold, MinMessages and KeepRecent
	System int         // tokens of the system prompt and the tools
	Price  price.Price // of the model that is sent all of it, and writes the summaries
}

// Comparison is what the policies made of a recorded run.
type Comparison struct {
	Policies []Replayed
	// Answers are the tokens of what the recorded model wrote, and AnswersCost
	// what they cost in US dollars: the same under each policy, and in none of
	// their costs.
	Answers     int64
	AnswersCost float64
}

// Replay runs a recorded run through four policies: the full history (none),
// masks, summaries, and both (hybrid). No model is called: the script model gives
// the recorded answers, and summaries are extracts of a third.
func Replay(ctx context.Context, t Trajectory, o ReplayOptions) (Comparison, error) {
	var c Comparison
	run := t.recorded
	client, err := run.script()
	if err != nil {
		return c, fmt.Errorf("replay: %w", err)
	}
	for _, turn := range run.turns {
		n := utf8.RuneCountInString(turn[0].Content)
		for _, call := range turn[0].ToolCalls {
			n += utf8.RuneCountInString(call.Name + call.Arguments)
		}
		c.Answers += int64(n / 4)
	}
	c.AnswersCost = float64(c.Answers) * o.Price.At(0).Output / perMillion
	for _, name := range []string{"none", "mask", "summary", "hybrid"} {
		p := o.Policy
		p.Count = func(b []byte) int { return utf8.RuneCount(b) / 4 }
		p.Fixed, p.Masking.Enabled = 4*o.System, name == "mask" || name == "hybrid"
		if name == "none" || name == "mask" {
			p.Limit, p.Context, p.Summarizer = 1<<40, 0, nil
		}
		r := &replayer{Replayed: Replayed{Policy: name, Turns: len(run.turns)}, run: run, client: client, price: o.Price}
		if err := r.replay(ctx, p); err != nil {
			return c, fmt.Errorf("replay %s: %w", name, err)
		}
		c.Policies = append(c.Policies, r.Replayed)
		full, last := c.Policies[0], &c.Policies[len(c.Policies)-1]
		last.TokensRatio, last.CostRatio = float64(last.Tokens)/float64(full.Tokens), ratio(last.Cost, full.Cost)
	}
	return c, nil
}

const perMillion = 1e6

func ratio(a, b float64) *float64 {
	if b <= 0 {
		return nil
	}
	a /= b
	return &a
}

// replayer runs a recorded run through one policy.
type replayer struct {
	Replayed
	run    *recordedRun
	client llm.Client
	price  price.Price
}

// paid counts a request: what is in the provider's cache, what is new to it and
// kept there, and what is answered.
func (r *replayer) paid(cached, fresh, answer int64) {
	rates := r.price.At(int(cached + fresh))
	r.Tokens, r.Cached = r.Tokens+cached+fresh, r.Cached+cached
	r.Cost += (float64(cached)*rates.CachedInput + float64(fresh)*rates.CacheWrite + float64(answer)*rates.Output) / perMillion
}

func (r *replayer) replay(ctx context.Context, p Policy) error {
	book := &scratch{}
	conv := &played{script: r.client.Open(llm.Settings{}), headless: !r.run.asked()}
	conv.Reset()
	if r.Policy == "summary" || r.Policy == "hybrid" {
		p.Summarizer = func(context.Context) (Summarizer, error) {
			return Summarizer{Name: "extract", Window: p.Context, Ask: r.extract}, nil
		}
	}
	w, err := Open(book, conv, p)
	if err != nil {
		return err
	}
	var pins pinList
	put := func(m contextstore.Message) { w.Add(book.put(m)) }
	for _, m := range r.run.opening {
		put(m)
		if m.Role == llm.RoleUser {
			pins.add(identifiers(m.Content)...)
		}
	}
	var before []byte
	for n, turn := range r.run.turns {
		if err := w.Fit(ctx); err != nil {
			return fmt.Errorf("turn %d: %w", n+1, err)
		}
		now := conv.Serialized()
		same := p.Count(now[:commonPrefix(before, now)])
		fresh := p.Count(now) - same
		if n > 0 {
			same += p.Fixed / 4
		} else {
			fresh += p.Fixed / 4
		}
		r.paid(int64(same), int64(fresh), 0)
		before = append(before[:0], now...)
		answer, err := r.answer(ctx, w, turn[0])
		if err != nil {
			return fmt.Errorf("turn %d: %w", n+1, err)
		}
		for _, c := range answer.ToolCalls {
			pins.add(editedPath(c))
		}
		put(answer)
		for _, m := range turn[1:] {
			put(m)
		}
	}
	r.CachedShare = float64(r.Cached) / float64(max(r.Tokens, 1))
	r.count(w, book, pins.list)
	return nil
}

// answer asks the script model, which must say what is on record.
func (r *replayer) answer(ctx context.Context, w *Window, recorded contextstore.Message) (contextstore.Message, error) {
	reply, err := w.Conversation().Send(ctx, nil)
	if err != nil {
		return recorded, err
	}
	m := contextstore.Message{Role: llm.RoleAssistant, Content: reply.Message.Content, Reasoning: reply.Message.Reasoning, Provider: redact.Opaque(reply.Message.Opaque)}
	for _, c := range reply.Message.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, contextstore.ToolCall{ID: redact.Opaque(c.ID), Name: c.Name, Arguments: c.Arguments})
	}
	if m.Content != recorded.Content || !slices.Equal(m.ToolCalls, recorded.ToolCalls) {
		return recorded, errors.New("the script model cannot tell from this window which answer comes next")
	}
	return m, nil
}

// count tells what the last window shows of the run.
func (r *replayer) count(w *Window, book *scratch, pins []string) {
	for _, e := range book.events {
		switch e.Type {
		case contextstore.WindowMask:
			r.Masked++
		case contextstore.WindowSummary:
			r.Summarised++
		case contextstore.WindowTruncate, contextstore.WindowClip:
			r.Truncated++
		}
	}
	front := int64(w.front())
	for _, m := range book.messages {
		if m.Seq > front && (m.Seq < w.event.FromSeq || bulk(w.view(m)) != bulk(m)) {
			r.OutOfView++
		}
	}
	shown := string(w.conv.Serialized())
	for _, id := range pins {
		r.Pinned++
		switch {
		case strings.Contains(shown, id):
			r.PinnedSeen++
		case book.has(id):
			r.PinnedKept++
		default:
			r.PinnedLost++
		}
	}
}

// extract stands for a model that writes summaries: what is to be kept, and the
// beginning of each message, a third of all.
func (r *replayer) extract(_ context.Context, prompt string, limit int) (Answer, error) {
	r.Summaries++
	head, body, _ := strings.Cut(prompt, "<messages>\n")
	var b strings.Builder
	for line := range strings.Lines(head) {
		if id, ok := strings.CutPrefix(line, "- "); ok {
			b.WriteString(id)
		}
	}
	room := min(4*limit, len(body)/3) - b.Len()
	parts := strings.Split(body, "\n[")
	for _, part := range parts {
		b.WriteString(whole(part[:max(min(len(part), room/len(parts)), 0)]) + "\n")
	}
	a := Answer{Text: b.String()}
	in, out := utf8.RuneCountInString(prompt)/4, utf8.RuneCountInString(a.Text)/4
	r.paid(0, int64(in), int64(out))
	a.Usage = &contextstore.Usage{Prompt: in, Completion: out, Estimated: true}
	return a, nil
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// scratch is a ledger in memory.
type scratch struct {
	messages  []contextstore.Message
	events    []contextstore.WindowEvent
	summaries []contextstore.Summary
}

func (s *scratch) put(m contextstore.Message) contextstore.Message {
	m.Seq, m.Offset = int64(len(s.messages)+1), int64(len(s.messages))
	s.messages = append(s.messages, m)
	return m
}

// has reports whether a message holds an identifier.
func (s *scratch) has(id string) bool {
	for _, m := range s.messages {
		if strings.Contains(m.Content, id) || strings.Contains(original(&m), id) {
			return true
		}
	}
	return false
}

func (s *scratch) Messages(offset int64, f func(contextstore.Message) bool) error {
	for _, m := range s.messages[offset:] {
		if !f(m) {
			break
		}
	}
	return nil
}

func (s *scratch) ReadImage(contextstore.Image) ([]byte, error) {
	return nil, errors.New("a replay has no images")
}

func (s *scratch) LastWindow() (*contextstore.WindowEvent, error) {
	if len(s.events) == 0 {
		return nil, nil
	}
	e := s.events[len(s.events)-1]
	return &e, nil
}

func (s *scratch) AppendWindow(e contextstore.WindowEvent) error {
	e.ID = int64(len(s.events) + 1)
	s.events = append(s.events, e)
	return nil
}

func (s *scratch) SummaryOf(id int64) (*contextstore.Summary, error) {
	if id < 1 || id > int64(len(s.summaries)) {
		return nil, nil
	}
	return &s.summaries[id-1], nil
}

func (s *scratch) LatestSummary() (*contextstore.Summary, error) {
	return s.SummaryOf(int64(len(s.summaries)))
}

func (s *scratch) AppendSummary(x contextstore.Summary) (contextstore.Summary, error) {
	x.ID = int64(len(s.summaries) + 1)
	s.summaries = append(s.summaries, x)
	return x, nil
}

func (s *scratch) Activity(string, string) error { return nil }
func (s *scratch) ContextTokens(int)             {}
func (s *scratch) CompressionFailed()            {}
func (s *scratch) Spent(*contextstore.Usage)     {}
