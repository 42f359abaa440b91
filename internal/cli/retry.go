package cli

import (
	"context"

	"toritsugi/internal/app"
)

type retryCmd struct {
	UUID       string `arg:"" help:"${uuid_help}"`
	AllowDirty bool   `help:"${allow_dirty_help}"`
	Quiet      bool   `short:"q" help:"${quiet_help}"`
	place      `embed:""`
}

// Run begins the request of an ended run anew: one of tori run here, one of a forge
// or folder in the queue of tori serve.
func (r retryCmd) Run(c *console) error {
	run := ""
	err := c.untilInterrupted(func(ctx context.Context, env app.Env) (err error) {
		run, err = app.Retry(ctx, env, r.UUID, r.BaseDir, r.Config)
		return err
	})
	switch {
	case err != nil:
		return err
	case run != "":
		c.say("cli.retried", run)
		return nil
	}
	return c.run(app.RunOptions{Again: r.UUID, BaseDir: r.BaseDir, Config: r.Config, AllowDirty: r.AllowDirty, Quiet: r.Quiet}, runHooks{})
}
