package contextstore

import (
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"
)

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
			defer rows.Close()
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
		laid := made("laid", func(db *sql.DB) error { return s.lay(t.Context(), db) })
		up := made("up", func(db *sql.DB) error { return s.up(t.Context(), db) })
		if !slices.Equal(laid, up) || len(up) < 5 {
			t.Errorf("%s made at once:\n%q\nby its migrations:\n%q", s.file, laid, up)
		}
		made("laid, then up", func(db *sql.DB) error {
			if err := s.lay(t.Context(), db); err != nil {
				return err
			}
			return s.up(t.Context(), db)
		})
	}
}

// TestDownLeadsBack: what the latest migration of the index did it can undo.
func TestDownLeadsBack(t *testing.T) {
	t.Parallel()
	latest, err := indexSchema.latest()
	if err != nil {
		t.Fatal(err)
	}
	made := func(versions ...int64) (all []string) {
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
		defer rows.Close()
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
	if d := cmp.Diff(made(latest-1), made(latest, latest-1)); d != "" {
		t.Error(d)
	}
}
