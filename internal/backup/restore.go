package backup

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Target is what Restore brings back, and where to.
type Target struct {
	Dir   string // base directory, which need not be there
	Plans string // planning.history.directory, absolute; "" where histories lie with their runs
	Run   string // uuid of the only run that is wanted, or the beginning of it; "" for all
	Force bool   // what is there otherwise is moved aside
	FS    *disk.FS
	// Progress is told how many runs and conversations are there again, and how many bytes; may be nil.
	Progress func(units, bytes int64)
}

// Restored is what Restore did.
type Restored struct {
	Generation
	Runs, Sessions int64
	Run            string      // the uuid of the only one
	Aside          string      // where what was there was moved to, "" for nowhere
	Same           bool        // the run was there already, as it is in the backup
	Resumed        bool        // nothing but the end of an earlier call was done, with its generation
	Check          fsck.Report // of what was brought back
}

// restoreDir is where in a base directory all is put together and checked before it takes its
// place.
var restoreDir = filepath.Dir(contextstore.RestoreCommit)

// Where Force moves what was there.
const (
	asidePrefix = "before-restore-"
	asideTime   = "20060102T150405.000000Z"
)

// restorer is one call of Restore.
type restorer struct {
	*Repository
	Target
	g     Generation
	done  Restored
	bytes int64
}

func (r *Repository) restorer(g Generation, t Target) (*restorer, error) {
	x := &restorer{Repository: r, Target: t, g: g, done: Restored{Generation: g}}
	if x.FS == nil {
		x.FS = &disk.FS{}
	}
	var err error
	x.Dir, err = filepath.Abs(t.Dir)
	return x, err
}

// Restore brings a generation, or a run of it, back into a base directory. It is put together
// beside what is there, compared with its hashes and mended as tori check --repair does (a run that
// was just ending is brought to its end), and takes its place only then: until that is noted down nothing is changed, and what is noted down is done by
// the next call if this one is cut short. What is there already stays as it is, unless Force moves
// it aside. The index is made anew. Damage that is left was so when the backup was made; it is in
// the report and keeps nothing from being restored.
func (r *Repository) Restore(ctx context.Context, g Generation, t Target) (Restored, error) {
	x, err := r.restorer(g, t)
	if err != nil {
		return x.done, err
	}
	if err := x.FS.MkdirAll(x.Dir); err != nil {
		return x.done, &RefusedError{i18n.E("contextstore.base_dir", x.Dir, err)}
	}
	if t.Run != "" {
		err = x.restoreRun(ctx)
	} else {
		err = x.restoreAll(ctx)
	}
	if x.forbidden(err) {
		err = &RefusedError{i18n.E("contextstore.base_dir", x.Dir, err)}
	}
	return x.done, err
}

// forbidden reports that nothing can be written to the base directory.
func (x *restorer) forbidden(err error) bool {
	path := (*fs.PathError)(nil)
	return readOnly(err) || errors.Is(err, fs.ErrPermission) && errors.As(err, &path) && strings.HasPrefix(path.Path, x.Dir+string(filepath.Separator))
}

func (x *restorer) restoreAll(ctx context.Context) error {
	release, err := lockBase(ctx, x.Dir)
	if err != nil {
		return err
	}
	defer release()
	staged := filepath.Join(x.Dir, restoreDir)
	if cut, err := x.resume(staged, tops()); err != nil || cut {
		return err
	}
	there, err := x.there()
	if err != nil {
		return err
	}
	if len(there) > 0 && !x.Force {
		return i18n.E("backup.not_empty", x.Dir, strings.Join(there, ", "))
	}
	if err := x.FS.RemoveAll(staged); err != nil {
		return err
	}
	if err := x.hasRoom(x.Dir, reserve); err != nil {
		return err
	}
	if len(there) == 0 { // nobody is to begin there with nothing
		if err := x.FS.MkdirAll(staged); err != nil {
			return err
		}
		if err := x.note(filepath.Join(x.Dir, contextstore.RestoreBegun), struct{}{}); err != nil {
			return err
		}
	}
	if err := x.stage(ctx, staged, func(unit) bool { return true }); err != nil {
		return err
	}
	id, _ := readIdentity(x.Dir) // one that cannot be read is another's
	if id.House != x.g.House {
		id = identity{House: x.g.House}
	}
	if err := x.note(filepath.Join(staged, identityFile), id); err != nil {
		return err
	}
	c := commit{Generation: x.g.Name}
	if x.Force {
		c.Aside, c.Away = asidePrefix+x.now().UTC().Format(asideTime), there
	}
	return x.commit(staged, tops(), c)
}

// note writes a small file, durably.
func (x *restorer) note(path string, v any) error {
	raw, err := jsonl.Append(nil, v)
	if err != nil {
		return err
	}
	return x.FS.Replace(path, raw, true)
}

// hasRoom refuses to begin what cannot be ended, or leaves less than keep bytes free.
func (x *restorer) hasRoom(dir string, keep int64) error {
	free, err := disk.Free(dir)
	if err != nil {
		return nil // it is found out by writing
	}
	if need := x.g.Bytes + (x.g.Runs+x.g.Sessions)*perUnit + keep; free < uint64(need) { //nolint:gosec // it is not negative
		return i18n.E("backup.no_room", dir, i18n.Bytes(int64(min(free, 1<<62))), i18n.Bytes(need)).Of(ErrNoRoom) //nolint:gosec // it was bounded
	}
	return nil
}

// ErrNoRoom says that there is no room for what would be restored, and nothing was begun.
var ErrNoRoom = errors.New("too little room")

const (
	perUnit = 32 << 10 // bytes of a run or conversation beside those of its files: directories, blocks that are not full
	reserve = 64 << 20 // what a restore leaves free, in bytes
)

// lockBase has a base directory for the caller alone.
func lockBase(ctx context.Context, dir string) (release func(), err error) {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	base, err := database.Enter(short, dir)
	if err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	free, err := base.Exclusive(short)
	if err != nil {
		base.Close()
		return nil, err
	}
	return func() { free(); base.Close() }, nil
}

// tops are the names in a base directory that a restore fills or moves aside.
func tops() []string {
	all := append([]string{}, contextstore.StatusDirs...)
	all = append(all, sessionsDir, index.UnindexedDir, identityFile, search.File, search.File+"-wal", search.File+"-shm")
	for _, f := range files {
		if !strings.HasPrefix(f, sessionsDir) {
			all = append(all, f)
		}
		if isDatabase(f) && !strings.HasPrefix(f, sessionsDir) {
			all = append(all, f+"-wal", f+"-shm")
		}
	}
	return all
}

// there are those of them that have something.
func (x *restorer) there() (all []string, err error) {
	for _, name := range tops() {
		path := filepath.Join(x.Dir, name)
		st, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if st.IsDir() {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			_, err = f.Readdirnames(1)
			_ = f.Close() // only read from
			if errors.Is(err, io.EOF) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		all = append(all, name)
	}
	return all, nil
}

// stage puts the units that are wanted together in a directory, as a base directory, makes its
// index and checks it; all of it is durable then.
func (x *restorer) stage(ctx context.Context, dir string, want func(unit) bool) error {
	if err := x.FS.MkdirAll(dir); err != nil {
		return err
	}
	for _, d := range contextstore.StatusDirs {
		if err := x.FS.MkdirAll(filepath.Join(dir, d)); err != nil {
			return err
		}
	}
	err := x.each(ctx, x.g, func(u unit) error {
		if !want(u) {
			return ctx.Err()
		}
		to := filepath.Join(dir, filepath.FromSlash(u.Path))
		if err := x.unpack(ctx, u, to); err != nil {
			return fmt.Errorf("restore %s: %w", u.Path, err)
		}
		switch {
		case strings.HasPrefix(u.Path, contextstore.DirCompleted+"/"):
			x.done.Runs++
		case u.Dir:
			x.done.Sessions++
		}
		if x.Progress != nil {
			x.Progress(x.done.Runs+x.done.Sessions, x.bytes)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if _, err := fsck.Reindex(ctx, dir, nil); err != nil {
		return err
	}
	if x.done.Check, err = fsck.Check(ctx, dir, fsck.Options{Repair: true, FS: x.FS, Now: x.now}); err != nil {
		return err
	}
	return x.FS.SyncAll(dir)
}

// unpack writes a unit to where it belongs. Nothing of it is durable yet.
func (x *restorer) unpack(ctx context.Context, u unit, to string) error {
	in := x.stream(ctx, u.Chunks)
	if !u.Dir {
		if err := x.FS.MkdirAll(filepath.Dir(to)); err != nil {
			return err
		}
		return x.write(to, in)
	}
	if err := x.FS.MkdirAll(to); err != nil {
		return err
	}
	t := tar.NewReader(in)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) || h.Typeflag != tar.TypeReg {
			return damaged(u.Path, fmt.Errorf("a file %q", h.Name))
		}
		path := filepath.Join(to, filepath.FromSlash(h.Name))
		if err := x.FS.MkdirAll(filepath.Dir(path)); err != nil {
			return err
		}
		if err := x.write(path, t); err != nil {
			return err
		}
		if err := os.Chtimes(path, h.ModTime, h.ModTime); err != nil {
			return err
		}
	}
}

// write writes a file that is not there yet.
func (x *restorer) write(path string, from io.Reader) error {
	f, err := x.FS.OpenAppend(path)
	if err != nil {
		return err
	}
	piece := make([]byte, 64<<10)
	for {
		n, rerr := io.ReadFull(from, piece)
		if n > 0 {
			if _, err := f.Append(piece[:n]); err != nil {
				return errors.Join(err, f.Close())
			}
			x.bytes += int64(n)
		}
		if errors.Is(rerr, io.EOF) || errors.Is(rerr, io.ErrUnexpectedEOF) {
			return f.Close()
		}
		if rerr != nil {
			return errors.Join(rerr, f.Close())
		}
	}
}

// commit says that all is there and checked, and what is to be moved.
type commit struct {
	Generation string   `json:"generation"`
	Aside      string   `json:"aside,omitempty"` // directory for what is moved away
	Away       []string `json:"away,omitempty"`
}

// commitFile, in a directory where all is put together, is a commit.
var commitFile = filepath.Base(contextstore.RestoreCommit)

// commit notes down that what was put together in a directory is moved, and moves it.
func (x *restorer) commit(staged string, names []string, c commit) error {
	if err := x.note(filepath.Join(staged, commitFile), c); err != nil {
		return err
	}
	return x.move(staged, names, c)
}

// move gives what was put together its place, by the names that it is to have in the base directory.
// It may be done again from any point.
func (x *restorer) move(staged string, names []string, c commit) error {
	aside := ""
	if c.Aside != "" {
		aside = filepath.Join(x.Dir, c.Aside)
	}
	for _, name := range c.Away {
		from, to := filepath.Join(x.Dir, name), filepath.Join(aside, name)
		if exists(to) || !exists(from) {
			continue
		}
		if err := x.FS.MkdirAll(filepath.Dir(to)); err != nil {
			return err
		}
		if err := x.FS.Rename(from, to); err != nil {
			return err
		}
	}
	if err := x.movePlans(staged, aside); err != nil {
		return err
	}
	for _, name := range names {
		from, to := filepath.Join(staged, name), filepath.Join(x.Dir, name)
		if !exists(from) {
			continue
		}
		if err := x.FS.MkdirAll(filepath.Dir(to)); err != nil {
			return err
		}
		if err := x.FS.Remove(to); err != nil { // an empty directory, if it is anything
			return err
		}
		if err := x.FS.Rename(from, to); err != nil {
			return err
		}
	}
	if aside != "" && exists(aside) {
		x.done.Aside = aside
	}
	// What is half removed must not look as if all of it were still to be moved.
	gone := filepath.Join(x.Dir, contextstore.RemovedPrefix+strings.TrimPrefix(filepath.Base(staged), "."))
	if err := x.FS.RemoveAll(gone); err != nil {
		return err
	}
	if err := x.FS.Rename(staged, gone); err != nil {
		return err
	}
	return x.FS.RemoveAll(gone)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// copy copies a file, durably.
func (x *restorer) copy(to, from string) error {
	st, err := os.Lstat(from)
	if err == nil {
		err = x.FS.MkdirAll(filepath.Dir(to))
	}
	if err == nil {
		err = x.FS.Write(to, func(w io.Writer) error { return copyFile(w, from, st.Size()) })
	}
	return err
}

// resume ends what an earlier call had noted down, and reports that it did.
func (x *restorer) resume(staged string, names []string) (bool, error) {
	raw, err := disk.Read(filepath.Join(staged, commitFile), maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var c commit
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return false, err
	}
	x.done.Generation, x.done.Resumed = Generation{Name: c.Generation, Number: numberOf(c.Generation)}, true
	return true, x.move(staged, names, c)
}

// testDir is where a generation is restored to for a test, in a base directory.
const testDir = ".restore-test"

// Test restores a generation into a directory of its own below dir, which it removes again, and
// returns what tori check says of it. Its error says why it could not be restored: ErrNoRoom, that
// it was not tried, as less than keep bytes would be left free.
func (r *Repository) Test(ctx context.Context, g Generation, dir string, keep int64, fsys *disk.FS) (done Restored, err error) {
	x, err := r.restorer(g, Target{Dir: filepath.Join(dir, testDir), FS: fsys})
	if err != nil {
		return x.done, err
	}
	if err := x.FS.RemoveAll(x.Dir); err != nil {
		return x.done, err
	}
	defer func() { err = errors.Join(err, x.FS.RemoveAll(x.Dir)) }()
	if err = x.hasRoom(dir, keep); err == nil {
		err = x.stage(ctx, x.Dir, func(unit) bool { return true })
	}
	return x.done, err
}
