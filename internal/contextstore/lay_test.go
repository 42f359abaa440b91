package contextstore

import (
	"database/sql"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"
)

var update = flag.Bool("update", false, "rewrite the files of migrations/whole")

// TestLayIsUp: a database that is made at once is the one that its migrations
// lead to.
func TestLayIsUp(t *testing.T) {
	t.Parallel()
	for _, s := range []schema{indexSchema, houseSchema} {
		made := func(how string, fill func(*sql.DB) error) (all []string) {
			path := filepath.Join(t.TempDir(), how)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			h, err := s.connect(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := h.close(); err != nil {
					t.Error(err)
				}
			}()
			if err := fill(h.w); err != nil {
				t.Fatalf("%s, %s: %v", s.file, how, err)
			}
			rows, err := h.w.Query(`SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master
				UNION ALL SELECT 'version ' || version_id || ' ' || is_applied FROM goose_db_version ORDER BY 1`)
			if err != nil {
				t.Fatal(err)
			}
			all = texts(t, rows)
			if s.whole != "" {
				all = append(all, contents(t, h.w)...)
				if how == "up" && *update {
					writeWhole(t, h.w, s.whole)
				}
			}
			return all
		}
		up := made("up", func(db *sql.DB) error { return s.up(t.Context(), db) })
		laid := made("laid", func(db *sql.DB) error { return s.lay(t.Context(), db) })
		if !slices.Equal(laid, up) || len(up) < 5 {
			t.Errorf("%s made at once (-update rewrites %s, for the next run): %s", s.file, s.whole, cmp.Diff(up, laid))
		}
		made("laid, then up", func(db *sql.DB) error {
			if err := s.lay(t.Context(), db); err != nil {
				return err
			}
			return s.up(t.Context(), db)
		})
	}
}

// contents are the rows that the migrations of the index put into its tables, as
// statements.
func contents(t *testing.T, db *sql.DB) (all []string) {
	t.Helper()
	var tables string
	if err := db.QueryRow(`SELECT group_concat(name) FROM (SELECT name FROM sqlite_master
		WHERE type='table' AND name NOT LIKE 'sqlite_%' AND name<>'goose_db_version' ORDER BY 1)`).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	for table := range strings.SplitSeq(tables, ",") {
		if table == "index_meta" {
			continue
		}
		var n int
		if err := db.QueryRow(`SELECT count(*) FROM ` + table).Scan(&n); err != nil || n > 0 {
			t.Errorf("%s: %d rows, %v; none was known to hold any", table, n, err)
		}
	}
	rows, err := db.Query(`SELECT 'INSERT INTO index_meta VALUES (' || quote(key) || ', ' || quote(value) || ')' FROM index_meta ORDER BY key`)
	if err != nil {
		t.Fatal(err)
	}
	return texts(t, rows)
}

// writeWhole writes the file that makes db at once.
func writeWhole(t *testing.T, db *sql.DB, file string) {
	t.Helper()
	rows, err := db.Query(`SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid`)
	if err != nil {
		t.Fatal(err)
	}
	text := "-- What all migrations of tasks.db lead to. Written by go test -run TestLayIsUp -update.\n\n" +
		strings.Join(append(texts(t, rows), contents(t, db)...), ";\n\n") + ";\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func texts(t *testing.T, rows *sql.Rows) (all []string) {
	t.Helper()
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDownLeadsBack: what the latest migration of the index did it can undo.
func TestDownLeadsBack(t *testing.T) {
	t.Parallel()
	latest, err := indexSchema.latest()
	if err != nil {
		t.Fatal(err)
	}
	made := func(versions ...int64) []string {
		path := filepath.Join(t.TempDir(), "tasks.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := indexSchema.connect(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = h.close() }()
		files, _ := fs.Sub(migrations, indexSchema.migrations)
		p, err := goose.NewProvider(goose.DialectSQLite3, h.w, files, goose.WithLogger(goose.NopLogger()))
		for i, v := range versions {
			if err == nil && i == 0 {
				_, err = p.UpTo(t.Context(), v)
			} else if err == nil {
				_, err = p.DownTo(t.Context(), v)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		rows, err := h.w.Query(`SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		return texts(t, rows)
	}
	if d := cmp.Diff(made(latest-1), made(latest, latest-1)); d != "" {
		t.Error(d)
	}
}
