package cli

import (
	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
)

type exportCmd struct {
	UUID     string `arg:"" help:"${uuid_help}"`
	Format   string `enum:"md,html,json,atif,swebench" default:"md" placeholder:"FORMAT" help:"${format_help}"`
	Instance string `placeholder:"ID" help:"${instance_help}"`
	place    `embed:""`
}

// Run prints one run as one document: exit 1 where what it prints is not whole.
func (e exportCmd) Run(c *console) error {
	if e.Instance != "" && e.Format != ops.FormatSWEBench {
		return usage(i18n.E("cli.export_instance"))
	}
	base, who, err := e.look(c)
	if err != nil {
		return err
	}
	v, err := contextstore.Find(base, e.UUID, who)
	if err != nil {
		return usage(err)
	}
	uuid := v.Metadata.UUID
	opt := ops.ExportOptions{Format: e.Format, Lang: c.lang, Redact: c.sanitizer().String, Version: built(), History: e.history(c, base, uuid), Instance: e.Instance}
	ctx, stop := c.untilSignal()
	defer stop()
	if e.Format == ops.FormatSWEBench {
		if opt.Patch, err = app.Patch(ctx, base, v); err != nil {
			return err
		}
	}
	c.record(base, contextstore.AuditEntry{Actor: who.User, Action: "read", UUID: uuid, What: "export " + e.Format})
	if s, ok := c.out.(*display); ok {
		s.json = e.Format != ops.FormatMarkdown && e.Format != ops.FormatHTML
	}
	if err := ops.Export(c.out, base, uuid, opt); err != nil {
		return err
	}
	return fsck.Whole(ctx, base, uuid, e.plans(c, base))
}
