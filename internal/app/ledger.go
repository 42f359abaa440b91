package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"toritsugi/internal/blobs"
	"toritsugi/internal/bucket"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// ledgers are the databases that this process has open, by the base directory whose contexts
// they keep: a process mounts each once, for all of its verbs.
var ledgers struct {
	sync.Mutex
	open map[string]opened
	log  atomic.Pointer[slog.Logger] // that of the verb, once it has one
}

type opened struct {
	db    *tables.DB
	close func()
}

// OpenLedger has the contexts of a base directory kept by whom cfg says
// (context_storage.backend); where that or cfg is left out, by whom the directory itself tells. With
// create, what is missing for that is made.
func OpenLedger(ctx context.Context, base string, cfg *config.Config, create bool) error {
	base, err := filepath.Abs(base)
	if err != nil {
		return err
	}
	file := filepath.Join(base, tables.File)
	_, missing := os.Stat(file)
	backend := "jsonl"
	switch {
	case cfg != nil && cfg.ContextStorage.Backend != "":
		backend = cfg.ContextStorage.Backend
	case missing == nil:
		backend = "sqlite"
	}
	ledgers.Lock()
	defer ledgers.Unlock()
	switch {
	case ledgers.open[base].db != nil:
		return nil
	case backend != "sqlite" && missing == nil:
		return i18n.E("ledger.in_database", base, file)
	case backend == "jsonl":
		return nil
	case missing != nil && holdsContexts(base):
		return i18n.E("ledger.in_files", backend, base)
	case backend == "sqlite" && missing != nil && !create:
		return nil
	}
	if err := (&disk.FS{}).MkdirAll(base); err != nil {
		return i18n.E("contextstore.base_dir", base, err)
	}
	o := tables.Options{Base: base, Waiting: waiting}
	if cfg != nil {
		if cfg.ContextStorage.Blobs != "" {
			o.Object = func(ctx context.Context, name string, most int64) ([]byte, error) {
				objects, err := blobPlace(cfg, bucket.Options{}) // only who needs one needs the login
				if err != nil {
					return nil, err
				}
				return blobs.Get(ctx, objects, name, most)
			}
		}
		o.Lease = time.Duration(max(cfg.ContextStorage.StaleSeconds, shortestLease)) * time.Second
	}
	if backend == "postgres" {
		return openServer(ctx, o, cfg, create)
	}
	db, err := tables.OpenSQLite(ctx, o, cfg != nil && cfg.ContextStorage.Durability == "os")
	if err != nil {
		return err
	}
	keep(base, db, func() {})
	return nil
}

// OpenNamed is OpenLedger of a base directory that somebody names: unless the settings, where they can
// be read, say a server, the directory itself tells who keeps its contexts.
func OpenNamed(base, configFile string, getenv func(string) string) error {
	cfg, err := LoadConfig(configFile, getenv)
	switch {
	case err != nil:
		cfg = nil
	case cfg.ContextStorage.Backend != "postgres":
		cfg.ContextStorage.Backend = ""
	}
	return OpenLedger(context.Background(), base, cfg, false)
}

// openServer opens the tables of the server of the settings, if they are there or with create.
func openServer(ctx context.Context, o tables.Options, cfg *config.Config, create bool) error {
	p := cfg.ContextStorage.Postgres
	if p.URL == "" {
		return i18n.E("ledger.no_url")
	}
	var password []byte
	if p.PasswordFile != "" {
		var err error
		if password, err = disk.Read(p.PasswordFile, mostPassword); err != nil {
			return err
		}
	}
	server, err := database.Dial(ctx, database.ServerOptions{URL: p.URL, Password: strings.TrimSpace(string(password)), Existing: !create})
	if err != nil {
		return absent(err)
	}
	if !create {
		err = tables.On(ctx, server)
	}
	var db *tables.DB
	if err == nil {
		db, err = tables.OpenPostgres(ctx, o, server)
	}
	if err != nil {
		server.Close()
		return absent(err)
	}
	release := server.Serve(o.Base)
	keep(o.Base, db, func() { release(); server.Close() })
	return nil
}

// absent is an error but that nothing is there yet.
func absent(err error) error {
	if errors.Is(err, database.ErrLacks) {
		return nil
	}
	return err
}

// shortestLease is how long, in seconds, an owner keeps its run at least that is not heard of.
const shortestLease = 5

// mostPassword is the longest file of a password, in bytes.
const mostPassword = 4 << 10

// waiting tells that the database of the contexts cannot be reached, and that it can again.
func waiting(err error) {
	log := cmp.Or(ledgers.log.Load(), slog.Default())
	if err != nil {
		log.Warn("The database of the contexts cannot be reached; what waits for it goes on when it is back: " + err.Error())
		return
	}
	log.Info("The database of the contexts is back")
}

// keep mounts a database that is open.
func keep(base string, db *tables.DB, closed func()) {
	if ledgers.open == nil {
		ledgers.open = map[string]opened{}
	}
	unmount := disk.Mount(base, db)
	ledgers.open[base] = opened{db, func() { unmount(); closed() }}
}

// holdsContexts reports whether contexts lie in a base directory as files.
func holdsContexts(base string) bool {
	found := errors.New("found")
	return errors.Is(contextstore.Walk(base, contextstore.StatusDirs, func(string) error { return found }), found)
}

// onlyFiles refuses what does not work where the contexts of a base directory lie in a database.
func onlyFiles(verb, base string) error {
	if disk.At(filepath.Join(base, contextstore.DirCompleted)) == nil {
		return nil
	}
	return &ConfigError{i18n.E("ledger.not_in_database", verb)}
}

// CloseLedgers commits what was written last, and gives up what is held. It is called as the
// process ends.
func CloseLedgers() error {
	ledgers.Lock()
	defer ledgers.Unlock()
	var errs []error
	for _, o := range ledgers.open {
		errs = append(errs, o.db.Close())
		o.close()
	}
	ledgers.open = nil
	return errors.Join(errs...)
}
