package search

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"
)

// Runs that ended at one moment, or of which nothing tells when they did, take no longer each where
// they are many, and stand near it.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	d, err := Open(t.Context(), Options{BaseDir: h.base})
	must(t, err)
	defer func() { must(t, d.Close()) }()
	const n, ended = 4000, 1_700_000_000_000
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // trying one number after the other takes minutes
	defer cancel()
	var docs []document
	for i := range n {
		docs = append(docs, document{uuid: fmt.Sprint("run-", i), ended: ended})
	}
	must(t, d.put(ctx, docs))
	var last int64
	must(t, d.change(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT max(id) FROM runs`).Scan(&last)
	}))
	if kept, err := d.count(ctx); err != nil || kept != n || last > ended+16*n {
		t.Errorf("%d are kept, the last %d ms behind, %v", kept, last-ended, err)
	}
}
