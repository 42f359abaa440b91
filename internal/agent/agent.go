// Package agent carries one task from its start to its end: workspace, checks before, turns,
// checks after, commit, proposal, comment, and the one transition. The outcome that it states
// is what happened.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/project"
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

	Ask *Ask `json:"ask,omitempty"` // of a run on a forge, which has none of the paths above

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
	Project      project.Options
	CheckTimeout time.Duration
	Setup        []workspace.SetupCommand              // run before the model's first turn
	Registries   []string                              // hosts that they may reach
	Network      sandbox.Network                       // of the model's commands and the checks; others reach their hosts by the same way out
	Proxy        func(*http.Request) (*url.URL, error) // that the machine's environment names for a request; nil for none
	CAFile       string                                // certificates that commands with a network trust besides the machine's; "" for none
	Servers      []Server                              // of further tools
	Access       []tool.Access                         // rules for tools, each of which has to allow one
	Commands     func() (*policy.Policy, error)        // rules for the shell's commands, asked for with the first; nil judges none
	RefuseAsked  bool                                  // commands that somebody should be asked about are not run
	Budget       turn.Budget
	DayLimits    contextstore.DayLimits // of all runs together
	Window       int                    // tokens
	Memory       memory.Policy          // what else decides about the window; what belongs to a run is filled in
	ShellTimeout time.Duration
	MaxOutput    int // bytes of a tool result
	ReadOnly     []string
	Env          map[string]string
	MemoryMB     int
	MaxFileMB    int // of a file that is committed; 0 for the default of workspace.Box
	AuthorName   string
	AuthorEmail  string
	Door         Door

	Hosts         map[string]*Host // the forges, by the source of task keys; none for a folder
	BranchPattern string
	// Signals hands out what was said about a task since it was asked the last
	// time; nil where nobody listens.
	Signals     func(task.Key) []forge.Comment
	Progress    Progress
	Scripted    bool // the answers come from a script: said wherever the result is
	Inheritance memory.Inheritance
	Strict      func(string) string // masks secrets and data of people; nil masks no more than the store does
	Learn       func(...string)     // has secrets that come while the run goes on masked as well; see mcp.Options
	// Notice tells the user of a run on this machine what they should know as it
	// begins; nil for nobody.
	Notice func(key string, args ...any)
	// Summarizer is the model that writes final summaries, with its window in
	// tokens; nil has them put together from the records.
	Summarizer func(ctx context.Context) (client llm.Client, window int, err error)
	Planning   *Planning // nil runs the plain loop of model and tools
	Asking     *Asking   // nil where nobody can be asked
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

	Question *planning.Question // that people owe an answer to; nil where none is waited for

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
	base   sandbox.Spec   // of all commands, but for their build caches
	shell  sandbox.Runner // of the model's, nil before the first of them
	beside beside

	opening  sync.Mutex // shell, until the loop has ended
	apart    *workspace.Apart
	baseline *baseline
	tools    *mcp.Manager // nil where there are no servers
	withheld []mcp.Drift  // tools of theirs that are not what was accepted, as the run took them up
	jobs     *tool.Jobs   // commands in the background, which end with the run
	checks   []Check
	notRun   []project.Check // that were detected, and whose programs are not there
	needs    needs
	about    func(task string) string // what the model is told of the project as it begins; nil for nothing
	door     *broker.Broker
	silent   bool // the comment on the end may not be posted

	Host      *Host // nil for a folder
	place     place // where the work goes on
	asked     *forge.Item
	trusted   *trust
	proposal  *pullEffect
	hide      func()               // ends the showing of the progress; nil where there is none
	tracker   *progress.Tracker    // what happened, for who watches; nil before prepare is done
	handed    bool                 // the branch goes out
	barred    bool                 // the forge does not let it
	known     map[string]time.Time // comments that were heard, in which edition
	inbox     []forge.Comment      // that are to be judged
	telling   []forge.Comment      // that the model is being told
	toldAfter int64                // the message that it is told them after
	caughtUp  bool                 // with what was said while nobody worked
	ear       folder.Ear           // where people speak of an issue in a folder
	weighty   bool                 // somebody who counts said something
	objecting bool                 // people are heard after the model's last word
	strangers int                  // comments that nobody vouches for that were told
	unheard   []string             // addresses of what was said too late

	deafUntil time.Time                        // the forge is not asked what was said before that
	front     memory.Beginning                 // how far the first messages are
	heritage  atomic.Pointer[memory.Inherited] // what an earlier run left
	askedBy   string                           // who paused or stopped the run
	recorded  string                           // why it ended, as the record says it

	log     *slog.Logger
	network sandbox.Network // with the file of certificates
	report  Report
	final   string          // the model's last words
	days    *turn.DayBudget // nil where no day has a limit
	rests   bool            // a limit of the day pauses the run
	cutOff  bool            // a budget ended the run, and the model wrote no handover
	owes    bool            // a model is to sum the run up, once it is over
	left    workspace.LeftOut
	review  review
	after   []contextstore.CheckRun
	before  []contextstore.CheckRun

	history *planning.History                    // nil where no plan leads the run
	lessons *planning.Past                       // of earlier runs; nil for none
	led     atomic.Pointer[planning.Coordinator] // what leads it, once it does
	was     *planning.View                       // how far an earlier owner came; nil where led says it, or nobody knows
	judged  planning.Result                      // what the verification came to

	questions questions            // that people were asked
	asking    *contextstore.Effect // the comment that asks the open one

	unready    *contextstore.CheckRun // the setup command that failed
	unrecorded string                 // why the last snapshot failed, "" where it did not
	refused    string                 // why git refused the tree for a commit, as the model was told
}

// maxRounds is how often failing checks send the model back to work.
const maxRounds = 3

// Execute works on a claimed context until it ends, pauses, or cannot go on,
// and makes the transition. The error says that the transition itself failed;
// the context can then be claimed again.
func (a *Agent) Execute(ctx context.Context, c *contextstore.Context) (Report, error) {
	r := &run{Agent: a, ledger: c, log: a.Log, jobs: tool.NewJobs()}
	r.report = Report{UUID: c.UUID()}
	r.Host = a.Hosts[c.Metadata().TaskKey.Source]
	r.log.Info("Task started: "+c.Metadata().TaskKey.String(), "generation", c.State().Generation)
	process := ctx
	ctx, cancel := r.limited(ctx)
	defer cancel()
	ctx, unwatch := r.watch(ctx)
	defer unwatch()
	err := r.work(ctx)
	if r.hide != nil {
		r.hide() // the outbox posts what comes after
	}
	defer r.release()
	if errors.Is(err, contextstore.ErrNotOwner) {
		// Another process owns the run now, and reports on it.
		return r.report, errors.Join(err, c.Close())
	}
	r.recount()
	if nerr := r.toldLast(); nerr != nil {
		r.log.Warn("What was told may be told again: " + nerr.Error())
	}
	r.concludes(func(l i18n.Lang) task.Outcome { return r.conclude(ctx, err, l) })
	if q, ok := c.Request(); ok && q.Action == contextstore.Stop && r.report.Outcome.Status == task.Paused {
		// A stop was requested while the run was being paused: it counts.
		r.askedBy = q.By
		r.concludes(func(l i18n.Lang) task.Outcome {
			return task.Outcome{Status: task.Stopped, Reason: l.T("agent.asked_stop", q.By)}
		})
	}
	r.barred = errors.As(err, new(*barredError))
	ended := errors.Join(err, context.Cause(ctx))
	looking, done := lastLook(ctx)
	defer done()
	ctx = context.WithoutCancel(ctx)
	if r.report.Outcome.Status == task.Queued {
		if werr := r.Waiting(ctx, c, r.report.Outcome.Reason); werr != nil {
			r.log.Warn("Why the run waits is not told: " + r.Store.Redact(werr.Error()))
		}
	}
	r.overheard(ctx)
	r.noteHandover(ended)
	r.speak(ctx, looking)
	if r.report.Outcome.Status.Final() {
		r.report.Outcome.Summary = r.facts() + r.lastWords() + r.learned()
		r.owes = r.owesSummary(process, ended)
	}
	r.settleDay(ctx)
	if err = r.end(ctx); err == nil {
		r.showEnd(ctx)
	}
	r.report.Dir = c.Dir()
	return r.report, err
}

// lastLookTime is how long git may look at the tree, or save it, once somebody
// wants the run ended.
const lastLookTime = 10 * time.Second

// lastLook is the context of what git does once a run ended with ctx: where
// somebody stopped it, they do not wait for long.
func lastLook(ctx context.Context) (context.Context, context.CancelFunc) {
	end := context.WithoutCancel(ctx)
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errOverTime) {
		return end, func() {}
	}
	return context.WithTimeout(end, lastLookTime)
}

// release lets the workspace be cleaned away, if that is wanted.
func (r *run) release() {
	if r.ws == nil {
		return
	}
	if r.report.Outcome.Status.Final() {
		err := r.ws.DropCaches("")
		if r.apart != nil {
			err = errors.Join(err, r.apart.Close(true))
		}
		if err != nil {
			r.log.Warn("Not all could be cleaned up: " + err.Error())
		}
	}
	_ = r.ws.Close() // what it holds ends with the process at the latest
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

// lookEvery is how often a run looks for a request to pause or to stop it.
const lookEvery = 500 * time.Millisecond

// requestError is the cause that ends a run's context after tori pause or tori stop.
type requestError struct{ contextstore.Request }

func (e *requestError) Error() string { return string(e.Action) + " was asked by " + e.By }

// PauseFor is the cause that ends a run's context to pause it; by is who or what asked.
func PauseFor(by string) error {
	return &requestError{contextstore.Request{Action: contextstore.Pause, By: by}}
}

func (e *requestError) status() task.Status {
	if e.Action == contextstore.Stop {
		return task.Stopped
	}
	return task.Paused
}

// ErrShutdown is the cause that ends a run's context where the process shuts down:
// the run goes back into the queue.
var ErrShutdown = errors.New("the process ends")

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
	if r.plans() {
		if err := r.openHistory(); err != nil {
			return err
		}
		defer func() {
			if err := r.history.Close(); err != nil {
				r.log.Warn("The planning history: " + err.Error())
			}
		}()
	}
	if err := r.track(); err != nil {
		return err
	}
	if !r.front.Whole { // else what was shown stays until the plan is known again
		r.hide = r.showProgress(ctx)
	}
	if err := r.equip(ctx); err != nil {
		return err
	}
	if err := r.findBase(ctx); err != nil {
		return err
	}
	defer r.dropBase()
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.wasTold(); err != nil {
		return err
	}
	defer func() {
		if r.shell != nil {
			_ = r.shell.Close() // what the model's commands left
		}
	}()
	defer r.jobs.Close()
	defer func() {
		if r.tools != nil {
			r.tools.Close()
		}
	}()
	lead, loop, err := r.lead(ctx)
	if err != nil {
		return err
	}
	defer func() { r.report.ToolTime = loop.ToolTime }()
	if r.hide == nil {
		r.hide = r.showProgress(ctx)
	}
	for {
		if r.final, err = lead.Run(ctx); err != nil {
			return err
		}
		if more, err := r.objected(ctx, loop); err != nil {
			return err
		} else if more {
			continue // somebody said something: that is not the last word
		}
		if more, err := r.verify(ctx, loop); err != nil {
			return err
		} else if more {
			continue
		}
		if r.judged, err = lead.Verify(ctx); err != nil {
			return err
		} else if r.judged.Again {
			continue
		}
		if open := r.judged.Open; len(open) > 0 && !r.Planning.Complete {
			return &openPointsError{open}
		}
		if more, err := r.handOver(ctx, loop); err != nil || !more {
			return err
		}
	}
}

// objected tells the model what was said since its answer, and reports whether
// any of it keeps the answer from being the last one: strangers' words do not.
func (r *run) objected(ctx context.Context, loop *turn.Loop) (bool, error) {
	r.weighty, r.objecting = false, true
	_, err := loop.Hear(ctx)
	r.objecting = false
	return r.weighty && err == nil, err
}

// prepare reads the issue and opens the workspace; both survive interruptions.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.job, err = ParseJob(r.ledger.Metadata()); err != nil {
		return err
	}
	if err := r.ledger.Activity(contextstore.Initializing, "workspace"); err != nil {
		return err
	}
	if r.questions, err = readQuestions(r.ledger.Dir()); err != nil {
		return fmt.Errorf("read what was asked: %w", err)
	}
	if err := errors.Join(r.granted(), r.readHeard(), r.begun()); err != nil {
		return err
	}
	if err := r.openDay(ctx); err != nil {
		return err
	}
	dir := r.Store.WorkspaceDir(r.ledger.UUID())
	_, err = os.Stat(dir)
	r.lost = errors.Is(err, fs.ErrNotExist) && r.ledger.LastSeq() > 0
	switch {
	case r.job.Ask == nil:
		err = r.openLocal(ctx, dir)
	case r.Host == nil:
		_, err = r.host(r.ledger.Metadata().TaskKey)
	default:
		err = r.openHosted(ctx, dir)
	}
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	r.report.Tree, r.report.Branch = r.ws.Tree(), r.place.Branch
	if err = r.openDoor(); err != nil {
		return err
	}
	return nil
}

// equip sets up the workspace, and reads what the checks and the project say.
func (r *run) equip(ctx context.Context) (err error) {
	dir := r.Store.WorkspaceDir(r.ledger.UUID())
	spec := sandbox.Spec{Workspace: r.ws.Tree(), GitDir: r.ws.GitDir(), Scratch: filepath.Join(dir, "scratch"),
		ReadOnly: r.ReadOnly, Env: r.Env, MemoryMB: r.MemoryMB, Together: &sandbox.Together{}, Hold: r.ledger.WorkLock()}
	if r.network = r.Network; len(r.Network.AllowHosts)+len(r.Registries)+len(r.Servers) > 0 {
		if r.network.CAFile, err = sandbox.Certificates(filepath.Join(dir, "certificates.pem"), r.CAFile); err != nil {
			return &taskError{err}
		}
		if r.CAFile != "" {
			spec.ReadOnly = append(slices.Clone(spec.ReadOnly), r.network.CAFile)
		}
	}
	spec.Network = online(r.network, r.Network.AllowHosts, "sandbox.allow_hosts", r.log, r.Reader)
	r.base = spec
	p, err := r.readProject(ctx)
	if err != nil {
		return err
	}
	if r.base, err = r.setup(ctx, spec, p); err != nil {
		return err
	}
	all, err := r.ledger.Checks()
	if err != nil {
		return err
	}
	r.before = round(all, 0)
	return r.learn(ctx, p)
}

// openLocal opens the workspace of a run on a repository of this machine.
func (r *run) openLocal(ctx context.Context, dir string) (err error) {
	r.place = place{Branch: r.job.Branch, Base: r.job.Base}
	if r.issue, err = r.readIssue(); err != nil {
		return err
	}
	src, err := workspace.Inspect(ctx, r.job.Repo, workspace.InspectOptions{NoStatus: true})
	if err != nil {
		return err
	}
	r.ws, err = workspace.Create(ctx, workspace.CreateOptions{Source: src, Dir: dir, Branch: r.job.Branch, Commit: r.job.Base, Box: r.box(), Rest: r.beside.still, Hold: r.ledger.WorkLock(), Now: r.Now})
	return err
}

// box is where git looks at the tree of a workspace.
func (a *Agent) box() workspace.Box {
	return workspace.Box{Shell: a.Shell, MemoryMB: a.MemoryMB, MaxFileMB: a.MaxFileMB}
}

// readIssue reads what is asked for; once it stands in the conversation the
// file is no longer needed.
func (r *run) readIssue() (*folder.Issue, error) {
	m := r.ledger.Metadata()
	if r.job.Issue == "" || r.front.Whole {
		return &folder.Issue{ID: m.TaskKey.ID, Title: m.Title, Body: r.job.Message, Author: m.User}, nil
	}
	return folder.ReadIssue(r.job.Issue)
}

// begin appends the first messages, unless an earlier owner did.
func (r *run) begin(ctx context.Context) (err error) {
	if r.front.Whole {
		return nil
	}
	p, err := r.pictures()
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
	var m matter
	before := heardBy(in)
	if err = r.hears(); err != nil {
		return err
	}
	if r.Host == nil {
		m, err = r.local(before)
	} else {
		m, err = r.hosted(ctx, before)
	}
	if err != nil {
		return err
	}
	if m.pull != nil && m.pull.Conflicts {
		if m.conflicts, err = r.merge(ctx); err != nil {
			return err
		}
	}
	r.caughtUp = true
	first := firstMessages(in, r.rules(m.title+"\n"+m.body), contextstore.Message{Role: llm.RoleUser, Images: p.images,
		Content: request(m, r.checksTold(), r.maxText()) + missing + p.tell()})
	// After a power cut some of them may be there already.
	if _, err = r.ledger.Append(first[min(r.ledger.LastSeq(), int64(len(first)-1)):]...); err != nil {
		return err
	}
	r.front = memory.Beginning{Size: len(first), Heir: in != nil, Whole: true}
	if text := r.notShown(r.Reader); text != "" {
		r.log.Warn(text)
	}
	return nil
}
