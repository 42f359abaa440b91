// Package turn is the heart of a run: ask the model, append its answer, run the
// tools it calls, append their results, again. What is on disk is ahead of what
// is done (DESIGN §2.3), so that a run can stop at any instant and go on.
package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/texttool"
	"toritsugi/internal/memory"
	"toritsugi/internal/redact"
	"toritsugi/internal/tool"
)

// Ledger is where a turn is written. *contextstore.Context is one.
type Ledger interface {
	Append(...contextstore.Message) ([]contextstore.Message, error)
	AppendTools(...contextstore.ToolRun) error
	SaveImage(data []byte, mediaType string) (contextstore.Image, error)
	LastTools(n int) ([]contextstore.ToolRun, error)
	Activity(status, activity string) error
	TurnDone(context.Context) error
	State() contextstore.State
}

// Tools are the hands. *tool.Registry is one.
type Tools interface {
	Call(ctx context.Context, name, args string) (tool.Result, error)
	ReadOnly(name string) bool
	Waits(name string) bool
}

// Loop works on one task. It is used by one goroutine.
type Loop struct {
	Ledger Ledger
	Window *memory.Window
	Tools  Tools
	Budget Budget
	Days   Days // of all runs together; nil where no day has a limit
	Log    *slog.Logger
	Now    func() time.Time

	// News returns what the model is to hear before it is asked again, most often
	// nothing; nil where nobody speaks to a run.
	News func(ctx context.Context) ([]contextstore.Message, error)

	// Heed is told each message once it is on disk and in the window, in order;
	// nil where nobody leads the run. Its error ends Run.
	Heed func(contextstore.Message) error

	// Read takes the calls out of an answer that were written as text, before it is
	// on record; nil where text is text.
	Read func(*llm.Reply)

	// Complete fills in the results of calls that whoever leads the run answers, of
	// those that are about to be written, and returns what the model is asked with
	// the last of them: its kind and text, "" for nothing. whole is false where
	// people are waited for, so that others of the answer are still open. nil where
	// nobody leads.
	Complete func(results []contextstore.Message, whole bool) (kind, text string)

	// Over reports whether nothing is left to ask the model once the results of an
	// answer are on record: Run ends there. nil where only the model says so.
	Over func() bool

	// Remind returns what the model must see and does not any more, in at most so
	// many bytes, "" for nothing: from is the number of the first message in view
	// behind the beginning, masked that of the last whose calls and results are
	// stubs. It is asked before each request of a window that was rewritten; nil
	// where nothing is said again.
	Remind func(from, masked int64, room int) (kind, text string)
	// KeepLast ends Run before the last call that the budget has room for, with a
	// *BudgetError that says so: whoever leads the run uses it for Once.
	KeepLast bool

	Scripted   bool // no model is called, so nothing is estimated
	MaxResults int  // bytes that all results of one answer may take together; 0 for no limit

	ToolTime time.Duration // spent in tools since the loop was made, side by side counted once each

	cache cacheWatch
	last  *contextstore.Usage // of the latest answer of this owner
}

// maxNudges is how often in a row an empty answer is answered with a request
// to go on before the run is given up.
const maxNudges = 3

// maxOverflows is how often in a row room is made because the provider found a
// request too long: what it refuses again will not be accepted.
const maxOverflows = 1

// maxCalls is how many calls of one answer are run.
const maxCalls = 64

// parallel is how many read-only calls run at once.
const parallel = 4

// ErrNonsense ends a run whose model keeps giving empty answers.
var ErrNonsense = errors.New("the model keeps answering with neither text nor a tool call")

// ErrCutOff ends a run whose model never gets a tool call said within its limit.
var ErrCutOff = errors.New("the model's answers keep being cut off inside a tool call")

// Run takes turns until the model answers without calling a tool, or Over, and
// returns the last answer. An error is ctx's, a *BudgetError, one of Days, ErrNonsense, ErrCutOff,
// an *llm.Error, a *memory.TooSmallError, a *tool.WaitError, or the ledger's; the
// ledger is consistent after each.
func (l *Loop) Run(ctx context.Context) (contextstore.Message, error) {
	if err := l.closeOpen(ctx, ""); err != nil {
		return contextstore.Message{}, err
	}
	if last := l.Window.Last(); last.Role == llm.RoleAssistant && len(last.ToolCalls) == 0 {
		// A kill came between an answer that ends nothing and our word on it.
		if _, err := l.append(contextstore.Message{Role: llm.RoleUser, Content: nudge(last.FinishReason)}); err != nil {
			return contextstore.Message{}, err
		}
	}
	unread := false // the model was told of a call that it wrote as text
	for nudges := 0; ; {
		if err := l.afford(ctx, l.KeepLast); err != nil {
			return contextstore.Message{}, err
		}
		if _, err := l.Hear(ctx); err != nil {
			return contextstore.Message{}, err
		}
		reply, err := l.ask(ctx)
		if err != nil {
			return contextstore.Message{}, err
		}
		if l.Read != nil {
			l.Read(reply)
		}
		answer, err := l.append(l.fromReply(reply))
		if err != nil {
			return contextstore.Message{}, err
		}
		l.Log.Info(fmt.Sprintf("LLM call #%d: %d tokens", l.Ledger.State().LLMCallCount, answer.Usage.Sum()), said(answer.Content)...)
		switch {
		case len(reply.Message.ToolCalls) > 0:
			if nudges++; reply.FinishReason != llm.FinishLength || len(reply.Message.ToolCalls) > 1 {
				nudges = 0 // at least one call was whole
			}
			switch err = l.act(ctx, reply, answer); {
			case err != nil:
			case l.Over != nil && l.Over():
				return answer, nil
			case nudges > maxNudges:
				return answer, ErrCutOff
			}
		case !Final(answer):
			if nudges++; nudges > maxNudges {
				return answer, ErrNonsense
			}
			_, err = l.append(contextstore.Message{Role: llm.RoleUser, Content: nudge(reply.FinishReason)})
		case !unread && texttool.Unread(answer.Content):
			unread = true
			_, err = l.append(contextstore.Message{Role: llm.RoleUser, Content: unreadCall})
		default:
			return answer, l.Ledger.TurnDone(ctx)
		}
		if err != nil {
			return contextstore.Message{}, err
		}
	}
}

// Hear appends what there is to hear, and reports whether there was anything.
func (l *Loop) Hear(ctx context.Context) (bool, error) {
	if l.News == nil {
		return false, nil
	}
	news, err := l.News(ctx)
	if err != nil || len(news) == 0 {
		return false, err
	}
	_, err = l.append(news...)
	return err == nil, err
}

// Final reports whether a message is an answer that ends the work: text that
// calls nothing and was not cut off.
func Final(m contextstore.Message) bool {
	return m.Role == llm.RoleAssistant && len(m.ToolCalls) == 0 && m.FinishReason != llm.FinishLength && strings.TrimSpace(m.Content) != ""
}

func nudge(finish string) string {
	if finish == llm.FinishLength {
		return "Your answer was cut off at the output limit. Go on from where it ended, in smaller steps."
	}
	return "Your answer was empty. Call a tool to go on, or say in a sentence what was done if the work is finished."
}

// unreadCall asks once for a call that was not made, so that a run does not end with
// what the model believes it did.
const unreadCall = "Your answer holds a tool call as text, and it was not run. If it was meant, make the call again, by itself and with valid JSON. If it was not, or the work is finished, say so in words."

// append writes messages to the ledger and takes them into the window; it
// returns the last of them as it was written.
func (l *Loop) append(msgs ...contextstore.Message) (contextstore.Message, error) {
	written, err := l.Ledger.Append(msgs...)
	if err != nil {
		return contextstore.Message{}, err
	}
	for _, m := range written {
		l.Window.Add(m)
	}
	if l.Heed != nil {
		for _, m := range written {
			if err := l.Heed(m); err != nil {
				return m, err
			}
		}
	}
	return written[len(written)-1], nil
}

// ask sends the window and returns the answer, making room where it is needed.
func (l *Loop) ask(ctx context.Context) (*llm.Reply, error) {
	if err := l.Ledger.Activity(contextstore.Processing, "llm_call"); err != nil {
		return nil, err
	}
	if err := l.fit(ctx); err != nil {
		return nil, err
	}
	for overflows := 0; ; overflows++ {
		reply, err := l.Window.Conversation().Send(llm.LimitAnswer(ctx, l.Budget.next(l.Ledger.State())), nil)
		var e *llm.Error
		if errors.As(err, &e) && e.Kind == llm.KindContext && overflows < maxOverflows {
			l.Log.Warn("The provider found the request too long; room is made", "error", err)
			if err := l.Window.Overflowed(ctx); err != nil {
				return nil, err
			}
			if _, err := l.remind(); err != nil {
				return nil, err
			}
			continue
		}
		if err == nil {
			l.watchCache(reply)
		}
		return reply, err
	}
}

// said is the beginning of an answer's text, for whoever watches the log.
func said(text string) []any {
	if text = Words(text); strings.TrimSpace(text) == "" {
		return nil
	}
	return []any{"said", firstLine(text)}
}

// Words is what a text says to people: of one that is an object for programs the
// comment, or else the summary, in it.
func Words(text string) string {
	text = strings.TrimSpace(text)
	object := strings.IndexByte(text, '{')
	if before := strings.TrimSpace(text[:max(object, 0)]); object < 0 || before != "" && !strings.HasPrefix(before, "```") {
		return text
	}
	found := ""
	for d := json.NewDecoder(strings.NewReader(text[object:])); ; {
		var o struct {
			Comment string
			Summary json.RawMessage
		}
		if d.Decode(&o) != nil {
			return found
		}
		if o.Comment == "" && json.Unmarshal(o.Summary, &o.Comment) != nil {
			continue // a summary in parts is for programs, too
		}
		if o.Comment != "" {
			found = o.Comment
		}
	}
}

func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > maxSaid || more {
		return string(r[:min(len(r), maxSaid)]) + "…"
	}
	return line
}

const maxSaid = 100 // characters of a text that a log record shows

// brief is the argument that tells most of a call, for whoever watches the log.
func brief(arguments string) []any {
	var args map[string]any
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return nil
	}
	for _, k := range []string{"command", "path", "pattern"} {
		if s, ok := args[k].(string); ok && strings.TrimSpace(s) != "" {
			return []any{k, firstLine(s)}
		}
	}
	return nil
}

func (l *Loop) fromReply(r *llm.Reply) contextstore.Message {
	m := contextstore.Message{Role: llm.RoleAssistant, Content: r.Message.Content, Reasoning: r.Message.Reasoning,
		Provider: redact.Opaque(r.Message.Opaque), FinishReason: r.FinishReason, AnsweredBy: r.By}
	if r.FinishReason == llm.FinishStop || r.FinishReason == llm.FinishToolCalls && len(r.Message.ToolCalls) > 0 {
		m.FinishReason = ""
	}
	for _, c := range r.Message.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, contextstore.ToolCall{ID: redact.Opaque(c.ID), Name: c.Name, Arguments: c.Arguments})
	}
	if u := r.Usage; u != nil {
		m.Usage = &contextstore.Usage{Prompt: u.PromptTokens, Completion: u.CompletionTokens, Cached: u.CachedTokens, CacheWrite: u.CacheWriteTokens,
			Reasoning: u.ReasoningTokens, Cost: u.Cost}
		if u.TotalTokens != u.PromptTokens+u.CompletionTokens {
			m.Usage.Total = u.TotalTokens
		}
	} else if !l.Scripted {
		// A server that reports nothing must not get around the budget.
		m.Usage = &contextstore.Usage{Prompt: l.Window.Tokens(), Completion: contextstore.CountTokens(m.Content), Estimated: true}
	}
	l.last = m.Usage
	return m
}

// done is one call with its result.
type done struct {
	call     llm.ToolCall
	result   tool.Result
	err      error // ctx ended, or people are waited for: there is no result
	duration time.Duration
	recorded bool // in tools.jsonl
}

// act runs the calls of an answer and appends their results. Calls that only
// read run side by side, others in order, and last those that wait for people.
func (l *Loop) act(ctx context.Context, reply *llm.Reply, answer contextstore.Message) error {
	if err := l.Ledger.Activity(contextstore.Processing, "tool_execution"); err != nil {
		return err
	}
	calls := reply.Message.ToolCalls
	results := make([]done, len(calls))
	run := func(i int) {
		if i >= maxCalls {
			results[i] = done{call: calls[i], result: tool.Result{IsError: true, Text: fmt.Sprintf("Not run: an answer may make %d calls, this one made %d. Repeat the rest.", maxCalls, len(calls))}}
			return
		}
		if reply.FinishReason == llm.FinishLength && i == len(calls)-1 {
			results[i] = done{call: calls[i], result: tool.Result{IsError: true, Text: "Not run: your answer was cut off at the output limit inside this call. Repeat it in smaller pieces."}}
			return
		}
		results[i] = l.call(ctx, calls[i], answer.ToolCalls[i])
	}
	room := l.MaxResults
	if l.allReadOnly(calls) {
		each(len(calls), run)
		for i := range results {
			room = l.share(&results[i], room)
		}
		return l.record(ctx, results)
	}
	var ran []done
	for _, i := range l.order(calls) {
		run(i)
		if results[i].err != nil {
			return l.record(ctx, append(ran, results[i]))
		}
		room = l.share(&results[i], room)
		// On record before the next one begins, so that a kill in the middle
		// of a long answer forgets none of them. What waits can be called again.
		if !l.Tools.Waits(calls[i].Name) {
			if err := l.Ledger.AppendTools(toolRun(results[i])); err != nil {
				return err
			}
			results[i].recorded = true
		}
		ran = append(ran, results[i])
	}
	return l.record(ctx, ran)
}

// order is that in which the calls of an answer are made.
func (l *Loop) order(calls []llm.ToolCall) []int {
	order := make([]int, len(calls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return l.later(calls[a].Name, calls[b].Name) })
	return order
}

// later compares two tools by whether they wait for people.
func (l *Loop) later(a, b string) int {
	switch first, second := l.Tools.Waits(a), l.Tools.Waits(b); {
	case first == second:
		return 0
	case first:
		return 1
	}
	return -1
}

// share cuts a result to what the results before it have left of MaxResults
// and returns what is left after it.
func (l *Loop) share(d *done, room int) int {
	if l.MaxResults == 0 || d.err != nil {
		return room
	}
	if text := d.result.Text; len(text) > room {
		keep := max(room, 0)
		for keep > 0 && !utf8.RuneStart(text[keep]) {
			keep--
		}
		d.result.Text = text[:keep] + fmt.Sprintf("\n[cut: %d more bytes; the results of this answer are too large together. Ask for less, or one at a time]", len(text)-keep)
	}
	return max(room-len(d.result.Text), 0)
}

func (l *Loop) allReadOnly(calls []llm.ToolCall) bool {
	for _, c := range calls {
		if !l.Tools.ReadOnly(c.Name) || l.Tools.Waits(c.Name) {
			return false
		}
	}
	return len(calls) > 1
}

// each runs f for 0 … n-1, a few at once, and waits for all.
func each(n int, f func(int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}

// call runs one call; shown is the call as it was recorded, without secrets.
func (l *Loop) call(ctx context.Context, c llm.ToolCall, shown contextstore.ToolCall) done {
	start := l.Now()
	r, err := l.Tools.Call(ctx, c.Name, c.Arguments)
	d := done{call: c, result: r, err: err, duration: l.Now().Sub(start)}
	status := "success"
	switch {
	case errors.As(err, new(*tool.WaitError)):
		status = "waiting"
	case err != nil:
		status = "interrupted"
	case r.IsError:
		status = "error"
	}
	l.Log.Info("Tool execution: "+c.Name, append([]any{"status", status, "ms", d.duration.Milliseconds()}, brief(shown.Arguments)...)...)
	return d
}

// record appends finished calls: first to tools.jsonl, so that a crash between
// the two leaves a result to be found, then the messages. Calls that ctx cut
// short stay open, for the next owner to close.
func (l *Loop) record(ctx context.Context, results []done) error {
	var finished []done
	var msgs []contextstore.Message
	var interrupted error
	for _, d := range results {
		if d.err != nil {
			interrupted = d.err
			continue
		}
		l.ToolTime += d.duration
		finished = append(finished, d)
		msgs = append(msgs, contextstore.Message{Role: llm.RoleTool, ToolName: d.call.Name, ToolCallID: redact.Opaque(d.call.ID), Content: d.result.Text, Failed: d.result.IsError})
	}
	kind, text := "", ""
	if l.Complete != nil && len(msgs) > 0 {
		kind, text = l.Complete(msgs, interrupted == nil)
	}
	var runs []contextstore.ToolRun
	for i, d := range finished {
		if !d.recorded {
			d.result = tool.Result{Text: msgs[i].Content, IsError: msgs[i].Failed}
			runs = append(runs, toolRun(d))
		}
	}
	if kind != "" {
		last := &msgs[len(msgs)-1]
		last.Kind, last.Content = kind, last.Content+asked+text
	}
	if len(runs) > 0 {
		if err := l.Ledger.AppendTools(runs...); err != nil {
			return err
		}
	}
	if len(msgs) > 0 && interrupted == nil {
		shown, err := l.images(results)
		if err != nil {
			return err
		}
		msgs = append(msgs, shown...)
	}
	if len(msgs) > 0 {
		if _, err := l.append(msgs...); err != nil {
			return err
		}
	}
	if interrupted != nil {
		return interrupted
	}
	return l.Ledger.TurnDone(ctx)
}

func toolRun(d done) contextstore.ToolRun {
	r := contextstore.ToolRun{Tool: d.call.Name, Args: d.result.Args, Status: "success", CallID: redact.Opaque(d.call.ID), DurationMS: d.duration.Milliseconds()}
	if r.Args == nil {
		r.Args = json.RawMessage(cmp.Or(strings.TrimSpace(d.call.Arguments), "{}"))
	}
	if d.result.IsError {
		r.Status, r.Error = "error", d.result.Text
	} else {
		r.Result = d.result.Text
	}
	return r
}

// unknownOutcome closes a call that was under way when its run was interrupted
// (DESIGN §2.4).
const unknownOutcome = "Interrupted, outcome unknown: the run stopped while this call was under way. Look at what it left before you repeat it."

// asked stands between the result of a call and what the model is asked with it.
const asked = "\n\n[plan]\n"

// Result is the content of a call's result without what is asked with it.
func Result(m contextstore.Message) string {
	if i := strings.LastIndex(m.Content, asked); m.Kind != "" && i >= 0 {
		return m.Content[:i]
	}
	return m.Content
}

// closeOpen gives every call that an interruption left without a result one:
// the recorded one if the call had finished, a new one if it only reads, else
// the statement that nobody knows. refused is the result of all that had not
// finished where none is to be run, "" else.
func (l *Loop) closeOpen(ctx context.Context, refused string) error {
	open, by := l.Window.Unanswered()
	if len(open) == 0 {
		return nil
	}
	finished, err := l.Ledger.LastTools(2 * len(by.ToolCalls))
	if err != nil {
		return err
	}
	var closed []done
	open = slices.Clone(open)
	slices.SortStableFunc(open, func(a, b contextstore.ToolCall) int { return l.later(a.Name, b.Name) })
	for _, c := range open {
		call := llm.ToolCall{ID: string(c.ID), Name: c.Name, Arguments: c.Arguments}
		if r, ok := recorded(finished, c, by); ok {
			closed = append(closed, done{call: call, result: tool.Result{Text: r.Result + r.Error, IsError: r.Status == "error"}, recorded: true})
			continue
		}
		d, again := done{call: call, result: tool.Result{Text: cmp.Or(refused, unknownOutcome), IsError: true}}, refused == "" && l.Tools.ReadOnly(c.Name)
		if again {
			d = l.call(ctx, call, c)
		}
		closed = append(closed, d)
		if d.err != nil {
			break
		}
		l.Log.Info("Open tool call closed: "+c.Name, "rerun", again)
	}
	return l.record(ctx, closed)
}

// Settle closes the calls that an interruption left open, so that what follows
// begins where the run would have been.
func (l *Loop) Settle(ctx context.Context) error { return l.closeOpen(ctx, "") }

// Tell appends a message to the model that the run itself has to say. Calls
// that an interruption left open are closed first.
func (l *Loop) Tell(ctx context.Context, text string) error { return l.Ask(ctx, "", text) }

// Ask is Tell for a message that asks for something of a kind.
func (l *Loop) Ask(ctx context.Context, kind, text string) error {
	if err := l.closeOpen(ctx, ""); err != nil {
		return err
	}
	_, err := l.append(contextstore.Message{Role: llm.RoleUser, Content: text, Kind: kind})
	return err
}

func recorded(runs []contextstore.ToolRun, c contextstore.ToolCall, by contextstore.Message) (contextstore.ToolRun, bool) {
	for _, r := range runs {
		if r.CallID == c.ID && r.Tool == c.Name && !r.Timestamp.Before(by.Timestamp.Time) {
			return r, true
		}
	}
	return contextstore.ToolRun{}, false
}
