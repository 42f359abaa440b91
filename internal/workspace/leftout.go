package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"toritsugi/internal/disk"
)

// LeftOut says which repositories inside the tree, which files that are too large,
// and which paths that git refuses, a commit is without.
type LeftOut struct {
	Paths []string `json:"paths"` // the first of them, as people may read them
	All   int      `json:"all"`
}

const leftOutName = "left-out"

// maxLeftOut is how many are told by name.
const maxLeftOut = 20

// LeftOut tells what the last Commit left out, also after the tree was restored
// and to a later owner.
func (w *Workspace) LeftOut() (l LeftOut, err error) {
	data, err := disk.Read(filepath.Join(w.dir, leftOutName), disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		return l, fmt.Errorf("repositories that were left out: %w", err)
	}
	return l, nil
}

// ignoredPaths are those of the paths that git ignores.
func ignoredPaths(ctx context.Context, t tree, paths []string) (map[string]bool, error) {
	ignored := map[string]bool{}
	err := records(ctx, t, call{args: []string{"check-ignore", "-z", "--stdin"}, stdin: []byte(strings.Join(paths, "\x00") + "\x00")}, func(rec []byte) error {
		ignored[string(rec)] = true
		return nil
	})
	if err != nil && exitCode(err) != 1 { // 1: none is
		return nil, fmt.Errorf("look for what is ignored: %w", err)
	}
	return ignored, nil
}

// noteLeftOut notes what a commit now leaves out. Those that git ignores are
// nobody's loss: they are setup's, or the project does not want them.
func (w *Workspace) noteLeftOut(ctx context.Context) error {
	left, err := w.notHeld(ctx)
	if err != nil {
		return err
	}
	l := LeftOut{}
	if len(left) > 0 {
		paths := make([]string, len(left))
		for i, c := range left {
			paths[i] = c.Path
		}
		ignored, err := ignoredPaths(ctx, w.onTree(), paths)
		if err != nil {
			return err
		}
		for _, p := range paths {
			if ignored[p] {
				continue
			}
			if l.All++; l.All <= maxLeftOut {
				l.Paths = append(l.Paths, readable(p))
			}
		}
	}
	file := filepath.Join(w.dir, leftOutName)
	if l.All == 0 {
		return (&disk.FS{}).Remove(file)
	}
	return (&disk.FS{}).ReplaceJSON(file, l, true)
}
