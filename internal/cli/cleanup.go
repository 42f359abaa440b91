package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
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

// Run does with ended runs what context_storage.retention asks for, or says what it would do.
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	did, freed := map[contextstore.RetentionStep]int{}, int64(0)
	var failed error
	base, who, err := app.Cleanup(ctx, env, k.BaseDir, k.Config, o, func(r contextstore.Retained) {
		did[r.Step]++
		freed += r.Freed
		if k.JSON {
			failed = errors.Join(failed, c.json(r))
			return
		}
		c.say("cli.cleanup_"+string(r.Step), contextstore.Short(r.UUID), mebibytes(r.Freed))
	})
	if bad := (*app.ConfigError)(nil); errors.As(err, &bad) {
		return usage(bad.Err)
	}
	if !k.DryRun && len(did) > 0 {
		c.record(base, contextstore.AuditEntry{Actor: who, Action: "cleanup", Detail: fmt.Sprintf("compressed %d, slimmed %d, removed %d", did[contextstore.StepGzip], did[contextstore.StepSlim], did[contextstore.StepDelete])})
	}
	if err = errors.Join(err, failed); err != nil || k.JSON {
		return err
	}
	total := "cli.cleanup_done"
	if k.DryRun {
		total = "cli.cleanup_dry"
	}
	c.say(total, did[contextstore.StepGzip], did[contextstore.StepSlim], did[contextstore.StepDelete], mebibytes(freed))
	return nil
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
