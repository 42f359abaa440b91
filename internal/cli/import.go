package cli

import (
	"context"
	"os"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
)

type importCmd struct {
	From  string `arg:"" name:"from" help:"${import_from_help}"`
	place `embed:""`
}

// Run puts runs back from what tori export --format json printed of them; exit 1 where one could
// not be.
func (k importCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		failed := false
		err := app.Import(ctx, env, k.From, os.Stdin, k.BaseDir, k.Config, func(i app.Imported) {
			if i.Err != nil {
				failed = true
				c.note("cli.import_failed", i.From, c.masked(i.Err))
				return
			}
			c.say("cli.imported", contextstore.Short(i.View.Metadata.UUID), i.View.Status(), i.View.Metadata.TaskKey.String(),
				contextstore.Short(i.View.Metadata.UUID)+app.RunOptions{BaseDir: k.BaseDir, Config: k.Config}.Where())
		})
		if err == nil && failed {
			err = &exitError{code: exitFailed}
		}
		return err
	})
}
