package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// ReadBill adds up what the requests of a run took, whose tools are so many
// bytes: of its files alone, compressed ones too, by the code that assembled the
// requests in the run. It holds what one request held, and no more. Damaged lines
// are passed over and returned. Requests that were not answered are not counted.
func ReadBill(v contextstore.View, tools int) (TokenUsage, []contextstore.Damage, error) {
	b := newBilling(v, tools)
	if err := b.read(func() {}); err != nil {
		return TokenUsage{}, b.damaged, fmt.Errorf("add up the requests of %s: %w", v.Metadata.UUID, err)
	}
	bill := b.tally.Bill()
	err := b.asides(&bill)
	return bill, b.damaged, err
}

// read goes through the run; each is called after every message.
func (b *billing) read(each func()) error {
	decisions, stop := iter.Pull(b.decisions())
	defer stop()
	b.next, b.more = decisions()
	err := b.lines(contextstore.Messages, func(at int64, line []byte) (damaged, err error) {
		m, err := contextstore.DecodeMessage(line)
		if err != nil {
			return err, nil
		}
		m.Offset = at
		for b.more && decided(b.next, m) {
			e := b.next
			b.event, b.stale = &e, true
			b.next, b.more = decisions()
		}
		err = b.take(m)
		each()
		return nil, err
	})
	return errors.Join(err, b.failed)
}

// billing is a run as it is read, message by message. It is what the window is
// assembled of at each decision.
type billing struct {
	view    contextstore.View
	tally   *Tally
	held    []contextstore.Message // those that a request may show
	kinds   map[int64]string       // of them
	front   int64                  // the last message of the beginning
	event   *contextstore.WindowEvent
	next    contextstore.WindowEvent
	more    bool // there is a next decision
	stale   bool // a decision was made since the window was assembled
	window  *Window
	screen  *screen
	damaged contextstore.Damages
	failed  error // of reading the decisions
}

func newBilling(v contextstore.View, tools int) *billing {
	return &billing{view: v, tally: NewTally(tools), front: pinned, kinds: map[int64]string{}}
}

// lines calls f for each line of a log, with where it begins. A line of which f
// says that it is damaged is noted where another one follows: the last one may be
// about to be written.
func (b *billing) lines(log string, f func(at int64, line []byte) (damaged, err error)) error {
	next, begin := int64(0), int64(0)
	var torn error
	return b.view.Tail(log, -1, func(line []byte) (err error) {
		if torn != nil {
			b.damaged.Add(log, begin, torn)
		}
		begin, next = next, next+int64(len(line))+1
		torn, err = f(begin, line)
		return err
	})
}

// decisions are those about the window, oldest first.
func (b *billing) decisions() iter.Seq[contextstore.WindowEvent] {
	return func(yield func(contextstore.WindowEvent) bool) {
		err := b.lines(contextstore.Window, func(_ int64, line []byte) (damaged, err error) {
			var e contextstore.WindowEvent
			if err := json.Unmarshal(line, &e); err != nil {
				return err, nil
			}
			if !yield(e) {
				return nil, errEnough
			}
			return nil, nil
		})
		if !errors.Is(err, errEnough) {
			b.failed = err
		}
	}
}

// decided reports whether a decision was made before a message came. Of lines
// that do not say so, as an earlier version wrote them, the clock tells.
func decided(e contextstore.WindowEvent, m contextstore.Message) bool {
	if e.AtSeq > 0 {
		return e.AtSeq < m.Seq
	}
	return max(e.FromSeq, e.MaskSeq, e.ClipSeq) < m.Seq && !e.Timestamp.After(m.Timestamp.Time)
}

// take counts the request that a message answers, and shows it.
func (b *billing) take(m contextstore.Message) error {
	if m.Seq == pinned {
		b.front = int64(Front(m))
	}
	if b.window == nil || b.stale {
		if err := b.assemble(); err != nil {
			return err
		}
	}
	shown := b.window.message(m)
	if m.Role == llm.RoleAssistant && m.Seq > b.front {
		b.tally.Asked(shown)
	}
	b.held, b.kinds[m.Seq] = append(b.held, m), m.Kind
	from := len(b.screen.all)
	b.window.Add(m)
	for i, s := range b.screen.all[from:] {
		if from+i == len(b.screen.all)-1 {
			b.tally.Show(s, partOf(m.Seq, m.Role, b.front), m.Kind)
		} else {
			b.tally.Show(s, PartLost, "")
		}
	}
	return nil
}

// assemble begins the window anew by the decision in force, and lets go what no
// request will show any more.
func (b *billing) assemble() (err error) {
	if e := b.event; e != nil {
		b.held = slices.DeleteFunc(b.held, func(m contextstore.Message) bool {
			gone := m.Seq > b.front && m.Seq < e.FromSeq && !slices.ContainsFunc(e.Kept, func(k contextstore.Kept) bool { return k.Seq == m.Seq })
			if gone {
				delete(b.kinds, m.Seq)
			}
			return gone
		})
	}
	r := &Request{front: b.front}
	if b.window, b.screen, err = r.assemble(b, Policy{}); err != nil {
		return err
	}
	b.tally.again()
	for _, s := range r.Shown {
		b.tally.Show(s.Message, s.Part, b.kinds[s.Seq])
	}
	b.stale = false
	return nil
}

// Messages is Ledger.Messages, of what is held.
func (b *billing) Messages(offset int64, f func(contextstore.Message) bool) error {
	for _, m := range b.held {
		if m.Offset >= offset && !f(m) {
			break
		}
	}
	return nil
}

// ReadImage is a stand-in: an image counts the same whatever it shows.
func (b *billing) ReadImage(contextstore.Image) ([]byte, error) { return []byte{0}, nil }

// LastWindow is the decision in force.
func (b *billing) LastWindow() (*contextstore.WindowEvent, error) {
	if b.event == nil {
		return nil, nil
	}
	e := *b.event
	return &e, nil
}

// SummaryOf is a summary by its number; nil where it is not there any more.
func (b *billing) SummaryOf(id int64) (found *contextstore.Summary, err error) {
	err = b.summaries(func(s contextstore.Summary) {
		if s.ID == id {
			found = &s
		}
	})
	if found == nil && err == nil {
		b.damaged.Add(contextstore.Summaries, -1, i18n.E("contextstore.past_summary", id))
	}
	return found, err
}

// summaries calls f for each summary that can be read.
func (b *billing) summaries(f func(contextstore.Summary)) error {
	return b.lines(contextstore.Summaries, func(_ int64, line []byte) (damaged, err error) {
		s, damaged := contextstore.DecodeSummary(line)
		if damaged == nil {
			f(s)
		}
		return damaged, nil
	})
}

// asides adds the requests that wrote summaries, as they are on record.
func (b *billing) asides(bill *TokenUsage) error {
	err := b.summaries(func(s contextstore.Summary) {
		if s.Extractive || s.AnsweredBy == "" && s.Usage == nil {
			return // no model was asked
		}
		c := Calls{Requests: max(s.Calls, 1), Sent: s.OriginalTokens, Answered: s.SummaryTokens}
		if u := s.Usage; u != nil {
			c.Sent, c.Cached, c.Answered = int64(u.Prompt), int64(u.Cached), int64(u.Completion)
		}
		bill.add(c)
		if s.Final {
			bill.Final.add(c)
		} else {
			bill.Summaries.add(c)
		}
	})
	return err
}
