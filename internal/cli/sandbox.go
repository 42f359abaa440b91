package cli

import (
	"cmp"

	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
	"toritsugi/internal/sandbox"
)

type sandboxCmd struct {
	Check sandboxCheckCmd `cmd:"" help:"${sandbox_check_help}"`
}

type sandboxCheckCmd struct {
	Kind   string `placeholder:"KIND" help:"${sandbox_kind_help}"`
	Engine string `placeholder:"PROGRAM" help:"${sandbox_engine_help}"`
	All    bool   `help:"${sandbox_all_help}"`
	JSON   bool   `name:"json" help:"${json_help}"`
	Config string `placeholder:"FILE" help:"${config_file_help}"`
}

// options are what the flags say, else the configuration.
func (s sandboxCheckCmd) options(c *console) (sandbox.Options, error) {
	cfg, err := c.load(s.Config)
	if err != nil {
		return sandbox.Options{}, err
	}
	o := sandbox.Options{Prefer: s.Kind, Engine: cmp.Or(s.Engine, cfg.Sandbox.Engine)}
	if o.Prefer == "" && cfg.Sandbox.Mode != "auto" {
		if o.Prefer = cfg.Sandbox.Mode; o.Prefer == sandbox.KindNone {
			return o, i18n.E("sandbox.check.mode_none")
		}
	}
	return o, o.Check()
}

// Run tries to break out of the sandbox. Whoever has no sandbox, or one that
// does not hold, is told so by the exit code as well.
func (s sandboxCheckCmd) Run(c *console) error {
	ctx, stop := c.untilSignal()
	defer stop()
	o, err := s.options(c)
	if err != nil {
		return usage(err)
	}
	box, err := sandbox.Choose(ctx, o)
	if err != nil {
		if !s.JSON {
			c.say("sandbox.check.none")
		}
		return err
	}
	probes, err := box.Check(ctx)
	if err != nil {
		return err
	}
	escaped, err := ops.SandboxCheck(c.out, box.Kind(), probes, ops.SandboxOptions{Watched: box.Watched(), JSON: s.JSON, All: s.All, Lang: c.lang})
	if err != nil {
		return err
	}
	if escaped > 0 {
		return i18n.E("sandbox.check.failed", escaped, box.Kind())
	}
	return nil
}
