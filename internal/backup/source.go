package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/bucket"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
)

// sessionsDir has the directories of conversations.
var sessionsDir = filepath.Base(contextstore.SessionsDir(""))

// files are what of a base directory is copied beside the directories of runs that have ended and
// of conversations; a database as it is at one moment. house.db comes first: a run or conversation
// that is newer than it looks as after a crash, in which what is done is known by its own marks.
// What is a secret (mcp/logins, links.key, slack.token) is left out.
var files = []string{
	contextstore.HouseDBFile,
	index.File,
	sessionsDir + "/analyses.db",
	"audit.jsonl", "auto_approve.jsonl", "mcp/pins.json",
}

func isDatabase(path string) bool {
	return strings.HasSuffix(path, ".db") && slices.Contains(files, path)
}

// part is a file of a unit.
type part struct {
	name string // in the archive
	path string
	info fs.FileInfo
}

// passing reports whether a file of a run or conversation is no part of it, or a request to an owner.
func passing(name string) bool { return contextstore.Passing(name) || name == "request.json" }

// parts are the files of the directory of a run or conversation, in the order of their names,
// with the history of a run's planning, which may lie elsewhere.
func (m *maker) parts(dir string) (all []part, err error) {
	err = disk.Walk(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || passing(e.Name()) {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return errChanged // as retention does
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all = append(all, part{filepath.ToSlash(name), path, info})
		return err
	})
	if err != nil || m.Plans == "" || filepath.Base(filepath.Dir(dir)) != contextstore.DirCompleted {
		return all, err
	}
	for _, end := range []string{".jsonl", ".jsonl.gz"} {
		name := filepath.Base(dir) + end
		path := filepath.Join(m.Plans, name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			err = &fs.PathError{Op: "read", Path: path, Err: disk.ErrNotPlain}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, part{plansDir + "/" + name, path, info})
	}
	return all, nil
}

// plansDir is where in its directory the histories of a run's planning lie.
const plansDir = "planning"

// stamp tells of parts whether one of them was changed.
func stamp(all []part) string {
	var b strings.Builder
	for _, p := range all {
		var inode uint64
		if st, ok := p.info.Sys().(*syscall.Stat_t); ok {
			inode = st.Ino
		} else if id, ok := p.info.Sys().(disk.FileID); ok {
			inode = uint64(id.File) ^ uint64(id.Version) //nolint:gosec // a number like another
		}
		fmt.Fprintf(&b, "%q %d %d %d\n", p.name, p.info.Size(), p.info.ModTime().UnixNano(), inode)
	}
	return bucket.Hash([]byte(b.String()))[:32]
}

// errChanged says that a file was changed or removed while it was read.
var errChanged = errors.New("it changed while it was read")

// archive writes parts as a tar archive.
func archive(w io.Writer, all []part) error {
	t := tar.NewWriter(w)
	for _, p := range all {
		if err := t.WriteHeader(&tar.Header{Name: p.name, Mode: int64(disk.FileMode), Size: p.info.Size(), ModTime: p.info.ModTime().Truncate(1e9), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if err := copyFile(t, p.path, p.info.Size()); err != nil {
			return err
		}
	}
	return t.Close()
}

// copyFile writes the first size bytes of a file.
func copyFile(w io.Writer, path string, size int64) error {
	f, err := disk.OpenPlain(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errChanged
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	if _, err = io.CopyN(w, f, size); errors.Is(err, io.EOF) {
		return errChanged
	}
	return err
}

// sessionWait is how long a write to a conversation is waited for.
const sessionWait = 10 * time.Second

// tries is how often a unit is read that changes meanwhile.
const tries = 5

// pack reads a unit and stores what of it is not stored already; fs.ErrNotExist where it is gone.
func (m *maker) pack(ctx context.Context, path string, was unit) (unit, error) {
	abs := filepath.Join(m.Base, filepath.FromSlash(path))
	for range tries {
		u, err := m.packOnce(ctx, path, abs, was)
		if errors.Is(err, fs.ErrNotExist) && !errors.As(err, new(*putError)) {
			if _, gone := disk.Lstat(abs); !errors.Is(gone, fs.ErrNotExist) {
				err = errChanged // a file of it went, as retention compresses them, and not the unit
			}
		}
		if !errors.Is(err, errChanged) {
			return u, err
		}
	}
	return unit{}, fmt.Errorf("%s: %w", abs, errChanged)
}

func (m *maker) packOnce(ctx context.Context, path, abs string, was unit) (unit, error) {
	u := unit{Path: path, Dir: strings.HasPrefix(path, contextstore.DirCompleted+"/") || strings.HasPrefix(path, sessionsDir+"/") && !isDatabase(path)}
	look := func() (all []part, err error) {
		if u.Dir {
			return m.parts(abs)
		}
		for _, file := range []string{abs, abs + "-wal"} {
			info, err := disk.Stat(file)
			if err == nil && !info.Mode().IsRegular() {
				err = &fs.PathError{Op: "read", Path: file, Err: disk.ErrNotPlain}
			}
			if errors.Is(err, fs.ErrNotExist) && file != abs {
				break
			}
			if err != nil {
				return nil, err
			}
			all = append(all, part{filepath.Base(file), file, info})
		}
		return all, nil
	}
	if strings.HasPrefix(path, sessionsDir+"/") && u.Dir {
		release, err := contextstore.HoldSession(ctx, abs, false, sessionWait)
		if err != nil {
			return u, err
		}
		defer release()
	}
	all, err := look()
	if err != nil {
		return u, err
	}
	if u.Stamp = stamp(all); u.Stamp == was.Stamp && !m.Fresh {
		return was, nil
	}
	for _, p := range all {
		u.Bytes += p.info.Size()
	}
	had := known(was.Chunks)
	cut := cutter{emit: func(piece []byte) error {
		c, err := m.put(ctx, piece, had)
		u.Chunks = append(u.Chunks, c)
		return err
	}}
	switch {
	case u.Dir:
		err = archive(&cut, all)
	case isDatabase(path):
		err = m.snapshot(ctx, abs, &cut)
	default:
		err = copyFile(&cut, abs, all[0].info.Size()) // what is appended meanwhile is not in it
	}
	if err == nil {
		err = cut.flush()
	}
	if err != nil || !u.Dir {
		return u, err
	}
	if all, err = look(); err == nil && stamp(all) != u.Stamp {
		err = errChanged
	}
	return u, err
}

// snapshot writes a database as it is at one moment.
func (m *maker) snapshot(ctx context.Context, path string, w io.Writer) error {
	to := filepath.Join(m.tmp, filepath.Base(path))
	if err := database.Snapshot(ctx, path, to); err != nil {
		if errors.Is(err, fs.ErrNotExist) && exists(path) { // what is missing is not the database
			return fmt.Errorf("copy %s: %v", path, err) //nolint:errorlint // nobody is to take it for gone
		}
		return fmt.Errorf("copy %s: %w", path, err)
	}
	st, err := os.Stat(to)
	if err == nil {
		err = copyFile(w, to, st.Size())
	}
	return errors.Join(err, m.FS.Remove(to))
}

// lockFile keeps two backups of one base directory apart.
const lockFile = ".backup.lock"

// alone takes that lock. On a disk that cannot be written nobody else can be at it either.
func alone(base string) (release func(), err error) {
	f, err := filelock.Open(filepath.Join(base, lockFile), os.O_CREATE)
	if readOnly(err) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	return func() { filelock.Close(f) }, nil
}

// readOnly reports that a file system cannot be written.
func readOnly(err error) bool { return errors.Is(err, unix.EROFS) }

// listed is how many shards one walk of the base directory lists: of a million runs they take 8 MiB.
const listed = 8

// paths lists the units of a shard, in their order; shards are asked for one after the other.
func (m *maker) paths(shard int) ([]string, error) {
	var err error
	if shard%listed == 0 {
		err = m.list(shard)
	}
	all := m.lists[shard%listed]
	slices.Sort(all)
	return all, err
}

// list lists the units of a shard and of those behind it.
func (m *maker) list(shard int) error {
	m.lists = [listed][]string{}
	add := func(path string) {
		if at := shardOf(path) - shard; 0 <= at && at < listed {
			m.lists[at] = append(m.lists[at], path)
		}
	}
	for _, f := range files {
		add(f)
	}
	err := contextstore.Walk(m.Base, []string{contextstore.DirCompleted}, func(dir string) error {
		add(contextstore.DirCompleted + "/" + filepath.Base(dir))
		return nil
	})
	if err == nil {
		err = contextstore.EachSession(m.Base, func(dir string) error {
			add(sessionsDir + "/" + filepath.Base(dir))
			return nil
		})
	}
	return err
}
