package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

	"toritsugi/internal/disk"
)

// spillName is the name of a spilled output; recall takes the same name.
var spillName = regexp.MustCompile(`^output-(\d{6,})\.txt$`)

// OpenSpill opens a spilled output by the name that a result gave, for
// reading. It fails with an error that wraps fs.ErrNotExist where dir has no
// such output, and on every name that is not one of a spilled output.
func OpenSpill(dir, name string) (*os.File, error) {
	if !spillName.MatchString(name) {
		return nil, fmt.Errorf("open output %q: not the name of an output: %w", name, fs.ErrNotExist)
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("open output %s: %w", name, err)
	}
	return f, nil
}

// spiller gives out the files of one directory. Several may share a directory:
// a name is taken by making the file.
type spiller struct {
	fs   *disk.FS
	dir  string
	mu   sync.Mutex
	next int // 0 until the directory was read
}

func newSpiller(limit Limits) *spiller { return &spiller{fs: limit.Disk, dir: limit.SpillDir} }

// create makes the next file, 0600.
func (s *spiller) create(limit int64) (*spillFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == 0 {
		if err := s.scan(); err != nil {
			return nil, err
		}
	}
	for {
		name := fmt.Sprintf("output-%06d.txt", s.next)
		path := filepath.Join(s.dir, name)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, disk.FileMode)
		if errors.Is(err, fs.ErrExist) {
			s.next++
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
		s.next++
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
		file, err := s.fs.OpenAppend(path)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
		return &spillFile{fs: s.fs, f: file, path: path, name: name, room: limit}, nil
	}
}

// scan finds the first free number, so that names never repeat over a restart.
func (s *spiller) scan() error {
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return fmt.Errorf("make the directory of outputs: %w", err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("read the directory of outputs: %w", err)
	}
	s.next = 1
	for _, e := range entries {
		if m := spillName.FindStringSubmatch(e.Name()); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				s.next = max(s.next, n+1)
			}
		}
	}
	return nil
}

// spillFile is one output on its way to the disk.
type spillFile struct {
	fs   *disk.FS
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
	if len(p) > 0 {
		_, f.err = f.f.Append(p)
	}
}

// close brings the file and its name to the disk, and reports whether it holds
// the whole output. A file that failed is removed.
func (f *spillFile) close() (complete bool, err error) {
	if f.err == nil {
		f.err = f.f.Sync()
	}
	if f.err == nil {
		f.err = f.fs.SyncDir(filepath.Dir(f.path))
	}
	if f.err != nil {
		f.discard()
		return false, f.err
	}
	return !f.full, f.f.Close()
}

func (f *spillFile) discard() {
	_ = f.f.Close()         // nothing refers to it
	_ = f.fs.Remove(f.path) // a file that stays is only litter
}
