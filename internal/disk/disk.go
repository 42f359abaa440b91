// Package disk is the one narrow seam through which durable files are written:
// append, sync, replace, rename and remove, and nothing else (PROTOCOL "One
// seam"). Tests stop the program at a call, make a call fail, or count calls.
// Files are 0600 and directories 0700 (store-v2 §11.1).
package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Modes of everything the ledger writes (store-v2 §11.1).
const (
	FileMode os.FileMode = 0o600
	DirMode  os.FileMode = 0o700
)

// Kind names one of the five calls.
type Kind string

// The five calls.
const (
	Append  Kind = "append"
	Sync    Kind = "sync"
	Replace Kind = "replace"
	Rename  Kind = "rename"
	Remove  Kind = "remove"
)

// Op is one call about to be made. Bytes is what it will write, 0 for none.
type Op struct {
	Kind  Kind
	Path  string
	Bytes int
}

// Counts are totals since the FS was made.
type Counts struct {
	Appends  int64 `json:"appends"`
	Syncs    int64 `json:"syncs"` // of files; a synced replace or rename also syncs directories
	Replaces int64 `json:"replaces"`
	Renames  int64 `json:"renames"`
	Bytes    int64 `json:"bytes"` // appended and replaced
}

// FS makes the calls. The zero value writes for real. It is safe for
// concurrent use; Before is set before first use.
type FS struct {
	// Before, if set, is asked before each call. An error it returns is the
	// call's result and the call is not made; a *ShortWrite is written as far
	// as it says first.
	Before func(Op) error

	appends, syncs, replaces, renames, bytes atomic.Int64
}

// ShortWrite, returned from Before, lets an append write its first N bytes and
// then fail with Err, as a full disk does.
type ShortWrite struct {
	N   int
	Err error
}

func (s *ShortWrite) Error() string { return fmt.Sprintf("short write of %d bytes: %v", s.N, s.Err) }
func (s *ShortWrite) Unwrap() error { return s.Err }

// ErrPoisoned is returned by every call on a file after a sync of it failed:
// what the kernel did with its dirty pages is unknown, so a retry proves nothing.
var ErrPoisoned = errors.New("an earlier sync of this file failed")

// Counts returns the totals so far.
func (f *FS) Counts() Counts {
	return Counts{f.appends.Load(), f.syncs.Load(), f.replaces.Load(), f.renames.Load(), f.bytes.Load()}
}

func (f *FS) before(op Op) error {
	if f.Before == nil {
		return nil
	}
	return f.Before(op)
}

// File is a file that is only appended to. It is owned by one goroutine.
type File struct {
	fs       *FS
	f        *os.File
	path     string
	size     int64 // of what was wholly written
	poisoned bool
}

// OpenAppend opens path for appending, creating it if it is missing. A new
// file's directory entry is durable after the next SyncDir or Rename of its
// directory.
func (f *FS) OpenAppend(path string) (*File, error) {
	h, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, FileMode)
	if err != nil {
		return nil, err
	}
	st, err := h.Stat()
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return &File{fs: f, f: h, path: path, size: st.Size()}, nil
}

// Moved tells the file where it lies after its directory was renamed, for its
// errors and for the seam.
func (a *File) Moved(dir string) { a.path = filepath.Join(dir, filepath.Base(a.path)) }

// Size is the file's length in bytes.
func (a *File) Size() int64 { return a.size }

// Append writes b at the end and returns where it begins. If not all of b can
// be written the file is cut back to its length before, so a reader never sees
// half of it; the error says why (ENOSPC, EIO …).
func (a *File) Append(b []byte) (offset int64, err error) {
	if a.poisoned {
		return 0, fmt.Errorf("append to %s: %w", a.path, ErrPoisoned)
	}
	offset = a.size
	n := len(b)
	err = a.fs.before(Op{Append, a.path, n})
	var short *ShortWrite
	if errors.As(err, &short) {
		b = b[:min(short.N, n)]
	} else if err != nil {
		return 0, fmt.Errorf("append to %s: %w", a.path, err)
	}
	if _, werr := a.f.WriteAt(b, offset); werr != nil {
		err = werr
		if pe := (*os.PathError)(nil); errors.As(werr, &pe) {
			err = pe.Err // its path is the one the file was opened by
		}
	}
	if err != nil {
		if terr := a.f.Truncate(offset); terr != nil {
			a.poisoned = true
			err = errors.Join(err, terr)
		}
		return 0, fmt.Errorf("append to %s: %w", a.path, err)
	}
	a.size += int64(n)
	a.fs.appends.Add(1)
	a.fs.bytes.Add(int64(n))
	return offset, nil
}

// Sync makes everything appended so far durable (fdatasync).
func (a *File) Sync() error {
	if a.poisoned {
		return fmt.Errorf("sync %s: %w", a.path, ErrPoisoned)
	}
	err := a.fs.before(Op{Kind: Sync, Path: a.path})
	if err == nil {
		err = unix.Fdatasync(int(a.f.Fd()))
	}
	if err != nil {
		a.poisoned = true
		return fmt.Errorf("sync %s: %w", a.path, err)
	}
	a.fs.syncs.Add(1)
	return nil
}

// Truncate cuts the file to its first size bytes: a repair, never part of a turn.
func (a *File) Truncate(size int64) error {
	if err := a.fs.before(Op{Kind: Append, Path: a.path}); err != nil {
		return fmt.Errorf("truncate %s: %w", a.path, err)
	}
	if err := a.f.Truncate(size); err != nil {
		return err
	}
	a.size = size
	return nil
}

// ReadAt reads what was appended, as io.ReaderAt.
func (a *File) ReadAt(p []byte, off int64) (int, error) { return a.f.ReadAt(p, off) }

// Close releases the descriptor; it does not sync.
func (a *File) Close() error { return a.f.Close() }

// Replace writes data to path so that a reader sees the old content or the new,
// never a mixture. With durable, the content and the directory entry are synced.
func (f *FS) Replace(path string, data []byte, durable bool) error {
	err := f.before(Op{Replace, path, len(data)})
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err = f.writeTemp(tmp, data, durable); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("replace %s: %w", path, err)
	}
	f.replaces.Add(1)
	f.bytes.Add(int64(len(data)))
	if durable {
		return f.SyncDir(filepath.Dir(path))
	}
	return nil
}

func (f *FS) writeTemp(tmp string, data []byte, durable bool) error {
	h, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, FileMode)
	if err != nil {
		return err
	}
	_, err = h.Write(data)
	if err == nil && durable {
		err = unix.Fdatasync(int(h.Fd()))
		f.syncs.Add(1)
	}
	return errors.Join(err, h.Close())
}

// Rename moves a file or directory within one file system and syncs both
// parents, so that after a power cut it is at one of the two places.
func (f *FS) Rename(from, to string) error {
	if err := f.before(Op{Kind: Rename, Path: to}); err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to, err)
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	f.renames.Add(1)
	if err := f.SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	if filepath.Dir(from) == filepath.Dir(to) {
		return nil
	}
	return f.SyncDir(filepath.Dir(from))
}

// Remove deletes a file; a missing one is not an error.
func (f *FS) Remove(path string) error {
	if err := f.before(Op{Kind: Remove, Path: path}); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// MkdirAll creates a directory and its missing parents, mode 0700, and makes
// the new entry durable.
func (f *FS) MkdirAll(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := f.MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, DirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return f.SyncDir(parent)
}

// SyncDir makes the entries of a directory durable.
func (f *FS) SyncDir(path string) error {
	if err := f.before(Op{Kind: Sync, Path: path}); err != nil {
		return fmt.Errorf("sync directory %s: %w", path, err)
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}
