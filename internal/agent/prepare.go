package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/confined"
	"toritsugi/internal/tool/mcp"
	"toritsugi/internal/verdict"
	"toritsugi/internal/workspace"
)

// environment is what the commands of a run find: sandboxes, jobs and servers of tools.
type environment struct {
	lost    bool            // the workspace of an earlier owner is gone
	spec    sandbox.Spec    // of all commands, but for their build caches
	network sandbox.Network // with the file of certificates

	opening sync.Mutex     // of shell, until the loop has ended
	shell   sandbox.Runner // of the model's commands, nil before the first of them
	side    sideRunners
	jobs    *tool.Jobs   // commands in the background, which end with the run
	servers *mcp.Manager // of tools; nil where there are none

	withheld   []mcp.Drift // tools of theirs that are not what was accepted, as the run took them up
	unrecorded string      // why the last snapshot failed, "" where it did not
}

// close ends what the run's commands left.
func (e *environment) close() {
	if e.servers != nil {
		e.servers.Close()
	}
	e.jobs.Close()
	if e.shell != nil {
		_ = e.shell.Close()
	}
}

// prepare sets the workspace up and reads what the project says of itself. All of that
// survives interruptions.
func (r *run) prepare(ctx context.Context) error {
	if r.plans() {
		if err := r.openHistory(); err != nil {
			return err
		}
	}
	if err := r.track(); err != nil {
		return err
	}
	if !r.start.Whole { // else what was shown stays until the plan is known again
		if !r.out.Reviews() { // whose one comment is the review
			r.screen.hide = r.showProgress(ctx)
		}
		r.out.TakenUp(ctx)
	}
	if r.out.Reviews() {
		return errors.Join(r.openReview(ctx), r.tellRules(ctx))
	}
	if err := r.equip(ctx); err != nil {
		return err
	}
	return r.verify.FindBase(ctx)
}

// tellRules has a model that reviews told what the project says of itself.
func (r *run) tellRules(ctx context.Context) error {
	p, err := r.readProject(ctx)
	if p != nil {
		p.Setup, p.Checks = nil, nil // nothing is run
		r.tellProject(p)
	}
	return err
}

// openWorkspace reads what the run was asked for and what earlier owners left, and
// opens the workspace.
func (r *run) openWorkspace(ctx context.Context) (err error) {
	if err := r.ledger.Activity(contextstore.Initializing, "workspace"); err != nil {
		return err
	}
	if err := errors.Join(r.talk.Open(), r.readBeginning()); err != nil {
		return err
	}
	if err := r.openDay(ctx); err != nil {
		return err
	}
	dir := r.Store.WorkspaceDir(r.ledger.UUID())
	if err = r.out.Open(ctx, workspace.CreateOptions{Dir: dir, Rest: r.env.side.suspend}); err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	r.env.lost = r.out.Lost && r.ledger.LastSeq() > 0
	r.report.Tree, r.report.Branch = r.out.Workspace.Tree(), r.out.Place.Branch
	return r.out.OpenBroker()
}

// readBeginning reads how far the first messages of the run are.
func (r *run) readBeginning() (err error) {
	if r.start, err = memory.ReadFirstMessages(r.ledger); err != nil {
		return fmt.Errorf("read the first messages: %w", err)
	}
	if r.start.Heir {
		r.readInheritance()
	}
	return nil
}

// equip sets up the workspace, and reads what the checks and the project say.
func (r *run) equip(ctx context.Context) (err error) {
	dir, ws, allowed := r.Store.WorkspaceDir(r.ledger.UUID()), r.out.Workspace, r.Sandbox.Network.AllowHosts
	spec := sandbox.Spec{Workspace: ws.Tree(), GitDir: ws.GitDir(), Scratch: filepath.Join(dir, "scratch"),
		ReadOnly: r.Sandbox.ReadOnly, Env: r.Sandbox.Env, MemoryMB: r.Sandbox.MemoryMB, Usage: &sandbox.SharedUsage{}, Hold: r.ledger.WorkLock()}
	if r.env.network = r.Sandbox.Network; len(allowed)+len(r.Project.Registries)+len(r.Tools.Servers) > 0 {
		if r.env.network.CAFile, err = sandbox.Certificates(filepath.Join(dir, "certificates.pem"), r.Sandbox.CAFile); err != nil {
			return &delivery.TaskError{Err: err}
		}
		if r.Sandbox.CAFile != "" {
			spec.ReadOnly = append(slices.Clone(spec.ReadOnly), r.env.network.CAFile)
		}
	}
	spec.Network = confined.Online(r.env.network, allowed, "sandbox.allow_hosts", r.log, r.Reader)
	r.env.spec = spec
	r.verify.delivery = r.Delivery
	r.verify.Runner = checkrun.Runner{Settings: r.Project.Settings, Store: r.Store, Ledger: r.ledger, Workspace: ws, Trusted: r.out.TrustedCommit(), Log: r.log, Now: r.Now, Lang: r.Lang, Reader: r.Reader,
		Shell: r.Sandbox.Shell, Spec: spec, Network: r.env.network, Env: r.Sandbox.Env, Filter: r.Masking.Filter,
		Checked: func(c contextstore.CheckRun) { r.screen.tracker.Checked(c, r.Now()) }}
	p, err := r.readProject(ctx)
	if err != nil {
		return err
	}
	if err = r.verify.SetUp(ctx, p, r.ledger.LastSeq() > 0 && !r.env.lost); err != nil {
		return err
	}
	if err = r.out.Restore(ctx); err != nil {
		return err
	}
	r.env.spec = r.verify.Spec
	all, err := r.ledger.Checks()
	if err != nil {
		return err
	}
	r.verify.Before = verdict.Round(all, 0)
	return r.learn(ctx, p)
}

// begin appends the first messages, unless an earlier owner did, and opens the loop of
// model and tools and what coordinates it.
func (r *run) begin(ctx context.Context) error {
	if !r.start.Whole {
		if err := r.appendFirst(ctx); err != nil {
			return err
		}
	}
	if r.review == nil {
		if err := r.verify.WasTold(int64(r.start.Size)); err != nil {
			return err
		}
	}
	if err := r.coordinate(ctx); err != nil {
		return err
	}
	if r.screen.hide == nil && r.review == nil {
		r.screen.hide = r.showProgress(ctx)
	}
	return nil
}

// appendFirst appends the first messages: system prompt, what is inherited, and the
// request.
func (r *run) appendFirst(ctx context.Context) (err error) {
	p, err := r.pictures(ctx)
	if err != nil {
		return err
	}
	missing, err := r.missing(ctx)
	if err != nil {
		return err
	}
	in, err := r.inherit(ctx)
	if err != nil {
		return err
	}
	if err = r.talk.Begin(); err != nil {
		return err
	}
	m, err := r.matter(ctx, dialogue.ToldEarlier(in))
	if err != nil {
		return err
	}
	if m.pull != nil && m.pull.Conflicts && r.review == nil {
		if m.conflicts, err = r.out.Merge(ctx); err != nil {
			return err
		}
	}
	system, tellLast := systemPrompt, func(ctx context.Context) (string, error) { return r.similar(ctx, m.title, m.body) }
	if m.review = r.review != nil; m.review {
		system, tellLast = reviewPrompt, r.review.request
	}
	last, err := tellLast(ctx)
	if err != nil {
		return err
	}
	r.talk.CaughtUp()
	checks := ""
	if r.review == nil {
		checks = r.verify.Told()
	}
	first := firstMessages(in, system+r.rules(m.title+"\n"+m.body), contextstore.Message{Role: llm.RoleUser, Images: p.images,
		Content: taskPrompt(m, checks, r.talk.MaxBytes) + missing + p.tell() + last})
	// After a power cut some of them may be there already.
	if _, err = r.ledger.Append(first[min(r.ledger.LastSeq(), int64(len(first)-1)):]...); err != nil {
		return err
	}
	r.start = memory.FirstMessages{Size: len(first), Heir: in != nil, Whole: true}
	if text := strings.TrimSpace(r.notShown(r.Reader)); text != "" {
		r.log.Warn(text)
	}
	return nil
}

// close ends what the work left running, the latest first.
func (r *run) close() {
	if r.lead.loop != nil {
		r.report.ToolTime = r.lead.loop.ToolTime
	}
	r.env.close()
	r.verify.DropBase()
	if r.lead.history != nil {
		if err := r.lead.history.Close(); err != nil {
			r.log.Warn("The planning history: " + err.Error())
		}
	}
}

// release lets the workspace be cleaned away, if that is wanted.
func (r *run) release() {
	ws := r.out.Workspace
	if ws == nil {
		return
	}
	r.out.Keeper.Close()
	if r.report.Outcome.Status.Final() {
		err := ws.DropCaches("")
		err = errors.Join(err, r.verify.Close())
		if err != nil {
			r.log.Warn("Not all could be cleaned up: " + err.Error())
		}
	}
	_ = ws.Close() // what it holds ends with the process at the latest
}
