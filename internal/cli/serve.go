package cli

import (
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
)

type serveCmd struct {
	Once             bool   `help:"${once_help}"`
	Role             string `placeholder:"ROLE" help:"${role_help}"`
	Model            string `placeholder:"PROVIDER/MODEL" help:"${model_help}"`
	LocalOnly        bool   `help:"${local_only_help}"`
	Script           string `placeholder:"FILE" help:"${script_help}"`
	AllowUnsandboxed bool   `help:"${allow_unsandboxed_help}"`
	Quiet            bool   `short:"q" help:"${quiet_help}"`
	place            `embed:""`
}

// Run takes work from the watched forges until it is told to end.
func (r serveCmd) Run(c *console) error {
	switch {
	case r.Script != "" && (r.Model != "" || r.Role != ""):
		return usage(i18n.E("app.script_and_model"))
	case r.Model != "" && r.Role != "":
		return usage(i18n.E("app.role_and_model"))
	}
	ctx, done := c.ended()
	defer done()
	env, err := c.env(c.say)
	if err != nil {
		return err
	}
	err = app.Serve(ctx, env, app.ServeOptions{BaseDir: r.BaseDir, Config: r.Config, Role: r.Role, Model: r.Model, Script: r.Script,
		LocalOnly: r.LocalOnly, AllowUnsandboxed: r.AllowUnsandboxed, Quiet: r.Quiet, Once: r.Once}, func(s app.ServeStarted) {
		c.say("cli.serving", strings.Join(s.Patterns, ", "), strings.Join(s.Sources, ", "))
		if s.Listen != "" {
			c.say("cli.serving_at", s.Listen)
		}
	})
	var bad *app.ConfigError
	if errors.As(err, &bad) {
		return usage(bad.Err)
	}
	if owing := (*app.UndeliveredError)(nil); errors.As(err, &owing) {
		return &exitError{exitPaused, err}
	}
	switch {
	case err != nil:
	case r.Once && ctx.Err() == nil:
		c.say("cli.served_once")
	default:
		c.say("cli.served")
	}
	return err
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
