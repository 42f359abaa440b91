package agent

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
	"toritsugi/internal/workspace"
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

// findBase begins to find out what the checks say of the base, as far as an earlier
// owner has not. The caller ends it by dropBase.
func (r *run) findBase(ctx context.Context) (err error) {
	if r.verify.apart, err = r.out.Workspace.Apart(); err != nil {
		return err
	}
	b := &baseline{cached: make(chan struct{}), found: make(chan struct{}), runs: r.verify.before}
	ctx, b.end = context.WithCancel(ctx)
	r.verify.base = b
	go func() {
		defer close(b.found)
		ready := sync.OnceFunc(func() { close(b.cached) })
		defer ready()
		if b.err = r.askBase(ctx, b, ready); b.err == nil {
			b.err = r.lacks(ctx, missing(b.runs))
		}
	}()
	return nil
}

// dropBase ends what is still being found out, and waits for that.
func (r *run) dropBase() {
	if r.verify.base == nil {
		return
	}
	r.verify.base.end()
	<-r.verify.base.found
	if err := r.verify.apart.Close(false); err != nil {
		r.log.Warn("Not all could be cleaned up: " + err.Error())
	}
}

// askBase runs the checks of the base. Once they are sealed nothing writes to their
// build caches: what was not run by then was no check when the run began.
func (r *run) askBase(ctx context.Context, b *baseline, ready func()) error {
	sealed, err := r.out.Workspace.BeginLayers(ctx)
	if err != nil {
		return err
	}
	ready()
	if sealed {
		return nil
	}
	spec := r.env.spec
	spec.Together = &sandbox.Together{} // what they take is not the model's
	tools := ""
	if len(r.verify.checks) > 0 {
		if tools, err = r.installed(ctx, spec); err != nil {
			return err
		}
	}
	for _, c := range r.verify.checks {
		if slices.ContainsFunc(b.runs, func(o contextstore.CheckRun) bool { return o.Command == r.Store.Redact(c.Command) }) {
			continue
		}
		run, err := r.checkBase(ctx, c, spec, tools)
		if err != nil {
			return err
		}
		b.runs = append(slices.Clip(b.runs), run)
	}
	if err := r.out.Workspace.SealBase(ctx); err != nil {
		return err
	}
	if err := r.out.Workspace.OfferBase(ctx); err != nil && ctx.Err() == nil {
		r.log.Warn(r.Store.Redact(err.Error()))
	}
	return ctx.Err()
}

// checkBase runs one check on the base, in a tree that no other one has touched,
// or takes what it said to an earlier run.
func (r *run) checkBase(ctx context.Context, c Check, spec sandbox.Spec, tools string) (contextstore.CheckRun, error) {
	name := r.resultName(c, tools)
	if run, ok := r.keptResult(name); ok && tools != "" {
		if err := r.ledger.AppendCheck(run); err != nil {
			return run, err
		}
		r.screen.tracker.Checked(run, r.Now())
		r.log.Info("Check passed: "+c.Command, "round", 0, "cached", run.Cached.Format(time.RFC3339))
		return run, nil
	}
	if err := r.verify.apart.Lay(ctx, ""); err != nil {
		return contextstore.CheckRun{}, err
	}
	run, err := r.oneCheck(ctx, c, spec, contextstore.CheckRun{Beside: true})
	if err == nil && tools != "" {
		r.keepResult(name, run)
	}
	return run, err
}

// awaitBase waits until it is known what the checks say of the base.
func (r *run) awaitBase(ctx context.Context) error {
	b := r.verify.base
	select {
	case <-b.found:
	default:
		if err := r.ledger.Activity(contextstore.Processing, "check"); err != nil {
			return err
		}
		r.log.Info("The checks of the base are waited for")
		select {
		case <-b.found:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.verify.before = b.runs
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return b.err
}

// opened is the sandbox of the model's commands, made with the first of them.
func (r *run) opened(ctx context.Context) (sandbox.Runner, error) {
	select {
	case <-r.verify.base.cached:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.env.opening.Lock()
	defer r.env.opening.Unlock()
	if r.env.shell != nil {
		return r.env.shell, nil
	}
	spec, err := r.withCaches(ctx, r.env.spec, workspace.LayerSteps)
	if err == nil {
		r.env.shell, err = r.env.beside.noting(r.Sandbox.Shell)(spec)
	}
	return r.env.shell, err
}

// news is what there is to tell the model between two turns: of the base, and what
// people have said.
func (r *run) news(ctx context.Context) ([]contextstore.Message, error) {
	all, err := r.baseNews(ctx)
	if err != nil {
		return all, err
	}
	said, err := r.talk.New(ctx)
	return append(all, said...), err
}

// baseNews is what the model is to hear of the base between two of its turns: which
// checks fail there, once. Of those that pass there is nothing to say.
func (r *run) baseNews(ctx context.Context) (told []contextstore.Message, err error) {
	b := r.verify.base
	if b.told || r.verify.quiet {
		return nil, nil
	}
	if r.Scripted { // so that it is the same each time
		if err := r.awaitBase(ctx); err != nil {
			return nil, err
		}
	}
	select {
	case <-b.found:
	default:
		return nil, nil
	}
	b.told = true
	if err := r.awaitBase(ctx); err != nil {
		return nil, err
	}
	if text := r.baseReport(); text != "" {
		told = []contextstore.Message{{Role: llm.RoleUser, Content: text}}
	}
	return told, nil
}

// baseReport tells which checks fail on the base, "" for none.
func (r *run) baseReport() string {
	red := slices.DeleteFunc(slices.Clone(r.verify.before), func(c contextstore.CheckRun) bool { return c.Passed() || !c.Beside })
	if len(red) == 0 {
		return ""
	}
	return r.checkReport(r.Lang.T("checks.before"), nil, red)
}

// wasTold finds out whether an earlier owner told the model of the base, where that
// was found out.
func (r *run) wasTold() error {
	b := r.verify.base
	if !r.complete(r.verify.before) {
		return nil
	}
	if b.told = r.baseReport() == ""; b.told {
		return nil
	}
	return r.ledger.MessageLog().Range(int64(r.start.Size)+1, r.ledger.LastSeq(), func(m contextstore.Message, _ []byte) bool {
		b.told = m.Role == llm.RoleUser && slices.ContainsFunc([]i18n.Lang{i18n.English, i18n.Japanese}, func(l i18n.Lang) bool {
			return strings.HasPrefix(m.Content, l.T("checks.before")+":\n")
		})
		return !b.told
	})
}
