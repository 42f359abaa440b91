package backup

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/task"
)

var errReadOnly error = syscall.EROFS

// Killed at any call, or with a disk that is full from there on, a backup leaves all generations
// whole that there are, and the next one is made.
func TestBackupCutShort(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		h := newHouse(t, 1)
		want := [][]string{nil, listing(t, h.base)}
		place := t.TempDir()
		h.backup(repo(t, Options{Place: place}), Source{Keep: 3})
		h.run(task.Completed)
		want = append(want, listing(t, h.base))
		must(t, h.store.Close())
		each := 1
		if testing.Short() {
			each = 9
		}
		for at := 1; ; at += each {
			stop := &disktest.Stopper{At: at, Torn: at%2 == 0}
			f := &disk.FS{Before: stop.Before}
			if full {
				f = &disk.FS{Before: from(at, stop)}
			}
			here := filepath.Join(t.TempDir(), "place")
			must(t, os.CopyFS(here, os.DirFS(place)))
			_, err := repo(t, Options{Place: here, FS: f}).Make(t.Context(), Source{Base: h.base, FS: f, Keep: 3})
			if stop.Calls() < at {
				must(t, err)
				break
			}
			if err == nil && !full {
				t.Fatalf("call %d: no error", at)
			}
			r := repo(t, Options{Place: here})
			found, err := r.Verify(t.Context(), nil)
			must(t, err)
			if len(found) < 1 {
				t.Fatalf("call %d: no generation", at)
			}
			for _, v := range found {
				if v.Why != nil {
					t.Fatalf("call %d (%+v): generation %d: %v", at, stop.Hit(), v.Number, v.Why)
				}
			}
			if at%5 > 0 {
				continue
			}
			rep := h.backup(r, Source{Keep: 3})
			for _, n := range []int{1, rep.Number} {
				dir := t.TempDir()
				restore(t, r, n, Target{Dir: dir})
				same(t, stop.Hit().Path, listing(t, dir), want[min(n, 2)])
			}
			if exists(filepath.Join(h.base, tmpDir)) {
				t.Errorf("call %d: copies of databases are left", at)
			}
		}
	}
}

// from lets every call that writes fail from one on, as on a full disk.
func from(at int, count *disktest.Stopper) func(disk.Op) error {
	count.At = 0
	return func(op disk.Op) error {
		_ = count.Before(op)
		if count.Calls() >= at && op.Kind != disk.Remove {
			return &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}
}

// Killed at any call, or on a disk that is full from there on, a restore has changed nothing, or
// the next one brings it to its end; until then nobody can take the base directory for whole.
func TestRestoreCutShort(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 2)
	h.write("audit.jsonl", "{}\n")
	h.write("mcp/pins.json", "{}\n")
	h.write("sessions/terminal%3Ax/messages.jsonl", `{"seq":1,"role":"user","content":"hello","timestamp":"2024-01-01T00:00:00.000000Z"}`+"\n")
	r := repo(t, Options{Place: t.TempDir()})
	planned := filepath.Base(first0(t, filepath.Join(h.base, "completed"))) + ".jsonl"
	h.write("plans/"+planned, "{}\n")
	rep := h.backup(r, Source{Plans: filepath.Join(h.base, "plans")})
	want := listing(t, h.base)
	other := newHouse(t, 1)
	there := listing(t, other.base)
	must(t, other.store.Close())
	for _, c := range []struct {
		full, force bool
		each        int
	}{{false, false, 1}, {true, false, 5}, {false, true, 3}, {true, true, 11}} {
		if testing.Short() {
			c.each *= 9
		}
		for at := 1; ; at += c.each {
			dir := filepath.Join(t.TempDir(), "base")
			before := 0
			if c.force {
				must(t, os.CopyFS(dir, os.DirFS(other.base)))
				must(t, filepath.Walk(dir, func(p string, st os.FileInfo, err error) error {
					return errors.Join(err, disk.RestrictToOwner(p, st))
				}))
				before = len(there)
			}
			stop := &disktest.Stopper{At: at, Torn: at%2 == 0}
			f := &disk.FS{Before: stop.Before}
			if c.full {
				f = &disk.FS{Before: from(at, stop)}
			}
			plans := t.TempDir()
			if c.force {
				must(t, os.WriteFile(filepath.Join(plans, planned+".gz"), []byte("old"), 0o600))
			}
			target := Target{Dir: dir, Plans: plans, FS: f, Force: c.force}
			_, err := r.Restore(t.Context(), rep.Generation, target)
			if stop.Calls() < at {
				must(t, err)
				break
			}
			if err == nil && !c.full { // what is only removed needs no room
				t.Fatalf("%+v, call %d: no error", c, at)
			}
			begun := exists(filepath.Join(dir, contextstore.RestoreBegun))
			if begun && c.force {
				t.Fatalf("call %d: what is there cannot be used", at)
			}
			if begun || exists(filepath.Join(dir, contextstore.RestoreCommit)) {
				_, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: dir, Redact: func(s string) string { return s }})
				if err == nil || !strings.Contains(err.Error(), "tori restore again") {
					t.Fatalf("%+v, call %d: opened: %v", c, at, err)
				}
			} else if n := len(listing0(dir)); n != before && n != len(want) {
				t.Fatalf("%+v, call %d (%+v): %d runs", c, at, stop.Hit(), n)
			}
			target.FS = nil
			if n := len(listing0(dir)); err != nil && (c.force || n == 0) || exists(filepath.Join(dir, contextstore.RestoreCommit)) {
				if _, err := r.Restore(t.Context(), rep.Generation, target); err != nil {
					t.Fatalf("%+v, call %d, again: %v", c, at, err)
				}
			}
			same(t, stop.Hit().Path, listing(t, dir), want)
			if plan, err := os.ReadFile(filepath.Join(plans, planned)); string(plan) != "{}\n" {
				t.Fatalf("%+v, call %d (%+v): the history of planning is %q, %v", c, at, stop.Hit(), plan, err)
			}
			if twice, _ := filepath.Glob(filepath.Join(dir, "completed", "*", plansDir, planned)); len(twice) > 0 {
				t.Errorf("%+v, call %d (%+v): the history of planning is in %q, too", c, at, stop.Hit(), twice)
			}
			if c.force {
				aside, _ := filepath.Glob(filepath.Join(dir, asidePrefix+"*", plansDir, planned+".gz"))
				if len(aside) != 1 || exists(filepath.Join(plans, planned+".gz")) {
					t.Fatalf("%+v, call %d (%+v): the history that was there is in %q", c, at, stop.Hit(), aside)
				}
			}
			if at%10 == 0 {
				clean(t, dir)
				if aside, _ := filepath.Glob(filepath.Join(dir, asidePrefix+"*", "completed", "*", "metadata.json")); c.force && len(aside) == 0 {
					t.Fatalf("%+v, call %d: what was there is gone", c, at)
				}
			}
		}
	}
}

// Killed at any call, a restore of one run over another state of it leaves this one or that one or,
// noted down, both beside their place; the next call ends it, and nothing of it is left.
func TestRestoreOneRunCutShort(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	id := first0(t, filepath.Join(h.base, "completed"))
	r := repo(t, Options{Place: t.TempDir()})
	rep := h.backup(r, Source{})
	must(t, h.store.Close())
	messages := filepath.Join("completed", filepath.Base(id), "messages.jsonl")
	was, err := os.ReadFile(filepath.Join(h.base, messages))
	must(t, err)
	for at := 1; ; at++ {
		dir := filepath.Join(t.TempDir(), "base")
		must(t, os.CopyFS(dir, os.DirFS(h.base)))
		must(t, filepath.Walk(dir, func(p string, st os.FileInfo, err error) error {
			return errors.Join(err, disk.RestrictToOwner(p, st))
		}))
		must(t, os.WriteFile(filepath.Join(dir, messages), was[:len(was)/2], 0o600))
		stop := &disktest.Stopper{At: at, Torn: at%2 == 0}
		target := Target{Dir: dir, Run: filepath.Base(id), Force: true, FS: &disk.FS{Before: stop.Before}}
		_, err := r.Restore(t.Context(), rep.Generation, target)
		if stop.Calls() < at {
			must(t, err)
			break
		}
		now, err := os.ReadFile(filepath.Join(dir, messages))
		noted := exists(filepath.Join(dir, restoreDir+"-"+filepath.Base(id), commitFile))
		if err != nil && !noted || err == nil && len(now) != len(was) && len(now) != len(was)/2 {
			t.Fatalf("call %d (%+v): %d bytes, %v", at, stop.Hit(), len(now), err)
		}
		target.FS = nil
		if _, err := r.Restore(t.Context(), rep.Generation, target); err != nil {
			t.Fatalf("call %d, again: %v", at, err)
		}
		if now, err := os.ReadFile(filepath.Join(dir, messages)); string(now) != string(was) {
			t.Fatalf("call %d (%+v): %d bytes, %v", at, stop.Hit(), len(now), err)
		}
		aside, _ := filepath.Glob(filepath.Join(dir, asidePrefix+"*", messages))
		if len(aside) != 1 {
			t.Fatalf("call %d (%+v): what was there is in %q", at, stop.Hit(), aside)
		}
		if now, _ := os.ReadFile(aside[0]); len(now) != len(was)/2 {
			t.Fatalf("call %d (%+v): %d bytes were moved aside", at, stop.Hit(), len(now))
		}
		if left, _ := filepath.Glob(filepath.Join(dir, restoreDir+"*")); len(left) > 0 {
			t.Fatalf("call %d (%+v): left is %q", at, stop.Hit(), left)
		}
	}
}

// Whatever a power cut leaves of a place: the generations that it has are whole, and the next
// backup is made.
func TestPowerCutAtThePlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	place := t.TempDir()
	rec, err := disktest.NewRecorder(place)
	must(t, err)
	r := repo(t, Options{Place: place, FS: rec.Watch(&disk.FS{})})
	h.backup(r, Source{})
	h.run(task.Completed)
	from := rec.Len()
	h.backup(r, Source{})
	n, err := rec.PowerCuts(from, func(state disktest.State) {
		cut := t.TempDir()
		must(t, state.Materialize(cut))
		r := repo(t, Options{Place: cut})
		found, err := r.Verify(t.Context(), nil)
		must(t, err)
		if len(found) == 0 {
			t.Fatalf("%s: no generation", state.How)
		}
		for _, v := range found {
			if v.Why != nil {
				t.Fatalf("%s: generation %d: %v", state.How, v.Number, v.Why)
			}
		}
		h.backup(r, Source{})
	})
	if err != nil || n.Checked < 10 {
		t.Errorf("%+v, %v", n, err)
	}
}

// Four workers end runs, retention goes on, and backups are ended at random: each generation that
// there is comes back clean, with runs that are whole.
func TestBackupsBesideWorkers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 4)
	r := repo(t, Options{Place: t.TempDir()})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var workers []*house
	for w := range 4 { // all are open before one begins: whose clock is ahead takes what others build for left behind
		other := &house{t: t, base: h.base, now: time.Now().AddDate(0, 0, 7*(w%2)), n: 1000 * (w + 1)}
		other.open()
		workers = append(workers, other)
	}
	for w, other := range workers {
		wg.Go(func() {
			for n := 0; n < 25 && ctx.Err() == nil; n++ {
				other.run([]task.Status{task.Completed, task.Failed}[w%2])
				err := other.store.Retain(t.Context(), contextstore.Retention{Gzip: 7 * 24 * time.Hour}, false, func(contextstore.Retained) {})
				if err != nil && !errors.Is(err, contextstore.ErrBusy) {
					t.Error(err)
				}
			}
		})
	}
	dice := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // repeatable
	for made := 0; made < 6; {
		night, end := context.WithCancel(t.Context())
		left := dice.IntN(2) * (1 + dice.IntN(30)) // of every other one nothing is cut off
		_, err := r.Make(night, Source{Base: h.base, Keep: 4, Progress: func(int64, int64) {
			if left--; left == 0 {
				end()
			}
		}})
		if end(); err == nil {
			made++
		} else if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	stop()
	wg.Wait()
	all, err := r.Generations(t.Context())
	must(t, err)
	for _, g := range all {
		dir := t.TempDir()
		if done := restore(t, r, g.Number, Target{Dir: dir}); done.Check.Left > 0 || done.Runs != g.Runs || g.Failed > 0 {
			t.Errorf("generation %d: %d of %d runs, %d failed, %+v", g.Number, done.Runs, g.Runs, g.Failed, done.Check.Findings)
		}
	}
	if len(all) != 4 {
		t.Errorf("%d generations", len(all))
	}
}
