package cli

import (
	"context"
	"errors"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// askCmd is what tori pause, resume and stop take.
type askCmd struct {
	UUID  string `arg:"" help:"${uuid_help}"`
	place `embed:""`

	answer string // to the question that the run waits for; "" for none
}

type (
	pauseCmd struct {
		askCmd `embed:""`
	}
	resumeCmd struct {
		askCmd `embed:""`
	}
	stopCmd struct {
		askCmd `embed:""`
	}
)

// Run pauses a run.
func (p pauseCmd) Run(c *console) error { return p.ask(c, contextstore.Pause) }

// Run puts a paused run back into the queue.
func (r resumeCmd) Run(c *console) error { return r.ask(c, contextstore.Resume) }

// Run stops a run for good.
func (s stopCmd) Run(c *console) error { return s.ask(c, contextstore.Stop) }

func (a askCmd) ask(c *console, do contextstore.Action) error {
	env, err := c.env(c.note)
	if err != nil {
		return err
	}
	uuid, answer, err := app.Ask(context.Background(), env, app.AskOptions{UUID: a.UUID, Action: do, Answer: a.answer, BaseDir: a.BaseDir, Config: a.Config})
	if len(answer.PIDs) > 0 {
		c.say("cli.orphans", answer.PIDs)
	}
	var bad *app.ConfigError
	switch {
	case errors.As(err, &bad):
		return usage(bad.Err)
	case answer.Status == "":
		return err
	case a.answer != "":
		c.say("cli.answered", contextstore.Short(uuid))
	case answer.Asked && do != contextstore.Resume:
		c.say("cli.asked", answer.Owner.ProcessID, answer.Owner.Hostname, string(do), contextstore.Short(uuid))
	default:
		c.say("cli.now", contextstore.Short(uuid), answer.Status)
	}
	if do == contextstore.Resume && !answer.Asked {
		c.say("cli.queued_resume", contextstore.Short(uuid)+app.RunOptions{BaseDir: a.BaseDir, Config: a.Config}.Where())
	}
	if err != nil {
		return &exitError{exitPaused, i18n.E("cli.undelivered", err)}
	}
	return nil
}
