package database

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/url"
	"os"
)

// Reader is a database, a connection or a transaction.
type Reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Each calls f with each row that a query finds, until f returns an error.
func Each(ctx context.Context, db Reader, f func(*sql.Rows) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err tells
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Read returns what a query finds, each row as scan reads it.
func Read[T any](ctx context.Context, db Reader, scan func(*sql.Rows) (T, error), query string, args ...any) (all []T, err error) {
	err = Each(ctx, db, func(rows *sql.Rows) error {
		one, err := scan(rows)
		all = append(all, one)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// List is Read of an open database.
func List[T any](ctx context.Context, d Database, scan func(*sql.Rows) (T, error), query string, args ...any) (all []T, err error) {
	err = d.Use(func(h *Handles) error {
		all, err = Read(ctx, h.R, scan, query, args...)
		return err
	})
	return all, err
}

// Text reads a row of one text.
func Text(rows *sql.Rows) (s string, err error) {
	err = rows.Scan(&s)
	return s, err
}

// OpenForeign opens a SQLite file that another program made, for reading only: nothing is written,
// nor made beside it, also on a disk that cannot be written. A missing file is fs.ErrNotExist.
func OpenForeign(ctx context.Context, path string) (*sql.DB, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	query := url.Values{"mode": {"ro"}, "_pragma": {busyPragma, "query_only(1)"}}
	// Of a file with a WAL that nobody else has open, SQLite makes one, and its index, beside it.
	if st, err := os.Stat(path + "-wal"); err != nil || st.Size() == 0 {
		wal, err := keepsWAL(path)
		if err != nil {
			return nil, err
		}
		if wal {
			query.Set("immutable", "1")
		}
	}
	return sql.Open("sqlite", dsn(path, query))
}

// keepsWAL reports whether a SQLite file says in its head that it is written to by a WAL.
func keepsWAL(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	var head [20]byte
	n, err := io.ReadFull(f, head[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n == len(head) && head[18] == 2, errors.Join(err, f.Close())
}
