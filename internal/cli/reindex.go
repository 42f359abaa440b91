package cli

import (
	"fmt"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/ops"
)

type reindexCmd struct {
	JSON  bool `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Run rebuilds the index: exit 0 where every context is in it, 2 where damage
// keeps some out, as tori check finds it, or nothing was done.
func (k reindexCmd) Run(c *console) error {
	base, who, err := k.look(c)
	if err != nil {
		return err
	}
	ctx, stop := c.untilSignal()
	defer stop()
	progress, done := c.progress()
	r, err := ops.Reindex(ctx, c.out, base, ops.CheckOptions{JSON: k.JSON, Lang: c.lang, Viewer: who, Progress: progress, Plans: k.plans(c, base)})
	done()
	if err != nil {
		return usage(err)
	}
	c.record(base, contextstore.AuditEntry{Actor: who.User, Action: "reindex", Detail: fmt.Sprintf("contexts %d, rows %d", r.Contexts, r.Rows)})
	if r.Rows < r.Contexts {
		return &exitError{code: exitDamage}
	}
	return nil
}
