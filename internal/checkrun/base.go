package checkrun

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/sandbox"
)

// baseline is what the checks say of the untouched base. It is found out beside the
// model's first turns, in a tree and sandboxes of its own (docs/decisions/037).
type baseline struct {
	end    context.CancelFunc
	cached chan struct{} // closed when the build caches of the model's commands are there, or err says why not
	found  chan struct{} // closed when it is over; then
	runs   []contextstore.CheckRun
	err    error
	told   bool // what it says of failures; the model's turns only
}

// FindBase begins to find out what the checks say of the base, as far as an earlier
// owner has not. The caller ends it by DropBase.
func (r *Runner) FindBase(ctx context.Context) (err error) {
	if r.apart, err = r.Workspace.CheckTree(); err != nil {
		return err
	}
	b := &baseline{cached: make(chan struct{}), found: make(chan struct{}), runs: r.Before}
	ctx, b.end = context.WithCancel(ctx)
	r.base = b
	go func() {
		defer close(b.found)
		ready := sync.OnceFunc(func() { close(b.cached) })
		defer ready()
		if b.err = r.askBase(ctx, b, ready); b.err == nil {
			b.err = r.Lacks(ctx, Missing(b.runs))
		}
	}()
	return nil
}

// DropBase ends what is still being found out, and waits for that.
func (r *Runner) DropBase() {
	if r.base == nil {
		return
	}
	r.base.end()
	<-r.base.found
	if err := r.apart.Close(false); err != nil {
		r.Log.Warn("Not all could be cleaned up: " + err.Error())
	}
}

// askBase runs the checks of the base. Once they are sealed nothing writes to their
// build caches, so that a check that is added later has no result of the base.
func (r *Runner) askBase(ctx context.Context, b *baseline, ready func()) error {
	sealed, err := r.Workspace.BeginLayers(ctx)
	if err != nil {
		return err
	}
	ready()
	if sealed {
		return nil
	}
	spec := r.Spec
	spec.Usage = &sandbox.SharedUsage{} // what they take is not the model's
	tools := ""
	if len(r.Checks) > 0 {
		if tools, err = r.installed(ctx, spec); err != nil {
			return err
		}
	}
	for _, c := range r.Checks {
		if slices.ContainsFunc(b.runs, func(o contextstore.CheckRun) bool { return o.Command == r.Store.Redact(c.Command) }) {
			continue
		}
		run, err := r.checkBase(ctx, c, spec, tools)
		if err != nil {
			return err
		}
		b.runs = append(slices.Clip(b.runs), run)
	}
	if err := r.Workspace.SealBase(ctx); err != nil {
		return err
	}
	if err := r.Workspace.OfferBase(ctx); err != nil && ctx.Err() == nil {
		r.Log.Warn(r.Store.Redact(err.Error()))
	}
	return ctx.Err()
}

// checkBase runs one check on the base, in a tree that no other one has touched,
// or takes what it said to an earlier run.
func (r *Runner) checkBase(ctx context.Context, c Check, spec sandbox.Spec, tools string) (contextstore.CheckRun, error) {
	name := r.resultName(c, tools)
	if run, ok := r.keptResult(name); ok && tools != "" {
		if err := r.Ledger.AppendCheck(run); err != nil {
			return run, err
		}
		r.Checked(run)
		r.Log.Info("Check passed: "+c.Command, "round", 0, "cached", run.Cached.Format(time.RFC3339))
		return run, nil
	}
	if err := r.apart.Lay(ctx, ""); err != nil {
		return contextstore.CheckRun{}, err
	}
	run, err := r.oneCheck(ctx, c, spec, contextstore.CheckRun{Beside: true})
	if err == nil && tools != "" {
		r.keepResult(name, run)
	}
	return run, err
}

// AwaitBase waits until it is known what the checks say of the base.
func (r *Runner) AwaitBase(ctx context.Context) error {
	b := r.base
	select {
	case <-b.found:
	default:
		if err := r.Ledger.Activity(contextstore.Processing, "check"); err != nil {
			return err
		}
		r.Log.Info("The checks of the base are waited for")
		select {
		case <-b.found:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.Before = b.runs
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return b.err
}

// BaseResults is what the model is to hear of the base between two of its turns: which
// checks fail there, once. Of those that pass there is nothing to say.
func (r *Runner) BaseResults(ctx context.Context, wait bool) (told []contextstore.Message, err error) {
	b := r.base
	if b.told {
		return nil, nil
	}
	if wait {
		if err := r.AwaitBase(ctx); err != nil {
			return nil, err
		}
	}
	select {
	case <-b.found:
	default:
		return nil, nil
	}
	b.told = true
	if err := r.AwaitBase(ctx); err != nil {
		return nil, err
	}
	if text := r.BaseReport(); text != "" {
		told = []contextstore.Message{{Role: llm.RoleUser, Content: text}}
	}
	return told, nil
}

// BaseReport tells which checks fail on the base, "" for none.
func (r *Runner) BaseReport() string {
	red := slices.DeleteFunc(slices.Clone(r.Before), func(c contextstore.CheckRun) bool { return c.Passed() || !c.Beside })
	if len(red) == 0 {
		return ""
	}
	return r.Report(r.Lang.T("checks.before"), nil, red)
}

// WasTold finds out whether an earlier owner told the model of the base, where that
// was found out.
func (r *Runner) WasTold(after int64) error {
	b := r.base
	if !r.Complete(r.Before) {
		return nil
	}
	if b.told = r.BaseReport() == ""; b.told {
		return nil
	}
	return r.Ledger.MessageLog().Range(after+1, r.Ledger.LastSeq(), func(m contextstore.Message, _ []byte) bool {
		b.told = m.Role == llm.RoleUser && slices.ContainsFunc([]i18n.Lang{i18n.English, i18n.Japanese}, func(l i18n.Lang) bool {
			return strings.HasPrefix(m.Content, l.T("checks.before")+":\n")
		})
		return !b.told
	})
}

// TellBase is BaseReport where the model was not told it, which it is by that.
func (r *Runner) TellBase() string {
	if r.base.told {
		return ""
	}
	r.base.told = true
	return r.BaseReport()
}

// Ready waits until the build caches that the model's commands read are there.
func (r *Runner) Ready(ctx context.Context) error {
	select {
	case <-r.base.cached:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
