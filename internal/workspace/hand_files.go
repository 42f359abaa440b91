package workspace

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's name of an object
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// ErrMoved says that a file at hand is not what the base of a change says.
var ErrMoved = errors.New("the files have changed")

// handRoot is a checkout of which files are written; no link leads out of it.
type handRoot struct {
	*os.Root
	touched map[string]bool
}

func openHandRoot(dir string, touched []Touch) (handRoot, error) {
	root, err := os.OpenRoot(dir)
	r := handRoot{root, map[string]bool{}}
	for _, c := range touched {
		r.touched[c.Path] = true
	}
	return r, err
}

// left are the touched paths that are still what they were. One that is neither that
// nor what it is to become is an error, which wraps ErrMoved unless others are already
// what they are to become.
func (r handRoot) left(touched []Touch) (left []Touch, err error) {
	var other string
	done := 0
	for _, c := range touched {
		now, err := r.entry(c.Path, len(c.New.ID)+len(c.Old.ID))
		switch {
		case errors.Is(err, ErrMoved):
			other = c.Path
		case err != nil:
			return nil, err
		case sameFile(now, c.Old):
			left = append(left, c)
		case sameFile(now, c.New):
			done++
		default:
			other = c.Path
		}
	}
	switch {
	case other == "":
		return left, nil
	case done == 0:
		return nil, moved(other)
	}
	return nil, i18n.E("workspace.hand_half", readable(other), done, len(touched))
}

// moved is the error of a path that is not what it was.
func moved(name string) error {
	return fmt.Errorf("%w: %w", ErrMoved, i18n.E("workspace.hand_moved", readable(name)))
}

// sameFile reports whether two entries have the same content and mode.
func sameFile(a, b Entry) bool { return a.Mode == b.Mode && a.ID == b.ID }

// entry is what is at a path, the zero Entry for nothing. ids is the length of one or
// two ids of the repository, which tells its kind. On the way to a path there are
// directories and no links: a link there is an error, as it is for git apply.
func (r handRoot) entry(name string, ids int) (Entry, error) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		st, err := r.Lstat(dir)
		switch {
		case err == nil && st.Mode()&fs.ModeSymlink != 0:
			return Entry{}, moved(dir)
		case err == nil && st.IsDir():
			if _, err := r.Lstat(dir + "/.git"); err == nil {
				return Entry{}, i18n.E("workspace.hand_nested", readable(name))
			}
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR):
			return Entry{}, err
		}
	}
	st, err := r.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return Entry{}, nil
	}
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Path: name, Mode: ModeFile}
	var content io.Reader
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		target, err := r.Readlink(name)
		if err != nil {
			return e, err
		}
		e.Mode, content = ModeLink, strings.NewReader(target)
		return e, hashInto(&e, content, int64(len(target)), ids)
	case st.IsDir():
		return r.directory(name)
	case !st.Mode().IsRegular():
		return e, moved(name)
	}
	if st.Mode()&0o100 != 0 {
		e.Mode = ModeProgram
	}
	f, err := disk.OpenIn(r.Root, name, os.O_RDONLY)
	if err != nil {
		return e, err
	}
	err = hashInto(&e, io.LimitReader(f, st.Size()), st.Size(), ids)
	return e, errors.Join(err, f.Close())
}

// directory is a directory as nothing, for git knows none, unless it holds a file that is
// not among the touched ones.
func (r handRoot) directory(name string) (Entry, error) {
	f, err := disk.OpenDir(r.Root, name)
	if err != nil {
		return Entry{}, err
	}
	defer func() { _ = f.Close() }()
	list, err := f.ReadDir(-1)
	if err != nil {
		return Entry{}, err
	}
	for _, d := range list {
		if !d.IsDir() && r.touched[name+"/"+d.Name()] {
			continue
		}
		if !d.IsDir() {
			return Entry{Path: name, Mode: modeDir}, nil
		}
		if e, err := r.directory(name + "/" + d.Name()); err != nil || e.Mode != "" {
			return e, err
		}
	}
	return Entry{}, nil
}

// hashInto names content as git does.
func hashInto(e *Entry, content io.Reader, size int64, ids int) error {
	h := sha1.New() //nolint:gosec // git's name of an object
	if ids >= 64 && ids%64 == 0 {
		h = sha256.New()
	}
	_, _ = fmt.Fprintf(h, "blob %d\x00", size) // a hash takes everything
	n, err := io.Copy(h, content)
	if err == nil && n != size {
		err = moved(e.Path)
	}
	e.ID = hex.EncodeToString(h.Sum(nil))
	return err
}

// remove removes a file, and the directories that it leaves empty.
func (r handRoot) remove(name string) error {
	if err := r.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if r.Remove(dir) != nil { // there is something in it
			break
		}
	}
	return nil
}

// removeEmpty removes a directory in which there are directories only.
func (r handRoot) removeEmpty(name string) error {
	f, err := disk.OpenDir(r.Root, name)
	if err != nil {
		return err
	}
	list, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, d := range list {
		if err := r.removeEmpty(name + "/" + d.Name()); err != nil {
			return err
		}
	}
	return r.Remove(name)
}

// fileSink is a file that is being written, or the target of a link.
type fileSink struct {
	f    *os.File
	link bytes.Buffer
}

// Write implements io.Writer.
func (s *fileSink) Write(p []byte) (int, error) {
	if s.f != nil {
		return s.f.Write(p)
	}
	if s.link.Len()+len(p) > maxTarget {
		return 0, fmt.Errorf("a link of more than %d bytes", maxTarget)
	}
	return s.link.Write(p)
}

// write puts a file in the place of another by a rename.
func (r handRoot) write(c Touch, fill func(*fileSink) error) (err error) {
	dir := path.Dir(c.Path)
	if err := r.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(c.Path))
	tmp := path.Join(dir, ".tori-write-"+hex.EncodeToString(sum[:8])+".tmp")
	if err := r.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to := &fileSink{}
	if c.New.Mode == ModeLink {
		if err := fill(to); err != nil {
			return err
		}
		err = r.Symlink(to.link.String(), tmp)
	} else {
		perm := fs.FileMode(0o666)
		if c.New.Mode == ModeProgram {
			perm = 0o777
		}
		if to.f, err = r.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm); err != nil {
			return err
		}
		if st, serr := r.Lstat(c.Path); serr == nil && st.Mode().IsRegular() { // it stays who may read and write it
			perm = st.Mode().Perm() &^ 0o111
			if c.New.Mode == ModeProgram {
				perm |= perm >> 2 & 0o111
			}
			err = to.f.Chmod(perm)
		}
		err = errors.Join(err, fill(to))
		err = errors.Join(err, to.f.Sync(), to.f.Close())
	}
	if err == nil {
		if st, serr := r.Lstat(c.Path); serr == nil && st.IsDir() {
			err = r.removeEmpty(c.Path)
		}
	}
	if err == nil {
		err = r.Rename(tmp, c.Path)
	}
	if err != nil {
		err = errors.Join(err, r.Remove(tmp))
	}
	return err
}

// sync makes the names of what was written last.
func (r handRoot) sync(touched []Touch) error {
	seen := map[string]bool{}
	for _, c := range touched {
		for dir := path.Dir(c.Path); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			if err := (&disk.FS{}).SyncDir(filepath.Join(r.Name(), dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
