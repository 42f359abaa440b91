package ops

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/memory"
)

// WindowOptions choose which request of a run Window shows, and how.
type WindowOptions struct {
	At      int64 // the message that answers it, or one after that; 0 for the latest
	Request bool  // the messages alone, whole
	JSON    bool
	Lang    i18n.Lang
	Count   func([]byte) int // the estimate of tokens; nil for the bytes
}

// shownDecisions is how many of the latest decisions are told to people.
const shownDecisions = 20

// window is one request and what is told around it.
type window struct {
	*memory.Request
	view    contextstore.View
	tools   []llm.Tool
	damaged []contextstore.Damage // beside the request's own
	model   string                // PROVIDER/MODEL that answered, or would
	opt     WindowOptions
}

// Window prints what the model was shown with one request of a run: its parts
// with their tokens, what became of what is not shown whole and why, the tools,
// and where the provider was asked to keep its cache. What cannot be read is told
// and passed over.
func Window(w io.Writer, v contextstore.View, o WindowOptions) error {
	win := &window{view: v, opt: o}
	var err error
	if win.tools, err = agent.Offered(v.Dir); err != nil {
		win.damaged = append(win.damaged, contextstore.Damage{File: "offered.json", Offset: -1, Why: err})
	}
	if win.Request, err = memory.OpenRequest(v, o.At, memory.Policy{Fixed: llm.ToolsBytes(win.tools), Count: o.Count}); err != nil {
		return err
	}
	defer func() { _ = win.Close() }() // only read from
	win.model = v.Metadata.Config.Provider + "/" + v.Metadata.Config.Model
	if a := win.Answer; a != nil && a.AnsweredBy != "" {
		win.model = a.AnsweredBy
	}
	win.damaged = append(win.damaged, win.Damaged()...)
	p := &printer{w: w}
	switch {
	case o.Request && o.JSON:
		win.lines(p)
	case o.JSON:
		err = win.json(p)
	case o.Request:
		win.texts(p)
	default:
		err = win.table(p)
	}
	return cmp.Or(err, p.err)
}

// say prints a text of the catalog as lines of at most 80 columns.
func (w *window) say(p *printer, key string, args ...any) {
	for line := range strings.SplitSeq(w.opt.Lang.T(key, args...), "\n") {
		p.printf("%s", detailAt(0, line))
	}
}

func (w *window) table(p *printer) error {
	w.head(p)
	if len(w.Shown) == 0 {
		w.damage(p)
		return p.err
	}
	p.printf("\n%s\n", windowRow(w.word("part"), w.word("seq"), w.word("role"), w.word("estimate"), w.word("stored"), w.word("shown"), w.word("text")))
	for _, s := range w.Shown {
		w.row(p, s)
	}
	w.say(p, "memoryshow.legend")
	if err := w.decisions(p); err != nil {
		return err
	}
	w.offered(p)
	w.marks(p)
	w.damage(p)
	return p.err
}

func (w *window) word(name string) string { return w.opt.Lang.T("memoryshow." + name) }

// head says which request it is, and what it took.
func (w *window) head(p *printer) {
	uuid := w.view.Metadata.UUID
	switch {
	case w.Answer != nil:
		w.say(p, "memoryshow.answered", uuid, w.Answer.Seq, stamp(w.Answer.Timestamp), clean(w.model))
		if n := w.Last - w.Answer.Seq; w.opt.At == 0 && n > 0 {
			w.say(p, "memoryshow.since", n)
		}
	case len(w.Shown) == 0:
		w.say(p, "memoryshow.nothing", uuid, string(w.view.Status()))
		return
	default:
		w.say(p, "memoryshow.unanswered", uuid, clean(w.model))
	}
	how := "memoryshow.uncalibrated"
	if w.Calibrated {
		how = "memoryshow.calibrated"
	}
	unit := w.word("bytes")
	if w.opt.Count != nil {
		unit = w.word("counted")
	}
	w.say(p, "memoryshow.tokens", thousands(int64(w.Tokens)), thousands(int64(w.Tools)), w.opt.Lang.T(how, strconv.FormatFloat(w.Rate, 'f', 2, 64), unit))
	if w.Answer != nil && w.Answer.Usage != nil && !w.Answer.Usage.Estimated {
		u := w.Answer.Usage
		w.say(p, "memoryshow.reported", thousands(int64(u.Prompt)), thousands(int64(u.Cached)), 100*u.Cached/max(u.Prompt, 1))
	}
}

// The columns of the table of messages; the text takes what is left of 80.
const (
	windowPart   = 9
	windowSeq    = 7
	windowRole   = 9
	windowTokens = 8
	windowStored = 8
	windowShown  = 6
	windowText   = tableWidth - windowPart - windowSeq - windowRole - windowTokens - windowStored - windowShown - 6
)

func windowRow(part, seq, role, tokens, stored, shown, text string) string {
	return strings.TrimRight(pad(part, windowPart)+" "+right(seq, windowSeq)+" "+pad(role, windowRole)+" "+right(tokens, windowTokens)+" "+
		right(stored, windowStored)+" "+pad(shown, windowShown)+" "+fit(text, windowText), " ")
}

// right is s at the right of so many columns.
func right(s string, n int) string {
	s = fit(s, n)
	return strings.Repeat(" ", max(0, n-columns(s))) + s
}

func (w *window) row(p *printer, s memory.Shown) {
	seq, stored := "-", "-"
	if s.Seq > 0 {
		seq, stored = strconv.FormatInt(s.Seq, 10), thousands(int64(s.Stored))
	}
	how := ""
	switch {
	case s.Masked && s.Clipped:
		how = w.word("both")
	case s.Masked:
		how = w.word("masked")
	case s.Clipped:
		how = w.word("clipped")
	}
	text := s.Message.Content
	for _, c := range s.Message.ToolCalls {
		text += " {" + c.Name + " " + c.Arguments + "}"
	}
	if n := len(s.Message.Images); n > 0 {
		text = w.opt.Lang.T("memoryshow.images", n) + " " + text
	}
	p.printf("%s\n", windowRow(w.part(s.Part), seq, s.Message.Role, thousands(int64(s.Tokens)), stored, how, head(text)))
}

// part is the word for a part.
func (w *window) part(name string) string { return w.word("part_" + name) }

// head is as much of a text as a line may show.
func head(s string) string { return s[:min(len(s), 4*tableWidth)] }

// decisions tells the latest decisions about the window.
func (w *window) decisions(p *printer) error {
	var latest []memory.Decision
	all := 0
	err := w.Decisions(func(d memory.Decision) bool {
		all++
		if latest = append(latest, d); len(latest) > shownDecisions {
			latest = slices.Delete(latest, 0, 1)
		}
		return true
	})
	if err != nil {
		return err
	}
	p.printf("\n")
	w.say(p, "memoryshow.decisions", all)
	if all > len(latest) {
		w.say(p, "memoryshow.earlier", all-len(latest))
	}
	for _, d := range latest {
		p.printf("%s", detailAt(2, fmt.Sprintf("#%d %s %s: %s", d.ID, stamp(d.Timestamp), w.kind(d.Type), w.what(d))))
		if d.Tokens > 0 {
			p.printf("%s", detailAt(5, w.opt.Lang.T("memoryshow.before", thousands(d.Tokens), thousands(max(d.Tokens-d.Freed, 0)))))
		}
		p.printf("%s", detailAt(5, w.opt.Lang.T("memoryshow.why", d.Reason)))
		if e := w.Event; len(d.Pinned) > 0 && e != nil && d.ID == e.ID {
			p.printf("%s", detailAt(5, w.opt.Lang.T("memoryshow.pinned", strings.Join(d.Pinned, ", "))))
		}
	}
	return nil
}

// kind is the word for a decision; one of a later version stays as it is.
func (w *window) kind(name string) string {
	switch name {
	case contextstore.WindowMask, contextstore.WindowSummary, contextstore.WindowTruncate, contextstore.WindowClip:
		return w.word("kind_" + name)
	}
	return clean(name)
}

// what says what a decision changed.
func (w *window) what(d memory.Decision) string {
	if d.First == 0 {
		return w.word("did_nothing")
	}
	switch d.Type {
	case contextstore.WindowMask:
		return w.opt.Lang.T("memoryshow.did_mask", d.First, d.To)
	case contextstore.WindowSummary:
		return w.opt.Lang.T("memoryshow.did_summary", d.First, d.To, d.Summary)
	case contextstore.WindowClip:
		return w.opt.Lang.T("memoryshow.did_clip", d.First, d.To, thousands(int64(d.ClipBytes)))
	}
	return w.opt.Lang.T("memoryshow.did_truncate", d.First, d.To)
}

func (w *window) offered(p *printer) {
	p.printf("\n")
	if len(w.tools) == 0 {
		w.say(p, "memoryshow.no_tools")
		return
	}
	names := make([]string, len(w.tools))
	for i, t := range w.tools {
		names[i] = fmt.Sprintf("%s (%d)", clean(t.Name), w.tokens(t))
	}
	w.say(p, "memoryshow.tools", len(w.tools))
	p.printf("%s", detailAt(2, strings.Join(names, ", ")))
}

// tokens is about what a tool's definition takes.
func (w *window) tokens(t llm.Tool) int {
	if w.opt.Count != nil { // its units are no bytes; the share of all bytes tells
		return w.Tools * t.Bytes() / max(llm.ToolsBytes(w.tools), 1)
	}
	return int(float64(t.Bytes()) / w.Rate)
}

// breakpoints are the messages behind which the provider was asked to keep its
// cache, and their parts; known is false where the house does not ask for it.
func (w *window) breakpoints() (seqs []int64, parts []string, known bool) {
	provider, _, _ := strings.Cut(w.model, "/")
	if provider != anthropicName {
		return nil, nil, false
	}
	all := make([]llm.Message, len(w.Shown))
	for i, s := range w.Shown {
		all[i] = s.Message
	}
	for _, i := range anthropic.Marks(all) {
		seqs, parts = append(seqs, w.Shown[i].Seq), append(parts, w.Shown[i].Part)
	}
	return seqs, parts, true
}

// anthropicName is the provider that takes cache breakpoints.
const anthropicName = "anthropic"

func (w *window) marks(p *printer) {
	seqs, parts, known := w.breakpoints()
	if !known {
		w.say(p, "memoryshow.no_marks")
		return
	}
	places := make([]string, len(seqs))
	for i, seq := range seqs {
		places[i] = strconv.FormatInt(seq, 10)
		if seq == 0 {
			places[i] = w.part(parts[i])
		}
	}
	w.say(p, "memoryshow.marks", strings.Join(places, ", "))
}

func (w *window) damage(p *printer) { printDamage(p, w.damaged, w.opt.Lang) }

// printDamage tells what could not be read.
func printDamage(p *printer, all []contextstore.Damage, lang i18n.Lang) {
	if len(all) == 0 {
		return
	}
	p.printf("\n%s", detailAt(0, lang.T("memoryshow.damaged")))
	for _, d := range all {
		where := d.File
		if d.Offset >= 0 {
			where = lang.T("memoryshow.at_byte", d.File, d.Offset)
		}
		p.printf("%s", detailAt(2, where+": "+lang.Error(d.Why)))
	}
}

// texts prints the messages whole, for people.
func (w *window) texts(p *printer) {
	w.head(p)
	for _, s := range w.Shown {
		number := "-"
		if s.Seq > 0 {
			number = strconv.FormatInt(s.Seq, 10)
		}
		p.printf("\n[%s] %s (%s)", number, clean(s.Message.Role), w.part(s.Part))
		if s.Message.ToolName != "" {
			p.printf(" %s", clean(s.Message.ToolName))
		}
		p.printf("\n%s", indent(s.Message.Content))
		for _, c := range s.Message.ToolCalls {
			p.printf("    -> %s %s\n", clean(c.Name), c.Arguments)
		}
		for _, i := range s.Message.Images {
			p.printf("    %s\n", clean(fmt.Sprintf("[%s, %s B, %s]", i.MediaType, thousands(int64(len(i.Data))), i.Source)))
		}
	}
	w.damage(p)
}
