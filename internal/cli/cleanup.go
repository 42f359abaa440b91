package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

type cleanupCmd struct {
	OlderThan string `placeholder:"14d" help:"${cleanup_older_help}"`
	GzipAll   bool   `help:"${cleanup_gzip_help}"`
	DryRun    bool   `help:"${cleanup_dry_help}"`
	JSON      bool   `name:"json" help:"${json_help}"`
	place     `embed:""`
}

// Run does with ended runs what context_storage.retention asks for and removes what is unused, or
// says what it would do.
func (k cleanupCmd) Run(c *console) error {
	o := app.CleanupOptions{GzipAll: k.GzipAll, Dry: k.DryRun}
	if k.OlderThan != "" {
		days, err := strconv.Atoi(strings.TrimSuffix(k.OlderThan, "d"))
		if err != nil || days < 1 || days > 36500 || !strings.HasSuffix(k.OlderThan, "d") {
			return usage(i18n.E("cli.cleanup_age", k.OlderThan))
		}
		o.DeleteAfter = time.Duration(days) * 24 * time.Hour
	}
	env, err := c.env(c.note)
	if err != nil {
		return err
	}
	ctx, stop := c.untilSignal()
	defer stop()
	did, freed := map[contextstore.RetentionStep]int{}, int64(0)
	var failed error
	tell := func(v any) { failed = errors.Join(failed, c.json(v)) }
	report, err := app.Cleanup(ctx, env, k.BaseDir, k.Config, o, func(r contextstore.Retained) {
		did[r.Step]++
		freed += r.Freed
		if k.JSON {
			tell(r)
			return
		}
		c.say("cli.cleanup_"+string(r.Step), contextstore.Short(r.UUID), i18n.Bytes(r.Freed))
	})
	unused := report.Unused
	for _, path := range unused.Removed {
		if path, _ = filepath.Rel(report.Base, path); k.JSON {
			tell(map[string]string{"path": path, "step": "unused"})
		} else {
			c.say("cli.cleanup_unused", path)
		}
	}
	removed := did[contextstore.StepDelete] + did[contextstore.StepRoom]
	if !k.DryRun && len(did)+len(unused.Removed) > 0 {
		c.record(report.Base, contextstore.AuditEntry{Actor: report.Actor, Action: "cleanup",
			Detail: fmt.Sprintf("compressed %d, slimmed %d, removed %d, unused %d", did[contextstore.StepGzip], did[contextstore.StepSlim], removed, len(unused.Removed))})
	}
	if report.Near > 0 {
		c.note("cli.cleanup_near", i18n.Bytes(report.Near), i18n.Bytes(report.Most))
	}
	if err = errors.Join(err, failed); err != nil || k.JSON {
		return err
	}
	total := "cli.cleanup_done"
	if k.DryRun {
		total = "cli.cleanup_dry"
	}
	c.say(total, did[contextstore.StepGzip], did[contextstore.StepSlim], removed, i18n.Bytes(freed))
	if len(unused.Removed) > 0 {
		c.say(total+"_unused", len(unused.Removed), i18n.Bytes(unused.Freed))
	}
	return nil
}
