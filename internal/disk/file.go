package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// File is a file that is only appended to. It is owned by one goroutine.
type File struct {
	fs       *FS
	f        handle
	path     string
	inode    uint64 // 0 where nobody traces
	size     int64  // of what was wholly written
	poisoned bool
}

// handle is what a File writes to: the kernel's, or one of a place.
type handle interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
}

// OpenAppend opens path for appending, creating it if it is missing. A new
// file's directory entry is durable after the next SyncDir or Rename of its
// directory.
func (f *FS) OpenAppend(path string) (*File, error) {
	if p := At(path); p != nil {
		return f.openIn(p, path)
	}
	h, err := os.OpenFile(path, os.O_RDWR, FileMode)
	if errors.Is(err, os.ErrNotExist) {
		made, there := f.Create(path)
		if !errors.Is(there, os.ErrExist) {
			return made, there
		}
		h, err = os.OpenFile(path, os.O_RDWR, FileMode) // another was quicker, or it is a link to nothing
	}
	if err != nil {
		return nil, err
	}
	st, err := h.Stat()
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	a := &File{fs: f, f: h, path: path, size: st.Size()}
	if f.Trace != nil {
		a.inode = inode(h)
	}
	return a, nil
}

// Create makes a file that is appended to; fs.ErrExist where it is there. Its directory entry
// is durable as that of OpenAppend.
func (f *FS) Create(path string) (*File, error) {
	if err := f.before(Op{Kind: Create, Path: path}); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	if p := At(path); p != nil {
		h, err := p.Append(path, true)
		if err != nil {
			return nil, err
		}
		return &File{fs: f, f: h, path: path}, nil
	}
	h, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, FileMode)
	if err != nil {
		return nil, err
	}
	a := &File{fs: f, f: h, path: path}
	if f.Trace != nil {
		a.inode = inode(h)
		f.trace(Event{Kind: Created, Path: path, Inode: a.inode})
	}
	return a, nil
}

// openIn is OpenAppend of a file of a place.
func (f *FS) openIn(p Place, path string) (*File, error) {
	if !Exists(path) {
		if err := f.before(Op{Kind: Create, Path: path}); err != nil {
			return nil, fmt.Errorf("create %s: %w", path, err)
		}
	}
	h, err := p.Append(path, false)
	if err != nil {
		return nil, err
	}
	return &File{fs: f, f: h, path: path, size: h.Size()}, nil
}

// Moved tells the file where it lies after its directory was renamed, for its
// errors and for the seam.
func (a *File) Moved(dir string) { a.path = filepath.Join(dir, filepath.Base(a.path)) }

// Size is the file's length in bytes.
func (a *File) Size() int64 { return a.size }

// Append writes b at the end and returns where it begins. If not all of b can
// be written the file is cut back to its length before, so a reader never sees
// half of it; the error says why (ENOSPC, EIO …). If it cannot be cut back
// either, the file takes no more.
func (a *File) Append(b []byte) (offset int64, err error) {
	if a.poisoned {
		return 0, fmt.Errorf("append to %s: %w", a.path, ErrPoisoned)
	}
	offset = a.size
	n := len(b)
	err = a.fs.before(Op{Kind: Append, Path: a.path, Bytes: n})
	var short *ShortWrite
	if errors.As(err, &short) {
		b = b[:min(short.N, n)]
	} else if err != nil {
		return 0, fmt.Errorf("append to %s: %w", a.path, err)
	}
	wrote, werr := a.f.WriteAt(b, offset)
	if wrote > 0 {
		a.fs.trace(Event{Kind: Wrote, Path: a.path, Inode: a.inode, Offset: offset, Data: b[:wrote]})
	}
	if werr != nil {
		err = werr
		if pe := (*os.PathError)(nil); errors.As(werr, &pe) {
			err = pe.Err // its path is the one the file was opened by
		}
	}
	if err != nil {
		if terr := a.cut(offset); terr != nil {
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
		err = a.flush()
	}
	if err != nil {
		a.poisoned = true
		return fmt.Errorf("sync %s: %w", a.path, err)
	}
	a.fs.trace(Event{Kind: Synced, Path: a.path, Inode: a.inode})
	a.fs.syncs.Add(1)
	return nil
}

func (a *File) flush() error {
	if h, ok := a.f.(*os.File); ok {
		return a.fs.flush(h)
	}
	return a.f.(Appended).Sync()
}

// Truncate cuts the file to its first size bytes: a repair, never part of a turn.
func (a *File) Truncate(size int64) error {
	if err := a.cut(size); err != nil {
		return fmt.Errorf("truncate %s: %w", a.path, err)
	}
	a.size = size
	return nil
}

func (a *File) cut(size int64) error {
	if err := a.fs.before(Op{Kind: Truncate, Path: a.path}); err != nil {
		return err
	}
	if err := a.f.Truncate(size); err != nil {
		return err
	}
	a.fs.trace(Event{Kind: Truncated, Path: a.path, Inode: a.inode, Offset: size})
	return nil
}

// ReadAt reads what was appended, as io.ReaderAt.
func (a *File) ReadAt(p []byte, off int64) (int, error) { return a.f.ReadAt(p, off) }

// Close releases the descriptor; it does not sync.
func (a *File) Close() error { return a.f.Close() }

// inode is the number by which a trace knows a file whatever its path is by now.
func inode(f *os.File) uint64 {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	return st.Ino
}
