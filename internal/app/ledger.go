package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// ledgers are the databases that this process has open, by the base directory whose contexts
// they keep: a process mounts each once, for all of its verbs.
var ledgers struct {
	sync.Mutex
	open map[string]opened
}

type opened struct {
	db      *tables.DB
	unmount func()
}

// OpenLedger has the contexts of a base directory kept by whom cfg says
// (context_storage.backend); without cfg by whom the directory itself tells. With create,
// what is missing for that is made.
func OpenLedger(ctx context.Context, base string, cfg *config.Config, create bool) error {
	base, err := filepath.Abs(base)
	if err != nil {
		return err
	}
	file := filepath.Join(base, tables.File)
	_, missing := os.Stat(file)
	sqlite := missing == nil
	if cfg != nil {
		sqlite = cfg.ContextStorage.Backend == "sqlite"
	}
	switch {
	case !sqlite && missing == nil:
		return i18n.E("ledger.in_database", base, file)
	case !sqlite:
		return nil
	case missing != nil && holdsContexts(base):
		return i18n.E("ledger.in_files", base)
	case missing != nil && !create:
		return nil
	}
	ledgers.Lock()
	defer ledgers.Unlock()
	if ledgers.open[base].db != nil {
		return nil
	}
	if err := (&disk.FS{}).MkdirAll(base); err != nil {
		return i18n.E("contextstore.base_dir", base, err)
	}
	db, err := tables.OpenSQLite(ctx, tables.Options{Base: base}, cfg != nil && cfg.ContextStorage.Durability == "os")
	if err != nil {
		return err
	}
	if ledgers.open == nil {
		ledgers.open = map[string]opened{}
	}
	ledgers.open[base] = opened{db, disk.Mount(base, db)}
	return nil
}

// holdsContexts reports whether contexts lie in a base directory as files.
func holdsContexts(base string) bool {
	found := errors.New("found")
	return errors.Is(contextstore.Walk(base, contextstore.StatusDirs, func(string) error { return found }), found)
}

// CloseLedgers commits what was written last, and gives up what is held. It is called as the
// process ends.
func CloseLedgers() error {
	ledgers.Lock()
	defer ledgers.Unlock()
	var errs []error
	for _, o := range ledgers.open {
		errs = append(errs, o.db.Close())
		o.unmount()
	}
	ledgers.open = nil
	return errors.Join(errs...)
}
