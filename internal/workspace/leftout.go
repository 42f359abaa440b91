package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"toritsugi/internal/disk"
)

// LeftOut says which repositories inside the tree a commit is without.
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
	data, err := os.ReadFile(filepath.Join(w.dir, leftOutName))
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
func ignoredPaths(ctx context.Context, r repo, env, paths []string) (map[string]bool, error) {
	ignored := map[string]bool{}
	err := r.records(ctx, call{args: []string{"check-ignore", "-z", "--stdin"}, env: env, stdin: []byte(strings.Join(paths, "\x00") + "\x00")}, func(rec []byte) error {
		ignored[string(rec)] = true
		return nil
	})
	if err != nil && exitCode(err) != 1 { // 1: none is
		return nil, fmt.Errorf("look for what is ignored: %w", err)
	}
	return ignored, nil
}

// untold are the nested repositories that git must be told to pass over. One
// that it ignores, with no file in the index, it does not look at, and names it
// as an error where it is told.
func untold(ctx context.Context, r repo, env, nested []string) ([]string, error) {
	if len(nested) == 0 {
		return nil, nil
	}
	ignored, err := ignoredPaths(ctx, r, env, nested)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, p := range nested {
		if ignored[p] {
			_, err := r.run(ctx, call{args: []string{"ls-files", "-z", "--error-unmatch", "--", literal(p)}, env: env, out: io.Discard})
			if exitCode(err) == 1 {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// noteLeftOut notes what a commit now leaves out. Those that git ignores are
// nobody's loss: they are setup's, or the project does not want them.
func (w *Workspace) noteLeftOut(ctx context.Context) error {
	nested, err := w.nested(ctx)
	if err != nil {
		return err
	}
	l := LeftOut{}
	if len(nested) > 0 {
		ignored, err := ignoredPaths(ctx, w.repo, nil, nested)
		if err != nil {
			return err
		}
		for _, p := range nested {
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
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return (&disk.FS{}).Replace(file, append(data, '\n'), true)
}
