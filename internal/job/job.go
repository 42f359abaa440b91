// Package job carries a chat job from what was asked to an applied patch (spec/chat §6, §7).
// Its run reads and proposes, and changes nothing; once people have granted the proposal the
// same run applies it. Between the two the run waits and holds no process.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/approval"
	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/order"
	"toritsugi/internal/planning"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/turn"
	"toritsugi/internal/workspace"
)

// Runner works on one job. Its fields are set once.
type Runner struct {
	Store     *contextstore.Store
	Client    llm.Client
	Approvals *approval.Jobs
	Log       *slog.Logger
	Now       func() time.Time
	Lang      i18n.Lang // of what the people of the conversation are told
	ForgeLang i18n.Lang // of what is posted at forges

	Planning    *agent.Planning // leads coders of CODE2 and CODE3; nil for the plain loop
	Inheritance memory.Inheritance
	Strict      func(string) string // masks secrets and data of people; nil masks no more than the store does

	Window int           // tokens that a request may fill
	Memory memory.Policy // what else decides about the window
	Budget turn.Budget
	Days   contextstore.DayLimits // of all runs together
	Filter func(io.Writer) io.WriteCloser

	Box      workspace.Box
	Shell    func(sandbox.Spec) (sandbox.Runner, error)
	Spec     sandbox.Spec // of setup, checks and commands, but for the tree
	Network  sandbox.Network
	Project  checkrun.Settings
	Branch   func(context.Context, *workspace.Source, contextstore.Metadata) (string, error) // that a commit goes to
	Scripted bool
	Delivery *delivery.Service // of jobs about repositories of forges; nil for none
	// Progress hears how far a job is, in the language of the house; nil for nobody.
	Progress func(o order.Chat, text string)
}

// Result is what a run of a job came to.
type Result struct {
	agent.Report
	Order       order.Chat
	Job         approval.Job         // as it stands; its Job is "" where nothing was proposed
	Application approval.Application // of one that was granted
	Err         error                // why the run did not get further, nil where it did

	owes []contextstore.Effect
}

// Execute works on a claimed context until it proposed, applied or cannot go on, and makes
// the transition. The error says that the transition failed.
func (r *Runner) Execute(ctx context.Context, c *contextstore.Context) (Result, error) {
	res := Result{Report: agent.Report{UUID: c.UUID()}}
	o, err := order.Parse(c.Metadata())
	if err == nil && o.Chat == nil {
		err = i18n.E("job.no_chat", c.UUID())
	}
	if err != nil {
		return res, errors.Join(err, c.Close())
	}
	res.Order = *o.Chat
	working, done := agent.WatchRequests(ctx, c, r.Budget.Time)
	defer done()
	res.Outcome, res.Err = r.work(working, c, o, &res)
	if res.Err != nil {
		res.Outcome = r.outcome(context.Cause(working), res.Err)
	}
	res.Outcome.Reason = r.Store.Redact(res.Outcome.Reason)
	res.Reason = res.Outcome.Reason
	if res.Outcome.Status.Final() {
		res.Outcome.Summary = r.summary(c, &res)
	}
	last := context.WithoutCancel(ctx)
	err = c.Transition(last, res.Outcome, res.owes...)
	if errors.As(err, new(*contextstore.UnfinishedError)) {
		r.Log.Warn(err.Error() + "; the next opener does it")
		err = nil
	}
	if err != nil {
		return res, errors.Join(err, c.Close())
	}
	res.Dir = c.Dir()
	if res.Outcome.Status == task.AwaitingApproval {
		// Somebody may have decided while the run was being put down.
		if _, err := r.Approvals.Settle(last); err != nil {
			r.Log.Warn("What was decided is taken up later: " + err.Error())
		}
	}
	return res, nil
}

// work does what is next of a job.
func (r *Runner) work(ctx context.Context, c *contextstore.Context, o order.Order, res *Result) (task.Outcome, error) {
	job, err := approval.Read(c.Dir())
	made := &job
	if errors.Is(err, fs.ErrNotExist) {
		if o.Chat.Reverts != "" { // whoever began it is about to
			return task.Outcome{Status: task.Queued, Reason: r.Lang.T("job.rollback_begins")}, nil
		}
		made, err = nil, nil
	}
	if err == nil && made != nil && !AsksModel(r.Planning, o, made) {
		err = r.closeCalls(c, job)
	}
	if err == nil && AsksModel(r.Planning, o, made) {
		if job, err = r.propose(ctx, c, o, made); err == nil {
			_, err = r.Approvals.AutoApprove(ctx, &job)
		}
	}
	if decided := (*approval.DecidedError)(nil); errors.As(err, &decided) { // while the model still worked on it
		job, err = decided.Job, nil
	}
	if err != nil {
		return task.Outcome{}, err
	}
	if res.Job = job; job.State.Status.Approved() {
		if err := r.moved(ctx, c, o, &res.Job); err != nil {
			return task.Outcome{}, err
		}
		job = res.Job
	}
	switch {
	case !job.Grantable():
		return task.Outcome{Status: task.Completed, Reason: r.Lang.T("job.no_patch")}, nil
	case job.State.Status == approval.Pending:
		return task.Outcome{Status: task.AwaitingApproval, Reason: r.Lang.T("job.waits", job.Job)}, nil
	case job.State.Status == approval.Denied:
		return r.denied(job), nil
	}
	res.Application, res.owes, err = r.apply(ctx, c, o, job)
	switch decided := (*approval.DecidedError)(nil); {
	case errors.As(err, new(*approval.WithdrawnError)):
		res.Job, err = approval.Read(c.Dir())
		return task.Outcome{Status: task.AwaitingApproval, Reason: r.Lang.T("job.waits", job.Job)}, err
	case errors.As(err, &decided):
		res.Job = decided.Job
		return r.denied(decided.Job), nil
	case err != nil:
		return task.Outcome{}, err
	}
	if res.Job, err = approval.Read(c.Dir()); err != nil {
		return task.Outcome{}, err
	}
	if res.Job.State.Status == approval.Denied { // it turned out to be stale
		return r.denied(res.Job), nil
	}
	status := task.Failed
	if res.Application.Applied() {
		status, res.Branch, res.Commit = task.Completed, res.Application.Where, res.Application.Commit
	}
	reason, err := r.applied(c, res.Job, res.Application, r.Lang)
	return task.Outcome{Status: status, Reason: reason}, err
}

// closeCalls appends the results that a crash left out between a proposal and the record of its
// call: no model is asked any more that would have them.
func (r *Runner) closeCalls(c *contextstore.Context, j approval.Job) error {
	l := c.MessageLog()
	defer func() { _ = l.Close() }()
	recent, err := l.Recent(maxCalls)
	if err != nil {
		return err
	}
	var open []contextstore.Message
	for _, m := range recent {
		if m.Role == llm.RoleAssistant {
			open = nil
			for _, call := range m.ToolCalls {
				n := contextstore.Message{Role: llm.RoleTool, ToolName: call.Name, ToolCallID: call.ID, Content: turn.UnknownOutcome, Failed: true}
				if call.Name == proposeName {
					n.Content, n.Failed = r.Lang.T("job.proposed", j.Job), false
				}
				open = append(open, n)
			}
		}
		open = slices.DeleteFunc(open, func(n contextstore.Message) bool { return n.ToolCallID == m.ToolCallID })
	}
	if len(open) > 0 {
		_, err = c.Append(open...)
	}
	return err
}

// maxCalls is how many of the latest messages are looked at for calls without a result: no answer
// has as many calls.
const maxCalls = 100

// applied says what came of an application, and what was run on the patch.
func (r *Runner) applied(c *contextstore.Context, j approval.Job, a approval.Application, l i18n.Lang) (string, error) {
	all, err := c.Checks()
	return applied(j, a, all, l), err
}

// Applied says what came of the application of a job that nobody works on, and what was run
// on the patch.
func Applied(v contextstore.View, j approval.Job, l i18n.Lang) (string, error) {
	a, err := approval.ReadApplication(v.Dir, j.Job)
	if err != nil {
		return "", err
	}
	var all []contextstore.CheckRun
	err = v.Tail(contextstore.Checks, -1, func(line []byte) error {
		var run contextstore.CheckRun
		if err := json.Unmarshal(line, &run); err == nil {
			all = append(all, run)
		}
		return nil
	})
	return applied(j, a, all, l), err
}

// applied says what came of an application, and what was run on the patch.
func applied(j approval.Job, a approval.Application, all []contextstore.CheckRun, l i18n.Lang) string {
	var green, red []string
	for i, run := range all {
		again := slices.ContainsFunc(all[i+1:], func(r contextstore.CheckRun) bool { // after a kill
			return !r.Setup && r.Round > 0 && r.Command == run.Command
		})
		switch {
		case run.Setup || run.Round == 0 || again:
		case run.Passed():
			green = append(green, run.Command)
		default:
			red = append(red, run.Command)
		}
	}
	if !a.Applied() {
		return a.Outcome(l)
	}
	lines := []string{l.T("job.applied_"+string(j.Deliver), j.Title, j.Job, a.Where)}
	switch {
	case len(green)+len(red) == 0:
		lines = append(lines, l.T("job.unchecked"))
	case len(red) == 0:
		lines = append(lines, l.T("job.checked", strings.Join(green, ", ")))
	default:
		lines = append(lines, l.T("job.checked_red", strings.Join(append(green, red...), ", "), strings.Join(red, ", ")))
	}
	return strings.Join(lines, "\n")
}

func (r *Runner) denied(job approval.Job) task.Outcome {
	return task.Outcome{Status: task.Stopped, Reason: job.Denial(r.Lang)}
}

// outcome is how a run ends with an error, in a context that ended by cause, nil where that
// goes on.
func (r *Runner) outcome(cause, err error) task.Outcome {
	var model *llm.Error
	var stuck *planning.StuckError
	var circle *turn.CircleError
	switch q, asked := agent.Asked(cause); {
	case errors.Is(cause, agent.ErrShutdown):
		return task.Outcome{Status: task.Queued}
	case asked && q.Action == contextstore.Stop:
		return task.Outcome{Status: task.Stopped, Reason: r.Lang.Asked(string(q.Action), q.By)}
	case errors.Is(cause, agent.ErrOverTime):
		return task.Outcome{Status: task.Failed, Reason: r.Lang.T("agent.budget", r.Budget.Time, r.Budget.Time, turn.KeyTime), TimedOut: true}
	case cause != nil:
		return task.Outcome{Status: task.Paused, Reason: r.Lang.T("agent.paused")}
	case delivery.Passing(err):
		return task.Outcome{Status: task.Queued, Reason: r.Lang.Error(err)} // it is tried again
	case errors.As(err, new(*contextstore.DayError)):
		return task.Outcome{Status: task.Paused, Reason: r.Lang.Error(err)}
	case errors.As(err, &stuck):
		return task.Outcome{Status: task.Failed, Reason: r.Lang.T("agent.stuck", stuck.What(r.Lang))}
	case errors.As(err, &circle):
		return task.Outcome{Status: task.Failed, Reason: r.Lang.T("agent.stuck", circle.What(r.Lang))}
	case errors.As(err, &model):
		return task.Outcome{Status: task.Failed, Reason: r.Lang.T("agent.model", r.Client.Provider()+"/"+r.Client.Model(), model.Explain(r.Lang))}
	}
	return task.Outcome{Status: task.Failed, Reason: r.Lang.Error(err)}
}

// summary is what the record keeps of a job that is over, in its language.
func (r *Runner) summary(c *contextstore.Context, res *Result) string {
	if res.Job.Job == "" {
		return res.Order.Title + "\n\n" + res.Outcome.Reason
	}
	end := res.Outcome.Reason
	if res.Application.Begun {
		if text, err := r.applied(c, res.Job, res.Application, i18n.English); err == nil {
			end = text
		}
	}
	if res.Job.State.Status == approval.Denied {
		end = "" // which the record says in its language
	}
	return res.Job.Left(i18n.English, end)
}

// place is where a job reads: a clone at its base, or the files at hand.
type place struct {
	root       *os.Root
	base       approval.Base
	visibility approval.Visibility
	checks     []string                                  // commands that are to be run on the patch
	id         func(ctx context.Context) (string, error) // of the base
	close      func() error
}

// source looks at the repository of a job; of one of a forge it fetches what is new. The
// caller closes it.
func (r *Runner) source(ctx context.Context, o order.Order) (*delivery.Hosted, error) {
	if _, hosted := o.Hosted(); hosted {
		if r.Delivery == nil {
			return nil, i18n.E("delivery.no_host", o.Repo)
		}
		return r.Delivery.OpenHosted(ctx, o)
	}
	src, err := workspace.Inspect(ctx, o.Repo, workspace.InspectOptions{NoStatus: true, Box: r.Box})
	return &delivery.Hosted{Source: src, Private: true}, err
}

// handDir is where the git of the files at hand lies.
func (r *Runner) handDir(uuid string) string {
	return filepath.Join(r.Store.WorkspaceDir(uuid), "hand")
}

// place opens where a job reads.
func (r *Runner) place(ctx context.Context, c *contextstore.Context, o order.Order) (*place, error) {
	src, err := r.source(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	if o.Chat.Deliver == string(approval.Worktree) {
		h, err := workspace.OpenCheckout(ctx, src.Source, r.handDir(c.UUID()), r.Box)
		if err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(src.Path)
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		base := &approval.HandTree{Hand: h}
		id := func(ctx context.Context) (string, error) {
			base.Base, err = h.TreeOf(ctx) // as the files are now
			return base.Base, err
		}
		return &place{root, base, approval.Private, r.checks(ctx, src.Source, src.Head), id, func() error { return errors.Join(root.Close(), h.Close()) }}, nil
	}
	w, err := workspace.Create(ctx, workspace.CreateOptions{Source: src.Source, Dir: r.Store.WorkspaceDir(c.UUID()), Branch: "tori/" + o.Chat.Job, Commit: o.Base, Box: r.Box, Hold: c.WorkLock()})
	if err != nil {
		return nil, err
	}
	root, err := w.Root()
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	id := func(context.Context) (string, error) { return w.Base(), nil }
	return &place{root, w, src.Visibility(), r.checks(ctx, src.Source, w.Base()), id, func() error { return errors.Join(root.Close(), w.Close()) }}, nil
}
