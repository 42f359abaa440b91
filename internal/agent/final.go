package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
)

// How long the model may take for a final summary; somebody waits for the end of
// a run that they stopped.
const (
	finalTime   = 60 * time.Second
	stoppedTime = 30 * time.Second
)

// finalSummary is the final summary of a run that ends: what later runs of the same
// task may inherit. The facts are ours; what was done and why the summarizer's
// model tells, where it can be asked and gives something fit, else the model's
// last words do. It is written to the ledger where a model wrote it. ctx is that
// of the process: where that ends, nobody waits for a model.
func (r *run) finalSummary(ctx context.Context, ended error) string {
	facts := r.facts()
	if told, err := r.tell(ctx, facts, ended); err == nil && told != nil {
		text := facts + "\n" + told.Text + "\n" + r.learned()
		err := r.ledger.AppendFinal(contextstore.Summary{Summary: text, AnsweredBy: told.By, Usage: told.Usage})
		if err == nil {
			return text
		}
		r.log.Warn("The final summary cannot be written; it is put together from the records", "error", err)
	} else if err != nil {
		r.log.Warn("The model gives no final summary; it is put together from the records", "error", r.Store.Redact(err.Error()))
	}
	return facts + r.lastWords() + r.learned()
}

// tell asks the summarizer's model; nil, nil where it is not to be asked.
func (r *run) tell(ctx context.Context, facts string, ended error) (*memory.Final, error) {
	st := r.ledger.State()
	var failed *llm.Error
	switch {
	case r.Summarizer == nil || r.Scripted || st.LLMCallCount == 0 || ctx.Err() != nil:
		return nil, nil
	case byBudget(ended):
		return nil, nil // the run may take no more
	}
	most := finalTime
	if r.report.Outcome.Status == task.Stopped {
		most = stoppedTime
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := r.ledger.Activity(contextstore.Completing, "final_summary"); err != nil {
		return nil, err
	}
	client, window, err := r.Summarizer(ctx)
	if err != nil {
		return nil, err
	}
	if errors.As(ended, &failed) && client.Provider() == r.Client.Provider() && client.Model() == r.Client.Model() {
		return nil, nil // it has just failed
	}
	told, err := memory.Summarise(ctx, client, window, r.ledger, facts, func(tokens int64) error { return r.affordEnd(ctx, st, tokens) })
	if err != nil {
		r.ledger.Spent(told.Usage)
		return nil, err
	}
	return &told, nil
}

// facts are what is certain about the end of a run, in the language of the record. No
// person is named: they would be with every later run (inherit §8.1).
func (r *run) facts() string {
	var b strings.Builder
	o, m := r.report.Outcome, r.ledger.Metadata()
	reason := r.recorded
	if q := r.askedBy; q != "" {
		reason = strings.ReplaceAll(reason, r.Store.Redact(q), i18n.English.T("agent.somebody"))
	}
	fmt.Fprintf(&b, "Task: %s (#%s)\nOutcome: %s. %s\n", oneLine(m.Title), m.TaskKey.ID, o.Status, reason)
	if r.report.Commit != "" {
		fmt.Fprintf(&b, "Commit: %s on %s\n", r.report.Commit, r.report.Branch)
	}
	if n := len(r.report.Files); n > 0 {
		fmt.Fprintf(&b, "Changed: %s\n", strings.Join(r.report.Files[:min(50, n)], ", "))
		if n > 50 {
			fmt.Fprintf(&b, "and %d more files\n", n-50)
		}
	}
	for _, c := range r.after {
		fmt.Fprintf(&b, "Check `%s`: exit code %d", oneLine(c.Command), c.ExitCode)
		if text := compare(r.before, c).text(i18n.English, cutLine); text != "" {
			b.WriteString("; " + text)
		}
		b.WriteByte('\n')
	}
	if r.Scripted {
		b.WriteString("The answers came from a script; no model was called.\n")
	}
	return b.String()
}

// lastWords stand for a summary where no model gives one.
func (r *run) lastWords() string {
	text := ""
	if r.cutOff {
		text = r.standing(i18n.English)
	} else if r.final != "" {
		text = "Last answer: " + cut(r.final, 4000) + "\n"
	}
	last, err := r.ledger.LatestSummary()
	var record string
	if err == nil {
		record, err = memory.Extract(r.ledger.MessageLog(), last, r.final)
	}
	if err != nil {
		r.log.Warn("Not all of the record can be read for the final summary", "error", err)
	}
	text += record
	if in := r.heritage.Load(); in != nil {
		text += before(in.View)
	}
	return text
}

// before is what the run left that another one took over from, "" where that
// cannot be read.
func before(v contextstore.View) string {
	s, err := v.LastFinal()
	if err != nil || s == nil {
		return ""
	}
	return "\nWhat the run before it left:\n" + quote(cut(s.Summary, maxBefore)) + "\n"
}

// lastWordsOf are lastWords of a run that nobody works on.
func (a *Agent) lastWordsOf(v contextstore.View) string {
	last, err := v.LatestSummary()
	if err != nil {
		last = nil // what was said since then is told all the same
	}
	text := ""
	if log, err := v.MessageLog(); err == nil {
		text, _ = memory.Extract(log, last, "") // as far as it can be read
		_ = log.Close()                         // only read from
	}
	if in, err := heritageOf(v.Dir); err == nil {
		if earlier, err := a.Store.View(in.UUID); err == nil && earlier.Metadata.TaskKey == in.Key {
			text += before(earlier)
		}
	}
	return text
}

// maxBefore is how much of an earlier summary, in bytes, goes into one that no
// model wrote.
const maxBefore = 3000

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
