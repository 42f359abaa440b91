package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unchangedLFS returns which of these modified files are, as LFS sees them,
// what their pointers say. Its filter is not run; a pointer is easily read.
func (s *Source) unchangedLFS(ctx context.Context, t tree, paths []string) (map[string]bool, error) {
	same := map[string]bool{}
	if len(paths) == 0 {
		return same, nil
	}
	var fields []string
	err := records(ctx, t, call{args: []string{"check-attr", "-z", "--stdin", "filter"}, stdin: []byte(strings.Join(paths, "\x00") + "\x00")}, func(rec []byte) error {
		if fields = append(fields, string(rec)); len(fields) == 3 { // path, attribute, value
			if fields[2] == "lfs" {
				same[fields[0]] = false
			}
			fields = nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	left := int64(maxHashed)
	for path := range same {
		pointer := &head{max: 1 << 10}
		if _, err := t.run(ctx, call{args: []string{"cat-file", "blob", ":0:" + path}, out: pointer}); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue // deleted, or in conflict: modified at any rate
		}
		same[path] = pointsTo(ctx, pointer.b, root, path, &left)
	}
	return same, ctx.Err()
}

// maxHashed is how much is read of files that LFS keeps, in bytes together; those
// past it count as modified. A stranger's may be as large as they like, and empty.
const maxHashed = 16 << 30

// pointsTo reports whether an LFS pointer (git-lfs/docs/spec.md) is that of a file,
// the size of which it takes from what is left.
func pointsTo(ctx context.Context, pointer []byte, root *os.Root, path string, left *int64) bool {
	var oid string
	size := int64(-1)
	for l := range bytes.Lines(pointer) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(l)), " ")
		switch key {
		case "oid":
			oid, _ = strings.CutPrefix(value, "sha256:")
		case "size":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				size = n
			}
		}
	}
	f, err := root.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	defer context.AfterFunc(ctx, func() { _ = f.Close() })() // some take a minute
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() != size || size > *left {
		return false
	}
	*left -= size
	sum := sha256.New()
	if n, err := io.Copy(sum, f); err != nil || n != size {
		return false
	}
	return hex.EncodeToString(sum.Sum(nil)) == oid
}

// inside reports whether path is dir or below it.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
