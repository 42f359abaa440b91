package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"toritsugi/internal/disk"
)

// The bounds of reports on disk.
const (
	maxReports = 5000     // files that are reports
	maxLooked  = 200_000  // files and directories that are looked at for them
	maxReport  = 64 << 20 // bytes of one that are read

	// maxAllReports is what is read of all together, in bytes: some ten seconds,
	// and more than the tests of a large project write.
	maxAllReports = 256 << 20
)

// Reports are the JUnit files that a check writes, found by a pattern.
type Reports struct {
	root    *os.Root
	pattern []string
	before  map[string]reportState
	left    int64 // bytes that may still be read
}

// reportState tells a file from what it was. The change time is the kernel's.
type reportState struct {
	inode          uint64
	size           int64
	mtime, changed syscall.Timespec
}

// FindReports notes which files of a tree match the pattern before a check runs:
// what lies there already is none of its reports. A pattern is a path relative
// to the tree, with * and ? within a name, and ** for any number of directories.
// The caller keeps root open.
func FindReports(root *os.Root, pattern string) (*Reports, error) {
	if _, err := path.Match(pattern, ""); err != nil || !fs.ValidPath(pattern) || pattern == "." {
		return nil, fmt.Errorf("look for reports: %q is no pattern for them", pattern)
	}
	r := &Reports{root: root, pattern: strings.Split(pattern, "/"), left: maxAllReports}
	var err error
	r.before, err = r.find()
	return r, err
}

// Read returns what the reports say that were written or changed since
// FindReports, and how many there are; Summary holds what could be read also
// where the error tells what could not. It ends with ctx.
func (r *Reports) Read(ctx context.Context, known Set) (Summary, int, error) {
	now, err := r.find()
	if err != nil {
		return Summary{}, 0, err
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if old, ok := r.before[name]; !ok || old != now[name] {
			names = append(names, name)
		}
	}
	// Only plain files were found, and whoever might have put something else there
	// has ended.
	s, err := junit(&sink{known: known, tree: r.root.Name()}, names, func(name string) (io.ReadCloser, error) {
		f, err := disk.OpenIn(r.root, name, os.O_RDONLY)
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.LimitReader(&counted{ctx, f, r}, maxReport), f}, nil
	})
	return s, len(names), err
}

// counted reads a report, with what may still be read of all.
type counted struct {
	ctx context.Context
	in  io.Reader
	all *Reports
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, fmt.Errorf("%w: %w", errEnough, err)
	}
	if c.all.left <= 0 {
		return 0, fmt.Errorf("%w: %d MiB are read of all", errEnough, maxAllReports>>20)
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.all.left)])
	c.all.left -= int64(n)
	return n, err
}

// maxReportDepth is how deep reports are looked for: each directory is opened by
// way of all above it.
const maxReportDepth = 64

// find lists the plain files that match, by their paths.
func (r *Reports) find() (map[string]reportState, error) {
	all, looked := map[string]reportState{}, 0
	from, pattern := ".", r.pattern // the directory that every match is in, and what follows
	for len(pattern) > 1 && !strings.ContainsAny(pattern[0], "*?[") {
		from, pattern = path.Join(from, pattern[0]), pattern[1:]
	}
	err := fs.WalkDir(r.root.FS(), from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || d != nil {
				return nil // gone, or not to be read
			}
			return err
		}
		if looked++; looked > maxLooked {
			return fmt.Errorf("more than %d files: name a directory", maxLooked)
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || strings.Count(name, "/") > maxReportDepth) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || !matches(pattern, strings.Split(strings.TrimPrefix(name, from+"/"), "/")) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if len(all) == maxReports {
			return fmt.Errorf("more than %d files match", maxReports)
		}
		s := reportState{size: info.Size()}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			s.inode, s.mtime, s.changed = st.Ino, st.Mtim, st.Ctim
		}
		all[name] = s
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for reports: %w", err)
	}
	return all, nil
}

// matches reports whether the parts of a path match those of a pattern.
func matches(pattern, parts []string) bool {
	for len(pattern) > 0 && pattern[0] != "**" {
		if len(parts) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], parts[0]); !ok || err != nil {
			return false
		}
		pattern, parts = pattern[1:], parts[1:]
	}
	if len(pattern) == 0 {
		return len(parts) == 0
	}
	for len(pattern) > 1 && pattern[1] == "**" {
		pattern = pattern[1:]
	}
	for skip := range len(parts) + 1 {
		if matches(pattern[1:], parts[skip:]) {
			return true
		}
	}
	return false
}

// With is s, of an output, with the failures and counts of the reports that the
// same check wrote: they know more than what was printed.
func (s Summary) With(report Summary) Summary {
	if len(report.Failures) == 0 {
		if report.Ran > 0 {
			s.Ran, s.Packages = report.Ran, false
		}
		return s
	}
	report.Tail, report.Cut = s.Tail, s.Cut
	report.Failures = slices.Clone(report.Failures)
	return report
}
