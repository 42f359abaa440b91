package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

type runCmd struct {
	Repo             string `placeholder:"PATH" help:"${repo_help}"`
	Issue            string `placeholder:"ISSUE.md" xor:"what" help:"${issue_help}"`
	Message          string `placeholder:"TEXT" xor:"what" help:"${message_help}"`
	Event            string `placeholder:"FILE" xor:"what" help:"${event_help}"`
	Resume           string `placeholder:"UUID" help:"${resume_help}"`
	Role             string `placeholder:"ROLE" help:"${role_help}"`
	Model            string `placeholder:"PROVIDER/MODEL" help:"${model_help}"`
	LocalOnly        bool   `help:"${local_only_help}"`
	Script           string `placeholder:"FILE" help:"${script_help}"`
	Record           string `placeholder:"FILE" help:"${record_help}"`
	AllowUnsandboxed bool   `help:"${allow_unsandboxed_help}"`
	AllowDirty       bool   `help:"${allow_dirty_help}"`
	Quiet            bool   `short:"q" help:"${quiet_help}"`
	Stats            string `hidden:"" placeholder:"FILE" help:"${stats_help}"`
	place            `embed:""`

	Image []string `placeholder:"FILE" sep:"none" help:"${image_help}"`
}

// Run carries an issue to its end.
func (r runCmd) Run(c *console) error {
	switch {
	case r.Event != "" && (r.Repo != "" || r.Resume != "" || len(r.Image) > 0 || r.Record != "" || r.AllowDirty):
		return usage(i18n.E("cli.event_alone"))
	case r.Resume != "" && (r.Repo != "" || r.Issue != "" || r.Message != ""):
		return usage(i18n.E("cli.resume_alone"))
	case r.Resume != "" && len(r.Image) > 0:
		return usage(i18n.E("image.with_resume"))
	case r.Resume == "" && r.Event == "" && (r.Repo == "" || r.Issue == "" && r.Message == ""):
		return usage(i18n.E("cli.run_needs"))
	case r.Script != "" && (r.Model != "" || r.Role != ""):
		return usage(i18n.E("app.script_and_model"))
	case r.Model != "" && r.Role != "":
		return usage(i18n.E("app.role_and_model"))
	}
	if r.Event != "" {
		return r.event(c)
	}
	return c.run(app.RunOptions{Repo: r.Repo, Issue: r.Issue, Message: r.Message, Images: r.Image, Resume: r.Resume, BaseDir: r.BaseDir, Config: r.Config,
		Role: r.Role, Model: r.Model, LocalOnly: r.LocalOnly, Script: r.Script, Record: r.Record, AllowUnsandboxed: r.AllowUnsandboxed, AllowDirty: r.AllowDirty, Quiet: r.Quiet}, runHooks{stats: r.Stats})
}

// event works on the item that an event of a CI job is about, and ends as its run did.
func (r runCmd) event(c *console) error {
	var last atomic.Pointer[agent.Report]
	err := c.served(app.ServeOptions{BaseDir: r.BaseDir, Config: r.Config, Role: r.Role, Model: r.Model, Script: r.Script, LocalOnly: r.LocalOnly,
		AllowUnsandboxed: r.AllowUnsandboxed, Quiet: r.Quiet, Once: true, Event: r.Event, Ended: func(report agent.Report) { last.Store(&report) }})
	report := last.Load()
	if err != nil || report == nil {
		return err
	}
	return c.told(*report, app.RunOptions{BaseDir: r.BaseDir, Config: r.Config}, runHooks{})
}

// runHooks are what a verb does around a run.
type runHooks struct {
	after func(agent.Report) // before the last line
	stats string             // file that gets what the run cost
}

// run executes a run under Ctrl-C and prints how it ended; its last line says
// which of completed, failed, stopped or paused it was, and why.
func (c *console) run(opt app.RunOptions, hooks runHooks) error {
	start := time.Now()
	watch := c.live(opt.Quiet) // through which the log goes, too
	env, err := c.env(c.say)
	if err != nil {
		return err
	}
	var stats app.Stats
	var uuid atomic.Pointer[string]
	ctx, stopAsked, done := c.interruptible(&uuid)
	defer done()
	env.StopAsked, env.Stats, env.Watch = stopAsked, &stats, watch
	env.Started = func(id string) { uuid.Store(&id); c.say("cli.started", id) }
	ended, told := false, error(nil)
	env.Ended = func(report agent.Report) {
		uuid.Store(nil) // nothing is left that Ctrl-C could pause
		if hooks.stats != "" {
			told = writeStats(hooks.stats, stats, time.Since(start))
		}
		ended, told = true, cmp.Or(told, c.told(report, opt, hooks))
	}
	report, err := app.Run(ctx, env, opt)
	if ended {
		return told
	}
	var bad *app.ConfigError
	switch {
	case errors.As(err, &bad) && ctx.Err() == nil:
		return usage(bad.Err)
	case errors.Is(err, contextstore.ErrBusy), errors.As(err, new(*contextstore.NoSpaceError)), errors.As(err, new(*contextstore.OrphansError)):
		return usage(err)
	case agent.Resumable(err):
		c.say("cli.resume_with", *uuid.Load()+opt.Where())
		c.say("cli.end_paused", c.masked(err))
		return &exitError{code: exitPaused}
	case err != nil && ctx.Err() != nil && uuid.Load() == nil && opt.Resume != "":
		return &exitError{exitPaused, i18n.E("cli.interrupted_resume")}
	case err != nil && ctx.Err() != nil && uuid.Load() == nil:
		return &exitError{exitStopped, i18n.E("cli.interrupted_early")}
	case err != nil:
		return err
	}
	env.Ended(report)
	return told
}

// told prints how a run ended, and returns its exit code as an error.
func (c *console) told(report agent.Report, opt app.RunOptions, hooks runHooks) error {
	c.conclusion(report, opt.Where())
	if hooks.after != nil {
		hooks.after(report)
	}
	if report.Undelivered != nil {
		c.say("cli.undelivered", c.masked(report.Undelivered))
		c.say("cli.deliver_with", contextstore.Short(report.UUID)+opt.Where())
	}
	c.say("cli.end_"+string(report.Outcome.Status), report.Reason)
	code := exitCode(report.Outcome.Status)
	if code == exitOK && report.Undelivered != nil {
		code = exitPaused
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

// conclusion prints what a run leaves behind.
func (c *console) conclusion(r agent.Report, where string) {
	if r.Outcome.Status == task.Completed && r.Commit != "" {
		c.say("cli.branch", r.Branch, r.Commit)
		for i, f := range r.Files {
			if i == 10 {
				_, _ = fmt.Fprintf(c.out, "  … +%d\n", len(r.Files)-i)
				break
			}
			_, _ = fmt.Fprintln(c.out, "  "+f)
		}
	}
	if r.Dir == "" {
		return
	}
	c.say("cli.files_at", r.Dir, contextstore.Short(r.UUID)+where)
	if q := r.Question; q != nil && r.Outcome.Status == task.AwaitingApproval {
		c.say("cli.question", "  "+strings.ReplaceAll(c.sanitizer().String(c.lang.Translate(strings.Join(q.Questions, "\n"))), "\n", "\n  "))
		c.say("cli.answer_with", contextstore.Short(r.UUID)+where, contextstore.Short(r.UUID)+where)
		if !q.Deadline.IsZero() {
			until := "cli.answer_until"
			if q.Confirm {
				until = "cli.answer_until_not"
			}
			c.say(until, q.Deadline.Format(time.RFC3339))
		}
	}
	if r.Outcome.Status == task.Paused {
		c.say("cli.resume_with", contextstore.Short(r.UUID)+where)
	}
}

// sameKey is within what time two SIGINTs are one key press: a terminal and a
// wrapper may each deliver it.
const sameKey = 150 * time.Millisecond

// interruptible is a context that the first Ctrl-C (or SIGTERM) cancels, which
// pauses the run; a second Ctrl-C asks that it be stopped for good.
func (c *console) interruptible(uuid *atomic.Pointer[string]) (ctx context.Context, stopAsked func() bool, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	var stop atomic.Bool
	finished := make(chan struct{})
	go func() {
		var first time.Time
		for n := 0; ; n++ {
			select {
			case <-finished:
				return
			case s := <-signals:
				if n == 0 {
					first = time.Now()
				}
				if n > 0 && s == syscall.SIGINT && time.Since(first) < sameKey {
					continue
				}
				if n > 0 && s == syscall.SIGINT {
					stop.Store(true)
					_, _ = fmt.Fprintln(c.err, c.lang.T("cli.stopping"))
				} else if n == 0 && uuid.Load() != nil {
					_, _ = fmt.Fprintln(c.err, c.lang.T("cli.pausing"))
				}
				cancel()
			}
		}
	}()
	return ctx, stop.Load, func() {
		signal.Stop(signals)
		close(finished)
		cancel()
	}
}

// writeStats writes what a run cost this process as one JSON object.
func writeStats(path string, s app.Stats, wall time.Duration) error {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err
	}
	b, err := json.Marshal(struct {
		app.Stats
		User   int64 `json:"user_us"`
		System int64 `json:"system_us"`
		RSS    int64 `json:"max_rss_kb"`
		Wall   int64 `json:"wall_us"`
	}{s, u.Utime.Nano() / 1000, u.Stime.Nano() / 1000, u.Maxrss, wall.Microseconds()})
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}
