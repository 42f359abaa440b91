// Package agent carries one task from its start to its end: workspace, checks
// before, turns, checks after, commit, hand-over, comment, and the one
// transition. Whatever happens, the outcome that it states is the true one.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/turn"
	"toritsugi/internal/workspace"
)

// Job is what a run must know to be taken up by another process; it is kept in
// metadata.json under "run".
type Job struct {
	Repo             string `json:"repo"`            // top-level directory of the user's repository
	Issue            string `json:"issue,omitempty"` // path of the issue file, "" for a message
	Message          string `json:"message,omitempty"`
	Branch           string `json:"branch"`
	Base             string `json:"base"` // commit the work starts from
	AllowUnsandboxed bool   `json:"allow_unsandboxed,omitempty"`
	Config           string `json:"config,omitempty"` // path of the config file
	Role             string `json:"role,omitempty"`   // whose model works, as asked for on the command line
	Model            string `json:"model,omitempty"`  // provider/model as asked for on the command line
	LocalOnly        bool   `json:"local_only,omitempty"`
	Script           string `json:"script,omitempty"`

	Images []string `json:"images,omitempty"` // paths, absolute; not needed once the request was appended
}

// ParseJob reads the job of a context.
func ParseJob(m contextstore.Metadata) (Job, error) {
	var j Job
	if len(m.Run) == 0 {
		return j, i18n.E("agent.no_job", m.UUID)
	}
	err := json.Unmarshal(m.Run, &j)
	return j, err
}

// Agent runs one task. Its fields are set once and not changed.
type Agent struct {
	Store   *contextstore.Store
	Client  llm.Client
	Shell   func(sandbox.Spec) (sandbox.Runner, error)
	Masks   func(string) (token string, ok bool)
	Filter  func(io.Writer) io.WriteCloser // masks a text that is cut before it is stored
	Secrets func(text string) []string     // what in a patch looks like a secret, as people may see it
	Log     *slog.Logger                   // of the one run
	Now     func() time.Time
	Lang    i18n.Lang // of what is posted and stored
	Reader  i18n.Lang // of who started the run

	Checks       []Check // nil to detect them
	CheckTimeout time.Duration
	Setup        []workspace.SetupCommand // run before the model's first turn
	Registries   []string                 // hosts that they may reach
	// Online makes a runner whose commands reach these hosts and nothing else;
	// nil where that cannot be had.
	Online       func(spec sandbox.Spec, hosts []string) (sandbox.Runner, error)
	Servers      []Server                       // of further tools
	Commands     func() (*policy.Policy, error) // rules for the shell's commands, asked for with the first; nil judges none
	RefuseAsked  bool                           // commands that somebody should be asked about are not run
	Budget       turn.Budget
	Window       int // tokens
	ShellTimeout time.Duration
	MaxOutput    int // bytes of a tool result
	ReadOnly     []string
	Env          map[string]string
	MemoryMB     int
	AuthorName   string
	AuthorEmail  string
	Door         Door
	Scripted     bool // the answers come from a script: said wherever the result is
	// StopAsked tells, once ctx ended, whether the run is to be stopped for
	// good and not paused; nil for never.
	StopAsked func() bool
}

// Report is how a run ended, for the one who started it.
type Report struct {
	UUID    string
	Outcome task.Outcome
	Reason  string // the outcome's, in the reader's language
	Commit  string
	Branch  string
	Files   []string
	Dir     string // of the context, as the outcome left it
	Tree    string // of the workspace
	Comment string // the text that is posted, or would be

	ToolTime time.Duration
	// Undelivered is why not all of what the outcome promises is delivered yet.
	Undelivered error
}

// run is one execution of a task by this process.
type run struct {
	*Agent
	ledger *contextstore.Context
	job    Job
	lost   bool // the workspace of an earlier owner is gone
	issue  *folder.Issue
	ws     *workspace.Workspace
	shell  sandbox.Runner
	spec   sandbox.Spec // that shell was made of
	tools  *mcp.Manager // nil where there are no servers
	jobs   *tool.Jobs   // commands in the background, which end with the run
	checks []Check
	door   *broker.Broker
	silent bool // the comment on the end may not be posted
	log    *slog.Logger
	report Report
	final  string // the model's last words
	after  []contextstore.CheckRun
	before []contextstore.CheckRun

	unready    *contextstore.CheckRun // the setup command that failed
	unrecorded bool                   // a snapshot failed, and that was logged
}

// maxRounds is how often failing checks send the model back to work.
const maxRounds = 3

// Execute works on a claimed context until it ends, pauses, or cannot go on,
// and makes the transition. The error says that the transition itself failed;
// the context can then be claimed again.
func (a *Agent) Execute(ctx context.Context, c *contextstore.Context) (Report, error) {
	r := &run{Agent: a, ledger: c, log: a.Log, jobs: tool.NewJobs()}
	r.report = Report{UUID: c.UUID()}
	r.log.Info("Task started: "+c.Metadata().TaskKey.String(), "generation", c.State().Generation)
	ctx, cancel := r.limited(ctx)
	defer cancel()
	ctx, unwatch := r.watch(ctx)
	defer unwatch()
	err := r.work(ctx)
	defer r.release()
	if errors.Is(err, contextstore.ErrNotOwner) {
		// The run is another's now: whatever is said about it, they say.
		return r.report, errors.Join(err, c.Close())
	}
	posted, read := r.conclude(ctx, err, a.Lang), r.conclude(ctx, err, a.Reader)
	if q, ok := c.Request(); ok && q.Action == contextstore.Stop && posted.Status == task.Paused {
		// Asked while the run was on its way to a pause: the last word counts.
		posted = task.Outcome{Status: task.Stopped, Reason: a.Lang.T("agent.asked_stop", q.By)}
		read.Reason = a.Reader.T("agent.asked_stop", q.By)
	}
	r.report.Outcome = posted
	r.report.Outcome.Reason = a.Store.Redact(posted.Reason)
	r.report.Reason = a.Store.Redact(read.Reason)
	ctx = context.WithoutCancel(ctx)
	r.speak(ctx)
	err = r.end(ctx)
	r.report.Dir = c.Dir()
	return r.report, err
}

// release lets the workspace be cleaned away, if that is wanted.
func (r *run) release() {
	if r.ws != nil {
		_ = r.ws.Close() // what it holds ends with the process at the latest
	}
}

// errOverTime is the cause of a run that used up budget.max_minutes.
var errOverTime = errors.New("the time of the run is used up")

// limited ends ctx when the run has used up its time, pauses not counted.
func (r *run) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Budget.Time <= 0 {
		return ctx, func() {}
	}
	left := r.Budget.Time - time.Duration(r.ledger.State().ActiveMS)*time.Millisecond
	return context.WithTimeoutCause(ctx, max(left, 0), errOverTime)
}

// lookEvery is how often a run looks whether somebody asks something of it.
const lookEvery = 500 * time.Millisecond

// requestError is the cause of a run's end that somebody asked for by tori
// pause or tori stop.
type requestError struct{ contextstore.Request }

func (e *requestError) Error() string { return string(e.Action) + " was asked by " + e.By }

func (e *requestError) status() task.Status {
	if e.Action == contextstore.Stop {
		return task.Stopped
	}
	return task.Paused
}

// watch ends ctx when the run is asked to pause or to stop.
func (r *run) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		for {
			if q, ok := r.ledger.Request(); ok {
				cancel(&requestError{q})
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
	})
	return ctx, func() { cancel(nil); done.Wait() }
}

// work does everything up to the commit; nil means that the work is done and
// handed over.
func (r *run) work(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer r.jobs.Close()
	defer func() {
		if r.tools != nil {
			r.tools.Close()
		}
	}()
	loop, err := r.loop(ctx)
	if err != nil {
		return err
	}
	defer func() { r.report.ToolTime = loop.ToolTime }()
	for {
		last := loop.Window.Last()
		if !turn.Final(last) {
			if last, err = loop.Run(ctx); err != nil {
				return err
			}
		}
		r.final = last.Content
		again, err := r.verify(ctx, loop)
		if err != nil {
			return err
		}
		if !again {
			return r.handOver(ctx)
		}
	}
}

// prepare reads the issue and opens the workspace; both survive interruptions.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.job, err = ParseJob(r.ledger.Metadata()); err != nil {
		return err
	}
	if err = r.openDoor(); err != nil {
		return err
	}
	if r.issue, err = r.readIssue(); err != nil {
		return err
	}
	r.report.Branch = r.job.Branch
	if err := r.ledger.Activity(contextstore.Initializing, "workspace"); err != nil {
		return err
	}
	dir := r.Store.WorkspaceDir(r.ledger.UUID())
	_, err = os.Stat(dir)
	r.lost = errors.Is(err, fs.ErrNotExist) && r.ledger.LastSeq() > 0
	src, err := workspace.Inspect(ctx, r.job.Repo, workspace.InspectOptions{AllowDirty: true})
	if err != nil {
		return err
	}
	r.ws, err = workspace.Create(ctx, workspace.CreateOptions{Source: src, Dir: dir, Branch: r.job.Branch, Commit: r.job.Base, Hold: r.ledger.WorkLock(), Now: r.Now})
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	r.report.Tree = r.ws.Tree()
	key := r.ledger.Metadata().TaskKey
	spec := sandbox.Spec{Workspace: r.ws.Tree(), GitDir: r.ws.GitDir(), Cache: r.Store.CacheDir(key.Owner + "-" + key.Repo),
		Scratch: filepath.Join(dir, "scratch"), ReadOnly: r.ReadOnly, Env: r.Env, MemoryMB: r.MemoryMB, Hold: r.ledger.WorkLock()}
	if spec, err = r.setup(ctx, spec); err != nil {
		return err
	}
	r.spec = spec
	if r.shell, err = r.Shell(spec); err != nil {
		return err
	}
	r.checks = r.Checks
	if r.checks == nil {
		r.checks, err = detectChecks(r.ws.Tree(), r.CheckTimeout)
	}
	return err
}

// readIssue reads what is asked for; once it stands in the conversation the
// file is no longer needed.
func (r *run) readIssue() (*folder.Issue, error) {
	m := r.ledger.Metadata()
	if r.job.Issue == "" || r.ledger.LastSeq() > 1 {
		return &folder.Issue{ID: m.TaskKey.ID, Title: m.Title, Body: r.job.Message, Author: m.User}, nil
	}
	return folder.ReadIssue(r.job.Issue)
}

// begin runs the checks on the untouched base and appends the first messages,
// unless an earlier owner did.
func (r *run) begin(ctx context.Context) error {
	all, err := r.ledger.Checks()
	if err != nil {
		return err
	}
	r.before = round(all, 0)
	first := []contextstore.Message{{Role: llm.RoleSystem, Content: systemPrompt}, {Role: llm.RoleUser}}
	if r.ledger.LastSeq() >= int64(len(first)) {
		if r.Checks == nil { // detected on the base; what is in the tree now is the model's
			r.checks = nil
			for _, c := range r.before {
				r.checks = append(r.checks, Check{Command: c.Command, Timeout: r.CheckTimeout})
			}
		}
		return nil
	}
	if !r.complete(r.before) {
		if r.before, err = r.runChecks(ctx, 0); err != nil {
			return err
		}
	}
	// What the checks left in the tree is no part of the change.
	if err := r.clear(ctx); err != nil {
		return err
	}
	p, err := r.pictures()
	if err != nil {
		return err
	}
	missing, err := r.missing(ctx)
	if err != nil {
		return err
	}
	first[1].Content = request(r.issue, r.before, min(maxIssueText, r.Window)) + missing + p.tell()
	first[1].Images = p.images
	// A power cut may have left the first of the two alone.
	_, err = r.ledger.Append(first[r.ledger.LastSeq():]...)
	return err
}

func (r *run) loop(ctx context.Context) (*turn.Loop, error) {
	root, err := r.ws.Root()
	if err != nil {
		return nil, err
	}
	// A result takes an eighth of the window at most, those of one answer half.
	limits := tool.Limits{MaxOutput: max(min(r.MaxOutput, r.Window/2), tool.MinMaxOutput), Filter: r.Filter,
		SpillDir: filepath.Join(r.ledger.Dir(), spillDir), Disk: r.Store.FS, NoSync: r.Store.NoSync}
	own := tool.Builtins(tool.Env{Root: root, Dir: r.ws.Tree(), Shell: shell{r.shell}, ShellTimeout: r.ShellTimeout,
		Judge: r.judge, Jobs: r.jobs, Git: r.ws, Masks: r.Masks, Limits: limits})
	before, err := r.readOffered()
	if err != nil {
		return nil, err
	}
	all, err := r.withServers(ctx, limits, budget(before), own)
	if err != nil {
		return nil, err
	}
	tools, err := tool.NewRegistry(limits, r.steps(append(all, absent(before, all)...))...)
	if err != nil {
		return nil, err
	}
	offered, err := r.offer(before, tools)
	if err != nil {
		return nil, err
	}
	fixed := 0
	for _, d := range offered {
		fixed += len(d.Name) + len(d.Description) + len(d.Schema) + 80
	}
	w, err := memory.Open(r.ledger, r.Client.Open(llm.Settings{Tools: offered}), r.Window, fixed)
	if err != nil {
		return nil, err
	}
	loop := &turn.Loop{Ledger: r.ledger, Window: w, Tools: tools, Budget: r.Budget, Log: r.log, Now: r.Now, Scripted: r.Scripted, MaxResults: 2 * r.Window}
	if r.lost {
		r.log.Warn("The workspace was gone and is made anew from the base")
		return loop, loop.Tell(ctx, lostWorkspace)
	}
	if r.ledger.Rebooted() && r.ledger.LastSeq() > 2 {
		return loop, loop.Tell(ctx, restarted+r.sinceLastStep(ctx))
	}
	r.snapshot(ctx, "before the first step of this owner")
	return loop, ctx.Err()
}

// spillDir holds the outputs that were too long for the conversation, below the
// directory of the context.
const spillDir = "spill"

// lostWorkspace tells the model that what it did is gone.
const lostWorkspace = "The workspace was lost while the run was interrupted and has been made anew from the base commit: every change made so far is gone. Do again what is still needed."

// restarted tells the model that the disk may be behind the conversation: the
// files of the workspace are not synced (PROTOCOL "Claim" 5).
const restarted = "The machine was restarted while the run was interrupted: files that were changed shortly before may be missing or incomplete. Look at what you changed last before you build on it."

// shell lets the shell tool run commands in the sandbox.
type shell struct{ runner sandbox.Runner }

// Run runs one command of the model.
func (s shell) Run(ctx context.Context, script, dir string, timeout time.Duration, out io.Writer) (tool.ShellExit, error) {
	e, err := s.runner.Run(ctx, sandbox.Command{Script: script, Dir: dir, Timeout: timeout, Output: out})
	return tool.ShellExit{Code: e.Code, TimedOut: e.TimedOut, Signal: e.Signal, Duration: e.Duration}, err
}

// verify runs the checks and decides: the work is done (false), the model must
// go on (true), or the run has failed.
func (r *run) verify(ctx context.Context, loop *turn.Loop) (again bool, err error) {
	all, err := r.ledger.Checks()
	if err != nil {
		return false, err
	}
	n := 1
	for len(r.checks) > 0 && r.complete(round(all, n)) {
		n++
	}
	// What still runs would change the tree under the commit and the checks.
	if n := r.jobs.Stop(); n > 0 {
		r.log.Info("Background jobs stopped before the checks", "jobs", n)
	}
	if err := r.settle(ctx, loop.Window.Last().Seq); err != nil {
		return false, err
	}
	if r.after, err = r.runChecks(ctx, n); err != nil {
		return false, err
	}
	if err := r.clear(ctx); err != nil {
		return false, err
	}
	v := judge(r.before, r.after)
	failed := slices.Concat(v.broken, v.red)
	switch {
	case len(failed) == 0:
		return false, nil
	case n < maxRounds && (len(v.broken) > 0 || n == 1):
		return true, loop.Tell(ctx, feedback(failed))
	case len(v.broken) > 0:
		return false, &checksError{"agent.checks_failed", v.broken}
	case len(r.report.Files) == 0:
		return false, &checksError{"agent.nothing_done", v.red}
	}
	return false, nil
}

// settle commits the work up to an answer before the checks run, so that what
// they leave behind stays out, also where an earlier owner was interrupted
// among them. Then the tree is what the commit holds: repositories inside it
// that git does not take are gone, so that the checks judge what is handed over.
func (r *run) settle(ctx context.Context, seq int64) (err error) {
	st := r.ledger.State()
	left, err := r.ws.Nested(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		r.log.Warn("Repositories inside the workspace are not part of the commit", "paths", workspace.Paths(left[:min(len(left), 20)]), "all", len(left))
	}
	if st.CommittedSeq == seq {
		r.report.Commit = st.Commit
	} else {
		if r.report.Commit, err = r.commit(ctx); err != nil {
			return err
		}
		if err := r.ledger.Committed(seq, r.report.Commit); err != nil {
			return err
		}
	}
	if err := r.clear(ctx); err != nil {
		return err
	}
	changes, err := r.ws.ChangedFiles(ctx)
	r.report.Files = workspace.Paths(changes)
	return err
}

// clear takes the tree back to the last commit, where checks have been or will be run.
func (r *run) clear(ctx context.Context) error {
	if len(r.checks) == 0 {
		return nil
	}
	return r.ws.Restore(ctx)
}

// checksError ends a run whose checks do not pass.
type checksError struct {
	key  string
	runs []contextstore.CheckRun
}

func (e *checksError) Error() string { return i18n.English.T(e.key, commands(e.runs)) }
