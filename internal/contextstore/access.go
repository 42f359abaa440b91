package contextstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
)

// Viewer is who looks at contexts. The zero Viewer sees none (store-v2 §11.2).
type Viewer struct {
	User    string
	Account string // another name of theirs, "" for none
	Admin   bool   // sees every context
}

// MaySee reports whether the viewer may see a context: users see their own
// tasks, whatever the case of their name, administrators all.
func (v Viewer) MaySee(m Metadata) bool {
	return v.Admin || v.User != "" && strings.EqualFold(v.User, m.User) || v.Account != "" && strings.EqualFold(v.Account, m.User)
}

// maySeeDir is MaySee of the context in a directory; one whose metadata cannot
// be read is for administrators.
func (v Viewer) maySeeDir(dir string) bool {
	if v.Admin {
		return true
	}
	m, err := ReadMetadata(dir)
	return err == nil && v.MaySee(m)
}

// LocalViewer is the viewer of a person at this machine: user is the name and
// uid the id that the system knows them by. Root and the owner of the files
// are administrators, and so are the users that admins names; files that are not there
// are those of whoever is about to make them.
func LocalViewer(base string, uid int, user string, admins []string) Viewer {
	v := Viewer{User: user}
	st, err := os.Stat(base)
	v.Admin = uid == 0 || err == nil && disk.OwnerOf(st) == uid || errors.Is(err, fs.ErrNotExist) ||
		user != "" && slices.ContainsFunc(admins, func(a string) bool { return strings.EqualFold(a, user) })
	return v
}

// OwnFiles lists what lies in a base directory itself and is ours: the status
// directories, databases, and the files of locks, of the audit, of the keys of links and of
// backups, and of Slack's tokens.
func OwnFiles(base string) []string {
	all := slices.Clone(StatusDirs)
	for _, pattern := range []string{"tasks.db*", "house.db*", "search.db*", "audit.jsonl*", ".house", "links.key", "slack.token", "backup.json", index.UnindexedDir, ".restore-*/commit.json"} {
		found, _ := filepath.Glob(filepath.Join(escapeGlob(base), pattern))
		for _, f := range found {
			if name, err := filepath.Rel(base, f); err == nil {
				all = append(all, name)
			}
		}
	}
	return all
}

// side reports whether a name is that of a file that SQLite keeps beside a database.
func side(name string) bool {
	return strings.HasSuffix(name, "-wal") || strings.HasSuffix(name, "-shm")
}

// escapeGlob makes a path mean itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// tightenBase takes the rights of everybody but the owner from a base directory
// and from what is ours in it (store-v2 §11.1). A base directory of somebody
// else, or one that many share (sticky), is left as it is. What cannot be
// changed stays: tori check tells of it.
func tightenBase(base string) {
	if st, err := os.Stat(base); err == nil && disk.OwnerOf(st) == os.Geteuid() && st.Mode()&os.ModeSticky == 0 {
		tightenFile(base, st)
	}
	for _, name := range OwnFiles(base) {
		path := filepath.Join(base, name)
		st, err := os.Lstat(path)
		if err != nil {
			continue
		}
		tightenFile(path, st)
		// SQLite gives a side file the rights that the database has at that time;
		// one that was made beside a read-only database outlives its mending.
		if side(name) && st.Mode().IsRegular() && st.Mode().Perm()&disk.FileMode != disk.FileMode && disk.OwnerOf(st) == os.Geteuid() {
			if main, err := os.Stat(strings.TrimSuffix(strings.TrimSuffix(path, "-wal"), "-shm")); err == nil && main.Mode().Perm()&disk.FileMode == disk.FileMode {
				_ = os.Chmod(path, disk.FileMode)
			}
		}
	}
}

// tighten does the same for a directory and the files in it, those of its
// subdirectories included.
func tighten(dir string) {
	if disk.At(dir) != nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read cannot be tightened; the rest can
		}
		if st, err := e.Info(); err == nil {
			tightenFile(path, st)
		}
		return nil
	})
}

func tightenFile(path string, st os.FileInfo) {
	if (st.IsDir() || st.Mode().IsRegular()) && disk.TooOpen(st) {
		_ = disk.RestrictToOwner(path, st)
	}
}
