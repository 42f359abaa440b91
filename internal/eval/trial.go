package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/app"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
)

// trial is one case in one mode.
type trial struct {
	*runner
	c    *Case
	mode Mode
	dir  string
	log  io.Writer
}

// carry makes the repository, has the issue worked on and judges what came of it.
func (t *trial) carry(ctx context.Context) (res Result, err error) {
	res = Result{Case: t.c.Name, Mode: t.mode}
	if err := t.repository(ctx, t.c, t.repo()); err != nil {
		return res, err
	}
	issue := t.issue()
	if err := os.MkdirAll(filepath.Dir(issue), 0o700); err != nil {
		return res, err
	}
	if err := os.WriteFile(issue, t.c.Issue, 0o600); err != nil {
		return res, err
	}
	script, err := t.script()
	if err != nil {
		return res, err
	}
	start := t.o.Env.Now()
	work := t.house
	if t.mode == Bare {
		work = t.bare
	}
	tree := filepath.Join(t.dir, "result")
	err = work(ctx, &res, script, tree)
	res.Millis = t.o.Env.Now().Sub(start).Milliseconds()
	if err != nil || ctx.Err() != nil || res.Outcome != string(task.Completed) {
		return res, err
	}
	if res.Verdict, err = t.judge(ctx, t.c, t.dir, tree); err != nil {
		return res, err
	}
	res.Resolved = res.Verdict.Passed()
	return res, nil
}

func (t *trial) repo() string  { return filepath.Join(t.dir, "repo") }
func (t *trial) issue() string { return filepath.Join(t.dir, "issues", "1-"+t.c.Name+".md") }

// script writes down the case's own answers, where they are to be given instead
// of a model's.
func (t *trial) script() (string, error) {
	if t.o.Script == "" {
		return "", nil
	}
	name, data := t.c.answers(t.o.Script, t.mode)
	path := filepath.Join(t.dir, name)
	return path, os.WriteFile(path, data, 0o600)
}

// house runs the case as tori run does, and lays out what is on its branch.
func (t *trial) house(ctx context.Context, res *Result, script, tree string) error {
	env := t.o.Env
	env.Log, env.Notice, env.Stats = t.log, func(string, ...any) {}, nil
	env.Sanitizer = nil // it is the bench's
	env.Adjust = t.adjust
	env.Started = func(id string) { res.UUID = id }
	opt := t.o.Run
	opt.Repo, opt.Issue, opt.BaseDir, opt.Quiet = t.repo(), t.issue(), filepath.Join(t.dir, "contexts"), true
	if opt.Script = script; script != "" {
		opt.Role, opt.Model = "", ""
	}
	if planned, known := t.planned(script); known {
		env.Adjust = func(cfg *config.Config) {
			t.adjust(cfg)
			cfg.Planning.Enabled = planned
		}
	}
	report, err := app.Run(ctx, env, opt)
	if res.UUID != "" {
		t.recorded(res, opt.BaseDir)
	}
	if err != nil {
		return err
	}
	res.Outcome, res.Reason = string(report.Outcome.Status), report.Reason
	if report.Undelivered != nil {
		return report.Undelivered
	}
	if report.Outcome.Status != task.Completed {
		return nil
	}
	branch := "main" // of a run that changed nothing
	if report.Commit != "" {
		branch = report.Branch
	}
	if err := t.git(ctx, t.dir, "clone", "--quiet", "--template=", "--no-hardlinks", "--single-branch", "--branch", branch, t.repo(), tree); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(tree, ".git"))
}

// planned is whether a plan leads the run, where that is not left to the settings:
// what is written speaks one of the two.
func (t *trial) planned(script string) (yes, known bool) {
	if t.mode == House {
		return strings.HasPrefix(filepath.Base(script), plannedScript), script != ""
	}
	return t.mode == Plan, true
}

// adjust takes back what the settings say of repositories that are not this one.
func (t *trial) adjust(cfg *config.Config) {
	cfg.Planning.Replanning.GoalUnderstanding.MaxClarificationRequests = 0 // nobody is there to answer
	cfg.ContextStorage.Enabled = true
	cfg.ChecksTimeoutSeconds = max(1, min(cfg.ChecksTimeoutSeconds, int(t.c.Timeout/time.Second)))
	cfg.Checks = nil
	cfg.Forget("checks")
	for _, c := range t.c.Checks {
		cfg.Checks = append(cfg.Checks, config.Check{Name: c, Run: c})
	}
	t.setup(t.c, cfg)
}

// recorded fills in what the ledger says of a run.
func (t *trial) recorded(res *Result, base string) {
	v, err := contextstore.Find(base, res.UUID, contextstore.Viewer{Admin: true})
	if err != nil {
		return // it never came so far
	}
	res.Turns, res.ToolCalls, res.Spending = v.State.LLMCallCount, v.State.ToolCallCount, v.State.Spending
	if offered, err := agent.Offered(v.Dir); err == nil { // else it never asked
		res.Estimated, _, _ = memory.ReadBill(v, llm.ToolsBytes(offered)) // what cannot be read was not sent
	}
	last := 0
	_ = v.Tail(contextstore.Checks, -1, func(line []byte) error { // what cannot be read was not run
		var c contextstore.CheckRun
		if json.Unmarshal(line, &c) != nil || c.Setup || c.Round == 0 {
			return nil
		}
		if c.Round > last {
			last, res.Checks = c.Round, Checks{}
		}
		res.Checks.Run++
		if c.Passed() {
			res.Checks.Passed++
		}
		return nil
	})
}

// bare has the minimal loop work in a clone of its own.
func (t *trial) bare(ctx context.Context, res *Result, script, tree string) error {
	workspace := filepath.Join(t.dir, "workspace")
	if err := t.git(ctx, t.dir, "clone", "--quiet", "--template=", "--no-hardlinks", t.repo(), workspace); err != nil {
		return err
	}
	issue, err := folder.ReadIssue(t.issue())
	if err != nil {
		return err
	}
	spec := t.spec(workspace, filepath.Join(t.dir, "bare"))
	if err := t.warm(ctx, t.c, spec.Cache); err != nil {
		return err
	}
	runner, err := t.bench.Shell(spec)
	if err != nil {
		return err
	}
	defer func() { _ = runner.Close() }()
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only names are looked up in it
	l, err := t.loop(ctx, script, root, runner)
	if err != nil {
		return err
	}
	end, err := l.within(ctx, fmt.Sprintf("# %s\n\n%s", issue.Title, issue.Body), t.o.Env.Lang)
	res.Turns, res.ToolCalls, res.Spending = l.taken.LLMCallCount, l.taken.ToolCallCount, l.taken.Spending
	res.Estimated = l.tally.Bill()
	if err != nil {
		return err
	}
	res.Outcome, res.Reason = string(end.status), t.bench.Redact(end.reason)
	if end.status != task.Completed {
		return nil
	}
	return t.result(ctx, runner, workspace, tree)
}

// loop is the minimal loop on the model that would work in the house.
func (t *trial) loop(ctx context.Context, script string, root *os.Root, runner sandbox.Runner) (*loop, error) {
	client, spec, err := t.bench.Client(ctx, script, "tori eval "+t.c.Name)
	if err != nil {
		return nil, err
	}
	tools, err := onlyShell(root, runner, t.bench.Config, t.bench.Filter)
	if err != nil {
		return nil, err
	}
	shell := offered(tools)
	return &loop{conv: client.Open(llm.Settings{Tools: shell}), tools: tools, scripted: t.by.Scripted, tally: memory.NewTally(llm.ToolsBytes(shell)),
		log: slog.New(slog.NewTextHandler(t.log, nil)), budget: t.bench.Budget(&spec)}, nil
}

// result copies what git would commit of a workspace. The workspace's git
// directory was the model's to write, so its git runs in the sandbox.
func (t *trial) result(ctx context.Context, runner sandbox.Runner, workspace, tree string) error {
	var list listing
	e, err := runner.Run(ctx, sandbox.Command{Script: "git ls-files -z --cached --others --exclude-standard", Timeout: defaultTimeout, Output: &list})
	if err != nil {
		return err
	}
	if e.Code != 0 || e.TimedOut || list.over {
		return i18n.E("eval.no_result", t.c.Name)
	}
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return err
	}
	var names []string
	for n := range strings.SplitSeq(string(list.text), "\x00") {
		if plainPath(n) {
			names = append(names, n)
		}
	}
	return copyPlain(workspace, tree, names)
}

// listing is a list of files, of bounded length.
type listing struct {
	text []byte
	over bool
}

func (l *listing) Write(p []byte) (int, error) {
	if len(l.text)+len(p) > maxCase {
		l.over = true
		return len(p), nil
	}
	l.text = append(l.text, p...)
	return len(p), nil
}

// record opens the log of a trial.
func record(dir string, z func(io.Writer) io.WriteCloser) (io.WriteCloser, error) {
	f, err := os.OpenFile(filepath.Join(dir, "run.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &masked{z(f), f}, nil
}

// masked closes a file behind its filter.
type masked struct {
	io.WriteCloser
	file *os.File
}

// Close writes what the filter holds back.
func (m *masked) Close() error {
	return errors.Join(m.WriteCloser.Close(), m.file.Close())
}
