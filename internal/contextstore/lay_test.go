package contextstore

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
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
