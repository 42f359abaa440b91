package agent

import (
	"context"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// showProgress keeps the run's one comment current while it goes on, until stop
// is called; nothing is posted after that. What cannot be posted is left out:
// the next edit says more.
func (r *run) showProgress(ctx context.Context) (stop func()) {
	if r.Host == nil || r.Progress <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		allowed, last, failing := false, "", false
		t := time.NewTicker(r.Progress)
		defer t.Stop()
		for {
			text := r.progress(r.Lang)
			if !allowed {
				allowed = r.mayShow(ctx, text)
			}
			if core := changing(text); allowed && core != last {
				err := r.post(ctx, text)
				if err == nil {
					last = core
				}
				if (err != nil) != failing && ctx.Err() == nil {
					if failing = err != nil; failing {
						r.log.Warn("The progress is not shown: " + r.Store.Redact(err.Error()))
					}
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// mayShow asks the broker about the comment, once: its later editions are counted
// with it, and filtered like it.
func (r *run) mayShow(ctx context.Context, text string) bool {
	m := r.ledger.Metadata()
	v, err := r.door.Judge(ctx, broker.Request{
		Kind: broker.Comment, Key: m.UUID + ".progress", Task: m.TaskKey, Target: broker.Target{Item: m.TaskKey.ID},
		Text: text, Origin: broker.Origin{Who: broker.FromRun},
	})
	return err == nil && v.Decision == broker.Allow
}

func (r *run) post(ctx context.Context, text string) error {
	clean, _, err := r.Door.Filter.Clean(broker.Markdown, r.Store.Redact(text))
	if err != nil {
		return err
	}
	m := r.ledger.Metadata()
	_, err = r.Host.Post(ctx, m.TaskKey, m.UUID, clean)
	return err
}

// progress is the comment while the run goes on.
func (r *run) progress(l i18n.Lang) string {
	st, m := r.ledger.State(), r.ledger.Metadata()
	stage := l.T("agent.progress_preparing")
	switch {
	case st.LastActivity == "check":
		stage = l.T("agent.progress_checking")
	case st.LLMCallCount > 0:
		stage = l.T("agent.progress_working", r.place.Branch)
	}
	cost := ""
	if st.CostMicroUSD > 0 {
		cost = ", $" + contextstore.Dollars(st.CostMicroUSD)
	}
	lines := []string{
		l.T("agent.progress_title"), "",
		"- " + l.T("agent.progress_asked", r.job.Ask.By.Login, r.Client.Provider()+"/"+r.Client.Model()),
		"- " + l.T("agent.progress_stage", stage),
		"- " + l.T("agent.progress_counts", st.LLMCallCount, st.ToolCallCount, st.TotalTokensUsed, cost),
		"- " + l.T("agent.progress_since", clock(st.StartedAt.Time), clock(r.Now())),
		r.planText(l),
		l.T("agent.progress_how"), "",
		l.T("agent.comment_run", m.UUID, m.UUID[:8]),
	}
	if notice := r.heritageNotice(l); notice != "" {
		lines = append(lines, strings.TrimSuffix(notice, "\n"))
	}
	if r.Scripted {
		lines = append(lines, "", l.T("agent.scripted"))
	}
	return strings.Join(lines, "\n")
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// changing is a comment without its clock: what is worth an edit.
func changing(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(append(lines[:5:5], lines[6:]...), "\n")
}

// InheritanceNotice is the comment on a run that takes over what an earlier one
// of the same task left (inherit §6).
func InheritanceNotice(l i18n.Lang, uuid string, at time.Time) string {
	return l.T("agent.inherited", uuid[:min(8, len(uuid))], clock(at))
}
