package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"toritsugi/internal/app"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
)

// servedAt is where the contexts of a base directory lie on the server of the tests, as settings
// say; "" where they do not.
func servedAt(base string) string {
	at := os.Getenv("TORI_TEST_POSTGRES_URL")
	if os.Getenv(backend) != "postgres" || at == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(base))
	return at + "?search_path=t_" + hex.EncodeToString(sum[:8])
}

// ledgerEnv is the environment of a program that works on a base directory.
func ledgerEnv(base string) []string {
	if at := servedAt(base); at != "" {
		return []string{"TORI_CONTEXT_STORAGE_POSTGRES_URL=" + at}
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
		if _, there := os.Stat(filepath.Join(dir, tables.File)); there != nil && (servedAt(dir) == "" || filepath.Base(dir) != "base") {
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
