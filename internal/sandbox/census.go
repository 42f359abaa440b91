package sandbox

import (
	"os"
	"path/filepath"
	"time"
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

// countFiles counts until there are more than limit. Links are not followed;
// what cannot be read counts as empty. Directories are read in parts, since one
// may have millions of entries.
func countFiles(dirs []string, limit int64) int64 {
	var n int64
	for next := append([]string(nil), dirs...); len(next) > 0 && n <= limit; {
		dir := next[len(next)-1]
		next = next[:len(next)-1]
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		for n <= limit {
			entries, err := f.ReadDir(1024)
			n += int64(len(entries))
			for _, e := range entries {
				if e.IsDir() {
					next = append(next, filepath.Join(dir, e.Name()))
				}
			}
			if err != nil {
				break
			}
		}
		_ = f.Close()
	}
	return n
}
