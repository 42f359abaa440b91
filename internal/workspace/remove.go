package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// removeAll deletes a tree, also where a program has taken our write permission
// from a directory in it, as go does with its module cache, and where it is
// deeper than a process has descriptors.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	top, operr := openDir(unix.AT_FDCWD, path, 0)
	if operr != nil {
		return err
	}
	defer func() { _ = unix.Close(top) }()
	if err := flatten(top); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return os.RemoveAll(path)
}

// flatten empties the directories of a directory, by moving up what they hold:
// two are open at a time.
func flatten(top int) error {
	moved := 0
	for {
		names, err := namesIn(top)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if unix.Unlinkat(top, name, 0) == nil {
				continue
			}
			dir, err := openDir(top, name, 0)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			inner, err := namesIn(dir)
			for _, below := range inner {
				if err != nil || unix.Unlinkat(dir, below, 0) == nil {
					continue
				}
				var fd int
				if fd, err = openDir(dir, below, 0); err == nil { // to be moved it must be ours to write
					moved++
					err = errors.Join(unix.Close(fd), unix.Renameat(dir, below, top, ".tori-removed-"+strconv.Itoa(moved)))
				}
			}
			if err = errors.Join(err, unix.Close(dir)); err == nil {
				err = unix.Unlinkat(top, name, unix.AT_REMOVEDIR)
			}
			if err != nil && !errors.Is(err, unix.ENOTEMPTY) { // a large one takes several turns
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
}

// namesIn lists the first of what a directory holds.
func namesIn(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(4096)
	if len(names) == 0 {
		return nil, nil //nolint:nilerror // io.EOF
	}
	return names, err
}
