package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
)

// failedError says why a summary was not applied. It changes nothing.
type failedError struct {
	why     error
	refused bool // there was one, and it was not fit: the next is told why
}

func (e *failedError) Error() string { return e.why.Error() }
func (e *failedError) Unwrap() error { return e.why }

func rejected(key string, args ...any) error { return &failedError{i18n.E(key, args...), true} }

// errNothing says that no message may be summarised: all are to stay.
var errNothing = errors.New("no message to summarise")

// leastShrink is what of a text a summary must leave out at least.
const leastShrink = 0.1

// material is what one summary is made of.
type material struct {
	pieces     []string // the messages in the words of the prompt, the summary before them first
	start, end int64    // numbers of the messages
	keep       entry    // the first message that stays
	old        size     // what the summary takes the place of, without what of it stays in view
	pins       []string // identifiers that it must keep
	visible    string   // what of the window stays as it is, for the identifiers in it
}

// compress lets a summary take the place of all messages behind the front but
// the latest KeepRecent; a call and its results stay together. Where those alone
// are over the cap, only the latest answer and its results stay: the others would
// be dropped else (decisions/027). The error is a *failedError, errNothing, ctx's
// or the ledger's.
// Source: store-v3 §4.5 compress, §7.2, §7.4.
func (w *Window) compress(ctx context.Context, reason string) error {
	from, to := w.front(), w.unit(len(w.entry)-max(w.policy.KeepRecent, 1))
	if to <= from && w.Tokens() > w.cap {
		to = w.unit(len(w.entry) - 1)
	}
	if to <= from {
		return errNothing
	}
	before, err := w.ledger.LatestSummary()
	if err != nil {
		return fmt.Errorf("read the latest summary: %w", err)
	}
	m, err := w.material(from, to)
	if err != nil {
		return err
	}
	if w.tokens(m.old) < leastAnswer {
		return errNothing // nothing shorter can be said of so little
	}
	if err := w.ledger.Activity(contextstore.Compressing, "compression"); err != nil {
		return err
	}
	w.log.Info("Context compression triggered", "reason", reason) // store-v2 §9.3
	text, by, err := w.write(ctx, m)
	if aerr := w.ledger.Activity(contextstore.Processing, "llm_call"); err == nil {
		err = aerr
	}
	if err != nil {
		return err
	}
	if err := w.holds(m, before); err != nil {
		return err
	}
	s, err := w.ledger.AppendSummary(contextstore.Summary{StartSeq: m.start, EndSeq: m.end, Summary: text, AnsweredBy: by})
	if err != nil {
		return err
	}
	if err := w.apply(s, m, reason); err != nil {
		return err
	}
	w.log.Info(fmt.Sprintf("Compression completed: %d -> %d tokens", s.OriginalTokens, s.SummaryTokens))
	return nil
}

// apply makes a summary that is on disk the one in force.
func (w *Window) apply(s contextstore.Summary, m *material, reason string) error {
	e := w.next(contextstore.WindowSummary, reason, m.old.minus(size{text: w.gauge.count([]byte(s.Summary))}))
	e.Summary, e.FromSeq, e.Offset, e.Pinned = s.ID, m.keep.seq, m.keep.offset, m.pins
	w.keep(&e, w.front(), slices.IndexFunc(w.entry, func(e entry) bool { return e.seq == m.keep.seq }))
	w.filled()
	return w.decide(e)
}

// holds reports whether what was summarised still is what the window shows: no
// other decision was made and no other summary written meanwhile. Messages that
// were appended meanwhile lie behind it and stay.
func (w *Window) holds(m *material, before *contextstore.Summary) error {
	event, err := w.ledger.LastWindow()
	if err != nil {
		return fmt.Errorf("read the window's last event: %w", err)
	}
	after, err := w.ledger.LatestSummary()
	if err != nil {
		return fmt.Errorf("read the latest summary: %w", err)
	}
	id := func(s *contextstore.Summary) int64 {
		if s == nil {
			return 0
		}
		return s.ID
	}
	i := slices.IndexFunc(w.entry, func(e entry) bool { return e.seq == m.keep.seq })
	if event != nil && event.ID != w.event.ID || id(after) != id(before) || i < 1 || w.entry[i-1].seq != m.end || w.entry[w.front()].seq != m.start {
		return &failedError{why: errors.New("what it was made of changed meanwhile")}
	}
	return nil
}

// material reads what a summary of entries from to to, the latter excluded, is
// made of.
func (w *Window) material(from, to int) (*material, error) {
	m := &material{start: w.entry[from].seq, end: w.entry[to-1].seq, keep: w.entry[to], old: w.entry[to-1].end.minus(w.entry[from-1].end)}
	var pins, ran, named pinList
	for _, id := range w.event.Pinned {
		if strings.Contains(id, " ") { // else it is no command
			ran.add(id)
		} else {
			pins.add(id)
		}
	}
	after := w.event
	w.keep(&after, from, to)
	kept, err := w.kept(after)
	if err != nil {
		return nil, err
	}
	m.old.text = max(m.old.text-w.gauge.count([]byte(kept)), 0) // it stays
	if id := w.event.Summary; id > 0 {
		s, err := w.ledger.SummaryOf(id)
		if err != nil {
			return nil, fmt.Errorf("read summary %d: %w", id, err)
		}
		if s != nil {
			m.pieces = append(m.pieces, fmt.Sprintf("[SUMMARY]: %s\n", s.Summary))
		}
	}
	var visible strings.Builder
	visible.WriteString(kept)
	see := func(c contextstore.Message) {
		visible.WriteString(rendered(c))
	}
	var mentioned []string
	name := func(text string) { // of what the request names, what a text does
		for _, id := range mentioned {
			if strings.Contains(text, id) {
				named.add(id)
			}
		}
	}
	asked := map[redact.Opaque]contextstore.ToolCall{} // whose results are to come
	read := func(c contextstore.Message) bool {
		if last := w.entry[from-1].seq; c.Seq <= last { // the front
			see(c)
			if c.Role != llm.RoleSystem { // which may list every file there is
				mentioned = append(mentioned, identifiers(c.Content)...)
			}
			return c.Seq < last
		}
		if c.Seq > m.end {
			see(w.view(c))
			return c.Seq < w.last.Seq
		}
		view := w.view(c)
		m.pieces = append(m.pieces, rendered(view))
		for _, call := range c.ToolCalls {
			asked[call.ID] = call
		}
		switch call := asked[c.ToolCallID]; {
		case c.Role == llm.RoleTool && c.Failed: // what was tried in vain need not be kept
		case c.Role == llm.RoleTool:
			name(view.Content + call.Arguments)
			pins.add(editedPath(call))
			ran.add(passed(call))
		default:
			name(view.Content)
		}
		return true
	}
	if err = w.ledger.Messages(0, read); err == nil {
		err = w.ledger.Messages(w.entry[from].offset, read)
	}
	if err != nil {
		return nil, fmt.Errorf("read what is summarised: %w", err)
	}
	// What was changed and run goes before what was only named: there is room for so many.
	named.add(ran.list[max(0, len(ran.list)-maxRan):]...)
	named.add(pins.list...)
	m.pins, m.visible = named.list, visible.String()
	return m, nil
}

// write asks the summariser, and judges what it says; by names it.
func (w *Window) write(ctx context.Context, m *material) (text, by string, err error) {
	model, err := w.policy.Summarizer(ctx)
	if err != nil {
		return "", "", w.because(ctx, fmt.Errorf("there is no model for it: %w", err))
	}
	text, err = w.shorten(ctx, model, m.pieces, m.missing(""), 0)
	if err != nil {
		return "", "", w.because(ctx, err)
	}
	if err := m.judge(text); err != nil {
		return "", "", err
	}
	if now := w.gauge.count([]byte(summaryText(1, &contextstore.Summary{Summary: text}, 0))); float64(now) > (1-leastShrink)*float64(m.old.text) {
		return "", "", rejected("memory.refused_large", w.tokens(size{text: now}), w.tokens(m.old))
	}
	return text, model.Name, nil
}

// because is a failure of the summariser, or the end of ctx.
func (w *Window) because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed *failedError
	if errors.As(err, &failed) {
		return err
	}
	return &failedError{why: err}
}

// judge says why a text cannot be the summary.
func (m *material) judge(text string) error {
	source := strings.Join(m.pieces, "")
	if err := plausible(text, source); err != nil {
		return err
	}
	if missing := m.missing(text); len(missing) > 0 {
		return rejected("memory.refused_lost", len(missing), strings.Join(missing[:min(len(missing), noteNames)], ", "))
	}
	return nil
}

// missing are the identifiers that neither the text nor what stays in the
// window has.
func (m *material) missing(text string) (all []string) {
	for _, p := range m.pins {
		if !strings.Contains(text, p) && !strings.Contains(m.visible, p) {
			all = append(all, p)
		}
	}
	return all
}

// plausible says why a text cannot be a summary of source.
func plausible(text, source string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return rejected("memory.refused_empty")
	case float64(utf8.RuneCountInString(text)) > (1-leastShrink)*float64(utf8.RuneCountInString(source)):
		return rejected("memory.refused_long", utf8.RuneCountInString(text), utf8.RuneCountInString(source))
	case looksLikeError(text):
		return rejected("memory.refused_error", short(strings.TrimSpace(text)))
	case foreign(text, source):
		return rejected("memory.refused_language")
	}
	return nil
}

// Bounds of what the summariser is asked, in tokens.
const (
	unknownWindow = 32_000 // of a model that does not say
	leastAnswer   = 256
	maxLevels     = 4 // of summaries of summaries
)

// bytesPerToken of a prompt to the summariser: Japanese has about a token for
// each character of three bytes, and its window must not be exceeded.
const bytesPerToken = 3

// shorten returns a summary of the pieces; where they exceed the model's window,
// a summary of summaries.
func (w *Window) shorten(ctx context.Context, model Summarizer, pieces, keep []string, level int) (string, error) {
	window := model.Window
	if window <= 0 {
		window = unknownWindow
	}
	length := 0
	for _, p := range pieces {
		length += len(p)
	}
	limit := max(min(length/bytesPerToken/2, w.cap/4, window/4), leastAnswer)
	room := (window-limit)*9/10*bytesPerToken - len(prompt(w.policy.Lang, nil, keep, limit, w.refused))
	if room < 4*leastAnswer {
		return "", fmt.Errorf("the window of %s, %d tokens, is too small for it", model.Name, window)
	}
	chunks := pack(pieces, room)
	if len(chunks) == 1 {
		return w.ask(ctx, model, chunks[0], keep, limit)
	}
	if level == maxLevels {
		return "", fmt.Errorf("it does not become shorter: %d parts after %d levels", len(chunks), level)
	}
	parts := make([]string, len(chunks))
	for i, c := range chunks {
		source := strings.Join(c, "")
		var own []string
		for _, id := range keep {
			if strings.Contains(source, id) {
				own = append(own, id)
			}
		}
		text, err := w.ask(ctx, model, c, own, max(min(len(source)/bytesPerToken/2, limit), leastAnswer))
		if err != nil {
			return "", err
		}
		if err := plausible(text, source); err != nil {
			return "", fmt.Errorf("part %d of %d: %w", i+1, len(chunks), err)
		}
		parts[i] = fmt.Sprintf("[SUMMARY %d/%d]: %s\n", i+1, len(chunks), text)
	}
	return w.shorten(ctx, model, parts, keep, level+1)
}

func (w *Window) ask(ctx context.Context, model Summarizer, pieces, keep []string, limit int) (string, error) {
	a, err := model.Ask(ctx, prompt(w.policy.Lang, pieces, keep, limit, w.refused), limit)
	w.ledger.Spent(a.Usage)
	switch {
	case err != nil:
		return "", err
	case ctx.Err() != nil:
		return "", ctx.Err()
	case a.Cut:
		return "", rejected("memory.refused_cut")
	case len(a.Text) > 2*bytesPerToken*limit:
		return "", rejected("memory.refused_tokens", len(a.Text)/bytesPerToken, limit)
	}
	return strings.TrimSpace(a.Text), nil
}

// pack puts pieces together to chunks of at most room bytes, and takes apart
// what is longer.
func pack(pieces []string, room int) (chunks [][]string) {
	var now []string
	used := 0
	put := func(p string) {
		if used+len(p) > room && used > 0 {
			chunks = append(chunks, now)
			now, used = nil, 0
		}
		now, used = append(now, p), used+len(p)
	}
	for _, p := range pieces {
		for len(p) > room {
			head := whole(p[:room])
			if head == "" {
				head = p[:room]
			}
			put(head)
			p = p[len(head):]
		}
		put(p)
	}
	return append(chunks, now)
}

// adopt applies a summary that was written and never took effect, because the
// run was killed in between.
func (w *Window) adopt() error {
	s, err := w.ledger.LatestSummary()
	if err != nil {
		return fmt.Errorf("read the latest summary: %w", err)
	}
	front := w.front()
	if s == nil || s.ID <= w.event.Summary || len(w.entry) <= front {
		return nil
	}
	i := slices.IndexFunc(w.entry, func(e entry) bool { return e.seq > s.EndSeq })
	if i = w.unit(i); i <= front { // of another hand it may end between a call and its result
		return nil
	}
	lost := false // messages came after the summary that has their numbers
	if err := w.ledger.Messages(w.entry[i-1].offset, func(m contextstore.Message) bool {
		lost = m.Timestamp.After(s.Timestamp.Time) && !s.Timestamp.IsZero()
		return false
	}); err != nil || lost {
		return err
	}
	m, err := w.material(front, i)
	if err != nil {
		return err
	}
	return w.apply(*s, m, "the summary was written before the run was interrupted")
}

// Compress has a summary take the place of older messages of a run that nobody works on, though
// none is due (store-v2 §8.2). It returns the tokens of a request before and after; where nothing is
// to be summarised, or no summary is fit, nothing changes, and the error says so.
func Compress(ctx context.Context, ledger Ledger, p Policy, reason string) (before, after int, err error) {
	w, err := Open(ledger, &screen{}, p)
	if err != nil {
		return 0, 0, err
	}
	before = w.Tokens()
	for range maxFailures {
		err = w.compress(ctx, reason)
		var failed *failedError
		if !errors.As(err, &failed) {
			break
		}
		if ledger.CompressionFailed(); failed.refused {
			w.refused = failed.why
		}
	}
	if errors.Is(err, errNothing) {
		err = i18n.E("memory.nothing")
	}
	after = w.Tokens()
	ledger.ContextTokens(after)
	return before, after, err
}
