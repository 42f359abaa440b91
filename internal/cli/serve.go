package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

type serveCmd struct {
	Once      bool `help:"${once_help}"`
	Check     bool `help:"${serve_check_help}"`
	Fix       bool `help:"${serve_fix_help}"`
	JSON      bool `name:"json" help:"${json_help}"`
	workFlags `embed:""`
}

// workFlags are the flags of what works on runs that others began.
type workFlags struct {
	Role             string `placeholder:"ROLE" help:"${role_help}"`
	Model            string `placeholder:"PROVIDER/MODEL" help:"${model_help}"`
	LocalOnly        bool   `help:"${local_only_help}"`
	Script           string `placeholder:"FILE" help:"${script_help}"`
	AllowUnsandboxed bool   `help:"${allow_unsandboxed_help}"`
	Quiet            bool   `short:"q" help:"${quiet_help}"`
	place            `embed:""`
}

// options are what they ask for.
func (w workFlags) options() (app.ServeOptions, error) {
	switch {
	case w.Script != "" && (w.Model != "" || w.Role != ""):
		return app.ServeOptions{}, usage(i18n.E("app.script_and_model"))
	case w.Model != "" && w.Role != "":
		return app.ServeOptions{}, usage(i18n.E("app.role_and_model"))
	}
	return app.ServeOptions{BaseDir: w.BaseDir, Config: w.Config, Role: w.Role, Model: w.Model, Script: w.Script,
		LocalOnly: w.LocalOnly, AllowUnsandboxed: w.AllowUnsandboxed, Quiet: w.Quiet}, nil
}

type workerCmd struct {
	Listen    string `placeholder:"ADDRESS" help:"${worker_listen_help}"`
	workFlags `embed:""`
}

// Run works on runs until it is told to end.
func (w workerCmd) Run(c *console) error {
	o, err := w.options()
	if err != nil {
		return err
	}
	o.Worker, o.Listen = true, w.Listen
	return c.served(o)
}

// Run takes work from the watched forges until it is told to end.
func (r serveCmd) Run(c *console) error {
	switch {
	case r.Check:
		return r.check(c)
	case r.Fix || r.JSON:
		return usage(i18n.E("setup.fix_alone"))
	}
	o, err := r.options()
	if err != nil {
		return err
	}
	o.Once = r.Once
	return c.served(o)
}

// served takes work until there is none, or until it is told to end.
func (c *console) served(opt app.ServeOptions) error {
	ctx, done := c.ended()
	defer done()
	env, err := c.env(c.say)
	if err != nil {
		return err
	}
	err = app.Serve(ctx, env, opt, func(s app.ServeStarted) {
		says := "cli.serving"
		if opt.Worker {
			says = "cli.working"
		}
		c.say(says, strings.Join(s.Patterns, ", "), strings.Join(s.Sources, ", "))
		if s.Listen != "" {
			c.say("cli.serving_at", s.Listen)
		}
	})
	if owing := (*app.UndeliveredError)(nil); errors.As(err, &owing) {
		return &exitError{exitPaused, err}
	}
	switch {
	case err != nil:
	case opt.Once && ctx.Err() == nil:
		c.say("cli.served_once")
	default:
		c.say("cli.served")
	}
	return err
}

// check looks over what is set up at the forges; exit 1 where something is not in order.
func (r serveCmd) check(c *console) error {
	if r.Once || r.Role != "" || r.Model != "" || r.Script != "" {
		return usage(i18n.E("setup.with_once"))
	}
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		all, err := app.CheckServe(ctx, env, r.Config, r.Fix)
		if err != nil {
			return err
		}
		wrong := 0
		for _, f := range all {
			how := "setup.well"
			switch {
			case !f.OK:
				how = "setup.wrong"
				wrong++
			case f.Fixed:
				how = "setup.fixed"
			}
			if r.JSON {
				err = c.json(f)
			} else {
				_, err = fmt.Fprintf(c.out, "%-30s %-12s %s %s\n", redact.Printable(cmp.Or(f.Repository, f.Source)), f.Part, c.lang.T(how), redact.Printable(f.Text))
			}
			if err != nil {
				return err
			}
		}
		if wrong > 0 {
			return i18n.E("setup.failed", wrong)
		}
		return nil
	})
}

// ended is a context that ends at the first signal to end; the second one ends
// the program at once, which is as good as a kill: nothing is lost.
func (c *console) ended() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	finished := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-finished:
				return
			case s := <-signals:
				switch {
				case first.IsZero():
					first = time.Now()
					_, _ = fmt.Fprintln(c.err, c.lang.T("cli.ending"))
					cancel()
				case s == syscall.SIGINT && time.Since(first) >= sameKey:
					os.Exit(exitPaused)
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(finished)
		cancel()
	}
}
