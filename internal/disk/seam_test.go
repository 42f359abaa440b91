package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// calls are what a program can do with the seam, with each step that is asked
// about and each effect that is told.
var calls = map[string]struct {
	do   func(f *FS, dir string) error
	asks string
	does string
}{
	"append": {func(f *FS, dir string) error {
		a, err := f.OpenAppend(filepath.Join(dir, "log"))
		if err != nil {
			return err
		}
		_, err = a.Append([]byte("line\n"))
		return errors.Join(err, a.Sync(), a.Truncate(2), a.Close())
	}, "create log, append log 5, sync log, truncate log", "created log, wrote log at 0: line, synced log, truncated log at 2"},
	"append to an old file": {func(f *FS, dir string) error {
		a, err := f.OpenAppend(filepath.Join(dir, "old"))
		if err != nil {
			return err
		}
		_, err = a.Append([]byte("line\n"))
		return errors.Join(err, a.Close())
	}, "append old 5", "wrote old at 3: line"},
	"replace": {func(f *FS, dir string) error { return f.Replace(filepath.Join(dir, "old"), []byte("new"), true) },
		"replace old 3, replace-sync .old.tmp, replace-rename old, sync dir .",
		"created .old.tmp, wrote .old.tmp at 0: new, synced .old.tmp, renamed .old.tmp to old, synced dir ."},
	"replace, not durable": {func(f *FS, dir string) error { return f.Replace(filepath.Join(dir, "old"), []byte("new"), false) },
		"replace old 3, replace-rename old",
		"created .old.tmp, wrote .old.tmp at 0: new, renamed .old.tmp to old"},
	"replace over what a stopped one left": {func(f *FS, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, ".old.tmp"), []byte("longer than the new"), 0o600); err != nil {
			return err
		}
		return f.Replace(filepath.Join(dir, "old"), []byte("new"), false)
	}, "replace old 3, replace-rename old", "truncated .old.tmp at 0, wrote .old.tmp at 0: new, renamed .old.tmp to old"},
	"rename": {func(f *FS, dir string) error {
		return f.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "d", "moved"))
	},
		"rename d/moved, sync dir d, sync dir .", "renamed old to d/moved, synced dir d, synced dir ."},
	"rename in one directory": {func(f *FS, dir string) error { return f.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "moved")) },
		"rename moved, sync dir .", "renamed old to moved, synced dir ."},
	"remove":                       {func(f *FS, dir string) error { return f.Remove(filepath.Join(dir, "old")) }, "remove old", "unlinked old"},
	"remove of what is not there":  {func(f *FS, dir string) error { return f.Remove(filepath.Join(dir, "none")) }, "remove none", ""},
	"remove all":                   {func(f *FS, dir string) error { return f.RemoveAll(filepath.Join(dir, "d")) }, "remove dir d", "removed d"},
	"make directories":             {func(f *FS, dir string) error { return f.MkdirAll(filepath.Join(dir, "d", "e", "f")) }, "mkdir dir d/e, sync dir d, mkdir dir d/e/f, sync dir d/e", "made dir d/e, synced dir d, made dir d/e/f, synced dir d/e"},
	"make a directory that exists": {func(f *FS, dir string) error { return f.MkdirAll(filepath.Join(dir, "d")) }, "", ""},
}

func prepared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o600), os.Mkdir(filepath.Join(dir, "d"), 0o700)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEveryStepIsAskedAndTold(t *testing.T) {
	t.Parallel()
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := prepared(t)
			rel := func(p string) string { r, _ := filepath.Rel(dir, p); return r }
			var asked, told []string
			fs := &FS{Before: func(o Op) error {
				s := string(o.Kind)
				if o.Dir {
					s += " dir"
				}
				s += " " + rel(o.Path)
				if o.Bytes > 0 {
					s += fmt.Sprint(" ", o.Bytes)
				}
				asked = append(asked, s)
				return nil
			}, Trace: func(e Event) {
				s := string(e.Kind) + " " + rel(e.Path)
				switch e.Kind {
				case Wrote:
					s += fmt.Sprintf(" at %d: %s", e.Offset, strings.TrimSpace(string(e.Data)))
				case Truncated:
					s += fmt.Sprintf(" at %d", e.Offset)
				case Renamed:
					s += " to " + rel(e.To)
				}
				if file := e.Kind == Created || e.Kind == Wrote || e.Kind == Truncated || e.Kind == Synced; file != (e.Inode != 0) {
					t.Errorf("%s has inode %d", s, e.Inode)
				}
				told = append(told, s)
			}}
			if err := c.do(fs, dir); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.asks, strings.Join(asked, ", ")); d != "" {
				t.Errorf("asked: %s", d)
			}
			if d := cmp.Diff(c.does, strings.Join(told, ", ")); d != "" {
				t.Errorf("told: %s", d)
			}
		})
	}
}

// A replace that fails at any of its steps leaves the old content or the new,
// and no temporary file; one that is stopped there leaves what it had made.
func TestReplaceFailsAtEachStep(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for _, c := range []struct {
		at            Kind
		short, stays  bool
		content, left string
	}{
		{at: Replace, content: "old"},
		{at: Replace, short: true, content: "old"},
		{at: Replace, short: true, stays: true, content: "old", left: "n"},
		{at: ReplaceSync, content: "old"},
		{at: ReplaceSync, stays: true, content: "old", left: "new"},
		{at: ReplaceRename, content: "old"},
		{at: ReplaceRename, stays: true, content: "old", left: "new"},
		{at: Sync, content: "new"},
		{at: Sync, stays: true, content: "new"},
	} {
		dir := prepared(t)
		hit := false
		fs := &FS{Before: func(o Op) error {
			if hit && c.stays {
				return stop
			}
			if o.Kind != c.at {
				return nil
			}
			hit = true
			if c.short {
				return &ShortWrite{N: 1, Err: syscall.ENOSPC}
			}
			return syscall.ENOSPC
		}}
		path := filepath.Join(dir, "old")
		if err := fs.Replace(path, []byte("new"), true); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%+v: %v", c, err)
		}
		if b, _ := os.ReadFile(path); string(b) != c.content {
			t.Errorf("%+v: content %q", c, b)
		}
		if b, err := os.ReadFile(filepath.Join(dir, ".old.tmp")); string(b) != c.left || c.left == "" && err == nil {
			t.Errorf("%+v: temporary file %q, %v", c, b, err)
		}
	}
}

func TestFileThatCannotBeCutBackTakesNoMore(t *testing.T) {
	t.Parallel()
	fs := &FS{}
	f, err := fs.OpenAppend(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fs.Before = func(o Op) error { return &ShortWrite{N: 2, Err: syscall.EIO} }
	if _, err := f.Append([]byte("line\n")); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	fs.Before = nil
	if _, err := f.Append([]byte("next\n")); !errors.Is(err, ErrPoisoned) {
		t.Error(err)
	}
}

// Flush stands for every sync, and its failure is the sync's.
func TestFlush(t *testing.T) {
	t.Parallel()
	dir := prepared(t)
	n := 0
	var fail error
	fs := &FS{Flush: func(*os.File) error { n++; return fail }}
	if err := fs.Replace(filepath.Join(dir, "old"), nil, true); err != nil || n != 2 {
		t.Error(n, err)
	}
	fail = syscall.EIO
	if err := fs.SyncDir(dir); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if err := fs.Replace(filepath.Join(dir, "old"), []byte("new"), true); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "old")); len(b) > 0 {
		t.Errorf("%q", b)
	}
}

// A link that leads nowhere is no file to append to, and is not made one.
func TestAppendAtALinkToNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.Symlink("nowhere", path); err != nil {
		t.Fatal(err)
	}
	if _, err := (&FS{}).OpenAppend(path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
