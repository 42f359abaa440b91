package agent

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/project"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/confined"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/turn"
)

// Agent runs one task. Its fields are set once and not changed.
type Agent struct {
	Store    *contextstore.Store
	Client   llm.Client
	Scripted bool         // the answers come from a script: said wherever the result is
	Log      *slog.Logger // of the one run
	Now      func() time.Time
	Lang     i18n.Lang // of what is posted and stored
	Reader   i18n.Lang // of who started the run

	Delivery    *delivery.Service
	Dialogue    dialogue.Settings
	Masking     Masking
	Sandbox     Sandbox
	Project     Project
	Tools       Tools
	Limits      Limits
	Window      Window
	Inheritance memory.Inheritance
	DraftFirst  bool      // an issue's draft is opened at once, and the work goes on as its task
	Similar     Similar   // nil looks for no similar runs
	Planning    *Planning // nil runs the plain loop of model and tools
	Progress    Progress
	Wishes      string // of the user, for the system prompt; "" for none

	// Notice tells the user of a run on this machine what they should know as it
	// begins; nil for nobody.
	Notice func(key string, args ...any)
	// StopAsked tells, once ctx ended, whether the run is to be stopped for
	// good and not paused; nil for never.
	StopAsked func() bool
}

// Similar finds runs that ended, on other tasks of a task's repository, that are like what is asked
// for, the likest first: at most n.
type Similar func(ctx context.Context, k task.Key, title, body string, n int) ([]contextstore.View, error)

// Masking is what must not be written as it is.
type Masking struct {
	Masks  func(string) (token string, ok bool)
	Filter func(io.Writer) io.WriteCloser // masks a text that is cut before it is stored
	Strict func(string) string            // masks secrets and data of people; nil masks no more than the store does
	Learn  func(...string)                // has secrets that come while the run goes on masked as well; see mcp.Options
}

// Sandbox is where commands run.
type Sandbox struct {
	Shell        func(sandbox.Spec) (sandbox.Runner, error)
	ShellTimeout time.Duration
	ReadOnly     []string
	Env          map[string]string
	MemoryMB     int
	Network      sandbox.Network                       // of the model's commands and the checks; others reach their hosts by the same way out
	Proxy        func(*http.Request) (*url.URL, error) // that the machine's environment names for a request; nil for none
	CAFile       string                                // certificates that commands with a network trust besides the machine's; "" for none
}

// Project is what is to be done with the project besides the work.
type Project struct {
	Options project.Options // what is read of it
	checkrun.Settings
}

// Tools are what the model may use.
type Tools struct {
	Servers     []confined.Server              // of further tools
	Access      []tool.Access                  // rules for tools, each of which has to allow one
	Commands    func() (*policy.Policy, error) // rules for the shell's commands, asked for with the first; nil judges none
	RefuseAsked bool                           // commands that somebody should be asked about are not run
	MaxOutput   int                            // bytes of a result
}

// Limits are what a run may take.
type Limits struct {
	Run turn.Budget
	Day contextstore.DayLimits // of all runs together
}

// Window is what the model sees of the run.
type Window struct {
	Tokens int
	Memory memory.Policy // what else decides about the window; what belongs to a run is filled in
	// Summarizer is the model that writes final summaries, with its window in
	// tokens; nil has them put together from the records.
	Summarizer func(ctx context.Context) (client llm.Client, window int, err error)
}

// Planning is how runs are led: by a plan.
type Planning struct {
	Settings  planning.Settings
	Prompts   planning.Prompts
	Directory string               // of the histories; "" keeps each in its context
	Inherit   planning.Inheritance // what is taken over from earlier runs
	Complete  bool                 // a run that leaves points open completes with them, and does not fail
}

// Progress is how the progress of runs is shown.
type Progress struct {
	Interval   time.Duration // between edits of the comment or the file; 0 for neither
	MaxHistory int           // entries
	Notify     progress.Notify
	// Watch shows a run on this machine until stop is called: report tells how far
	// it is, and may be called from any goroutine. nil for nobody.
	Watch func(report func() progress.Report) (stop func())
}
