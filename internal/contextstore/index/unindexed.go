package index

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// UnindexedDir holds an empty file, row-{uuid}, for each run whose row tasks.db
// could not be given. While there is one the directories tell, not the index; the
// next opening, and each check of the index, write the rows that are missing.
const UnindexedDir = "unindexed"

// Mark is that file.
func Mark(base, uuid string) string { return filepath.Join(base, UnindexedDir, "row-"+uuid) }

// Unindexed lists the runs that the index could not be told of, at most so many;
// n < 0 lists all.
func Unindexed(base string, n int) (uuids []string, err error) {
	h, err := os.Open(filepath.Join(base, UnindexedDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.Close() }()
	names, err := h.Readdirnames(n)
	for _, name := range names {
		uuids = append(uuids, strings.TrimPrefix(name, "row-"))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return uuids, err
}

// Behind reports that there is a run that the index could not be told of.
func (i *Index) Behind() bool {
	if i.dir == "" {
		return false
	}
	some, err := Unindexed(i.dir, 1)
	return err != nil || len(some) > 0
}
