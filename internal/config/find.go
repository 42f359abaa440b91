package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"syscall"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

const (
	fileName = "config.yaml"
	fileVar  = envPrefix + "CONFIG" // names the file
)

// Search says where the configuration is looked for.
type Search struct {
	Named   string              // file that a person has named, and so vouches for; "" for none
	Kept    string              // file that a run has kept for when it goes on; "" for none
	Dir     string              // working directory
	Getenv  func(string) string // as of Parse
	Environ []string            // as of Parse
}

// Find loads the configuration in force: of the file that is named, else of
// TORI_CONFIG, else that was kept, else config.yaml of the working directory,
// else the user's; without any the defaults. What a person has named is taken as
// it is. One of the working directory counts after Trust only: it may have come
// with an archive or a checkout, and is passed over otherwise, which Warnings
// tells. The others count where nobody but this user and root can have written
// them, or after Trust, else it is an error (docs/decisions/024-which-settings-count.md).
func Find(s Search) (*Config, error) {
	dir, err := filepath.Abs(s.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, i18n.E("config.read", s.Dir, err)
	}
	f := finding{Search: s, dir: dir}
	users := filepath.Join(ofUser(s.Getenv, "XDG_CONFIG_HOME", ".config"), fileName)
	var why error
	switch named := s.Getenv(fileVar); {
	case s.Named != "":
		err = f.named(s.Named, "config.by.flag")
	case named != "":
		err = f.named(named, "config.by.variable")
	case s.Kept != "":
		why, err = f.vouched(s.Kept, s.Kept != users, "config.by.run")
	default:
		f.ignored, err = f.vouched(filepath.Join(dir, fileName), true, "config.by.directory")
		if !f.there && err == nil {
			why, err = f.vouched(users, false, "config.by.user")
		}
	}
	if err = cmp.Or(why, err); err != nil {
		return nil, err
	}
	return f.load()
}

// finding is a search with what it has found.
type finding struct {
	Search
	dir     string // the working directory, without symbolic links
	there   bool   // a file was found:
	path    string
	data    []byte
	by      string // key of the text that says why this one
	ignored error  // why the file of the working directory is none
}

func (f *finding) named(path, by string) (err error) {
	f.data, err = contents(path)
	f.path, f.by, f.there = path, by, true
	return err
}

// vouched takes a file that nobody has named, if there is one; why says why it
// cannot be trusted.
func (f *finding) vouched(path string, loose bool, by string) (why, err error) {
	if _, err := os.Lstat(path); err != nil {
		if f.Kept == "" {
			return nil, nil
		}
		return nil, f.named(path, by) // says that it is gone
	}
	if why = foreign(path, os.Geteuid(), loose); why == nil && by == "config.by.directory" {
		why = i18n.E("config.why.unnamed")
	}
	if why != nil {
		now, err := recorded(path, f.Getenv)
		if now == nil {
			return i18n.E("config.untrusted", path, cmp.Or(err, why), path, path), nil
		}
		f.data, f.path, f.by, f.there = now, path, "config.by.trust", true
		return nil, nil
	}
	return nil, f.named(path, by)
}

// load makes a configuration of what was found.
func (f *finding) load() (*Config, error) {
	if !f.there {
		f.path = ""
	}
	name := f.path
	if rel, err := filepath.Rel(f.dir, name); err == nil && rel == fileName {
		name = rel
	}
	c, err := Parse(name, f.data, f.Getenv, f.Environ)
	if err != nil {
		return nil, err
	}
	if f.ignored != nil {
		c.meta.ignored = f.ignored
		c.meta.warnings = append([]error{f.ignored}, c.meta.warnings...)
	}
	c.meta.by = f.by
	if f.there {
		if c.meta.path, err = filepath.Abs(f.path); err != nil {
			return nil, i18n.E("config.read", f.path, err)
		}
	}
	f.base(c)
	return c, nil
}

// base settles where the contexts lie. What begins at the working directory may
// have been laid there by somebody else, a whole ledger with orders for the next
// run: it counts where the directory can be trusted, or where the file that says
// so lies in it as well.
func (f *finding) base(c *Config) {
	const key = "context_storage.base_dir"
	base := &c.ContextStorage.BaseDir
	o := c.meta.origins[key]
	why := place(f.dir, os.Geteuid(), true)
	switch {
	case filepath.IsAbs(*base):
	case !o.set() && (why != nil || !f.there || f.by == "config.by.user"):
		was := *base
		*base = filepath.Join(StateDir(f.Getenv), "contexts")
		if _, err := os.Stat(filepath.Join(f.dir, was)); err == nil {
			c.meta.left = i18n.E("config.left", was, *base, was)
		}
	case o.set() && why != nil && (o.env != "" || filepath.Dir(c.meta.path) != f.dir):
		p := &parser{name: f.path}
		c.meta.base = i18n.E("config.base", p.at(o), *base, why)
	}
}

// Base is the base directory: the one that a flag names, else that of the
// settings. warn hears where another one is passed over.
func (c *Config) Base(flag string, warn func(*i18n.Error)) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if c.meta.left != nil {
		warn(c.meta.left)
	}
	return c.ContextStorage.BaseDir, c.meta.base
}

// BaseSet reports whether the settings name a base directory.
func (c *Config) BaseSet() bool { return c.meta.origins["context_storage.base_dir"].set() }

// File is the whole path of the file in force, "" for none.
func (c *Config) File() string { return c.meta.path }

// Ignored says why config.yaml of the working directory is not in force, nil
// where it is, or is not there.
func (c *Config) Ignored() error { return c.meta.ignored }

// InForce says which file is in force, and why that one.
func (c *Config) InForce() *i18n.Error {
	if c.meta.path == "" {
		return i18n.E("config.in_force.none")
	}
	return i18n.E("config.in_force", c.meta.path, i18n.E(c.meta.by))
}

// foreign says who else may have written a file, nil where only root and the
// user uid can have. In a loose place it may have come with a checkout.
func foreign(path string, uid int, loose bool) error {
	dir, err := absolute(filepath.Dir(path))
	if err != nil {
		return err
	}
	path = filepath.Join(dir, filepath.Base(path))
	if !loose { // dotfiles are often links
		if why := place(dir, uid, loose); why != nil {
			return why
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return i18n.E("config.why.kind", path)
	}
	if why := shared(path, info, uid); why != nil {
		return why
	}
	return place(filepath.Dir(path), uid, loose)
}

// place says who else may put files into a directory, or the directory into its
// place, nil where only root and the user uid can.
func place(dir string, uid int, loose bool) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		// In a sticky directory others cannot take away what is there; add to it they can.
		if why := shared(at, info, uid); why != nil && (at == dir || info.Mode()&fs.ModeSticky == 0) {
			return why
		}
		for _, mark := range [...]string{".git", ".hg", ".jj", ".svn"} {
			if _, err := os.Lstat(filepath.Join(at, mark)); loose && !errors.Is(err, fs.ErrNotExist) {
				return i18n.E("config.why.checkout", at)
			}
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// shared says who else may change what lies at path. A group of the number of
// its owner is that user's own.
func shared(path string, info fs.FileInfo, uid int) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	const group, others = 0o020, 0o002
	switch {
	case !ok:
		return i18n.E("config.why.kind", path)
	case st.Uid != 0 && int(st.Uid) != uid:
		return i18n.E("config.why.owner", path, int(st.Uid))
	case info.Mode()&others != 0 || info.Mode()&group != 0 && st.Gid != st.Uid:
		return i18n.E("config.why.writable", path)
	}
	return nil
}

// Trust records that the file at path is trusted as it is now. It fails on one
// that is no configuration.
func Trust(path string, getenv func(string) string, environ []string) (*Config, error) {
	real, err := absolute(path)
	if err != nil {
		return nil, i18n.E("config.missing", path, err)
	}
	f := finding{Search: Search{Getenv: getenv, Environ: environ}, dir: filepath.Dir(real)}
	if err := f.named(real, "config.by.directory"); err != nil {
		return nil, err
	}
	c, err := f.load()
	if err != nil {
		return nil, err
	}
	file, line := record(real, f.data, getenv)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, i18n.E("config.not_trusted", real, err)
	}
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		return nil, i18n.E("config.not_trusted", real, err)
	}
	return c, nil
}

// recorded is what the file at path holds, if it is as it was when it was
// trusted, else nil; the error says that it has changed since.
func recorded(path string, getenv func(string) string) ([]byte, error) {
	real, err := absolute(path)
	if err != nil {
		return nil, nil //nolint:nilerror // nobody can have trusted it
	}
	file, _ := record(real, nil, getenv)
	line, err := disk.Read(file, 16<<10)
	if err != nil {
		return nil, nil //nolint:nilerror // nobody has trusted it
	}
	data, err := contents(real)
	if err != nil {
		return nil, err
	}
	if _, want := record(real, data, getenv); string(line) != want {
		return nil, i18n.E("config.why.changed")
	}
	return data, nil
}

// record is the file that says that a configuration is trusted, and its only
// line, which sha256sum --check reads.
func record(path string, data []byte, getenv func(string) string) (file, line string) {
	return filepath.Join(StateDir(getenv), "trusted", fmt.Sprintf("%x", sha256.Sum256([]byte(path)))),
		fmt.Sprintf("%x  %s\n", sha256.Sum256(data), path)
}

// absolute is a path without symbolic links.
func absolute(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// StateDir is where a user's programs keep what they need the next time.
func StateDir(getenv func(string) string) string {
	return ofUser(getenv, "XDG_STATE_HOME", filepath.Join(".local", "state"))
}

// ofUser is our directory in the one that a variable names, else in the user's
// home.
func ofUser(getenv func(string) string, name, usual string) string {
	if dir := getenv(name); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tori")
	}
	home := getenv("HOME")
	if u, err := user.Current(); home == "" && err == nil {
		home = u.HomeDir
	}
	return filepath.Join("/", home, usual, "tori")
}
