package folder

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// beside is a file that lies beside an issue, or an issue of a folder, where
// others may have put a link or a pipe in its place: it is opened, replaced and
// synced by its name in the directory, which is held, and no link is followed.
type beside struct {
	dir  *os.Root
	name string
	path string // for errors
}

// besideOf holds the directory of path. The caller closes it.
func besideOf(path string) (beside, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	return beside{dir, filepath.Base(path), path}, err
}

func (b beside) close() { _ = b.dir.Close() } // nothing is written by it

// open opens the file; flag is as for os.OpenFile.
func (b beside) open(flag int) (*os.File, error) {
	f, err := disk.OpenIn(b.dir, b.name, flag)
	switch {
	case errors.Is(err, disk.ErrLink):
		return nil, i18n.E("folder.is_link")
	case errors.Is(err, disk.ErrNotPlain):
		return nil, i18n.E("folder.not_regular")
	}
	return f, err
}

// is reports that f is still what the name stands for: an editor may have put
// another file in its place.
func (b beside) is(f *os.File) bool { return b.named(b.name, f) }

func (b beside) named(name string, f *os.File) bool {
	is, err := b.dir.Lstat(name)
	if err != nil {
		return false
	}
	was, err := f.Stat()
	return err == nil && os.SameFile(was, is)
}

// swap puts a file with what write writes in the place of this one, whole, where
// still, which may be nil, says so at the last moment. Until then it has one name
// beside it, so that what a kill leaves goes with the next write. Of two processes
// that write at once one fails.
func (b beside) swap(mode fs.FileMode, write func(*os.File) error, still func() error) error {
	tmp := temporary(b.name)
	switch st, err := b.dir.Lstat(tmp); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !st.Mode().IsRegular(): // not ours
		return i18n.E("folder.in_the_way", filepath.Join(filepath.Dir(b.path), tmp))
	default:
		if err := b.dir.Remove(tmp); err != nil {
			return err
		}
	}
	f, err := b.dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil && !b.named(tmp, f) { // else what another process has begun would be shown
		err = fs.ErrExist
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && still != nil {
		err = still()
	}
	if err == nil {
		err = b.dir.Rename(tmp, b.name)
	}
	if err != nil {
		_ = b.dir.Remove(tmp) // else the next write does
	}
	return err
}

// sync makes the directory's entries durable.
func (b beside) sync() error {
	d, err := b.dir.Open(".")
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// temporary is the name of what is on its way to a name: short, however long that is.
func temporary(name string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return fmt.Sprintf(".tori-%016x.tmp", h.Sum64())
}
