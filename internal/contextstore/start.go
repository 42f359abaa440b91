package contextstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// minFree is the free space, in bytes, below which nothing new is claimed: a
// run must be able to note how it ended (PROTOCOL "Start-up").
const minFree = 16 << 20

// FileSystem is what the start-up must know of where the contexts lie.
type FileSystem struct {
	Type   int64  // magic number of statfs(2)
	Device uint64 // st_dev
	Free   uint64 // bytes that this user may still write
}

// statFileSystem asks the kernel.
func statFileSystem(path string) (FileSystem, error) {
	var f unix.Statfs_t
	if err := unix.Statfs(path, &f); err != nil {
		return FileSystem{}, err
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return FileSystem{}, err
	}
	free, err := disk.Free(path)
	return FileSystem{Type: f.Type, Device: st.Dev, Free: free}, err
}

// undependable are the file systems on which a lock may not be exclusive or a
// rename not atomic (PROTOCOL "Start-up").
var undependable = map[int64]string{
	unix.NFS_SUPER_MAGIC:  "NFS",
	unix.SMB_SUPER_MAGIC:  "SMB",
	unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CIFS_SUPER_MAGIC: "SMB",
	unix.FUSE_SUPER_MAGIC: "FUSE",
	unix.V9FS_MAGIC:       "9p",
}

// dependable refuses a base directory whose locks or renames cannot be trusted.
func (s *Store) dependable() error {
	base, err := s.StatFS(s.BaseDir)
	if err != nil {
		return i18n.E("contextstore.base_dir", s.BaseDir, err)
	}
	if name, bad := undependable[base.Type]; bad {
		return i18n.E("contextstore.network_fs", s.BaseDir, name)
	}
	for _, d := range StatusDirs {
		path := filepath.Join(s.BaseDir, d)
		if disk.At(path) != nil {
			continue
		}
		st, err := s.StatFS(path)
		if err != nil {
			return i18n.E("contextstore.base_dir", path, err)
		}
		if st.Device != base.Device {
			return i18n.E("contextstore.other_device", path, s.BaseDir)
		}
	}
	return nil
}

// room refuses new work where the disk is about to be full.
func (s *Store) room() error {
	_, err := s.Room()
	return err
}

// Room is how many bytes may still be written; the error, a *NoSpaceError, says
// that they are too few for anything to be claimed.
func (s *Store) Room() (free uint64, err error) {
	st, err := s.StatFS(s.BaseDir)
	if err == nil && st.Free < s.MinFree {
		return st.Free, &NoSpaceError{i18n.E("contextstore.no_space", s.BaseDir, st.Free>>20, s.MinFree>>20)}
	}
	return st.Free, nil // what cannot be asked is found out by writing
}

// NoSpaceError says that the disk is too full to claim anything.
type NoSpaceError struct{ error }

func (e *NoSpaceError) Unwrap() error { return e.error }

// buildTime is how long the building of a queued context may take before what
// is there counts as left behind by a crash.
const buildTime = 10 * time.Minute

// Recover finishes what earlier owners committed and did not carry to its end,
// and brings the rows of live runs in line with the directories. It reads the
// state of those contexts only that may need it. Open does it; so does who takes the
// place of a process that died since.
func (s *Store) Recover(ctx context.Context) error {
	open := map[string]task.Status{} // of the rows
	s.tell(s.index.Unfinished(ctx, func(r Row) error { open[r.UUID] = r.Status; return nil }))
	if err := s.removeUnbuilt(); err != nil {
		return err
	}
	err := Walk(s.BaseDir, liveDirs, func(dir string) error {
		status, indexed := open[filepath.Base(dir)]
		delete(open, filepath.Base(dir))
		if err := ctx.Err(); err != nil {
			return err
		}
		// A transition that is half done has left its lock behind.
		if !locked(dir) && indexed && DirOf(status) == filepath.Base(filepath.Dir(dir)) {
			return nil
		}
		_ = s.recoverOne(ctx, dir)
		return nil
	})
	if err != nil {
		return err
	}
	for uuid := range open { // rows whose directory is in completed/, or nowhere
		dir, err := s.dir(uuid)
		if errors.Is(err, ErrNotFound) {
			s.tell(s.index.Drop(ctx, uuid))
		} else if err == nil {
			_ = s.recoverOne(ctx, dir)
		}
	}
	s.tell(s.catchUp(ctx))
	s.tell(s.fillIndex(ctx, MaxEnded))
	return nil
}

// recoverOne looks at one context and finishes its transition, if one is half
// done; else it mends the row, whose error it returns. What it cannot do here the
// next owner of the context, or tori check, does.
func (s *Store) recoverOne(ctx context.Context, dir string) error {
	v, err := unowned(dir)
	if err != nil {
		return nil //nolint:nilerr // who owns it sees to it
	}
	inPlace := v.State.Phase != phaseEnding && filepath.Base(filepath.Dir(dir)) == DirOf(v.Status())
	if inPlace && (!v.Status().Final() || !locked(dir)) {
		v.State.TaskStatus = v.Status()
		return s.putRow(ctx, v.Metadata, v.State)
	}
	c, err := s.hold(v.Metadata.UUID)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	defer c.shut()
	if c.meta, err = ReadMetadata(c.dir); err != nil {
		return nil //nolint:nilerr // tori check tells of it
	}
	if c.state, err = ReadState(c.dir); err != nil || !c.state.TaskStatus.Valid() {
		return nil //nolint:nilerr // as above
	}
	did, err := c.finishHalf(ctx)
	if err == nil && (did || c.state.TaskStatus != task.Running) {
		err = c.leave(ctx)
	}
	if err != nil {
		s.OnRepair(fmt.Sprintf("%s: %v", v.Metadata.UUID, err))
	} else if did {
		s.OnRepair(fmt.Sprintf("%s: its transition to %s was half done and is finished", v.Metadata.UUID, c.state.TaskStatus))
	}
	return nil
}

// unowned is the view of a context that has no owner; ErrBusy. That is asked
// before the state is read and again after: a row made from the state of an
// owner that left in between would tell what was so before.
func unowned(dir string) (View, error) {
	_, held := ReadOwner(dir)
	v, err := ReadView(dir)
	if err == nil && (held || v.Held) {
		err = ErrBusy
	}
	return v, err
}

// removeUnbuilt removes what an interrupted Enqueue left.
func (s *Store) removeUnbuilt() error {
	queued := filepath.Join(s.BaseDir, DirQueued)
	return disk.Entries(queued, func(e os.DirEntry) error {
		if !strings.HasPrefix(e.Name(), ".tmp-") {
			return nil
		}
		if st, err := e.Info(); err != nil || s.Now().Sub(st.ModTime()) <= buildTime {
			return nil //nolint:nilerr // it is complete by now
		}
		return s.FS.RemoveAll(filepath.Join(queued, e.Name()))
	})
}

// RestoreCommit is there while a restore gives what it put together its place in the base
// directory: some of what lies there may be from before it.
const RestoreCommit = ".restore/commit.json"

// RestoreBegun is there while a restore is put together in a base directory that has nothing else.
const RestoreBegun = ".restore/begun.json"

// Holds refuses a base directory in which nothing of ours lies, as where its disk is not mounted.
func Holds(base string) error {
	if err := Whole(base); err != nil {
		return err
	}
	for _, name := range append([]string{HouseDBFile}, StatusDirs...) {
		if disk.Exists(filepath.Join(base, name)) {
			return nil
		}
	}
	return i18n.E("contextstore.empty_base", base)
}

// Whole refuses a base directory that is a file, and one in which a restore was cut short, unless
// all is there that was there before.
func Whole(base string) error {
	st, err := disk.Stat(base)
	switch {
	case err == nil && !st.IsDir():
		return i18n.E("contextstore.base_file", base)
	case disk.Exists(filepath.Join(base, RestoreCommit)):
		return i18n.E("contextstore.restore_cut", base)
	case disk.Exists(filepath.Join(base, RestoreBegun)):
		return i18n.E("contextstore.restore_begun", base, filepath.Join(base, filepath.Dir(RestoreBegun)))
	}
	return nil
}
