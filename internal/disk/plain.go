package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotPlain is the error of a path that is a directory, a pipe or a device.
var ErrNotPlain = errors.New("not a plain file")

// ErrLink is the error of a name that is a symbolic link where none is followed.
var ErrLink = errors.New("a symbolic link, which is not followed")

// TooLargeError is the error of a file that is longer than it may be.
type TooLargeError struct {
	Path string
	Most int64 // bytes
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("read %s: more than %d bytes", e.Path, e.Most)
}

// OpenPlain opens a plain file, or a link to one, for reading. What is none is
// an *os.PathError of ErrNotPlain: a pipe without a writer would be waited for
// where no signal ends the wait, and a device need not end.
func OpenPlain(path string) (Plain, error) {
	if p := At(path); p != nil {
		return p.Open(path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return plain(f, path)
}

// plain is f if it is a plain file, else it is closed.
func plain(f *os.File, path string) (Plain, error) {
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: ErrNotPlain}
	}
	if err != nil {
		_ = f.Close() // nothing was read
		return nil, err
	}
	return f, nil
}

// OpenIn opens a plain file that lies in the directory of root itself, where
// others may write as well: name is followed by no link, and neither is the way to
// root once that is open. flag is as for os.OpenFile; with O_CREATE a file is made
// with mode 0644. The errors are *os.PathError, of ErrLink or ErrNotPlain where
// name is none of a plain file.
func OpenIn(root *os.Root, name string, flag int) (*os.File, error) {
	refused := func(err error) (*os.File, error) { return nil, &os.PathError{Op: "open", Path: name, Err: err} }
	was, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		flag |= os.O_EXCL // which follows nothing that comes in between
	case err != nil:
		return nil, err
	case was.Mode()&fs.ModeSymlink != 0:
		return refused(ErrLink)
	case !was.Mode().IsRegular():
		return refused(ErrNotPlain)
	case flag&os.O_EXCL == 0:
		flag &^= os.O_CREATE
	}
	f, err := root.OpenFile(name, flag|unix.O_NONBLOCK, 0o644)
	if err != nil || was == nil {
		return f, err
	}
	if is, err := f.Stat(); err != nil || !os.SameFile(was, is) { // a link came in between
		_ = f.Close() // nothing was read
		return refused(errors.Join(errors.New("it changed while it was opened"), err))
	}
	return f, nil
}

// MaxWhole is the most that is read as a whole, in bytes, of a file that the program
// keeps for itself: such a file is far smaller, unless somebody else wrote it.
const MaxWhole = 64 << 20

// Read reads a whole plain file, or one that a link leads to, of at most most
// bytes. What is longer is a *TooLargeError: whatever parses it would need a
// multiple of its length.
func Read(path string, most int64) ([]byte, error) {
	f, err := OpenPlain(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	return ReadAll(f, path, most)
}

// ReadAll is Read of what is open already; path is for the error.
func ReadAll(r io.Reader, path string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, &TooLargeError{path, most}
	}
	return data, err
}

// OpenDir opens a directory below root. What commands put in its place, a pipe
// that would be waited at or a device, is an error. The caller closes it.
func OpenDir(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}
