package app

import (
	"context"
	"errors"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// retention is how long the settings keep ended runs.
func (s *system) retention() contextstore.Retention {
	days := func(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }
	r := s.cfg.ContextStorage.Retention
	return contextstore.Retention{Gzip: days(r.GzipDays), Slim: days(r.SlimDays), Delete: days(s.cfg.DeleteAfter())}
}

// CleanupOptions are what Cleanup does other than the settings say.
type CleanupOptions struct {
	DeleteAfter time.Duration // 0 for the settings
	GzipAll     bool          // whatever their age
	Dry         bool          // nothing is done, only told
}

// Cleanup does with the ended runs of a base directory what the settings ask for, as tori serve
// does at night, and returns that directory and who did it, for the audit. Its errors are
// *ConfigError where nothing was begun.
func Cleanup(ctx context.Context, env Env, dir, configFile string, o CleanupOptions, each func(contextstore.Retained)) (base, actor string, err error) {
	s, who, err := atBase(env, RunOptions{BaseDir: dir, Config: configFile, Confined: true, Quiet: true})
	if err != nil {
		return "", "", err
	}
	if base = s.opt.BaseDir; !who.Admin {
		return "", "", &ConfigError{i18n.E("check.not_admin", base, who.User)}
	}
	if err := s.open(ctx); err != nil {
		return "", "", &ConfigError{err}
	}
	r := s.retention()
	if o.DeleteAfter > 0 {
		r.Delete = o.DeleteAfter
	}
	if o.GzipAll {
		r.Gzip = time.Nanosecond
	}
	return base, who.User, errors.Join(s.store.Retain(ctx, r, o.Dry, each), s.store.Close())
}

// maintenanceScope is that of the marks of what is done once a day.
const maintenanceScope = "maintenance"

// nightly does what is due once a day, until ctx ends. When it was done stands in house.db: what
// a night missed is caught up, and of several daemons one does it.
func (d *daemon) nightly(ctx context.Context) {
	var patience time.Time // for a backup
	look := func(ctx context.Context) {
		if err := d.maintain(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, contextstore.ErrBusy) {
			d.log.Error("Maintenance is not done: " + err.Error())
		}
		if now := time.Now(); now.After(patience) && !d.backUp(ctx) {
			patience = now.Add(backupPause)
		}
	}
	look(ctx)
	every(ctx, digestEvery, look)
}

func (d *daemon) maintain(ctx context.Context) error {
	raw, err := d.store.Mark(ctx, maintenanceScope, "retention")
	if err != nil {
		return err
	}
	last, _ := time.Parse(time.RFC3339, raw) // one that cannot be read counts as none
	now := d.env.Now().In(time.Local)
	due, ok := d.cfg.Maintenance.Next(last.In(time.Local))
	if !ok || !last.IsZero() && now.Before(due) {
		return nil
	}
	did, freed := map[contextstore.RetentionStep]int{}, int64(0)
	err = d.store.Retain(ctx, d.retention(), false, func(r contextstore.Retained) { did[r.Step]++; freed += r.Freed })
	if len(did) > 0 {
		d.log.Info("Looked after ended runs", "compressed", did[contextstore.StepGzip], "slimmed", did[contextstore.StepSlim], "removed", did[contextstore.StepDelete], "freed_bytes", freed)
	}
	if ctx.Err() != nil || errors.Is(err, contextstore.ErrBusy) {
		return err
	}
	return errors.Join(err, d.store.SetMark(ctx, maintenanceScope, "retention", now.Format(time.RFC3339)))
}
