package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/verdict"
)

// finalTime is how long the model may take for a final summary.
const finalTime = 60 * time.Second

// shortRun is how many answers a run may have for its last words to tell later
// runs enough: as long as nothing of it has left the window, no model is asked for
// a summary (decisions/038).
const shortRun = 12

// EffectSummary is the final summary that a model writes of a run that is over,
// once the world has seen what came of it.
const EffectSummary = "summary"

// summaryEffect is what is told with the final summary that a model writes.
type summaryEffect struct {
	Facts   string `json:"facts"`
	Learned string `json:"learned,omitempty"`
}

// owesSummary reports whether a model is to sum up a run that ends: one that later
// runs inherit from, that is not short, that has budget left, and whose model did
// not just fail. ctx is that of the process: where that ends, nobody asks a model.
func (r *run) owesSummary(ctx context.Context, ended error) bool {
	st := r.ledger.State()
	if r.Window.Summarizer == nil || r.out.Reviews() || r.Scripted || ctx.Err() != nil || byBudget(ended) || errors.As(ended, new(*llm.Error)) || r.report.Outcome.Status == task.Failed {
		return false
	}
	left := st.CompressionCount > 0
	if e, err := r.ledger.LastWindow(); err == nil && e != nil {
		left = left || e.Dropped > 0
	}
	return left || st.LLMCallCount > shortRun
}

// Summarise is the handler of EffectSummary: it asks a model for the final summary
// of a run that is over. Where it gives none that is fit, where there is no budget
// for it, or one stands there already, the effect is done with all the same, and
// the result says why; the error is ctx's, and those of the ledger.
func (a *Agent) Summarise(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	var told summaryEffect
	if err := json.Unmarshal(e.Data, &told); err != nil {
		return "", fmt.Errorf("effect %s: %w", e.Key, err)
	}
	v, err := a.Store.View(uuid)
	if err != nil {
		return "", err
	}
	if done, err := v.Summarised(); err != nil || done {
		return "it stands there", err
	}
	days := a.dayBudget(v.Metadata, v.State)
	asking, cancel := context.WithTimeout(ctx, finalTime)
	defer cancel()
	final, err := a.summary(asking, v, told.Facts, func(tokens int64) error { return a.reserveSummary(asking, days, v.State, tokens) })
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	text, result := "", final.By
	if err == nil {
		text = told.Facts + "\n" + final.Text + "\n" + told.Learned
	} else {
		result = delivery.NotDelivered + a.Store.Redact(err.Error())
		a.Log.Debug("The model gives no final summary; the one that was put together from the records stands", "uuid", uuid, "error", a.Store.Redact(err.Error()))
	}
	if err := a.Store.AppendFinal(ctx, uuid, contextstore.Summary{Summary: text, AnsweredBy: final.By, Usage: final.Usage}); err != nil {
		return "", err
	}
	if days != nil {
		now, err := contextstore.ReadState(v.Dir)
		if err == nil {
			err = days.Settle(ctx, now, false)
		}
		if err != nil {
			a.Log.Debug("What the final summary took is not counted for its day yet: " + a.Store.Redact(err.Error()))
		}
	}
	return result, nil
}

// summary asks the summarizer's model: where it is the task's, with what the run
// sent last, which its provider has in the cache.
func (a *Agent) summary(ctx context.Context, v contextstore.View, facts string, afford func(int64) error) (memory.Final, error) {
	if a.Window.Summarizer == nil {
		return memory.Final{}, errors.New("there is no model for it")
	}
	client, window, err := a.Window.Summarizer(ctx)
	if err != nil {
		return memory.Final{}, err
	}
	ask := memory.FinalAsk{Client: client, Window: window, Facts: facts, Lang: a.Lang, Afford: afford}
	if client.Provider() != a.Client.Provider() || client.Model() != a.Client.Model() {
		over, err := memory.OpenEndedRun(v)
		if err != nil {
			return memory.Final{}, err
		}
		defer func() { _ = over.Close() }() // only read from
		return memory.Summarise(ctx, ask, over)
	}
	tools, err := Offered(v.Dir)
	if err != nil {
		return memory.Final{}, err
	}
	p := a.Window.Memory
	for _, d := range tools {
		p.Fixed += d.Bytes()
	}
	return memory.SummariseOn(ctx, ask, v, p, tools)
}

// facts are what is certain about the end of a run, in the language of the record. No
// person is named: they would be with every later run (inherit §8.1).
func (r *run) facts() string {
	var b strings.Builder
	o, m := r.report.Outcome, r.ledger.Metadata()
	reason := r.end.recorded
	if q := r.end.askedBy; q != "" {
		reason = strings.ReplaceAll(reason, r.Store.Redact(q), i18n.English.T("agent.somebody"))
	}
	fmt.Fprintf(&b, "Task: %s (%s)\nOutcome: %s. %s\n", progress.OneLine(m.Title), m.TaskKey.Number(), o.Status, reason)
	if r.report.Commit != "" {
		fmt.Fprintf(&b, "Commit: %s on %s\n", r.report.Commit, r.report.Branch)
	}
	if shown, more := progress.First(r.report.Files, 50); len(shown) > 0 {
		fmt.Fprintf(&b, "Changed: %s\n", strings.Join(shown, ", "))
		if more > 0 {
			fmt.Fprintf(&b, "and %d more files\n", more)
		}
	}
	for _, c := range r.verify.after {
		fmt.Fprintf(&b, "Check `%s`: exit code %d", progress.OneLine(c.Command), c.ExitCode)
		if text := verdict.Compare(r.verify.Before, c).Text(i18n.English, cutLine); text != "" {
			b.WriteString("; " + text)
		}
		b.WriteByte('\n')
	}
	if r.Scripted {
		b.WriteString("The answers came from a script; no model was called.\n")
	}
	return b.String()
}

// recorded stands for a summary where no model gives one.
func (r *run) recorded() string {
	text := ""
	if r.end.cutOff {
		text = r.standing(i18n.English)
	} else if r.lead.answer != "" {
		text = "Last answer: " + progress.Head(r.lead.answer, 4000) + "\n"
	}
	last, err := r.ledger.LatestSummary()
	var record string
	if err == nil {
		record, err = memory.Extract(r.ledger.MessageLog(), last, r.lead.answer)
	}
	if err != nil {
		r.log.Warn("Not all of the record can be read for the final summary", "error", err)
	}
	text += record
	if in := r.past.from.Load(); in != nil {
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
	return "\nWhat the run before it left:\n" + progress.Quote(progress.Head(s.Summary, maxBefore)) + "\n"
}

// RecordedSummary stand for the final summary of a run that nobody works on.
func RecordedSummary(store *contextstore.Store, v contextstore.View) string {
	last, err := v.LatestSummary()
	if err != nil {
		last = nil // what was said since then is told all the same
	}
	text := ""
	if log, err := v.MessageLog(); err == nil {
		text, _ = memory.Extract(log, last, "") // as far as it can be read
		_ = log.Close()                         // only read from
	}
	if in, err := inheritedOf(v.Dir); err == nil {
		if earlier, err := store.View(in.UUID); err == nil && earlier.Metadata.TaskKey == in.Key {
			text += before(earlier)
		}
	}
	return text
}

// maxBefore is how much of an earlier summary, in bytes, goes into one that no
// model wrote.
const maxBefore = 3000
