package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"toritsugi/internal/disk"
)

// maxKept is how many results are kept beside a setup.
const maxKept = 64

func (w *Workspace) keptFile(name string) string {
	return filepath.Join(w.made, "results", name+".json")
}

// Kept returns what Keep was given for a name by this task, or an earlier one of a
// base with the same files and setup; nil for nothing. It goes when the setup does.
func (w *Workspace) Kept(name string) ([]byte, error) {
	if w.made == "" {
		return nil, nil
	}
	data, err := disk.Read(w.keptFile(name), disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("kept result: %w", err)
	}
	return data, nil
}

// Keep keeps a result for later tasks. Of too many none is kept any more.
func (w *Workspace) Keep(name string, data []byte) error {
	if w.made == "" {
		return nil
	}
	file := w.keptFile(name)
	if err := (&disk.FS{}).MkdirAll(filepath.Dir(file)); err != nil {
		return fmt.Errorf("keep a result: %w", err)
	}
	all, err := os.ReadDir(filepath.Dir(file))
	if err == nil && len(all) >= maxKept {
		return nil
	}
	if err == nil {
		err = (&disk.FS{}).Replace(file, data, false)
	}
	if err != nil {
		return fmt.Errorf("keep a result: %w", err)
	}
	return nil
}
