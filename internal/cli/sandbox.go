package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

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
}

// Run tries to break out of the sandbox. Whoever has no sandbox, or one that
// does not hold, is told so by the exit code as well.
func (s sandboxCheckCmd) Run(c *console) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	box, err := sandbox.Choose(ctx, sandbox.Options{Prefer: s.Kind, Engine: s.Engine})
	if err != nil {
		if !s.JSON {
			c.say("sandbox.check.none")
		}
		return err
	}
	probes, err := box.Check(ctx, sandbox.CheckOptions{})
	if err != nil {
		return err
	}
	escaped, err := ops.SandboxCheck(c.out, box.Kind(), probes, ops.SandboxOptions{JSON: s.JSON, All: s.All, Lang: c.lang})
	if err != nil {
		return err
	}
	if escaped > 0 {
		return i18n.E("sandbox.check.failed", escaped, box.Kind())
	}
	return nil
}
