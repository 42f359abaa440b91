package fsck

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
)

// unfinishedAge is how old a context in the making must be before it is taken
// for the leftover of a process that died: making one takes milliseconds.
const unfinishedAge = time.Hour

// entries looks at every directory entry of the context: what kind it is, whose,
// who may read it, and whether it is a leftover. It returns the logs of planning.
func (i *inspection) entries() (plans []string, empty bool, err error) {
	if st, err := disk.Lstat(i.dir); err == nil {
		i.checkEntry("", st)
	}
	n, err := i.entriesOf("", &plans)
	return plans, n == 0, err
}

func (i *inspection) entriesOf(sub string, plans *[]string) (n int, err error) {
	err = disk.Entries(filepath.Join(i.dir, sub), func(e os.DirEntry) error {
		st, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil // removed since
		}
		if err != nil {
			return err
		}
		if e.Name() != contextstore.LockFile {
			n++
		}
		name := filepath.Join(sub, e.Name())
		i.checkEntry(name, st)
		switch {
		case st.IsDir():
			_, err = i.entriesOf(name, plans)
		case sub == "planning" && (strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".jsonl.gz")):
			*plans = append(*plans, strings.TrimSuffix(name, ".gz"))
		case name == "approvals.jsonl":
			*plans = append(*plans, name)
		}
		return err
	})
	return n, err
}

// movedPlan adds the run's history of planning where it lies elsewhere, by its
// way from the context.
func (i *inspection) movedPlan(plans []string) []string {
	if i.c.opt.Plans == "" {
		return plans
	}
	name, err := filepath.Rel(i.dir, filepath.Join(i.c.opt.Plans, i.uuid+".jsonl"))
	if err != nil {
		return plans // a relative one, which nobody has
	}
	found := false
	for _, file := range []string{name, name + ".gz"} {
		if st, err := disk.Lstat(filepath.Join(i.dir, file)); err == nil {
			i.checkEntry(file, st)
			found = true
		}
	}
	if !found {
		return plans
	}
	return append(plans, name)
}

func (i *inspection) checkEntry(name string, st os.FileInfo) {
	path := filepath.Join(i.dir, name)
	switch {
	case st.Mode()&os.ModeSymlink != 0:
		i.find(name, spot{}, "symlink")
		return
	case !st.Mode().IsRegular() && (!st.IsDir() || strings.HasPrefix(filepath.Ext(name), ".json")): // no directory of ours is called so
		i.find(name, spot{}, "special", st.Mode().String())
		return
	case i.c.uid >= 0 && disk.OwnerOf(st) >= 0 && disk.OwnerOf(st) != i.c.uid:
		i.find(name, spot{}, "owner", disk.OwnerOf(st), i.c.uid)
	}
	base := filepath.Base(name)
	if strings.HasPrefix(base, ".") && strings.HasSuffix(base, ".tmp") && !st.IsDir() {
		if !i.held {
			f := i.find(name, spot{}, "temporary")
			i.repairable(f, "remove").mend = func() error { return i.removeUnder(name) }
		}
		return
	}
	if strings.HasSuffix(base, ".cut") {
		i.cuts += st.Size()
	}
	switch {
	case !disk.TooOpen(st):
	case i.c.edition != 0:
		i.c.open++
	default:
		f := i.find(name, spot{}, "mode", st.Mode().Perm().String())
		i.repairable(f, "mode").mend = func() error { return disk.RestrictToOwner(path, st) }
	}
}

// checkLock finds the .lock that the end of a run left behind.
func (i *inspection) checkLock() {
	if i.held || i.moving || i.stateErr != nil {
		return
	}
	at := filepath.Base(filepath.Dir(i.dir))
	if st, err := disk.Lstat(filepath.Join(i.dir, contextstore.LockFile)); err != nil || !st.Mode().IsRegular() || at != contextstore.DirCompleted && at != contextstore.DirPaused || i.own != nil && i.own.drop {
		return
	}
	f := i.find(contextstore.LockFile, spot{}, "lock")
	i.repairable(f, "remove").mend = func() error { i.own.drop = true; return nil }
}

// removeEmpty removes a directory with nothing in it but the lock of this repair.
func (i *inspection) removeEmpty() error {
	i.own.drop = false
	if err := i.c.fs.Remove(filepath.Join(i.dir, contextstore.LockFile)); err != nil {
		return err
	}
	return i.c.fs.Remove(i.dir)
}

// unfinished looks at a context that was being made in queued/.
func (c *checker) unfinished(rel string) {
	dir := filepath.Join(c.base, rel)
	st, err := disk.Lstat(dir)
	if err != nil || c.now().Sub(st.ModTime()) < unfinishedAge {
		return
	}
	f := &Finding{Path: rel, Kind: "unfinished"}
	if names, ok := ours(dir); ok {
		f.Action = "remove"
		f.mend = func() error {
			for _, n := range names {
				if err := c.fs.Remove(filepath.Join(dir, n)); err != nil {
					return err
				}
			}
			return c.fs.Remove(dir)
		}
	}
	c.fix(f)
}

// ours lists the files of a context in the making; false where anything else
// lies there, which is not ours to remove.
func ours(dir string) (names []string, ok bool) {
	err := disk.Entries(dir, func(e os.DirEntry) error {
		switch e.Name() {
		case contextstore.MetadataFile, contextstore.StateFile, "." + contextstore.MetadataFile + ".tmp", "." + contextstore.StateFile + ".tmp":
			names = append(names, e.Name())
			return nil
		}
		return io.EOF
	})
	return names, err == nil
}

// baseFiles checks who may read the base directory's own files.
func (c *checker) baseFiles() {
	for _, name := range contextstore.OwnFiles(c.base) {
		path := filepath.Join(c.base, name)
		st, err := disk.Lstat(path)
		switch {
		case err != nil:
		case st.Mode()&os.ModeSymlink != 0:
			c.tell(&Finding{Path: name, Kind: "symlink"})
		case filepath.Base(name) == filepath.Base(contextstore.RestoreCommit): // that run may be beside its place
			c.tell(&Finding{Path: name, Kind: "restore_cut", Args: []any{strings.TrimPrefix(filepath.Dir(name), ".restore-")}})
		case disk.TooOpen(st):
			c.fix(&Finding{Path: name, Kind: "mode", Args: []any{st.Mode().Perm().String()}, Action: "mode",
				mend: func() error { return disk.RestrictToOwner(path, st) }})
		}
	}
}
