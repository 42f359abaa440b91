package contextstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/lazyregexp"
)

var houseTable = lazyregexp.New(`(?m)^CREATE TABLE (\w+)`)

// houseTables are those of house.db, in the order in which they are made.
func houseTables() (all []string) {
	for _, script := range houseSchema().Migrations {
		for _, m := range houseTable().FindAllStringSubmatch(script, -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// CopyHouse adds the rows of a base directory's house.db to another one's, each that is not there
// yet, and returns how many it read. It holds one row in memory. The bases are held by the caller.
func CopyHouse(ctx context.Context, from string, held *database.Base, to string, taken *database.Base) (n int64, err error) {
	a, err := OpenHouseDB(ctx, from, held)
	if err != nil {
		return 0, err
	}
	defer func() { _ = a.Close() }() // only read from
	b, err := OpenHouseDB(ctx, to, taken)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for _, table := range houseTables() {
		m, err := copyTable(ctx, a, b, table)
		if err != nil {
			return n, fmt.Errorf("copy the rows of %s: %w", table, err)
		}
		n += m
	}
	return n, nil
}

func copyTable(ctx context.Context, from, to *HouseDB, table string) (n int64, err error) {
	err = from.file.Use(func(h *database.Handles) error {
		rows, err := h.R.QueryContext(ctx, "SELECT * FROM "+table)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // Err tells
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		insert := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT DO NOTHING", table, strings.Join(columns, ", "), strings.TrimSuffix(strings.Repeat("?,", len(columns)), ","))
		return to.file.Write(func(w *database.Handles) error {
			tx, err := w.Begin(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }() // nothing to do once it is committed
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			for rows.Next() {
				if err := rows.Scan(into...); err != nil {
					return err
				}
				if _, err := tx.ExecContext(ctx, insert, values...); err != nil {
					return err
				}
				n++
			}
			if err := rows.Err(); err != nil {
				return err
			}
			if w.Postgres && slices.Contains(columns, "seq") { // the next number is behind those
				if _, err := tx.ExecContext(ctx, fmt.Sprintf(`SELECT setval(pg_get_serial_sequence('%[1]s', 'seq'), greatest(max(seq), 1), count(*) > 0) FROM %[1]s`, table)); err != nil {
					return err
				}
			}
			return tx.Commit()
		})
	})
	return n, err
}
