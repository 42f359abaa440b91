package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"toritsugi/internal/disk"
	"toritsugi/internal/lazyregexp"
)

// spillName is the name of a spilled output; recall takes it with and
// without its ending.
var spillName = lazyregexp.New(`^output-(\d{6,})\.txt$`)

const spillExt = ".txt"

// OpenSpill opens a spilled output by the name that a result gave, for
// reading. It fails with an error that wraps fs.ErrNotExist where dir has no
// such output, and on every name that is not one of a spilled output.
func OpenSpill(dir, name string) (disk.Plain, error) {
	if !spillName().MatchString(name) {
		return nil, fmt.Errorf("open output %q: not the name of an output: %w", name, fs.ErrNotExist)
	}
	path := filepath.Join(dir, name)
	st, err := disk.Lstat(path)
	if err == nil && !st.Mode().IsRegular() {
		err = disk.ErrNotPlain
	}
	var f disk.Plain
	switch {
	case err != nil:
	case disk.At(path) != nil:
		f, err = disk.OpenPlain(path)
	default: // a link may have come in between
		f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("open output %s: %w", name, err)
	}
	return f, nil
}

// spiller gives out the files of one directory. Several may share a directory:
// a name is taken by making the file.
type spiller struct {
	fs     *disk.FS
	dir    string
	noSync bool
	all    int64        // bytes that the directory may hold
	used   atomic.Int64 // bytes that it holds, as far as this spiller knows
	mu     sync.Mutex
	next   int // 0 until the directory was read
}

func newSpiller(limit Limits) *spiller {
	return &spiller{fs: limit.Disk, dir: limit.SpillDir, noSync: limit.NoSync, all: limit.MaxSpillAll}
}

// errSpillFull says that the outputs of a run take all the room they may.
var errSpillFull = errors.New("the outputs that were kept take all the room they may")

// create makes the next file, 0600.
func (s *spiller) create(limit int64) (*spillFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == 0 {
		if err := s.scan(); err != nil {
			return nil, err
		}
	}
	if s.used.Load() >= s.all {
		return nil, errSpillFull
	}
	for {
		name := fmt.Sprintf("output-%06d"+spillExt, s.next)
		path := filepath.Join(s.dir, name)
		file, err := s.fs.Create(path)
		if errors.Is(err, fs.ErrExist) {
			s.next++
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
		s.next++
		return &spillFile{of: s, f: file, path: path, name: name, room: min(limit, s.all-s.used.Load())}, nil
	}
}

// scan finds the first free number, so that names never repeat over a restart.
func (s *spiller) scan() error {
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return fmt.Errorf("make the directory of outputs: %w", err)
	}
	s.next = 1
	err := disk.Entries(s.dir, func(e fs.DirEntry) error {
		if info, err := e.Info(); err == nil {
			s.used.Add(info.Size())
		}
		if m := spillName().FindStringSubmatch(e.Name()); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				s.next = max(s.next, n+1)
			}
		}
		return nil
	})
	if err != nil {
		s.next = 0
		s.used.Store(0)
		return fmt.Errorf("read the directory of outputs: %w", err)
	}
	return nil
}

// spillFile is one output on its way to the disk.
type spillFile struct {
	of   *spiller
	f    *disk.File
	path string
	name string
	room int64 // bytes that may still be written
	full bool
	err  error // the first failure; close reports it
}

func (f *spillFile) write(p []byte) {
	if f.err != nil {
		return
	}
	if int64(len(p)) > f.room {
		p, f.full = p[:f.room], true
	}
	f.room -= int64(len(p))
	f.of.used.Add(int64(len(p)))
	if len(p) > 0 {
		_, f.err = f.f.Append(p)
	}
}

// sync brings the file and its name to the disk. A file that failed is removed.
func (f *spillFile) sync() error {
	if f.err == nil && !f.of.noSync {
		f.err = errors.Join(f.f.Sync(), f.of.fs.SyncDir(filepath.Dir(f.path)))
	}
	if f.err != nil {
		f.discard()
	}
	return f.err
}

// close is sync, lets go of the file, and reports whether it holds the whole
// output.
func (f *spillFile) close() (complete bool, err error) {
	if err := f.sync(); err != nil {
		return false, err
	}
	return !f.full, f.f.Close()
}

func (f *spillFile) discard() {
	f.of.used.Add(-f.f.Size())
	_ = f.f.Close()            // nothing refers to it
	_ = f.of.fs.Remove(f.path) // a file that stays is only litter
}
