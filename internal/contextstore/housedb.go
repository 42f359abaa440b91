package contextstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/i18n"
)

// HouseDB is house.db: what cannot be derived from the directories. It is never
// deleted nor rebuilt, every write of it is synced, and its errors are errors of
// whoever asked: only they and those of claims stop a task (PROTOCOL "Turn").
type HouseDB struct{ file database.Database }

//go:embed migrations/*.sql
var migrations embed.FS

// HouseDBFile is the name of house.db in a base directory.
const HouseDBFile = "house.db"

// houseBusy is how long, in ms, a write waits for another process's.
const houseBusy = 10_000

func houseSchema() database.Schema {
	s := database.Schema{File: HouseDBFile, Sync: "FULL", Busy: houseBusy, Erase: true, Newer: "ledger.newer_house", Broken: "ledger.broken_house"}
	files, err := migrations.ReadDir("migrations") // in the order of their names
	for _, f := range files {
		script, rerr := migrations.ReadFile("migrations/" + f.Name())
		s.Migrations, s.Postgres, err = append(s.Migrations, string(script)), append(s.Postgres, database.Translated(string(script))), errors.Join(err, rerr)
	}
	if err != nil {
		panic(err) // of what is built in
	}
	return s
}

// OpenHouseDB opens the house.db of a base directory, or the tables of a server that base is in, or
// makes it: beside existing contexts too, because a delivery looks for its own mark before it repeats
// anything.
func OpenHouseDB(ctx context.Context, dir string, base *database.Base) (*HouseDB, error) {
	schema := houseSchema()
	d, err := base.Open(ctx, &database.File{Schema: schema, Path: filepath.Join(dir, schema.File), Base: base, Statements: map[string]string{
		"ack":   `INSERT INTO outbox_acks (key, uuid, kind, acked_at, result) VALUES (?,?,?,?,?) ON CONFLICT(key) DO NOTHING`,
		"acked": `SELECT key, result FROM outbox_acks WHERE uuid=?`,
	}})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", schema.File, err)
	}
	return &HouseDB{d}, nil
}

// ReadHouseDB opens the house.db of a base directory, or the tables of its server, for reading only,
// also on a disk that cannot be written. The error is one of os.ErrNotExist where there is none.
func ReadHouseDB(ctx context.Context, dir string) (*HouseDB, error) {
	schema := houseSchema()
	if s := database.ServerOf(dir); s != nil {
		d, err := s.OpenToRead(ctx, schema)
		if err != nil {
			return nil, fmt.Errorf("open %s for reading: %w", schema.File, err)
		}
		return &HouseDB{d}, nil
	}
	d := &database.File{Schema: schema, Path: filepath.Join(dir, schema.File)}
	if err := d.OpenToRead(ctx); err != nil {
		return nil, fmt.Errorf("open %s for reading: %w", schema.File, err)
	}
	return &HouseDB{d}, nil
}

// VerifyHouseDB reports why the house.db of a base directory cannot be used: no run can
// then begin. That there is none is no damage, deliveries look for their own marks.
func VerifyHouseDB(ctx context.Context, dir string) error {
	if database.ServerOf(dir) == nil {
		return houseSchema().Verify(ctx, dir)
	}
	d, err := ReadHouseDB(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = d.Close()
	}
	return err
}

// Close closes it.
func (d *HouseDB) Close() error {
	if d == nil {
		return nil
	}
	return d.file.Close()
}

// use calls f with the handles of the file that is there now, as File.Check says.
func (d *HouseDB) use(ctx context.Context, f func(h *database.Handles) error) error {
	if _, err := d.file.Check(ctx); err != nil {
		return err
	}
	return d.file.Use(f)
}

// list returns what a query of house.db finds, each row as scan reads it.
func list[T any](ctx context.Context, d *HouseDB, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	if _, err := d.file.Check(ctx); err != nil {
		return nil, err
	}
	return database.List(ctx, d.file, scan, query, args...)
}

// Row is the row of a context, with the effects that were delivered taken off. Without
// a house.db (nil), and with an error, every effect counts as pending.
func (d *HouseDB) Row(ctx context.Context, m Metadata, s State) (Row, error) {
	if d != nil && len(s.Outbox) > 0 {
		if _, err := d.file.Check(ctx); err != nil {
			return RowOf(m, s), fmt.Errorf("count what %s has yet to deliver: %w", m.UUID, err)
		}
	}
	return d.row(ctx, m, s)
}

// row is Row for those who have the turn of the base directory, which a check that finds
// the file gone would wait for.
func (d *HouseDB) row(ctx context.Context, m Metadata, s State) (Row, error) {
	r := RowOf(m, s)
	if d == nil || r.OutboxPending == 0 {
		return r, nil
	}
	acked, err := d.stored(ctx, m.UUID)
	if err != nil {
		return r, fmt.Errorf("count what %s has yet to deliver: %w", m.UUID, err)
	}
	for _, e := range s.Outbox {
		if _, ok := acked[e.Key]; ok {
			r.OutboxPending--
		}
	}
	return r, nil
}

// ack records durably that an effect of a run's outbox was delivered, and what
// came back. The first record of a key stays; it is an error if it is another
// run's.
func (d *HouseDB) ack(ctx context.Context, uuid string, e Effect, result string, now Time) error {
	var owner string
	err := d.use(ctx, func(h *database.Handles) error {
		added := false
		err := database.Retry(ctx, func() error {
			r, err := h.Stmts["ack"].ExecContext(ctx, e.Key, uuid, e.Kind, now.String(), database.Null(result))
			if err != nil {
				return err
			}
			n, err := r.RowsAffected()
			added = n == 1
			return err
		})
		if err != nil || added {
			owner = uuid
			return err
		}
		return h.W.QueryRowContext(ctx, `SELECT uuid FROM outbox_acks WHERE key=?`, e.Key).Scan(&owner)
	})
	if err != nil {
		return fmt.Errorf("record the delivery %s of %s: %w", e.Key, uuid, err)
	}
	if owner != uuid {
		return i18n.E("ledger.ack_other", e.Key, owner, uuid)
	}
	return nil
}

// acked returns the delivered effects of a run: by key, what came back.
func (d *HouseDB) acked(ctx context.Context, uuid string) (map[string]string, error) {
	if _, err := d.file.Check(ctx); err != nil {
		return nil, fmt.Errorf("read the deliveries of %s: %w", uuid, err)
	}
	return d.stored(ctx, uuid)
}

// stored is acked for those who have the turn of the house, which a check that
// finds the file gone would wait for.
func (d *HouseDB) stored(ctx context.Context, uuid string) (map[string]string, error) {
	done := map[string]string{}
	err := d.file.Use(func(h *database.Handles) error {
		rows, err := h.Stmts["acked"].QueryContext(ctx, uuid)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var key string
			var result sql.NullString
			if err := rows.Scan(&key, &result); err != nil {
				return err
			}
			done[key] = result.String
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("read the deliveries of %s: %w", uuid, err)
	}
	return done, nil
}

// Compact gives back the room that deleted rows left in tasks.db and house.db, where that is much
// (database.File.Compact), and returns how many bytes that were.
func (s *Store) Compact(ctx context.Context) (freed int64, err error) {
	a, aerr := s.index.Compact(ctx)
	b, berr := s.houseDB.file.Compact(ctx)
	return a + b, errors.Join(aerr, berr)
}
