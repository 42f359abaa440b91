package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file counts that nobody else can have written: by its owner and its mode, by
// those of each directory above it, and by what the directory is.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		do    func(t *testing.T, top string) // top/in/config.yaml is there
		loose string                         // what is said of one in a loose place, "" for nothing
		tight string
	}{
		{"own", func(*testing.T, string) {}, "", ""},
		{"writable by others", mode("in/config.yaml", 0o602), "others can write to", "others can write to"},
		{"directory writable by others", mode("in", 0o703), "others can write to", "others can write to"},
		{"sticky directory", mode("in", 0o703|fs.ModeSticky), "others can write to", "others can write to"},
		{"below a sticky directory", mode(".", 0o703|fs.ModeSticky), "", ""},
		{"below one without", mode(".", 0o703), "others can write to", "others can write to"},
		{"in a checkout", dir("in/.git"), "the checkout", ""},
		{"in one of a worktree", file(".git"), "the checkout", ""},
		{"of another program", dir(".hg"), "the checkout", ""},
		{"a link", func(t *testing.T, top string) {
			must(t, os.Rename(filepath.Join(top, "in/config.yaml"), filepath.Join(top, "other.yaml")))
			must(t, os.Symlink("../other.yaml", filepath.Join(top, "in/config.yaml")))
		}, "is no plain file", ""},
		{"a link to what others can write", func(t *testing.T, top string) {
			must(t, os.Mkdir(filepath.Join(top, "open"), 0o700))
			must(t, os.Chmod(filepath.Join(top, "open"), 0o777))
			must(t, os.Rename(filepath.Join(top, "in/config.yaml"), filepath.Join(top, "open/config.yaml")))
			must(t, os.Symlink("../open/config.yaml", filepath.Join(top, "in/config.yaml")))
		}, "is no plain file", "others can write to"},
		{"a pipe", func(t *testing.T, top string) {
			must(t, os.Remove(filepath.Join(top, "in/config.yaml")))
			must(t, syscall.Mkfifo(filepath.Join(top, "in/config.yaml"), 0o600))
		}, "is no plain file", "is no plain file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			must(t, os.Chmod(top, 0o700)) //nolint:gosec // a directory
			dir("in")(t, top)
			file("in/config.yaml")(t, top)
			c.do(t, top)
			for loose, want := range map[bool]string{true: c.loose, false: c.tight} {
				why := foreign(filepath.Join(top, "in", fileName), os.Geteuid(), loose)
				if (why == nil) != (want == "") || why != nil && !strings.Contains(why.Error(), want) {
					t.Errorf("loose %t: %v, want %q", loose, why, want)
				}
			}
		})
	}
}

func mode(name string, m fs.FileMode) func(*testing.T, string) {
	return func(t *testing.T, top string) { must(t, os.Chmod(filepath.Join(top, name), m)) }
}

func dir(name string) func(*testing.T, string) {
	return func(t *testing.T, top string) { must(t, os.Mkdir(filepath.Join(top, name), 0o700)) }
}

func file(name string) func(*testing.T, string) {
	return func(t *testing.T, top string) { must(t, os.WriteFile(filepath.Join(top, name), nil, 0o600)) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A group is the user's own where it has the user's number.
func TestShared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode     fs.FileMode
		uid, gid uint32
		want     bool
	}{
		{0o664, 1000, 1000, false}, {0o664, 1000, 100, true}, {0o644, 1000, 100, false}, {0o646, 1000, 1000, true},
		{0o644, 0, 0, false}, {0o664, 0, 0, false}, {0o664, 0, 4, true}, {0o600, 1001, 1001, true},
	} {
		if why := shared("x", info{mode: c.mode, uid: c.uid, gid: c.gid}, 1000); (why != nil) != c.want {
			t.Errorf("%o of %d:%d: %v", c.mode, c.uid, c.gid, why)
		}
	}
}

// info is what the system says of a file.
type info struct {
	fs.FileInfo
	mode     fs.FileMode
	uid, gid uint32
}

func (i info) Mode() fs.FileMode { return i.mode }
func (i info) Sys() any          { return &syscall.Stat_t{Uid: i.uid, Gid: i.gid} }

// Where nobody says so the contexts of all checkouts lie in one place.
func TestBaseOfNobodysWord(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	must(t, os.Chmod(top, 0o700)) //nolint:gosec // a directory
	env := vars{"HOME": filepath.Join(top, "home")}
	for _, name := range []string{"checkout", "checkout/.git", "own"} {
		dir(name)(t, top)
	}
	file("named.yaml")(t, top)
	must(t, os.WriteFile(filepath.Join(top, "checkout", fileName), []byte("context_storage: {base_dir: within}"), 0o600))
	states := filepath.Join(top, "home/.local/state/tori/contexts")
	for _, c := range []struct{ dir, named, set, want, wrong string }{
		{"own", "", "", states, ""},
		{"own", "named.yaml", "", "logs/contexts", ""},
		{"own", "", "ledger", "ledger", ""},
		{"checkout", "", "", states, ""},
		{"checkout", "named.yaml", "", states, ""},
		{"checkout", "checkout/config.yaml", "", "within", ""},
		{"own", "checkout/config.yaml", "", "within", ""},
		{"checkout", "", "ledger", "ledger", "expected an absolute path"},
		{"checkout", "", "/ledger", "/ledger", ""},
	} {
		s := Search{Dir: filepath.Join(top, c.dir), Getenv: func(name string) string {
			if name == "TORI_CONTEXT_STORAGE_BASE_DIR" {
				return c.set
			}
			return env.get(name)
		}}
		if c.named != "" {
			s.Named = filepath.Join(top, c.named)
		}
		cfg, err := Find(s)
		must(t, err)
		base, err := cfg.Base("", nil)
		if base != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%+v: %q, %v", c, base, err)
		}
		if base, err := cfg.Base("said", nil); base != "said" || err != nil {
			t.Errorf("%+v: %q, %v", c, base, err)
		}
	}
}
