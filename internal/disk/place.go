package disk

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// Plain is a plain file that is open for reading. Its bytes up to the length that Stat
// tells may be read while another appends to it.
type Plain interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
	Name() string // its path
	Stat() (fs.FileInfo, error)
}

// Place keeps files that are not the kernel's: a database does. Paths lie below the directory
// that the place is mounted at. What is missing is
// fs.ErrNotExist. Its methods may be called from several goroutines.
//
// A lock on a file named OwnerLock is the ownership of its directory: while it is held
// by this place, what is written below that directory is refused with ErrNotOwner once
// the lock was lost to another.
type Place interface {
	// Has reports whether a path is one of the place's and not of the kernel.
	Has(path string) bool
	// Open opens a file for reading.
	Open(path string) (Plain, error)
	// Stat describes a file or a directory; there are no links.
	Stat(path string) (fs.FileInfo, error)
	// FindDir is which of several directories is there, all looked for at one moment.
	FindDir(paths []string) (string, error)
	// Entries calls f for what lies in a directory, in no order, until f returns an error.
	Entries(path string, f func(fs.DirEntry) error) error
	// Append opens a file that is appended to, and makes it where it is missing; with fresh it is
	// fs.ErrExist where it is not.
	Append(path string, fresh bool) (Appended, error)
	// Replace writes a whole file; with durable it is committed when this returns, with all
	// that was written before below the same owned directory.
	Replace(path string, data []byte, durable bool) error
	// Rename moves a file or a directory, over a file that is there.
	Rename(from, to string) error
	// Remove deletes a file, or with all a directory and what is in it; a missing one is
	// no error.
	Remove(path string, all bool) error
	// Mkdir makes a directory; one that is there is no error.
	Mkdir(path string) error
	// Lock takes the lock on a file without waiting, and with create makes the file where it
	// is missing: ErrLocked where somebody has it.
	Lock(path string, create bool) (Lock, error)
	// Locked reports whether somebody holds the lock on a file.
	Locked(path string) bool
}

// Appended is a file of a place that is appended to. What was written is committed by the
// next Sync, or soon after without one.
type Appended interface {
	io.ReaderAt
	io.Closer
	Size() int64
	WriteAt(b []byte, end int64) (int, error) // end is its size
	Truncate(size int64) error
	Sync() error
}

// Lock is a lock that is held on a file of a place.
type Lock interface {
	// Write replaces what the file says, for people.
	Write(b []byte) error
	// Held reports whether the lock is still the holder's, as far as is known here, and path
	// the name of its file.
	Held(path string) bool
	// Release gives the lock up; the file stays.
	Release()
}

// OwnerLock is the name of the lock file that says who owns its directory.
const OwnerLock = ".lock"

// Errors of places.
var (
	ErrLocked   = errors.New("locked")
	ErrNotOwner = errors.New("context was taken over by another process")
)

// mount is a place that is mounted.
type mount struct {
	dir   string // with its slash
	place Place
}

// mounts are few: a program works on one base directory, or moves one into another.
var mounts atomic.Pointer[[]mount]

// Mount has a place keep the paths below dir that it has, for all of this process, until
// unmount is called: what names these paths need not know who keeps them.
func Mount(dir string, p Place) (unmount func()) {
	m := mount{strings.TrimSuffix(dir, "/") + "/", p}
	change(func(all []mount) []mount { return append(all, m) })
	return func() {
		change(func(all []mount) []mount { return slices.DeleteFunc(all, func(o mount) bool { return o == m }) })
	}
}

func change(f func([]mount) []mount) {
	for {
		old := mounts.Load()
		var all []mount
		if old != nil {
			all = slices.Clone(*old)
		}
		if all = f(all); mounts.CompareAndSwap(old, &all) {
			return
		}
	}
}

// At is the place that keeps a path, nil where the kernel does.
func At(path string) Place {
	all := mounts.Load()
	if all == nil || len(*all) == 0 {
		return nil
	}
	if !filepath.IsAbs(path) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil
		}
		path = abs
	}
	for _, m := range *all {
		if strings.HasPrefix(path, m.dir) && m.place.Has(path) {
			return m.place
		}
	}
	return nil
}

// Stat is os.Stat.
func Stat(path string) (fs.FileInfo, error) {
	if p := At(path); p != nil {
		return p.Stat(path)
	}
	return os.Stat(path)
}

// rounds is how often the kernel is asked for a directory that is renamed meanwhile.
const rounds = 30

// FindDir is which of several paths, all of one place or of the kernel, is a directory, also while
// it is renamed from one of them to another. The error is fs.ErrNotExist, or why one could not be looked for.
func FindDir(paths []string) (string, error) {
	if p := At(paths[0]); p != nil {
		return p.FindDir(paths)
	}
	var unseen error
	for n := range rounds { // it may go back to a path that was looked at
		for i := range paths {
			if n%2 == 1 { // the other way round, not to run in step with who renames it
				i = len(paths) - 1 - i
			}
			switch st, err := os.Stat(paths[i]); {
			case err == nil && st.IsDir():
				return paths[i], nil
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				unseen = err
			}
		}
	}
	return "", cmp.Or(unseen, fs.ErrNotExist)
}

// Lstat is os.Lstat.
func Lstat(path string) (fs.FileInfo, error) {
	if p := At(path); p != nil {
		return p.Stat(path)
	}
	return os.Lstat(path)
}

// Exists reports whether there is something at a path, be it a link.
func Exists(path string) bool {
	_, err := Lstat(path)
	return err == nil
}

// entriesAtOnce is how many entries of a directory are read at a time.
const entriesAtOnce = 256

// Entries calls f for what lies in a directory, in no order, until f returns an error. It
// reads the directory piece by piece.
func Entries(path string, f func(fs.DirEntry) error) error {
	if p := At(path); p != nil {
		return p.Entries(path, f)
	}
	h, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // only read from
	for {
		entries, err := h.ReadDir(entriesAtOnce)
		for _, e := range entries {
			if err := f(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Walk is filepath.WalkDir.
func Walk(path string, f fs.WalkDirFunc) error {
	p := At(path)
	if p == nil {
		return filepath.WalkDir(path, f)
	}
	st, err := p.Stat(path)
	if err != nil {
		return f(path, nil, err)
	}
	if err := walk(p, path, fs.FileInfoToDirEntry(st), f); !errors.Is(err, fs.SkipDir) && !errors.Is(err, fs.SkipAll) {
		return err
	}
	return nil
}

func walk(p Place, path string, e fs.DirEntry, f fs.WalkDirFunc) error {
	if err := f(path, e, nil); err != nil || !e.IsDir() {
		return err
	}
	err := p.Entries(path, func(e fs.DirEntry) error {
		err := walk(p, filepath.Join(path, e.Name()), e, f)
		if errors.Is(err, fs.SkipDir) && e.IsDir() {
			return nil
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
		return nil
	}
	return err
}

// FileID is what Sys of a file's description by a place is: it names the file and what it holds.
type FileID struct{ File, Version int64 }

// SameFile is os.SameFile, of files of a place too.
func SameFile(a, b fs.FileInfo) bool {
	x, placed := a.Sys().(FileID)
	y, _ := b.Sys().(FileID)
	return os.SameFile(a, b) || placed && x == y
}
