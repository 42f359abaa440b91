package telemetry

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"toritsugi/internal/contextstore/filelock"
)

// LogFile is a log in a file that any number of processes share: each line opens it by its
// name and is appended in one write. From Max bytes on it becomes Path.1, what that was
// Path.2, up to Path.Keep. A line that it does not take, as on a full disk, goes to Else.
// Files are 0600, its directory 0700 where it has to be made. Safe for concurrent use, once
// its fields are set.
type LogFile struct {
	Path string
	Max  int64 // bytes
	Keep int   // at least 1
	Else io.Writer

	mu   sync.Mutex
	told bool // that lines go to Else
}

// Write implements io.Writer; p is a whole line.
func (f *LogFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.append(p)
	if err == nil {
		f.told = false
		return len(p), nil
	}
	if !f.told {
		f.told = true
		_, _ = fmt.Fprintf(f.Else, "logging.file: %v; the log goes to standard error until that is mended\n", err)
	}
	return f.Else.Write(p)
}

func (f *LogFile) append(p []byte) error {
	h, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(f.Path), 0o700); err == nil {
			h, err = f.open()
		}
	}
	if err != nil {
		return err
	}
	_, err = h.Write(p)
	about, serr := h.Stat()
	if err = errors.Join(err, h.Close(), serr); err == nil && about.Size() >= f.Max {
		f.rotate() // what cannot be renamed grows on
	}
	return err
}

// open waits for nobody: a pipe without a reader is an error.
func (f *LogFile) open() (*os.File, error) {
	return os.OpenFile(f.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
}

// rotate renames the files. One process does so at once; whoever has the file open
// meanwhile writes to what is Path.1 then.
func (f *LogFile) rotate() {
	lock, err := filelock.Open(f.Path+".lock", os.O_CREATE|os.O_RDWR)
	if err != nil {
		return
	}
	defer filelock.Close(lock)
	if about, err := os.Lstat(f.Path); err != nil || !about.Mode().IsRegular() || about.Size() < f.Max {
		return // by another process
	}
	last := 1 // the first that is not there, or may be replaced
	for ; last < f.Keep; last++ {
		if _, err := os.Lstat(f.Path + "." + strconv.Itoa(last)); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	for n := last; n > 0; n-- {
		from := f.Path + "." + strconv.Itoa(n-1)
		if n == 1 {
			from = f.Path
		}
		if os.Rename(from, f.Path+"."+strconv.Itoa(n)) != nil {
			return // what is to make room has not: nothing is written over
		}
	}
}

// Log is where records go by the settings: to a file, or as they did.
func Log(path string, maxMB, keep int, otherwise io.Writer) io.Writer {
	if path == "" {
		return otherwise
	}
	return &LogFile{Path: path, Max: int64(cmp.Or(maxMB, 1)) << 20, Keep: max(keep, 1), Else: otherwise}
}
