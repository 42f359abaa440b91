package memory

import (
	"errors"
	"math"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// The parts of a request, in the order in which they stand in it (DESIGN §3).
const (
	PartSystem    = "system"
	PartInherited = "inherited" // what an earlier run left
	PartRequest   = "request"
	PartSaid      = "said"    // by people during the run, in messages that are not shown any more
	PartSummary   = "summary" // the one in force
	PartNote      = "note"    // of what was dropped without a summary
	PartLost      = "lost"    // stands for messages whose lines cannot be read
	PartRecent    = "recent"
)

// Shown is one message as the model was shown it.
type Shown struct {
	Part    string
	Seq     int64 // in messages.jsonl; 0 of what stands for others
	Stored  int   // the tokens that its line holds: of its whole text, four characters each
	Tokens  int   // what it takes of the request, by the estimate that the window is kept with
	Masked  bool  // old output, arguments or images are stubs
	Clipped bool  // it is shown in part
	Message llm.Message
}

// Request is what a model was shown with one request of a run, assembled of the
// files by the code that assembles it in the run. It is closed by who opened it.
type Request struct {
	Answer *contextstore.Message // what came back; nil where nothing has yet
	Last   int64                 // the last message of the run
	Shown  []Shown
	Event  *contextstore.WindowEvent // the decision that was in force, nil for none
	Tokens int                       // of all of it, the tools included, as estimated
	Tools  int                       // of them, those of the tools
	Rate   float64                   // units of the estimate in a token
	// Calibrated tells that reports of the provider corrected the estimate.
	Calibrated bool

	front   int64
	past    *contextstore.Past
	log     []contextstore.Damage // found beside past
	written contextstore.Time
}

// OpenRequest reconstructs the request whose answer is message at of a run, or
// the last one before that message; 0 is the latest. Where no answer has come
// yet, it is what the run has to show so far. Of p its Fixed and Count are used.
// It reads what the request held, and the decisions before it; damaged lines are
// passed over (Damaged). The error is an i18n error where there is no such
// request, else one of reading.
func OpenRequest(v contextstore.View, at int64, p Policy) (*Request, error) {
	r, err := requestOf(v, at)
	if err != nil {
		return nil, err
	}
	if _, _, err := r.assemble(r.past, p); err != nil {
		return nil, errors.Join(err, r.past.Close())
	}
	return r, nil
}

// requestOf is OpenRequest before anything of the request is read.
func requestOf(v contextstore.View, at int64) (*Request, error) {
	r := &Request{}
	if err := r.locate(v, at); err != nil {
		return nil, err
	}
	before := int64(math.MaxInt64)
	if r.Answer != nil {
		before, r.written = r.Answer.Seq, r.Answer.Timestamp
	}
	var err error
	r.past, err = v.Past(before, r.written)
	return r, err
}

// Close releases the files.
func (r *Request) Close() error { return r.past.Close() }

// Damaged is what could not be read of the run on the way.
func (r *Request) Damaged() []contextstore.Damage { return append(r.past.Damaged(), r.log...) }

// locate finds the answer.
func (r *Request) locate(v contextstore.View, at int64) (err error) {
	log, err := v.MessageLog()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // only read from
	if r.Last, err = log.Count(); err != nil {
		return err
	}
	if at < 0 || at > r.Last {
		return i18n.E("memoryshow.range", at, r.Last)
	}
	r.front = pinned
	if err := log.Range(pinned, pinned, func(m contextstore.Message, _ []byte) bool { r.front = int64(Front(m)); return false }); err != nil {
		return err
	}
	from := at
	if at == 0 {
		from = r.Last
	}
	if r.Answer, err = r.answerUpTo(log, from); err != nil {
		return err
	}
	if at == 0 {
		return nil
	}
	if r.Answer == nil {
		return r.first(log, at)
	}
	there := false
	err = log.Range(at, at, func(contextstore.Message, []byte) bool { there = true; return false })
	if !there {
		r.log = append(r.log, contextstore.Damage{File: contextstore.Messages, Offset: -1, Why: i18n.E("memoryshow.lost", at)})
	}
	return err
}

// answerUpTo is the last answer of the model up to a message, nil for none. It
// reads back in pieces that grow.
func (r *Request) answerUpTo(log *contextstore.MessageLog, to int64) (found *contextstore.Message, err error) {
	for step := int64(64); to > r.front && found == nil; step *= 4 {
		from := max(r.front+1, to-step+1)
		err := log.Range(from, to, func(m contextstore.Message, _ []byte) bool {
			if m.Role == llm.RoleAssistant {
				found = &m
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		to = from - 1
	}
	return found, nil
}

// first is the error of a message before which no request was made; nil where
// the run has had no answer at all.
func (r *Request) first(log *contextstore.MessageLog, at int64) error {
	answer := int64(0)
	err := log.Range(r.front+1, r.Last, func(m contextstore.Message, _ []byte) bool {
		if m.Role == llm.RoleAssistant {
			answer = m.Seq
		}
		return answer == 0
	})
	if err != nil || answer == 0 {
		return err
	}
	return i18n.E("memoryshow.front", at, answer)
}

// assemble makes the window of the moment of what from holds.
func (r *Request) assemble(from reader, p Policy) (w *Window, scr *screen, err error) {
	if r.Event, err = from.LastWindow(); err != nil {
		return nil, nil, err
	}
	rec := &screening{unwritten: unwritten{from}, event: r.Event, stored: map[int64]Shown{}}
	scr = &screen{}
	if w, err = Open(rec, scr, p); err != nil {
		return nil, nil, err
	}
	r.Tokens, r.Tools, r.Rate = w.Tokens(), w.tokens(size{text: w.fixed()}), w.rate
	r.Calibrated = w.rate != w.gauge.usual
	r.Shown = make([]Shown, 0, len(scr.all))
	show := func(s Shown) {
		s.Message = scr.all[len(r.Shown)]
		r.Shown = append(r.Shown, s)
	}
	ours := func(part string) {
		show(Shown{Part: part, Tokens: w.tokens(size{text: w.gauge.count(scr.wire(len(r.Shown)))})})
	}
	lead := len(scr.all) - len(w.entry) - w.notes
	for _, e := range w.entry {
		lead -= e.notes
	}
	for i, e := range w.entry {
		if r.Event != nil && e.seq >= r.Event.FromSeq {
			for ; lead > 0; lead-- {
				parts := leadParts(r.Event)
				ours(parts[len(parts)-lead])
			}
		}
		for range e.notes {
			ours(PartLost)
		}
		show(r.entry(w, rec, i))
	}
	for len(r.Shown) < len(scr.all) {
		ours(PartLost)
	}
	return w, scr, nil
}

// leadParts are the parts that addLead puts between the front and the recent
// messages.
func leadParts(e *contextstore.WindowEvent) (all []string) {
	if len(e.Kept) > 0 {
		all = append(all, PartSaid)
	}
	if e.Summary > 0 {
		all = append(all, PartSummary)
	}
	if e.Dropped > 0 {
		all = append(all, PartNote)
	}
	return all
}

// entry is what is told of the i-th entry of the window.
func (r *Request) entry(w *Window, rec *screening, i int) Shown {
	e, before := w.entry[i], size{}
	if i > 0 {
		before = w.entry[i-1].end
	}
	own := e.end.minus(before).minus(e.noted)
	if r.Event != nil && e.seq >= r.Event.FromSeq && (i == 0 || w.entry[i-1].seq < r.Event.FromSeq) {
		own = own.minus(w.lead)
	}
	s := rec.stored[e.seq]
	s.Seq, s.Tokens, s.Part = e.seq, w.tokens(own), partOf(e.seq, e.role, r.front)
	return s
}

// partOf is the part of a message of the ledger, of which front are the beginning.
func partOf(seq int64, role string, front int64) string {
	switch {
	case seq > front:
		return PartRecent
	case role == llm.RoleSystem:
		return PartSystem
	case role == llm.RoleAssistant:
		return PartInherited
	}
	return PartRequest
}

// Decision is a decision about the window, and which messages it changed.
type Decision struct {
	contextstore.WindowEvent
	First, To int64 // the messages that became stubs, left, or were cut; 0 for none
}

// Decisions calls f for each decision that had been made, oldest first, until it
// returns false. It holds one of them at a time.
func (r *Request) Decisions(f func(Decision) bool) error {
	behind, from, mask := r.front+1, int64(0), int64(0)
	return r.past.Decisions(func(e contextstore.WindowEvent) bool {
		from, mask = max(from, behind), max(mask, behind-1)
		d := Decision{WindowEvent: e}
		switch e.Type {
		case contextstore.WindowMask:
			d.First, d.To = max(mask+1, from), e.MaskSeq
		case contextstore.WindowClip:
			d.First, d.To = 1, e.ClipSeq
		default:
			d.First, d.To = from, e.FromSeq-1
		}
		if d.To < d.First {
			d.First, d.To = 0, 0
		}
		from, mask = max(from, e.FromSeq), max(mask, e.MaskSeq)
		return f(d)
	}, r.written)
}

// reader is what of a Ledger only reads.
type reader interface {
	Messages(offset int64, f func(contextstore.Message) bool) error
	ReadImage(contextstore.Image) ([]byte, error)
	LastWindow() (*contextstore.WindowEvent, error)
	SummaryOf(id int64) (*contextstore.Summary, error)
}

// unwritten is a Ledger that writes nothing.
type unwritten struct{ reader }

// LatestSummary is none: a summary that was not in force then is not applied now.
func (unwritten) LatestSummary() (*contextstore.Summary, error) { return nil, nil }

var errPast = errors.New("the past is not changed")

func (unwritten) AppendWindow(contextstore.WindowEvent) error { return errPast }
func (unwritten) AppendSummary(x contextstore.Summary) (contextstore.Summary, error) {
	return x, errPast
}
func (unwritten) Activity(string, string) error { return errPast }
func (unwritten) ContextTokens(int)             {}
func (unwritten) CompressionFailed()            {}
func (unwritten) Spent(*contextstore.Usage)     {}

// screening notes how each message that is read from it is shown.
type screening struct {
	unwritten
	event  *contextstore.WindowEvent
	stored map[int64]Shown
}

func (s *screening) Messages(offset int64, f func(contextstore.Message) bool) error {
	return s.reader.Messages(offset, func(m contextstore.Message) bool {
		told := Shown{Stored: m.Tokens}
		if e := s.event; e != nil {
			now := m
			if m.Seq <= e.MaskSeq {
				now = masked(m)
				told.Masked = bulk(now) != bulk(m) || len(now.Images) != len(m.Images)
			}
			if e.ClipBytes > 0 && m.Seq <= e.ClipSeq {
				cut := clipped(now, e.ClipBytes)
				told.Clipped = bulk(cut) != bulk(now) || thinking(cut) != thinking(now)
			}
		}
		s.stored[m.Seq] = told
		return f(m)
	})
}

// screen is a conversation that is shown and never sent. Its form is that of no
// provider, which differ in what they write around the texts.
type screen struct {
	transcript
	all   []llm.Message
	start []int
}

func (s *screen) Append(m llm.Message) {
	s.all, s.start = append(s.all, m), append(s.start, len(s.b))
	s.b, _ = jsonl.Append(s.b, Form(m, true)) // texts and bytes can always be
}

func (s *screen) Reset() { *s = screen{transcript: transcript{b: s.b[:0]}} }

// wire is the i-th message as it stands in the conversation.
func (s *screen) wire(i int) []byte {
	if i+1 < len(s.start) {
		return s.b[s.start[i]:s.start[i+1]]
	}
	return s.b[s.start[i]:]
}

// Sent is a message as it is printed: its texts to the byte, in a form of no
// provider.
type Sent struct {
	Role       string      `json:"role"`
	Content    string      `json:"content"`
	Reasoning  string      `json:"reasoning_content,omitempty"`
	Opaque     string      `json:"provider_parts,omitempty"`
	ToolCalls  []SentCall  `json:"tool_calls,omitempty"`
	ToolCallID string      `json:"tool_call_id,omitempty"`
	ToolName   string      `json:"tool_name,omitempty"`
	Images     []SentImage `json:"images,omitempty"`
}

// SentCall is a call of a Sent.
type SentCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// SentImage is an image of a Sent.
type SentImage struct {
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
	Source    string `json:"source,omitempty"`
	Data      []byte `json:"data,omitempty"` // base64, where it is asked for
}

// Form is a message as it is printed, with the content of its images or without.
func Form(m llm.Message, images bool) Sent {
	out := Sent{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, Opaque: m.Opaque, ToolCallID: m.ToolCallID, ToolName: m.ToolName}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, SentCall(c))
	}
	for _, i := range m.Images {
		shown := SentImage{MediaType: i.MediaType, Bytes: len(i.Data), Source: i.Source}
		if images {
			shown.Data = i.Data
		}
		out.Images = append(out.Images, shown)
	}
	return out
}
