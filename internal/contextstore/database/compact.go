package database

import (
	"context"
	"fmt"
)

// What deleted rows must have left of a file before it is written anew: a quarter of it, and
// one MiB.
const (
	freeShare = 4
	freeLeast = 1 << 20
)

// Compact writes the file anew without the room that deleted rows left, where that is much, and
// returns by how many bytes it became smaller. Others may read meanwhile; it is an error where one
// writes for longer than the file's patience. A kill leaves the file as it was.
func (d *File) Compact(ctx context.Context) (freed int64, err error) {
	err = d.Write(func(h *Handles) error {
		var pages, free, size int64
		for name, n := range map[string]*int64{"page_count": &pages, "freelist_count": &free, "page_size": &size} {
			if err := h.W.QueryRowContext(ctx, "PRAGMA "+name).Scan(n); err != nil {
				return err
			}
		}
		if free*freeShare < pages || free*size < freeLeast {
			return nil
		}
		if _, err := h.W.ExecContext(ctx, "VACUUM"); err != nil {
			return err
		}
		freed = free * size
		// What it wrote is in the log beside the file; where others read from there, a later
		// checkpoint empties it.
		var busy, logged, done int64
		return h.W.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &logged, &done)
	})
	if err != nil {
		return 0, fmt.Errorf("compact %s: %w", d.File, err)
	}
	return freed, nil
}
