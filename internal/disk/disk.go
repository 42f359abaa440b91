// Package disk is the one seam to durable files: append, sync, replace, rename and
// remove (PROTOCOL "One seam"). Tests stop the program at a call, let one fail, count
// and trace them. Files are 0600, directories 0700 (store-v2 §11.1).
package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
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

// Kind names a call, or a step within one.
type Kind string

// The five calls.
const (
	Append  Kind = "append"
	Sync    Kind = "sync" // of a file or, with Op.Dir, of a directory
	Replace Kind = "replace"
	Rename  Kind = "rename"
	Remove  Kind = "remove" // of a file or, with Op.Dir, of a whole tree
)

// What the calls are made of besides: a program can be stopped, and a disk can
// fail, at each of them.
const (
	Create        Kind = "create" // of a file that is opened for appending
	Truncate      Kind = "truncate"
	Mkdir         Kind = "mkdir"
	ReplaceSync   Kind = "replace-sync"   // the temporary file is written, not yet synced
	ReplaceRename Kind = "replace-rename" // the temporary file is complete, not yet in place
)

// Op is one call about to be made. Bytes is what it will write, 0 for none.
type Op struct {
	Kind  Kind
	Path  string
	Bytes int
	Dir   bool
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
// concurrent use; its fields are set before first use.
type FS struct {
	// Before, if set, is asked before each call. An error it returns is the
	// call's result and the call is not made; a *ShortWrite is written as far
	// as it says first. Where a failed call clears up after itself it asks
	// again: a program that was stopped clears up nothing.
	Before func(Op) error
	// Trace, if set, is told each effect after it happened.
	Trace func(Event)
	// Flush, if set, stands for fdatasync of a file and fsync of a directory,
	// where a model and not the kernel says what is durable.
	Flush func(*os.File) error

	appends, syncs, replaces, renames, bytes atomic.Int64
}

// Effect is what a call did to the disk.
type Effect string

// The effects. Calls are made of these and of nothing else.
const (
	Created    Effect = "created"   // an empty file at Path
	MadeDir    Effect = "made dir"  // a directory at Path
	Wrote      Effect = "wrote"     // Data at Offset
	Truncated  Effect = "truncated" // to Offset bytes
	Synced     Effect = "synced"    // the content and length of a file
	SyncedDir  Effect = "synced dir"
	Renamed    Effect = "renamed"  // Path to To, replacing what was there
	Unlinked   Effect = "unlinked" // a file
	RemovedAll Effect = "removed"  // Path and everything below it
)

// Event is one effect. Inode identifies the file where the effect is on one;
// Data is valid during the call only.
type Event struct {
	Kind     Effect
	Path, To string
	Inode    uint64
	Offset   int64
	Data     []byte
}

// ShortWrite, returned from Before, lets an append or a replace write its first
// N bytes and then fail with Err, as a full disk does.
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

func (f *FS) trace(e Event) {
	if f.Trace != nil {
		f.Trace(e)
	}
}

// Free is how many bytes this user may still write to the file system of a path; plenty where that
// has no size, as some in memory have none, or cannot be asked.
func Free(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return math.MaxUint64, err
	}
	if st.Blocks == 0 {
		return math.MaxUint64, nil
	}
	return st.Bavail * uint64(st.Bsize), nil //nolint:gosec,unconvert // no negative number; the types differ by platform
}

// flush makes a file's content and length durable.
func (f *FS) flush(h *os.File) error {
	if f.Flush != nil {
		return f.Flush(h)
	}
	return unix.Fdatasync(int(h.Fd()))
}

// Replace writes data to path so that a reader sees the old content or the new,
// never a mixture. With durable, the content and the directory entry are
// synced; if only the latter fails, readers see the new content already.
func (f *FS) Replace(path string, data []byte, durable bool) error {
	err := f.before(Op{Kind: Replace, Path: path, Bytes: len(data)})
	if p := At(path); p != nil {
		if err == nil {
			err = p.Replace(path, data, durable)
		}
		if err != nil {
			return fmt.Errorf("replace %s: %w", path, err)
		}
		f.replaced(len(data), durable)
		return nil
	}
	var short *ShortWrite
	if err != nil && !errors.As(err, &short) {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if short != nil {
		err = errors.Join(f.writeTemp(tempOf(path), data[:min(short.N, len(data))], false), err)
	} else {
		err = f.writeTemp(tempOf(path), data, durable)
	}
	if err = f.putInPlace(path, err); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if durable {
		return f.SyncDir(filepath.Dir(path))
	}
	return nil
}

// ReplaceJSON is Replace with v as a line of JSON.
func (f *FS) ReplaceJSON(path string, v any, durable bool) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.Replace(path, append(data, '\n'), durable)
}

// tempOf is where the new content of a path is written, before it is complete.
func tempOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
}

// putInPlace renames the temporary file of path, unless to write it has failed.
func (f *FS) putInPlace(path string, err error) error {
	tmp := tempOf(path)
	if err == nil {
		err = f.before(Op{Kind: ReplaceRename, Path: path})
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = f.Remove(tmp) // what stays is litter that the next one overwrites
		return err
	}
	f.trace(Event{Kind: Renamed, Path: tmp, To: path})
	f.replaces.Add(1)
	return nil
}

// Write makes path, which is not there yet, of what write gives to its writer, as Replace does:
// it is there whole, and synced, or not at all.
func (f *FS) Write(path string, write func(io.Writer) error) error {
	err := f.before(Op{Kind: Replace, Path: path})
	if p := At(path); p != nil {
		if err == nil {
			err = f.writeAt(p, path, write)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	}
	if err == nil {
		err = f.tempBy(tempOf(path), true, write)
	}
	if err = f.putInPlace(path, err); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.SyncDir(filepath.Dir(path))
}

// replaced counts a replace.
func (f *FS) replaced(n int, durable bool) {
	f.replaces.Add(1)
	f.bytes.Add(int64(n))
	if durable {
		f.syncs.Add(1)
	}
}

// writeAt is Write to a place, which gets the whole file under another name first.
func (f *FS) writeAt(p Place, path string, write func(io.Writer) error) error {
	tmp := tempOf(path)
	if err := p.Remove(tmp, false); err != nil {
		return err
	}
	h, err := p.Append(tmp, false)
	if err != nil {
		return err
	}
	w := &appending{Appended: h}
	if err = errors.Join(write(w), w.rest()); err == nil {
		err = h.Sync()
	}
	f.replaced(int(h.Size()), true)
	if err = errors.Join(err, h.Close()); err == nil {
		return p.Rename(tmp, path)
	}
	return errors.Join(err, p.Remove(tmp, false))
}

// appending writes to the end of a file of a place, whole lines where they are not too long: it
// keeps a line as it is given.
type appending struct {
	Appended
	line []byte
}

// mostLine is how much of a line waits for its end, in bytes.
const mostLine = 1 << 20

// Write implements io.Writer.
func (a *appending) Write(b []byte) (int, error) {
	a.line = append(a.line, b...)
	end := bytes.LastIndexByte(a.line, '\n') + 1
	if end == 0 && len(a.line) > mostLine {
		end = len(a.line)
	}
	if end == 0 {
		return len(b), nil
	}
	_, err := a.WriteAt(a.line[:end], a.Size())
	a.line = append(a.line[:0], a.line[end:]...)
	return len(b), err
}

// rest writes what has no end.
func (a *appending) rest() error {
	_, err := a.WriteAt(a.line, a.Size())
	return err
}

// tracing tells of each write to a file that is new.
type tracing struct {
	f  *FS
	h  *os.File
	e  Event
	at int64
}

// Write implements io.Writer.
func (t *tracing) Write(b []byte) (int, error) {
	n, err := t.h.Write(b)
	if n > 0 {
		t.e.Kind, t.e.Offset, t.e.Data = Wrote, t.at, b[:n]
		t.f.trace(t.e)
		t.f.bytes.Add(int64(n))
	}
	t.at += int64(n)
	return n, err
}

// writeTemp writes the temporary file of a replace.
func (f *FS) writeTemp(tmp string, data []byte, durable bool) error {
	return f.tempBy(tmp, durable, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// tempBy writes a temporary file, over what a stopped call may have left.
func (f *FS) tempBy(tmp string, durable bool, write func(io.Writer) error) error {
	e := Event{Kind: Created, Path: tmp}
	h, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, FileMode)
	if errors.Is(err, os.ErrExist) {
		e.Kind = Truncated
		// Not what a link leads to, and not a pipe: where others write as well, they
		// may have put one there.
		h, err = os.OpenFile(tmp, os.O_TRUNC|os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, FileMode)
	}
	if err != nil {
		return err
	}
	if f.Trace != nil {
		e.Inode = inode(h)
		f.trace(e)
	}
	if err = write(&tracing{f: f, h: h, e: Event{Path: tmp, Inode: e.Inode}}); err == nil && durable {
		if err = f.before(Op{Kind: ReplaceSync, Path: tmp}); err == nil {
			err = f.flush(h)
		}
		if err == nil {
			f.trace(Event{Kind: Synced, Path: tmp, Inode: e.Inode})
			f.syncs.Add(1)
		}
	}
	return errors.Join(err, h.Close())
}

// Rename moves a file or directory within one file system and syncs both
// parents, so that after a power cut it is at one of the two places.
func (f *FS) Rename(from, to string) error {
	if err := f.before(Op{Kind: Rename, Path: to}); err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to, err)
	}
	if p := At(to); p != nil {
		f.renames.Add(1)
		if At(from) == nil {
			return f.moveIn(p, from, to)
		}
		return p.Rename(from, to)
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	f.trace(Event{Kind: Renamed, Path: from, To: to})
	f.renames.Add(1)
	if err := f.SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	if filepath.Dir(from) == filepath.Dir(to) {
		return nil
	}
	return f.SyncDir(filepath.Dir(from))
}

// moveIn moves a directory of the kernel's into a place: under another name first, so that it is
// there whole or not at all.
func (f *FS) moveIn(p Place, from, to string) error {
	tmp := filepath.Join(filepath.Dir(to), ".tmp-"+filepath.Base(to))
	err := p.Remove(tmp, true)
	if err == nil {
		err = f.copyAll(from, tmp)
	}
	if err == nil {
		err = p.Rename(tmp, to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("move %s to %s: %w", from, to, err), p.Remove(tmp, true))
	}
	return f.RemoveAll(from)
}

// copyAll copies a directory with the plain files in it, whoever keeps either, to one that is not
// there yet.
func (f *FS) copyAll(from, to string) error {
	return Walk(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return f.MkdirAll(filepath.Join(to, rel))
		}
		return f.CopyFile(path, filepath.Join(to, rel))
	})
}

// CopyFile copies a plain file to one that is not there yet, whoever keeps either.
func (f *FS) CopyFile(from, to string) error {
	r, err := OpenPlain(from)
	if err != nil {
		return err
	}
	return errors.Join(f.Write(to, func(w io.Writer) error { _, err := io.Copy(w, r); return err }), r.Close())
}

// Remove deletes a file; a missing one is not an error.
func (f *FS) Remove(path string) error {
	if err := f.before(Op{Kind: Remove, Path: path}); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	if p := At(path); p != nil {
		return p.Remove(path, false)
	}
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		f.trace(Event{Kind: Unlinked, Path: path})
	}
	return err
}

// RemoveAll deletes a directory with everything in it; a missing one is not an
// error. A power cut may bring any part of it back.
func (f *FS) RemoveAll(path string) error {
	if err := f.before(Op{Kind: Remove, Path: path, Dir: true}); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	if p := At(path); p != nil {
		return p.Remove(path, true)
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	f.trace(Event{Kind: RemovedAll, Path: path})
	return nil
}

// MkdirAll creates a directory and its missing parents, mode 0700, and makes
// the new entry durable.
func (f *FS) MkdirAll(path string) error {
	if st, err := Stat(path); err == nil && st.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := f.MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := f.before(Op{Kind: Mkdir, Path: path, Dir: true}); err != nil {
		return fmt.Errorf("make directory %s: %w", path, err)
	}
	if p := At(path); p != nil {
		return p.Mkdir(path)
	}
	if err := os.Mkdir(path, DirMode); err == nil {
		f.trace(Event{Kind: MadeDir, Path: path})
	} else if !errors.Is(err, os.ErrExist) {
		return err
	}
	return f.SyncDir(parent)
}

// SyncDir makes the entries of a directory durable.
func (f *FS) SyncDir(path string) error {
	err := f.syncAt("directory", path, true, (*os.File).Sync)
	if err == nil {
		f.trace(Event{Kind: SyncedDir, Path: path})
	}
	return err
}

// SyncFile makes the content of a file durable that another library writes. It is in
// no trace.
func (f *FS) SyncFile(path string) error {
	return f.syncAt("file", path, false, func(h *os.File) error { return unix.Fdatasync(int(h.Fd())) })
}

// SyncAll makes everything durable that was written so far to the file system of a directory: for
// many files that count for nothing until all of them are there. It is in no trace.
func (f *FS) SyncAll(path string) error {
	return f.syncAt("the file system of", path, true, func(h *os.File) error { return unix.Syncfs(int(h.Fd())) })
}

// syncAt opens what lies at a path and syncs it.
func (f *FS) syncAt(what, path string, dir bool, sync func(*os.File) error) error {
	if err := f.before(Op{Kind: Sync, Path: path, Dir: dir}); err != nil {
		return fmt.Errorf("sync %s %s: %w", what, path, err)
	}
	if At(path) != nil {
		return nil // its calls commit
	}
	h, err := os.Open(path)
	if err != nil {
		return err
	}
	if f.Flush != nil {
		sync = f.Flush
	}
	return errors.Join(sync(h), h.Close())
}
