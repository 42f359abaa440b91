package cli

import (
	"context"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
)

type keepCmd struct {
	UUID    string `arg:"" help:"${uuid_help}"`
	Release bool   `help:"${keep_release_help}"`
	place   `embed:""`
}

// Run keeps a run from retention, or no longer.
func (k keepCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		uuid, did, err := app.Keep(ctx, env, k.UUID, k.BaseDir, k.Config, k.Release)
		if err != nil {
			return err
		}
		text, args := "cli.kept", []any{contextstore.Short(uuid)}
		switch {
		case k.Release:
			text = "cli.released"
		case did:
			args = append(args, contextstore.Short(uuid)+app.RunOptions{BaseDir: k.BaseDir, Config: k.Config}.Where())
		}
		if !did {
			text += "_already"
		}
		c.say(text, args...)
		return nil
	})
}
