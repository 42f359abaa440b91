package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
)

// list lists the contexts of a base directory, wherever that keeps them.
func list(ctx context.Context, base string) (contextstore.Listing, error) {
	if err := app.OpenLedger(ctx, base, nil, false); err != nil {
		return contextstore.Listing{}, err
	}
	return contextstore.List(ctx, base, contextstore.Viewer{Admin: true}, contextstore.Filter{})
}

// readFile is os.ReadFile, of what lies in a ledger.db, too.
func readFile(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	for dir := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && len(dir) > 1; dir = filepath.Dir(dir) {
		if _, there := os.Stat(filepath.Join(dir, tables.File)); there != nil {
			continue
		}
		if err := app.OpenLedger(context.Background(), dir, nil, false); err != nil {
			return nil, err
		}
		return disk.Read(path, disk.MaxWhole)
	}
	return b, err
}

// backend is the variable by which tests are run with another backend; those that look at
// files of contexts themselves fail then.
const backend = "TORI_CONTEXT_STORAGE_BACKEND"
