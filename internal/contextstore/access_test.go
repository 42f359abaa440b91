package contextstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

func TestUsersSeeTheirOwnTasks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who  Viewer
		user string
		want bool
	}{
		{Viewer{User: "ken"}, "ken", true},
		{Viewer{User: "Ken"}, "kEN", true},
		{Viewer{User: "ken"}, "hanako", false},
		{Viewer{User: "ken", Account: "ken-at-work"}, "Ken-at-work", true},
		{Viewer{User: "ken"}, "", false},
		{Viewer{}, "", false},
		{Viewer{Admin: true}, "hanako", true},
		{Viewer{User: "ken", Admin: true}, "", true},
	} {
		if got := c.who.MaySee(Metadata{User: c.user}); got != c.want {
			t.Errorf("%+v of %q: %v", c.who, c.user, got)
		}
	}
}

func TestLocalViewer(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	me := os.Geteuid()
	for _, c := range []struct {
		uid    int
		user   string
		admins []string
		want   bool
	}{
		{me, "me", nil, true},
		{0, "root", nil, true},
		{me + 12345, "ken", nil, false},
		{me + 12345, "ken", []string{"hanako", "KEN"}, true},
		{me + 12345, "", []string{""}, false},
	} {
		if v := LocalViewer(base, c.uid, c.user, c.admins); v.Admin != c.want || v.User != c.user {
			t.Errorf("%+v: %+v", c, v)
		}
	}
	if !LocalViewer(filepath.Join(base, "none"), me+12345, "ken", nil).Admin {
		t.Error("who is about to make a base directory may not look after it")
	}
}

// What may not be seen is not found, not listed, not counted, and no part of
// what a beginning of a uuid may mean.
func TestFindAndListShowWhatMayBeSeen(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	ids := []string{"aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"}
	next := 0
	s := open(t, Options{NewUUID: func() string { next++; return ids[next-1] }})
	for n, user := range []string{"ken", "hanako"} {
		k := key
		k.ID = user
		if id, err := s.Enqueue(t.Context(), Metadata{TaskKey: k, User: user}); err != nil || id != ids[n] {
			t.Fatal(id, err)
		}
	}
	must(t, os.Mkdir(filepath.Join(s.BaseDir, DirPaused, "aaaaaaaa-0000-4000-8000-000000000003"), 0o700))
	ken := Viewer{User: "ken"}
	if v, err := Find(s.BaseDir, "aaaa", ken); err != nil || v.Metadata.UUID != ids[0] {
		t.Errorf("%+v %v", v, err)
	}
	if _, err := Find(s.BaseDir, ids[1], ken); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := Find(s.BaseDir, "aaaa", Viewer{Admin: true}); err == nil || errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	for who, want := range map[Viewer]int{ken: 1, {User: "x"}: 0, {}: 0, {Admin: true}: 2} {
		l, err := List(t.Context(), s.BaseDir, who, Filter{})
		if err != nil || l.Total != want || len(l.Views) != want || len(l.Damaged) > 0 {
			t.Errorf("%+v: %+v %v", who, l, err)
		}
		// What cannot be read, only the directories tell of, and administrators.
		l, err = scan(s.BaseDir, 10, who, func(View) bool { return true })
		if err != nil || (len(l.Damaged) > 0) != who.Admin {
			t.Errorf("%+v: %+v %v", who, l, err)
		}
	}
}

func TestOpeningTightens(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	base, dir := healthy(t, task.Running)
	open := func(p string) {
		must(t, filepath.Walk(p, func(p string, st os.FileInfo, err error) error {
			must(t, err)
			if st.IsDir() {
				return os.Chmod(p, 0o755)
			}
			return os.Chmod(p, 0o644)
		}))
	}
	open(base)
	mode := func(p string) os.FileMode {
		st, err := kernel.Stat(p)
		must(t, err)
		return st.Mode().Perm()
	}
	must(t, kernel.WriteFile(filepath.Join(base, "notes"), nil, 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "planning"), 0o755))
	must(t, kernel.WriteFile(filepath.Join(dir, "planning", "x.jsonl"), nil, 0o644))
	s := openStore(t, base)
	for _, name := range append([]string{"", "tasks.db", ".house"}, StatusDirs...) {
		if m := mode(filepath.Join(base, name)); m&0o077 != 0 {
			t.Errorf("%q has mode %v", name, m)
		}
	}
	if m := mode(filepath.Join(base, "notes")); m != 0o644 {
		t.Errorf("a stranger's file has mode %v now", m)
	}
	c, _, err := s.Claim(t.Context(), filepath.Base(dir))
	must(t, err)
	defer func() { _ = c.Close() }()
	must(t, filepath.Walk(dir, func(p string, st os.FileInfo, err error) error {
		if err == nil && disk.TooOpen(st) {
			t.Errorf("%s has mode %v", p, st.Mode())
		}
		return err
	}))
	// One that many share is not ours to close.
	shared := filepath.Join(t.TempDir(), "shared")
	must(t, os.Mkdir(shared, 0o755))
	must(t, os.Chmod(shared, 0o777|os.ModeSticky))
	openStore(t, shared)
	if m := mode(shared); m != 0o777 {
		t.Errorf("shared directory has mode %v", m)
	}
}

func openStore(t *testing.T, base string) *Store { return open(t, Options{BaseDir: base}) }

// A side file that SQLite made beside a read-only database does not keep the
// database read-only once that is mended.
func TestSideFilesAreAsWritableAsTheirDatabase(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for name, mode := range map[string]os.FileMode{"house.db": 0o600, "house.db-shm": 0o400, "tasks.db": 0o400, "tasks.db-wal": 0o400} {
		if err := kernel.WriteFile(filepath.Join(base, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	tightenBase(base)
	for name, want := range map[string]os.FileMode{"house.db-shm": 0o600, "tasks.db": 0o400, "tasks.db-wal": 0o400} {
		if st, err := kernel.Stat(filepath.Join(base, name)); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, st.Mode(), err)
		}
	}
}
