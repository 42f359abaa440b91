package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/order"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/turn"
)

// openDay opens the ledger of days where there are limits, and refuses to begin
// where they leave no room: before anything is cloned or set up.
func (r *run) openDay(ctx context.Context) error {
	if r.Limits.Day.None() {
		return nil
	}
	st := r.ledger.State()
	r.days = r.dayBudget(r.ledger.Metadata(), st)
	return r.days.Reserve(ctx, st, contextstore.Amount{})
}

// dayBudget is the ledger of days for a run, nil where there are no limits.
func (a *Agent) dayBudget(m contextstore.Metadata, st contextstore.State) *turn.DayBudget {
	if a.Limits.Day.None() {
		return nil
	}
	user := m.User
	if o, err := order.Parse(m); err == nil && user == "" && o.Act != nil {
		user = o.Act.By.Login
	}
	return &turn.DayBudget{Store: a.Store, Limits: a.Limits.Day, Now: a.Now, Run: contextstore.DayRun{UUID: m.UUID, User: user, Settled: st.Taken()}}
}

// settleDay counts what the run took, and gives back what it holds, before it is
// given up. Where that fails both are made up for by the next owner, or with the
// end of the day; that it waits is noted since it was refused.
func (r *run) settleDay(ctx context.Context) {
	if r.days == nil {
		return
	}
	if err := r.days.Settle(ctx, r.ledger.State(), r.end.day && r.report.Outcome.Status == task.Paused); err != nil {
		r.log.Warn("What the run took is not counted for its day yet: " + r.Store.Redact(err.Error()))
	}
}

// FreeDay counts what a run took that nobody works on, and gives back what its owner
// held of the day. Where that fails it stays held until the day is over.
func FreeDay(ctx context.Context, store *contextstore.Store, limits contextstore.DayLimits, v contextstore.View, log *slog.Logger) {
	if limits.None() {
		return
	}
	id := v.Metadata.UUID
	if err := store.SettleDay(ctx, contextstore.DayRun{UUID: id}, v.State.Taken(), nil); err != nil {
		log.Warn("What a run held of its day stays held until the day is over: "+store.Redact(err.Error()), "uuid", id)
	}
}

// reserveSummary reserves what the final summary of a run is thought to take: so many
// tokens, at the price of its calls on average. The errors are those of Budget and
// of Days.
func (a *Agent) reserveSummary(ctx context.Context, days *turn.DayBudget, st contextstore.State, tokens int64) error {
	next := contextstore.Amount{Turns: 1, Tokens: tokens}
	if priced := st.LLMCallCount - st.UnpricedCalls; priced > 0 {
		next.MicroUSD = st.CostMicroUSD / priced
	}
	if err := a.Limits.Run.Check(st, next); err != nil || days == nil {
		return err
	}
	return days.Reserve(ctx, st, next)
}

// byBudget reports whether a budget ended a run, or paused it.
func byBudget(err error) bool {
	return errors.As(err, new(*turn.BudgetError)) || errors.As(err, new(*contextstore.DayError)) || errors.Is(err, ErrOverTime)
}

// budgetReason is why a budget of its own ends a run.
func budgetReason(l i18n.Lang, e *turn.BudgetError) string {
	if e.Next != "" {
		return l.T("agent.budget_next", e.Taken, e.Limit, e.Next, e.Key)
	}
	return l.T("agent.budget", e.Taken, e.Limit, e.Key)
}

// dayReason is why a limit of the day pauses a run.
func (r *run) dayReason(l i18n.Lang, e *contextstore.DayError) string {
	taken := e.Taken
	if e.Held != "" {
		taken = l.T("agent.day_held", e.Taken, e.Held)
	}
	reason := l.T("agent.day", taken, e.Limit, e.Key, e.Until.UTC().Format("2006-01-02 15:04 UTC"))
	if e.Needs != "" {
		reason += l.T("agent.day_needs", e.Needs)
	}
	if r.served() {
		reason += l.T("agent.day_goes_on")
	}
	return reason
}

// noteHandover finds out what whoever goes on after a budget ended the run is
// told: the model's words, or what is put together from the records.
func (r *run) noteHandover(ended error) {
	if !byBudget(ended) {
		return
	}
	if lead := r.lead.planned.Load(); lead != nil {
		if words := lead.View().Handover; words != "" {
			r.lead.answer = words
			return
		}
	}
	r.end.cutOff = true
}

// handover is the handover where no model wrote one, for a comment: what was
// changed is told beside it.
func (r *run) handover(l i18n.Lang) string {
	if !r.end.cutOff {
		return ""
	}
	stands := r.standing(l)
	if stands != "" {
		stands = "\n" + l.T("agent.handover") + "\n\n" + stands
	}
	return stands + r.saidLast(l)
}

// shownSubtasks is how many subtasks a handover lists.
const shownSubtasks = 30

// standing is how far the plan is, for whoever goes on: "" where no plan leads
// the run.
func (r *run) standing(l i18n.Lang) string {
	lead := r.lead.planned.Load()
	if lead == nil {
		return ""
	}
	var b strings.Builder
	line := func(key string, args ...string) {
		all := make([]any, len(args))
		for i, a := range args {
			all[i] = r.Delivery.Plain(a, 100) // with nothing in it that would be more than text
		}
		b.WriteString("- " + l.T(key, all...) + "\n")
	}
	v := lead.View()
	if v.Goal != "" {
		line("agent.handover_goal", v.Goal)
	}
	for _, it := range v.Items[:min(len(v.Items), shownSubtasks)] {
		switch it.Status {
		case planning.Skipped:
		case planning.Done:
			line("agent.handover_done", it.ID, l.Translate(it.Summary))
		case "":
			line("agent.handover_open", it.ID, l.Translate(it.Text))
		default:
			line("agent.handover_ended", it.ID, l.T("progress.subtask_"+it.Status), l.Translate(it.Summary))
		}
	}
	if v.Failed != "" {
		line("agent.handover_failed", v.Failed)
	}
	return b.String()
}

// saidLast are the model's latest words in a run without a plan.
func (r *run) saidLast(l i18n.Lang) string {
	if r.lead.planned.Load() != nil {
		return ""
	}
	said := ""
	err := r.ledger.MessageLog().Tail(saidWithin, func(m contextstore.Message, _ []byte) bool {
		if text := strings.TrimSpace(m.Content); m.Role == llm.RoleAssistant && m.Seq > int64(r.start.Size) && text != "" {
			said = text
		}
		return true
	})
	if err != nil || said == "" {
		return ""
	}
	return "\n" + l.T("agent.handover_said") + "\n\n" + progress.Quote(progress.Head(said, 4000)) + "\n"
}

// saidWithin is among how many messages the latest words are looked for.
const saidWithin = 50
