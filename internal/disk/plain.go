package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotPlain is the error of a path that is a directory, a pipe or a device.
var ErrNotPlain = errors.New("not a plain file")

// OpenPlain opens a plain file, or a link to one, for reading. What is none is
// an *os.PathError of ErrNotPlain: a pipe without a writer would be waited for
// where no signal ends the wait, and a device need not end.
func OpenPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
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
