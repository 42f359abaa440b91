package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A census is taken from censusFirst on, and takes at most a censusShare of
	// the time: the next one comes the later the longer one took.
	censusFirst = 500 * time.Millisecond
	censusShare = 20
)

// fileCount counts the files below some directories, and what they take. The file
// system's own figures are of everybody's files: what others remove hides what a
// command makes.
type fileCount struct {
	dirs  []string
	files int64     // how many may come to be after the first count for sum
	bytes int64     // what those may take that were changed since then
	since time.Time // of the changes
	sum   *SharedUsage
	open  func() []string // directories of descriptors, whose files count though they have no name; nil for none
}

// watch counts again and again until there is more than allowed, and names the
// limit, or until ctx ends.
func (c fileCount) watch(ctx context.Context) string {
	most := int64(1) << 62
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(wait):
		}
		start := time.Now()
		n, bytes := c.count(ctx, most)
		if ctx.Err() != nil {
			return ""
		}
		if first, last := c.sum.counted(c.dirs, n); most == 1<<62 {
			most = max(first+c.files, last) // more may be there, to be tidied up
		}
		switch {
		case n > most:
			return limitFiles
		case bytes > c.bytes:
			return limitDisk
		}
		wait = censusShare * time.Since(start)
	}
}

// count adds up until there are more files than most, or more bytes than
// allowed. Only regular files weigh, each as often as it has names. Links are not
// followed; what cannot be read counts as empty.
func (c fileCount) count(ctx context.Context, most int64) (files, bytes int64) {
	weigh := func(st *unix.Stat_t) {
		if st.Mode&unix.S_IFMT == unix.S_IFREG && !time.Unix(st.Ctim.Unix()).Before(c.since) {
			bytes += st.Blocks * 512 // stat(2)
		}
	}
	var st unix.Stat_t
	walk(ctx, c.dirs, func(dir int, e os.DirEntry) bool {
		files++
		if e.Type().IsRegular() && unix.Fstatat(dir, e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			weigh(&st)
		}
		return files <= most && bytes <= c.bytes
	})
	if c.open == nil {
		return files, bytes
	}
	// A file that was removed takes as much for as long as somebody has it open.
	type file struct{ device, inode uint64 }
	disks, known := map[uint64]bool{}, map[file]bool{}
	for _, d := range c.dirs {
		if unix.Stat(d, &st) == nil {
			disks[st.Dev] = true
		}
	}
	walk(ctx, c.open(), func(dir int, e os.DirEntry) bool {
		if unix.Fstatat(dir, e.Name(), &st, 0) == nil && st.Nlink == 0 && st.Blocks > 0 && disks[st.Dev] && !known[file{st.Dev, st.Ino}] {
			known[file{st.Dev, st.Ino}] = true
			weigh(&st)
		}
		return bytes <= c.bytes
	})
	return files, bytes
}

// openDeep is openat2 also where the path is longer than the kernel takes: what lies
// so deep takes as much as elsewhere.
func openDeep(path string, how *unix.OpenHow) (fd int, err error) {
	at, step := unix.AT_FDCWD, *how
	step.Flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	for len(path) >= unix.PathMax && err == nil {
		cut := strings.LastIndexByte(path[:unix.PathMax-1], '/')
		if fd, err = unix.Openat2(at, path[:cut], &step); at != unix.AT_FDCWD {
			_ = unix.Close(at)
		}
		at, path = fd, path[cut+1:]
	}
	if err != nil {
		return -1, err
	}
	fd, err = unix.Openat2(at, path, how)
	if at != unix.AT_FDCWD {
		_ = unix.Close(at)
	}
	return fd, err
}

// walk shows every entry below dirs, with its open directory, until the answer is
// false or ctx ends. Directories are read in parts, since one may have millions of
// entries. What a command puts in the place of a directory meanwhile, a link or a
// pipe, is not entered.
func walk(ctx context.Context, dirs []string, see func(dir int, e os.DirEntry) bool) {
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	enter := func(dir string, found func(string)) bool {
		fd, err := openDeep(dir, how)
		if err != nil {
			return true
		}
		f := os.NewFile(uintptr(fd), dir)
		defer func() { _ = f.Close() }()
		for err == nil {
			var entries []os.DirEntry
			entries, err = f.ReadDir(1024)
			for _, e := range entries {
				if !see(fd, e) {
					return false
				}
				if e.IsDir() {
					found(filepath.Join(dir, e.Name()))
				}
			}
			if ctx.Err() != nil {
				return false
			}
		}
		return true
	}
	for _, top := range dirs {
		real, err := filepath.EvalSymlinks(top)
		if err != nil {
			continue
		}
		for next := []string{real}; len(next) > 0; {
			dir := next[len(next)-1]
			next = next[:len(next)-1]
			if !enter(dir, func(below string) { next = append(next, below) }) {
				return
			}
		}
	}
}
