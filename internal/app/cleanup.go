package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"toritsugi/internal/blobs"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// retention is how long the settings keep ended runs.
func (s *system) retention() contextstore.Retention {
	days := func(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }
	c := s.cfg.ContextStorage.Retention
	r := contextstore.Retention{Gzip: days(c.GzipDays), Slim: days(c.SlimDays), Delete: days(s.cfg.DeleteAfter()), MaxBytes: int64(c.MaxGB * 1e9)}
	for _, x := range c.Rules {
		r.Rules = append(r.Rules, contextstore.RetentionRule{Status: task.Status(x.Status), Repo: x.Repository, Keep: x.Keep,
			Gzip: cmp.Or(days(x.GzipDays), r.Gzip), Slim: cmp.Or(days(x.SlimDays), r.Slim), Delete: cmp.Or(days(x.DeleteDays), r.Delete)})
	}
	r.Near = func(n int64) {
		s.log.Warn("Ended runs take almost all that context_storage.retention.max_gb leaves them: the oldest go, kept ones stay", "bytes", n, "max_bytes", r.MaxBytes)
	}
	if s.blobs != nil {
		var away error // the others wait for the next time
		r.MoveOut = func(ctx context.Context, dir string) error {
			if away != nil {
				return nil
			}
			err := s.blobs.MoveOut(ctx, dir)
			if blobs.Passing(err) {
				away = err
			}
			return err
		}
	}
	return r
}

// CleanupOptions are what Cleanup does other than the settings say.
type CleanupOptions struct {
	DeleteAfter time.Duration // of runs, and of what is unused; 0 for the settings
	GzipAll     bool          // whatever their age
	Dry         bool          // nothing is done, only told
}

// CleanupReport is what Cleanup did besides what it did with runs.
type CleanupReport struct {
	Base, Actor string            // for the audit
	Unused      workspace.Cleaned // workspaces, mirrors and setups
	Near, Most  int64             // what ended runs take, where that is nine tenths of Most or more
}

// Cleanup does with the ended runs of a base directory what the settings ask for, as tori serve
// does at night, and removes what is unused: workspaces of ended runs, mirrors, setups. Its
// errors are *ConfigError where nothing was begun.
func Cleanup(ctx context.Context, env Env, dir, configFile string, o CleanupOptions, each func(contextstore.Retained)) (report CleanupReport, err error) {
	s, actor, err := openForUpkeep(ctx, env, dir, configFile)
	if err != nil {
		return report, err
	}
	r, unused := s.retention(), s.unused(ctx)
	report.Base, report.Actor, report.Most = s.store.BaseDir, actor, r.MaxBytes
	r.Near = func(n int64) { report.Near = n }
	unused.Dry = o.Dry
	if o.DeleteAfter > 0 {
		r.Delete, unused.KeepFor = o.DeleteAfter, min(o.DeleteAfter, unused.KeepFor)
	}
	if o.GzipAll {
		r.Gzip = time.Nanosecond
	}
	for i := range r.Rules {
		if o.DeleteAfter > 0 {
			r.Rules[i].Delete = o.DeleteAfter
		}
		if o.GzipAll {
			r.Rules[i].Gzip = r.Gzip
		}
	}
	err = s.store.Retain(ctx, r, o.Dry, each)
	if !errors.Is(err, contextstore.ErrBusy) {
		var cerr error
		report.Unused, cerr = workspace.Clean(ctx, unused)
		err = errors.Join(err, cerr)
	}
	return report, errors.Join(err, s.store.Close())
}

// openForUpkeep opens a base directory that is there, for an administrator; where its disk is so full
// that no database opens, with the room that is kept for that. Its errors are *ConfigError.
func openForUpkeep(ctx context.Context, env Env, dir, configFile string) (s *system, actor string, err error) {
	s, actor, err = asAdmin(env, RunOptions{BaseDir: dir, Config: configFile, Confined: true, Quiet: true})
	if err != nil {
		return s, actor, err
	}
	base := s.opt.BaseDir
	if _, err := os.Stat(base); err != nil {
		return s, actor, &ConfigError{i18n.E("contextstore.no_base", base, err)}
	}
	err = s.open(ctx)
	if errors.Is(err, syscall.ENOSPC) && contextstore.SpendReserve(base) {
		err = s.open(ctx)
	}
	if err != nil {
		err = &ConfigError{err}
	}
	return s, actor, err
}

// Keep has no retention touch a run until it is released, and returns the run's whole uuid; did is
// false where it was so already.
func Keep(ctx context.Context, env Env, uuid, base, config string, release bool) (whole string, did bool, err error) {
	s, v, err := found(env, uuid, base, config)
	if err != nil {
		return "", false, err
	}
	if err := s.open(ctx); err != nil {
		return "", false, &ConfigError{err}
	}
	defer func() { _ = s.store.Close() }()
	if did, err = s.store.Keep(ctx, v.Metadata.UUID, LocalUser(), release); did {
		s.audit(map[bool]string{false: "keep", true: "release"}[release], v.Metadata.UUID, "")
	}
	return v.Metadata.UUID, did, err
}
