package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
)

// unit is what is copied and brought back as one: the directory of a run or a conversation, as a
// tar archive, or a file.
type unit struct {
	Path   string  `json:"path"` // from the base directory
	Dir    bool    `json:"dir,omitempty"`
	Stamp  string  `json:"stamp"` // of names, sizes, times and inodes: what has the same was not changed since
	Bytes  int64   `json:"bytes"`
	Chunks []chunk `json:"chunks"`
}

// known are the chunks of a unit by their sums.
func known(chunks []chunk) map[string]chunk {
	m := make(map[string]chunk, len(chunks))
	for _, c := range chunks {
		m[c.Sum] = c
	}
	return m
}

// shards is how many lists a generation has: one is held in memory at a time.
const shards = 64

// shardOf is the list that a unit stands in.
func shardOf(path string) int { return int(sha256.Sum256([]byte(path))[0]) % shards }

// maxUnitLine is the longest line of a list, in bytes: that of a unit of some 300 GiB.
const maxUnitLine = 64 << 20

// units calls f with each unit of a list, in the order of their paths.
func (r *Repository) units(ctx context.Context, list []chunk, f func(unit) error) error {
	lines := bufio.NewScanner(r.stream(ctx, list))
	lines.Buffer(nil, maxUnitLine)
	for lines.Scan() {
		var u unit
		if err := json.Unmarshal(lines.Bytes(), &u); err != nil {
			return damaged(objectName(list[0].Object), err)
		}
		if !filepath.IsLocal(u.Path) {
			return damaged(objectName(list[0].Object), fmt.Errorf("a path %q", u.Path))
		}
		if err := f(u); err != nil {
			return err
		}
	}
	return lines.Err()
}

// each calls f with each unit of a generation.
func (r *Repository) each(ctx context.Context, g Generation, f func(unit) error) error {
	for _, list := range g.Lists {
		if err := r.units(ctx, list, f); err != nil {
			return err
		}
	}
	return nil
}

// LockedError says that nothing that was given decrypts a backup.
type LockedError struct{ error }

func (e *LockedError) Unwrap() error { return e.error }
