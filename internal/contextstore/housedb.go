package contextstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"toritsugi/internal/i18n"
)

// houseDB is house.db: what cannot be derived from the directories. It is never
// deleted nor rebuilt, every write of it is synced, and its errors are errors of
// whoever asked: only they and those of claims stop a task (PROTOCOL "Turn").
type houseDB struct{ *database }

var houseSchema = schema{
	file: "house.db", migrations: "migrations/house", sync: "FULL", busy: openingBusy,
	newer: "ledger.newer_house", broken: "ledger.broken_house",
}

// openHouseDB opens base/house.db, or makes it: beside existing contexts too,
// because a delivery looks for its own mark before it repeats anything.
func openHouseDB(ctx context.Context, base string, h *house) (*houseDB, error) {
	d := &houseDB{&database{schema: houseSchema, path: filepath.Join(base, houseSchema.file), house: h, ready: prepareAcks}}
	if err := d.attach(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", houseSchema.file, err)
	}
	return d, nil
}

func prepareAcks(ctx context.Context, h *handles) error {
	return errors.Join(
		h.prepare(ctx, "ack", `INSERT INTO outbox_acks (key, uuid, kind, acked_at, result) VALUES (?,?,?,?,?) ON CONFLICT(key) DO NOTHING`),
		h.prepare(ctx, "acked", `SELECT key, result FROM outbox_acks WHERE uuid=?`))
}

func (d *houseDB) close() error {
	if d == nil {
		return nil
	}
	return d.database.close()
}

// ack records durably that an effect of a run's outbox was delivered, and what
// came back. The first record of a key stays; it is an error if it is another
// run's.
func (d *houseDB) ack(ctx context.Context, uuid string, e Effect, result string, now Time) error {
	if _, err := d.check(ctx); err != nil {
		return fmt.Errorf("record the delivery %s of %s: %w", e.Key, uuid, err)
	}
	var owner string
	err := d.use(func(h *handles) error {
		added := false
		err := retry(ctx, func() error {
			r, err := h.stmts["ack"].ExecContext(ctx, e.Key, uuid, e.Kind, now.String(), null(result))
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
		return h.w.QueryRowContext(ctx, `SELECT uuid FROM outbox_acks WHERE key=?`, e.Key).Scan(&owner)
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
func (d *houseDB) acked(ctx context.Context, uuid string) (map[string]string, error) {
	if _, err := d.check(ctx); err != nil {
		return nil, fmt.Errorf("read the deliveries of %s: %w", uuid, err)
	}
	return d.stored(ctx, uuid)
}

// stored is acked for those who have the turn of the house, which a check that
// finds the file gone would wait for.
func (d *houseDB) stored(ctx context.Context, uuid string) (map[string]string, error) {
	done := map[string]string{}
	err := d.use(func(h *handles) error {
		rows, err := h.stmts["acked"].QueryContext(ctx, uuid)
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
