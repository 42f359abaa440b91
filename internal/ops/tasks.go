package ops

import (
	"context"
	"io"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// TasksOptions choose which tasks are listed.
type TasksOptions struct {
	Status string // "" for all
	User   string // "" for all
	JSON   bool   // one object per line
	Limit  int    // the newest so many
	Width  int    // columns of a line
	Where  string // the flags by which another verb finds the same runs
	Lang   i18n.Lang
	Now    time.Time
	Stale  time.Duration       // as in ShowOptions
	Viewer contextstore.Viewer // only what they may see is listed and counted
}

// columnsBefore is what a line of Tasks takes before the task itself.
const columnsBefore = 8 + 2 + 11 + 1 + 16 + 1 + 6 + 1 + 5 + 2

// manyScanned is how many contexts may be read one by one before it is worth a word.
const manyScanned = 2000

// Tasks lists the contexts below base, newest first.
func Tasks(ctx context.Context, w io.Writer, base string, o TasksOptions) error {
	if err := checkStatus(task.Status(o.Status)); err != nil {
		return err
	}
	l, err := contextstore.List(ctx, base, o.Viewer, contextstore.Filter{Status: task.Status(o.Status), User: o.User, Limit: o.Limit})
	if err != nil {
		return err
	}
	for i, v := range l.Views { // a row does not tell
		if st, err := contextstore.ReadState(v.Dir); err == nil && v.Status() == task.Completed {
			l.Views[i].State.Unverified = st.Unverified
		}
	}
	p := &printer{w: w}
	if o.JSON {
		for _, v := range l.Views {
			p.json(row(v))
		}
		for _, d := range l.Damaged {
			p.json(map[string]any{"damaged": d})
		}
		return p.err
	}
	p.printf("%-8s  %-11s %-16s %6s %5s  %s\n", "UUID", "STATUS", "CREATED", "CALLS", "TOOLS", "TASK")
	for _, v := range l.Views {
		s := string(v.Status())
		switch {
		case v.Interrupted():
			s = "interrupted"
		case v.State.Unverified:
			s = "unverified"
		}
		k, kept := v.Metadata.TaskKey, ""
		if contextstore.IsKept(v.Dir) {
			kept = o.Lang.T("ops.kept") + " "
		}
		p.printf("%-8s  %-11s %-16s %6d %5d  %s\n", contextstore.Short(v.Metadata.UUID), s, stamp(v.Metadata.CreatedAt)[:16], v.State.LLMCallCount,
			v.State.ToolCallCount, fit(kept+k.Repo+k.Number()+" "+v.Metadata.Title, max(o.Width-columnsBefore, 20)))
	}
	if len(l.Views) == 0 {
		p.printf("%s\n", o.Lang.T("ops.looked_in", clean(base)))
	}
	for _, v := range l.Views {
		if age, stale := v.Stale(o.Now, o.Stale); stale {
			p.printf("%s\n", o.Lang.T("ops.stale", contextstore.Short(v.Metadata.UUID), v.Owner.ProcessID, clean(v.Owner.Hostname), duration(o.Lang, age)))
		}
	}
	for _, v := range l.Views {
		if v.Edition != 0 && v.Status() == task.Running {
			p.printf("%s\n", o.Lang.T("ops.ancestor_run", contextstore.Short(v.Metadata.UUID), v.Edition, v.State.ProcessID, clean(v.State.Hostname)))
		}
		if v.Interrupted() {
			p.printf("%s\n", o.Lang.T("ops.left_behind", contextstore.Short(v.Metadata.UUID), v.State.ProcessID, clean(v.State.Hostname), contextstore.Short(v.Metadata.UUID)+o.Where))
		}
	}
	if l.Total > len(l.Views) {
		p.printf("%s\n", o.Lang.T("ops.more", len(l.Views), l.Total))
	}
	if l.Scanned && l.Total > manyScanned && l.Views[0].Edition == 0 {
		p.printf("%s\n", o.Lang.T("ops.scanned"))
	}
	for _, d := range l.Damaged {
		p.printf("%s\n", o.Lang.T("ops.damaged", clean(d)))
	}
	return p.err
}

// row is a task as programs read it: the columns of tasks.db.
func row(v contextstore.View) map[string]any {
	m, s, k := v.Metadata, v.State, v.Metadata.TaskKey
	all := map[string]any{"uuid": m.UUID, "task_source": k.Source, "owner": k.Owner, "repo": k.Repo, "task_type": k.Type, "task_id": k.ID,
		"title": m.Title, "status": v.Status(), "interrupted": v.Interrupted(), "unverified": s.Unverified, "created_at": m.CreatedAt, "started_at": s.StartedAt, "completed_at": s.CompletedAt,
		"llm_provider": m.Config.Provider, "model": m.Config.Model, "llm_call_count": s.LLMCallCount, "tool_call_count": s.ToolCallCount,
		"total_tokens": s.TotalTokensUsed, "compression_count": s.CompressionCount, "error_message": s.Error, "user": m.User, "directory": v.Dir, "kept": contextstore.IsKept(v.Dir),
		"prompt_tokens": s.PromptTokens, "cached_tokens": s.CachedTokens, "cache_write_tokens": s.CacheWriteTokens, "completion_tokens": s.CompletionTokens,
		"reasoning_tokens": s.ReasoningTokens, "cost_micro_usd": s.CostMicroUSD, "unpriced_calls": s.UnpricedCalls}
	if v.Edition != 0 {
		all["edition"] = v.Edition
	}
	return all
}
