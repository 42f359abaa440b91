package cli

import (
	"context"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
)

type compressCmd struct {
	UUID  string `arg:"" help:"${uuid_help}"`
	place `embed:""`
}

// Run has the older messages of a run that nobody works on be summed up.
func (k compressCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		done, err := app.Compress(ctx, env, k.UUID, k.BaseDir, k.Config)
		if err != nil {
			return err
		}
		c.say("cli.compressed", contextstore.Short(done.UUID), done.By, done.Before, done.After)
		return nil
	})
}
