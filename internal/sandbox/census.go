package sandbox

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A census is taken from censusFirst on, and takes at most a censusShare of
	// the time: the next one comes the later the longer one took.
	censusFirst = 500 * time.Millisecond
	censusShare = 20
)

// census counts the files below some directories. The file system's own count
// is of everybody's files: what others remove hides what a command makes.
type census struct {
	dirs  []string
	most  int64 // what may come to be
	begin int64 // files that were there, -1 until they were counted
	next  time.Duration
}

// passed counts where it is time and reports whether more files than allowed
// have come to be since the first count. age is that of the command.
func (c *census) passed(age time.Duration) bool {
	if age < c.next || age < censusFirst {
		return false
	}
	limit := int64(1) << 62
	if c.begin >= 0 {
		limit = c.begin + c.most
	}
	start := time.Now()
	n := countFiles(c.dirs, limit)
	c.next = age + censusShare*time.Since(start)
	if c.begin < 0 {
		c.begin = n
		return false
	}
	return n > limit
}

// countFiles counts what lies below dirs until it is more than limit. Links
// are not followed; what cannot be read counts as empty.
func countFiles(dirs []string, limit int64) int64 {
	var n int64
	walk(dirs, func(os.DirEntry) bool { n++; return n <= limit })
	return n
}

// walk shows every entry below dirs until the answer is false. Directories are
// read in parts, since one may have millions of entries. What a command puts in
// the place of a directory meanwhile, a link or a pipe, is not entered.
func walk(dirs []string, see func(e os.DirEntry) bool) {
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	for _, top := range dirs {
		real, err := filepath.EvalSymlinks(top)
		if err != nil {
			continue
		}
		for next := []string{real}; len(next) > 0; {
			dir := next[len(next)-1]
			next = next[:len(next)-1]
			fd, err := unix.Openat2(unix.AT_FDCWD, dir, how)
			if err != nil {
				continue
			}
			f := os.NewFile(uintptr(fd), dir)
			for err == nil {
				var entries []os.DirEntry
				entries, err = f.ReadDir(1024)
				for _, e := range entries {
					if !see(e) {
						_ = f.Close()
						return
					}
					if e.IsDir() {
						next = append(next, filepath.Join(dir, e.Name()))
					}
				}
			}
			_ = f.Close()
		}
	}
}

// weighing adds up what a command's files take. The file system's own figure is
// of everybody's files: what others remove hides what a command writes.
type weighing struct {
	dirs  []string
	most  int64     // bytes that may be taken
	since time.Time // files that were changed from then on count
	next  time.Duration
}

// passed weighs where it is time and reports whether it is more than allowed.
// age is that of the command.
func (w *weighing) passed(age time.Duration) bool {
	if age < censusFirst || age < w.next {
		return false
	}
	start := time.Now()
	heavy := weigh(w.dirs, w.since, w.most) > w.most
	w.next = age + censusShare*time.Since(start)
	return heavy
}

// weigh adds up what the regular files below dirs that were changed since a
// time take of the disk, in bytes, until it is more than limit. A file with
// several names counts once for each. Links are not followed; what cannot be
// read counts as empty.
func weigh(dirs []string, since time.Time, limit int64) int64 {
	var sum int64
	walk(dirs, func(e os.DirEntry) bool {
		if !e.Type().IsRegular() {
			return true
		}
		info, err := e.Info()
		if err != nil {
			return true
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !time.Unix(st.Ctim.Unix()).Before(since) {
			sum += st.Blocks * 512 // stat(2)
		}
		return sum <= limit
	})
	return sum
}
