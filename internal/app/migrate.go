package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/contextstore/migrate"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// MigrateOptions name two places of contexts: jsonl:DIRECTORY, sqlite:FILE or postgres://….
type MigrateOptions struct {
	From, To string
	DryRun   bool
	Config   *config.Config      // says in which bucket the files of a database lie (context_storage.blobs)
	Redact   func(string) string // see migrate.Options
}

// Migrate copies all contexts and conversations, and the rows of house.db, from one place to another,
// and makes the rows of the tasks there. What it has copied stays when it is stopped; called again
// it goes on. Its errors are *ConfigError where nothing was begun.
func Migrate(ctx context.Context, o MigrateOptions, progress func(migrate.Report)) (r migrate.Report, err error) {
	if o.From == o.To {
		return r, &ConfigError{i18n.E("migrate.same")}
	}
	from, leave, err := placeOf(ctx, o.From, o.Config, true, false)
	if err != nil {
		return r, &ConfigError{err}
	}
	defer leave()
	to, leave, err := placeOf(ctx, o.To, o.Config, false, !o.DryRun)
	if err != nil {
		return r, &ConfigError{err}
	}
	defer leave()
	r, err = migrate.Run(ctx, migrate.Options{From: from, To: to, DryRun: o.DryRun, FS: &disk.FS{}, Progress: progress, Redact: o.Redact})
	if err == nil && !o.DryRun {
		_, err = fsck.Reindex(ctx, to, nil)
	}
	return r, err
}

// placeOf opens a place of contexts, which is made with create, and returns its base directory: for a
// server an empty one that is removed when leave is called. What is missing and not made is an error
// of a source alone.
func placeOf(ctx context.Context, at string, of *config.Config, source, create bool) (base string, leave func(), err error) {
	kind, rest, _ := strings.Cut(at, ":")
	cfg, leave := &config.Config{ContextStorage: config.ContextStorage{Backend: kind, Blobs: of.ContextStorage.Blobs}, Backup: of.Backup}, func() {}
	switch {
	case kind == "jsonl" && rest != "":
		base = rest
	case kind == "sqlite" && filepath.Base(rest) == tables.File:
		base = filepath.Dir(rest)
	case kind == "postgres" || kind == "postgresql":
		cfg.ContextStorage.Backend, cfg.ContextStorage.Postgres.URL = "postgres", at
		if base, err = os.MkdirTemp("", "tori-migrate-"); err != nil {
			return "", nil, err
		}
		leave = func() { _ = os.RemoveAll(base) }
	default:
		return "", nil, i18n.E("migrate.url", at)
	}
	if base, err = filepath.Abs(base); err != nil {
		return "", nil, err
	}
	switch _, missing := os.Stat(base); {
	case missing != nil && source:
		err = i18n.E("contextstore.no_base", base, missing)
	case missing != nil && !create:
		return base, leave, nil
	case missing != nil:
		err = (&disk.FS{}).MkdirAll(base)
	}
	if err = errors.Join(err, OpenLedger(ctx, base, cfg, create)); err != nil {
		leave()
		return "", nil, err
	}
	return base, leave, nil
}
