package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
	"toritsugi/internal/tool"
)

// maxCalls is how many calls of one answer are run.
const maxCalls = 64

// parallel is how many read-only calls run at once.
const parallel = 4

// done is one call with its result.
type done struct {
	call     llm.ToolCall
	at       int // its place among the calls of the answer
	result   tool.Result
	err      error // ctx ended, or people are waited for: there is no result
	duration time.Duration
	recorded bool  // in tools.jsonl
	untold   []any // of the log, where what became of it is the director's to say
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
		if why := unfit(answer, i); why != "" {
			results[i] = done{call: calls[i], at: i, result: tool.Result{IsError: true, Text: why}}
			return
		}
		results[i] = l.call(ctx, calls[i], answer, i)
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
		// Recorded before the next call begins, so that a kill in the middle of a
		// long answer loses no result. A call that waits for people can be made again.
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

// unfit is why the i-th call of an answer is not run, "" where it is.
func unfit(answer contextstore.Message, i int) string {
	switch n := len(answer.ToolCalls); {
	case i >= maxCalls:
		return fmt.Sprintf("Not run: an answer may make %d calls, this one made %d. Repeat the rest.", maxCalls, n)
	case answer.FinishReason == llm.FinishLength && i == n-1:
		return "Not run: your answer was cut off at the output limit inside this call. Repeat it in smaller pieces."
	}
	return ""
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
	if text := d.result.Text; len(text) > room && !d.recorded {
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
	var g errgroup.Group
	g.SetLimit(parallel)
	for i := range n {
		g.Go(func() error { f(i); return nil })
	}
	_ = g.Wait() // none fails
}

// callID tells a call from all others, of the answer in the message seq.
func callID(seq int64, id string) string { return fmt.Sprintf("%d.%s", seq, id) }

// call runs a call, the one at that place of an answer, which was recorded without secrets.
func (l *Loop) call(ctx context.Context, c llm.ToolCall, answer contextstore.Message, at int) done {
	start := l.Now()
	r, err := l.Tools.Call(tool.WithCall(ctx, callID(answer.Seq, c.ID)), c.Name, c.Arguments)
	d := done{call: c, at: at, result: r, err: err, duration: l.Now().Sub(start)}
	about := append([]any{"ms", d.duration.Milliseconds()}, brief(answer.ToolCalls[at].Arguments)...)
	if err == nil && l.Tools.Waits(c.Name) {
		d.untold = about
		return d
	}
	l.told(d, r.IsError, about)
	return d
}

// told logs a call and what became of it.
func (l *Loop) told(d done, failed bool, about []any) {
	status := "success"
	switch err := d.err; {
	case errors.As(err, new(*tool.WaitError)):
		status = "waiting"
	case err != nil:
		status = "interrupted"
	case failed:
		status = "error"
	}
	l.Log.Info("Tool execution: "+d.call.Name, append([]any{"status", status}, about...)...)
}

// record appends finished calls to tools.jsonl, then their results as messages, in the order
// of the calls whatever that in which they were made.
// After a crash between the two the next owner finds the results in tools.jsonl.
// Calls that ctx interrupted stay open; the next owner closes them.
func (l *Loop) record(ctx context.Context, results []done) error {
	slices.SortStableFunc(results, func(a, b done) int { return cmp.Compare(a.at, b.at) })
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
	if len(msgs) > 0 {
		kind, text = l.director.Results(msgs, interrupted == nil)
	}
	var runs []contextstore.ToolRun
	for i, d := range finished {
		if d.untold != nil {
			l.told(d, msgs[i].Failed, d.untold)
		}
		if !d.recorded {
			d.result = tool.Result{Text: msgs[i].Content, IsError: msgs[i].Failed}
			runs = append(runs, toolRun(d))
		}
	}
	if kind != "" {
		msgs[len(msgs)-1].Ask(kind, text)
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
