package database

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A file of another program is read without a file being made beside it, whichever journal it has.
func TestForeignFilesStayAlone(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"DELETE", "WAL"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a b.db")
		if _, err := OpenForeign(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing one: %v", err)
		}
		db, err := sql.Open("sqlite", path)
		if err == nil {
			_, err = db.ExecContext(t.Context(), `PRAGMA journal_mode=`+mode+`; CREATE TABLE a (b TEXT); INSERT INTO a VALUES ('c')`)
		}
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		db, err = OpenForeign(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), db, Text, `SELECT b FROM a`)
		if err != nil || !slices.Equal(got, []string{"c"}) {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
		if _, err := db.ExecContext(t.Context(), `DELETE FROM a`); err == nil {
			t.Errorf("%s: it can be written to", mode)
		}
		names, err := os.ReadDir(dir)
		if err = errors.Join(err, db.Close()); err != nil || len(names) != 1 {
			t.Errorf("%s: %v, %v", mode, names, err)
		}
	}
}
