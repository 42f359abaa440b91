package cli

import (
	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
)

type exportCmd struct {
	UUID     string `arg:"" help:"${uuid_help}"`
	Format   string `enum:"md,html,json,atif,swebench" default:"md" placeholder:"FORMAT" help:"${format_help}"`
	Instance string `placeholder:"ID" help:"${instance_help}"`
	place    `embed:""`
}

// Run prints one run as one document.
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
	if e.Format == ops.FormatSWEBench {
		ctx, stop := c.untilSignal()
		defer stop()
		if opt.Patch, err = app.Patch(ctx, base, v); err != nil {
			return err
		}
	}
	c.record(base, contextstore.AuditEntry{Actor: who.User, Action: "read", UUID: uuid, What: "export " + e.Format})
	if s, ok := c.out.(*display); ok {
		s.json = e.Format != ops.FormatMarkdown && e.Format != ops.FormatHTML
	}
	return ops.Export(c.out, base, uuid, opt)
}
