package cli

import (
	"toritsugi/internal/app"
	"toritsugi/internal/contextstore/migrate"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

type migrateCmd struct {
	From   string `required:"" placeholder:"PLACE" help:"${migrate_from_help}"`
	To     string `required:"" placeholder:"PLACE" help:"${migrate_to_help}"`
	DryRun bool   `help:"${migrate_dry_run_help}"`
	JSON   bool   `name:"json" help:"${json_help}"`
	Config string `placeholder:"FILE" help:"${config_file_help}"`
}

// Run copies contexts from one place to another: exit 0 where all of them are there, 2 where nothing
// was begun.
func (k migrateCmd) Run(c *console) error {
	cfg, err := c.load(k.Config)
	if err != nil {
		return usage(err)
	}
	ctx, stop := c.untilSignal()
	defer stop()
	show, done := c.counted()
	r, err := app.Migrate(ctx, app.MigrateOptions{From: k.From, To: k.To, DryRun: k.DryRun, Config: cfg, Redact: c.sanitizer().String}, func(r migrate.Report) {
		if show != nil {
			show(r.Copied+r.There, r.Bytes)
		}
	})
	done()
	if err != nil {
		return err
	}
	if k.JSON {
		return c.json(r)
	}
	for _, n := range r.Notes {
		c.say("migrate.note."+n.Kind, redact.Printable(n.UUID))
	}
	switch {
	case k.DryRun:
		c.say("migrate.dry", r.Copied, i18n.Bytes(r.Bytes), r.There)
	default:
		c.say("migrate.done", r.Copied, i18n.Bytes(r.Bytes), r.There, r.Rows)
	}
	return nil
}
