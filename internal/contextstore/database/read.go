package database

import (
	"context"
	"database/sql"
)

// Reader is a database, a connection or a transaction.
type Reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Read returns what a query finds, each row as scan reads it.
func Read[T any](ctx context.Context, db Reader, scan func(*sql.Rows) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// Text reads a row of one text.
func Text(rows *sql.Rows) (s string, err error) {
	err = rows.Scan(&s)
	return s, err
}
