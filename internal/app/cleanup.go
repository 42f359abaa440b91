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
