package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"toritsugi/internal/app"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
)

// keepers are the URLs of the servers that keep the contexts of base directories.
var keepers sync.Map

// backends are who may keep contexts.
var backends = []string{"jsonl", "sqlite", "postgres"}

// keep has one of them keep the contexts of a town.
func (w *town) keep(kind string) {
	w.t.Helper()
	w.env = append(w.env, backend+"="+kind)
	if kind == "postgres" {
		at := pgtest.URL(w.t)
		keepers.Store(filepath.Join(w.dir, "base"), at)
		w.env = append(w.env, ledgerEnv(filepath.Join(w.dir, "base"))...)
	}
}

// servedAt is the server that keeps the contexts of a base directory, as settings name it; "" where
// none does.
func servedAt(base string) string {
	at, _ := keepers.Load(base)
	url, _ := at.(string)
	return url
}

// ledgerEnv is the environment of a program that looks at a base directory.
func ledgerEnv(base string) []string {
	if at := servedAt(base); at != "" {
		return []string{backend + "=postgres", "TORI_CONTEXT_STORAGE_POSTGRES_URL=" + at}
	}
	return nil
}

// openLedger has this process see the contexts of a base directory.
func openLedger(ctx context.Context, base string) error {
	var cfg *config.Config
	if at := servedAt(base); at != "" {
		cfg = &config.Config{ContextStorage: config.ContextStorage{Backend: "postgres", Postgres: config.Postgres{URL: at}}}
	}
	return app.OpenLedger(ctx, base, cfg, false)
}

// list lists the contexts of a base directory, wherever that keeps them.
func list(ctx context.Context, base string) (contextstore.Listing, error) {
	if err := openLedger(ctx, base); err != nil {
		return contextstore.Listing{}, err
	}
	return contextstore.List(ctx, base, contextstore.Viewer{Admin: true}, contextstore.Filter{})
}

// readFile is os.ReadFile, of what lies in a ledger.db, too.
func readFile(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	for dir := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && len(dir) > 1; dir = filepath.Dir(dir) {
		if _, there := os.Stat(filepath.Join(dir, tables.File)); there != nil && servedAt(dir) == "" {
			continue
		}
		if err := openLedger(context.Background(), dir); err != nil {
			return nil, err
		}
		return disk.Read(path, disk.MaxWhole)
	}
	return b, err
}

// backend is the variable by which tests are run with another backend; those that look at
// files of contexts themselves fail then.
const backend = "TORI_CONTEXT_STORAGE_BACKEND"
