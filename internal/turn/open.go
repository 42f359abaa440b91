package turn

import (
	"cmp"
	"context"
	"slices"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/tool"
)

// UnknownOutcome closes a call that was under way when its run was interrupted
// (DESIGN §2.4).
const UnknownOutcome = "Interrupted, outcome unknown: the run stopped while this call was under way. Look at what it left before you repeat it."

// closeOpen appends the results that an interruption left out. A call that had
// finished gets its recorded result. A call that only reads, or waited for people, is made again, as are
// those that had to wait for it. A call that unfit refuses gets that refusal. Every other call gets UnknownOutcome. Where
// refused is not "", it is the result of all calls that had not finished.
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
	room := l.MaxResults
	open = slices.Clone(open)
	slices.SortStableFunc(open, func(a, b contextstore.ToolCall) int { return l.later(a.Name, b.Name) })
	begun := true
	for _, c := range open {
		call, at := llm.ToolCall{ID: string(c.ID), Name: c.Name, Arguments: c.Arguments}, slices.Index(by.ToolCalls, c)
		if r, ok := recorded(finished, c, by); ok {
			d := done{call: call, at: at, result: tool.Result{Text: r.Result + r.Error, IsError: r.Status == "error"}, recorded: true}
			room, closed = l.share(&d, room), append(closed, d)
			continue
		}
		never := cmp.Or(refused, unfit(by, at))
		waited := l.director.Waited(callID(by.Seq, call.ID))
		begun = begun && !waited // those behind it were to come after it
		d, again := done{call: call, at: at, result: tool.Result{Text: cmp.Or(never, UnknownOutcome), IsError: true}}, never == "" && (l.Tools.ReadOnly(c.Name) || !begun)
		if again {
			d = l.call(ctx, call, by, at)
			room = l.share(&d, room)
		}
		closed = append(closed, d)
		if d.err != nil {
			break
		}
		l.Log.Info("Open tool call closed: "+c.Name, "rerun", again)
	}
	return l.record(ctx, closed)
}

// CloseOpenCalls closes the calls that an interruption left open.
func (l *Loop) CloseOpenCalls(ctx context.Context) error { return l.closeOpen(ctx, "") }

func recorded(runs []contextstore.ToolRun, c contextstore.ToolCall, by contextstore.Message) (contextstore.ToolRun, bool) {
	for _, r := range runs {
		if r.CallID == c.ID && r.Tool == c.Name && !r.Timestamp.Before(by.Timestamp.Time) {
			return r, true
		}
	}
	return contextstore.ToolRun{}, false
}
