package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"toritsugi/internal/disk"
)

// CleanOptions say what may go. A directory that is "" or missing is passed over.
type CleanOptions struct {
	Workspaces string // holds one workspace for each run, named by it
	Mirrors    string // Mirrors.Dir
	Setups     string // holds for each repository what its setups left
	Old        string // holds what earlier versions left and nobody uses now; goes by age, whatever its size
	// Ended tells when the run of a workspace was over for good, or false while
	// it may go on or still owes something: such a workspace is never removed.
	// A zero time is taken from the workspace.
	Ended    func(name string) (at time.Time, ok bool)
	KeepFor  time.Duration // what was not used for as long is removed
	MaxBytes int64         // the least recently used go until the rest is no more; 0 for no limit
	Now      time.Time
	Dry      bool // nothing is removed, only told
}

// Cleaned says what Clean did.
type Cleaned struct {
	Removed []string // paths
	Freed   int64    // bytes on the disk, as far as nothing else links to them
	Left    int64    // bytes on the disk of what is left; 0 without MaxBytes
}

// item is something that can be removed.
type item struct {
	path string
	used time.Time
	live bool // is not to be removed
	// lock is taken alone before the removal. One that lies outside of path is
	// removed with it.
	lock   string
	links  bool // count what other directories link to as well
	static bool // its size is measured once
	size   int64
}

// Clean removes workspaces of ended runs, mirrors and what setups left, by age
// and then by size, and what killed processes left half made or half removed.
// Nothing that a process has open is removed: each is locked alone first. It
// goes on after an error and returns all of them.
func Clean(ctx context.Context, opt CleanOptions) (Cleaned, error) {
	var done Cleaned
	spaces, keys, errSpaces := workspaceItems(opt)
	mirrors, errMirrors := mirrorItems(opt.Mirrors)
	setups, errSetups := setupItems(opt.Setups, keys)
	all := slices.Concat(spaces, mirrors, setups)
	errs := []error{errSpaces, errMirrors, errSetups}
	slices.SortStableFunc(all, func(a, b item) int { return a.used.Compare(b.used) })
	if opt.MaxBytes > 0 {
		for i := range all {
			if ctx.Err() != nil {
				return done, ctx.Err()
			}
			all[i].measure(opt.Dry)
			done.Left += all[i].size
		}
	}
	for i := range all {
		it := &all[i]
		if ctx.Err() != nil {
			return done, errors.Join(append(errs, ctx.Err())...)
		}
		old := opt.Now.Sub(it.used) > opt.KeepFor
		if it.live || !old && (opt.MaxBytes <= 0 || done.Left <= opt.MaxBytes) {
			continue
		}
		if opt.MaxBytes <= 0 {
			it.measure(opt.Dry)
		}
		err := it.remove(opt.Dry)
		if errors.Is(err, errBusy) { // somebody uses it
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("clean %s: %w", it.path, err))
			continue
		}
		done.Removed = append(done.Removed, it.path)
		done.Freed += it.size
		if opt.MaxBytes > 0 {
			done.Left -= it.size
		}
	}
	if opt.Dry {
		return done, errors.Join(errs...)
	}
	errs = append(errs, sweepLocks(opt.Mirrors))
	repos, err := entries(opt.Setups)
	errs = append(errs, err)
	for _, r := range repos {
		dir := filepath.Join(opt.Setups, r.Name())
		errs = append(errs, sweepLocks(dir))
		if r.IsDir() {
			_ = os.Remove(dir) // where it is empty
		}
	}
	errs = append(errs, sweepOld(opt))
	return done, errors.Join(errs...)
}

// sweepOld removes what earlier versions left once it was not written to for as
// long as things are kept.
func sweepOld(opt CleanOptions) error {
	dirs, err := entries(opt.Old)
	if opt.Old == "" || err != nil {
		return err
	}
	for _, d := range dirs {
		path := filepath.Join(opt.Old, d.Name())
		if opt.Now.Sub(lastWrite(path, 2)) > opt.KeepFor {
			err = errors.Join(err, removeAll(path))
		}
	}
	_ = os.Remove(opt.Old) // where it is there, and empty
	return err
}

// lastWrite is the last change of a path and of what lies at most depth below.
func lastWrite(path string, depth int) (at time.Time) {
	if st, err := os.Lstat(path); err == nil {
		at = st.ModTime()
	}
	if depth == 0 {
		return at
	}
	list, _ := entries(path) // what cannot be read is not written to
	for _, e := range list {
		if t := lastWrite(filepath.Join(path, e.Name()), depth-1); t.After(at) {
			at = t
		}
	}
	return at
}

// sweepLocks removes the locks of what is no longer there.
func sweepLocks(dir string) error {
	files, err := entries(dir)
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		ext := filepath.Ext(path)
		of := strings.TrimSuffix(path, ext)
		if f.IsDir() || ext != ".lock" && ext != ".fetch" || exists(of) {
			continue
		}
		lock, lerr := takeLock(path, exclusive)
		if lerr != nil {
			continue // it is about to be there
		}
		if !exists(of) {
			err = errors.Join(err, (&disk.FS{}).Remove(path))
		}
		err = errors.Join(err, release(lock))
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// entries lists a directory; a missing one is empty.
func entries(dir string) ([]fs.DirEntry, error) {
	if dir == "" {
		return nil, nil
	}
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return all, err
}

const tempPrefix = ".tmp-"

// halfMade is how long something without a lock may be on its way.
const halfMade = time.Hour

// workspaceItems lists the workspaces, and the setups that those of live runs need.
func workspaceItems(opt CleanOptions) (all []item, keys map[string]bool, err error) {
	keys = map[string]bool{}
	dirs, err := entries(opt.Workspaces)
	for _, d := range dirs {
		it := item{path: filepath.Join(opt.Workspaces, d.Name()), static: true}
		it.lock = filepath.Join(it.path, lockName)
		info, ierr := d.Info()
		if ierr != nil || !d.IsDir() {
			continue // gone, or not ours
		}
		it.used = info.ModTime()
		if of, half := strings.CutPrefix(d.Name(), tempPrefix); half {
			if _, ended := opt.Ended(of); !ended {
				continue // its owner makes it anew
			}
			if _, err := os.Lstat(it.lock); err == nil {
				it.used = time.Time{} // whoever makes it holds the lock
			} else if opt.Now.Sub(it.used) < halfMade {
				continue
			}
			all = append(all, it)
			continue
		}
		at, ended := opt.Ended(d.Name())
		if it.live = !ended; it.live {
			it.static = false
			if key, err := disk.Read(filepath.Join(it.path, setupMark), disk.MaxWhole); err == nil {
				keys[strings.TrimSpace(string(key))] = true
			}
		}
		if !at.IsZero() {
			it.used = at
		}
		all = append(all, it)
	}
	return all, keys, err
}

func mirrorItems(dir string) (all []item, err error) {
	dirs, err := entries(dir)
	for _, d := range dirs {
		it := item{path: filepath.Join(dir, d.Name()), links: true}
		if !d.IsDir() {
			continue
		}
		it.lock = it.path + ".lock"
		if meta, err := readMirror(it.path); err == nil {
			it.used = meta.Used
		} // else it was never finished, and whoever is at it holds the lock
		all = append(all, it)
	}
	return all, err
}

func setupItems(dir string, keys map[string]bool) (all []item, err error) {
	repos, err := entries(dir)
	for _, r := range repos {
		dirs, derr := entries(filepath.Join(dir, r.Name()))
		err = errors.Join(err, derr)
		for _, d := range dirs {
			if !d.IsDir() {
				continue
			}
			it := item{path: filepath.Join(dir, r.Name(), d.Name()), live: keys[d.Name()], links: true, static: true}
			it.lock = it.path + ".lock"
			if st, err := os.Stat(filepath.Join(it.path, "setup.json")); err == nil {
				it.used = st.ModTime()
			}
			all = append(all, it)
		}
	}
	return all, err
}

// remove deletes what nobody has open; dry only looks whether somebody has. It is renamed
// first, so that one half removed is never taken for a whole one.
func (it *item) remove(dry bool) error {
	locks := exists(it.lock)
	if strings.HasPrefix(filepath.Base(it.path), tempPrefix) && !locks && !dry {
		return removeAll(it.path)
	}
	if dry && !locks {
		return nil
	}
	lock, err := takeLock(it.lock, exclusive)
	if err != nil {
		return err
	}
	defer func() { _ = release(lock) }()
	if dry {
		return nil
	}
	tmp := it.path
	if !strings.HasPrefix(filepath.Base(tmp), tempPrefix) {
		tmp = tempName(it.path)
		if err := removeAll(tmp); err != nil {
			return err
		}
		if err := os.Rename(it.path, tmp); err != nil {
			return err
		}
	}
	if err := removeAll(tmp); err != nil {
		return err
	}
	if !strings.HasPrefix(it.lock, it.path+"/") {
		return (&disk.FS{}).Remove(it.lock)
	}
	return nil
}

// measure finds the item's size on the disk. That of something which no longer
// changes is noted beside it, unless dry: a tree may have a hundred thousand files.
func (it *item) measure(dry bool) {
	note := filepath.Join(it.path, "size")
	if it.static {
		if data, err := disk.Read(note, disk.MaxWhole); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && n >= 0 {
				it.size = n
				return
			}
		}
	}
	_ = filepath.WalkDir(it.path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read counts as nothing
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && (d.IsDir() || it.links || st.Nlink == 1) {
			it.size += st.Blocks * 512
		}
		return nil
	})
	if it.static && !dry {
		_ = (&disk.FS{}).Replace(note, []byte(strconv.FormatInt(it.size, 10)+"\n"), false) // else it is measured again
	}
}
