// Package memory decides what the model sees of a run: the window. It is assembled from the
// ledger once and appended to; a decision that rewrites it is a line of window.jsonl before
// the request that follows (DESIGN §3). It never changes what is stored.
package memory

import (
	"fmt"
	"log/slog"
	"slices"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// Window is the conversation with the model as far as it fits:
//
//	front     the system prompt, what an earlier run left, the request
//	lead      what people said since, the latest summary, and a note of what was
//	          dropped without one
//	recent    the messages behind them, old tool output as stubs
//
// The last line of window.jsonl says which messages these are. A Window is used by
// one goroutine.
type Window struct {
	ledger Ledger
	conv   llm.Conversation
	policy Policy
	gauge  gauge
	log    *slog.Logger
	cap    int // tokens of a request: the policy's, or what a provider that refused more taught
	event  contextstore.WindowEvent

	entry []entry
	lead  size  // of what stands between the front and the recent messages
	taken size  // by the conversation
	after int64 // the message before the next one, in the file; -1 where that is not known
	torn  bool  // the answer whose calls the next results are of is lost
	holes []hole
	notes int   // messages about holes since the last entry
	noted size  // of them
	told  int64 // the last lost message that the log tells of
	rate  float64
	open  []contextstore.ToolCall
	asked contextstore.Message // the assistant message that open belongs to
	last  contextstore.Message

	before string // what the message before last says

	// Not on disk, as cap is not: whoever takes the run up has at worst a request refused
	// once more, which costs nothing, and asks maxFailures more times for a summary.
	failures  int   // of the summariser, in a row
	refused   error // why its last summary was not taken, nil where it was
	full      int   // decisions that made room, each soon after the one before
	fullSeq   int64 // the last message at the latest of them
	decisions int   // since the window was opened
}

// entry is one message in the window.
type entry struct {
	seq, offset int64
	notes       int  // messages about holes right before it
	noted       size // of them
	role        string
	end         size    // of the conversation up to it
	saved       size    // that stubs would free, of all messages up to it
	said        size    // of the pinned messages up to it
	pinned      bool    // it stays in view when those around it leave
	bulk        int     // bytes that can be cut
	thought     int     // bytes of thinking that the provider gets back, which can be left out
	perCut      float64 // units that a byte of bulk and thought takes: escapes make more of it
}

// Open assembles the window of a context into an empty conversation. It reads
// the messages at the front, the summary in force, and the messages from where
// the last window event says, nothing before. A summary that a kill kept from
// taking effect does so now.
func Open(ledger Ledger, conv llm.Conversation, p Policy) (*Window, error) {
	w := &Window{ledger: ledger, conv: conv, policy: p, gauge: p.gauge(), log: p.Log, cap: p.Limit}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	event, err := w.lastEvent()
	if err != nil {
		return nil, err
	}
	w.rate = w.gauge.usual
	if event != nil && event.Rate >= w.gauge.least && event.Rate <= w.gauge.most {
		w.rate = event.Rate
	}
	if err := w.assemble(event); err != nil {
		return nil, err
	}
	if err := w.adopt(); err != nil {
		return nil, err
	}
	if r, ok := conv.(llm.Refillable); ok {
		r.OnMove(w.refill)
	}
	ledger.ContextTokens(w.Tokens())
	return w, nil
}

// refill fills the conversation again, which begins anew in another form or
// with another model.
func (w *Window) refill() error {
	event, err := w.lastEvent()
	if err != nil {
		return err
	}
	return w.assemble(event)
}

// lastEvent is the latest decision, nil where there is none. One whose messages
// are not where it says, because the file was damaged, is put right; one whose
// messages are lost holds no longer: what is left of them is shown.
func (w *Window) lastEvent() (*contextstore.WindowEvent, error) {
	e, err := w.ledger.LastWindow()
	if err != nil {
		return nil, fmt.Errorf("read the window's last event: %w", err)
	}
	if e == nil || e.FromSeq == 0 {
		return e, nil
	}
	there := false
	if err := w.ledger.Messages(e.Offset, func(m contextstore.Message) bool { there = m.Seq == e.FromSeq; return false }); err == nil && there {
		return e, nil
	}
	places := map[int64]int64{}
	err = w.ledger.Messages(0, func(m contextstore.Message) bool {
		if m.Seq == e.FromSeq || slices.ContainsFunc(e.Kept, func(k contextstore.Kept) bool { return k.Seq == m.Seq }) {
			places[m.Seq] = m.Offset
		}
		return m.Seq < e.FromSeq
	})
	if err != nil {
		return nil, fmt.Errorf("look for the messages of decision %d about the window: %w", e.ID, err)
	}
	if e.Offset, there = places[e.FromSeq]; there {
		e.Kept = slices.Clone(e.Kept)
		for i := range e.Kept {
			e.Kept[i].Offset = places[e.Kept[i].Seq]
		}
		w.log.Warn("A decision about the window names another place than its messages have; they were looked for", "decision", e.ID)
		return e, nil
	}
	w.log.Warn("The messages of the latest decision about the window are lost; it holds no longer", "decision", e.ID, "from_seq", e.FromSeq)
	return &contextstore.WindowEvent{ID: e.ID, Rate: e.Rate}, nil
}

// pinned is how many messages at the front never leave the window where nothing
// was inherited: the system prompt and the request. See Front.
const pinned = 2

// maxFront is the most messages that the front can have.
const maxFront = pinned + 1

// assemble fills the window from the ledger. What the provider reported for an
// answer says how big a token is only if the window was then as it is now: the
// answer came after the event.
func (w *Window) assemble(event *contextstore.WindowEvent) error {
	w.conv.Reset()
	w.entry, w.lead, w.taken = w.entry[:0], size{}, size{}
	w.after, w.torn, w.holes, w.notes, w.noted = 0, false, nil, 0, size{}
	w.open, w.asked, w.last, w.before = nil, contextstore.Message{}, contextstore.Message{}, ""
	w.event = contextstore.WindowEvent{}
	if event == nil {
		return w.ledger.Messages(0, func(m contextstore.Message) bool {
			w.calibrate(m)
			w.add(m)
			return true
		})
	}
	w.event = *event
	var front []contextstore.Message
	err := w.ledger.Messages(0, func(m contextstore.Message) bool {
		if m.Seq < event.FromSeq {
			front = append(front, m)
		}
		return len(front) < maxFront && m.Seq < event.FromSeq
	})
	if err != nil {
		return err
	}
	n := len(front)
	if n >= pinned {
		n = min(n, Front(front[1]))
	}
	for _, m := range front[:n] {
		w.add(m)
	}
	if err := w.addLead(); err != nil {
		return err
	}
	w.after = -1
	return w.ledger.Messages(event.Offset, func(m contextstore.Message) bool {
		later := m.Seq > event.AtSeq
		if event.AtSeq == 0 { // of an earlier version: the clock tells
			later = m.Timestamp.After(event.Timestamp.Time) && !event.Timestamp.IsZero()
		}
		if later {
			w.calibrate(m)
		}
		w.add(m)
		return true
	})
}

// front is how many of the entries are the front.
func (w *Window) front() int {
	n := len(w.entry)
	if n <= pinned {
		return n
	}
	return min(n, Front(contextstore.Message{Role: w.entry[1].role}))
}

// Add takes a message that was appended to the ledger into the window. One that
// is there already, because a decision read the ledger meanwhile, is passed over.
func (w *Window) Add(m contextstore.Message) {
	if m.Seq > 0 && m.Seq <= w.last.Seq {
		return
	}
	w.calibrate(m)
	w.add(m)
}

func (w *Window) add(m contextstore.Message) {
	view := w.meet(m)
	before, bytes := w.taken, len(w.conv.Serialized())
	perByte := w.append(w.message(view))
	e := entry{seq: m.Seq, offset: m.Offset, notes: w.notes, noted: w.noted, role: view.Role, end: w.taken, bulk: bulk(view)}
	own := len(w.conv.Serialized()) - bytes
	e.thought, e.perCut = min(thinking(view), max(own-e.bulk, 0)), perByte // most clients send only a part of it back
	if n := e.bulk + e.thought; n > leastClip && own > n && len(view.Images) == 0 {
		e.perCut *= float64(own) / float64(n)
	}
	if n := len(w.entry); n > 0 {
		e.saved, e.said = w.entry[n-1].saved, w.entry[n-1].said
	}
	if e.pinned = m.Pinned && m.Role == llm.RoleUser; e.pinned {
		e.said = e.said.plus(w.taken.minus(before))
	}
	if m.Seq > w.event.MaskSeq && (e.bulk >= bulky || len(view.Images) > 0) {
		stubs := masked(view)
		e.saved = e.saved.plus(size{int(float64(bulk(view)-bulk(stubs)) * perByte), len(view.Images) - len(stubs.Images)})
	}
	w.entry, w.notes, w.noted = append(w.entry, e), 0, size{}
	w.before, w.last = w.last.Content, m
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
	if len(w.holes) > 0 && len(w.open) == 0 {
		w.tellHoles()
	}
}

// view is a message as the decisions so far have it.
func (w *Window) view(m contextstore.Message) contextstore.Message {
	if m.Seq <= w.event.MaskSeq {
		m = masked(m)
	}
	if w.event.ClipBytes > 0 && m.Seq <= w.event.ClipSeq {
		m = clipped(m, w.event.ClipBytes)
	}
	return m
}

// calibrate learns how many units make a token from what the provider reported
// for the request that m answers: everything in the window before it, and the
// tools.
func (w *Window) calibrate(m contextstore.Message) {
	if m.Usage == nil || m.Usage.Estimated {
		return
	}
	text, tokens := w.fixed()+w.taken.text, m.Usage.Prompt-w.taken.images*imageTokens
	if tokens > 100 && float64(text) > 250*w.gauge.usual {
		w.rate = min(max(float64(text)/float64(tokens), w.gauge.least), w.gauge.most)
	}
}

// fixed is what precedes the messages, in units.
func (w *Window) fixed() int { return int(float64(w.policy.Fixed) / 4 * w.gauge.usual) }

// Conversation is what to send. Add may be called between two sends, Fit before each.
func (w *Window) Conversation() llm.Conversation { return w.conv }

// Last is the latest message, the zero Message where there is none.
func (w *Window) Last() contextstore.Message { return w.last }

// Before is what the message before the latest says.
func (w *Window) Before() string { return w.before }

// Unanswered returns the calls of the latest assistant message that have no
// result yet, and that message.
func (w *Window) Unanswered() ([]contextstore.ToolCall, contextstore.Message) { return w.open, w.asked }

// Decision returns the latest decision about the window, the zero event where
// there was none, and how many there were since the window was opened.
func (w *Window) Decision() (contextstore.WindowEvent, int) { return w.event, w.decisions }

// Limit is how many tokens a request may have at present.
func (w *Window) Limit() int { return w.cap }

// Tokens estimates the size of the next request.
func (w *Window) Tokens() int { return w.tokens(w.taken.plus(size{text: w.fixed()})) }

// tokens estimates a size.
func (w *Window) tokens(s size) int {
	return int(float64(s.text)/w.rate) + s.images*imageTokens
}
