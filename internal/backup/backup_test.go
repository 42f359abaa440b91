package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"toritsugi/internal/bucket"
	"toritsugi/internal/bucket/buckettest"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// house is a base directory in which runs begin and end.
type house struct {
	t     *testing.T
	base  string
	store *contextstore.Store
	n     int
	now   time.Time
}

func newHouse(t *testing.T, ended int) *house {
	t.Helper()
	h := &house{t: t, base: filepath.Join(t.TempDir(), "base"), now: time.Now()}
	h.open()
	for range ended {
		h.run(task.Completed)
	}
	return h
}

func (h *house) open() {
	h.t.Helper()
	s, err := contextstore.Open(h.t.Context(), contextstore.Options{BaseDir: h.base, Redact: func(s string) string { return s }, OnIndexError: func(error) {}, Now: func() time.Time { return h.now }})
	must(h.t, err)
	h.store = s
	h.t.Cleanup(func() { _ = s.Close() })
}

// run begins a run, which ends as status says.
func (h *house) run(status task.Status) (uuid string) {
	h.t.Helper()
	h.n++
	id, err := h.store.Enqueue(h.t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: fmt.Sprint(h.n)}, User: "ken"})
	must(h.t, err)
	c, _, err := h.store.Claim(h.t.Context(), id)
	must(h.t, err)
	for i := range 3 {
		if _, err := c.Append(contextstore.Message{Role: "user", Content: fmt.Sprintf("message %d of run %d, %d", i, h.n, rand.Uint64())}); err != nil { //nolint:gosec // no secret
			h.t.Fatal(err)
		}
	}
	if status.Final() {
		must(h.t, c.Transition(h.t.Context(), task.Outcome{Status: status, Summary: "summed up"}))
	}
	h.t.Cleanup(func() { _ = c.Close() })
	return id
}

func (h *house) write(path, content string) {
	h.t.Helper()
	full := filepath.Join(h.base, path)
	must(h.t, os.MkdirAll(filepath.Dir(full), 0o700))
	must(h.t, os.WriteFile(full, []byte(content), 0o600))
}

// listing is what tori tasks tells of the runs that have ended, from the index.
func listing(t *testing.T, base string) (all []string) {
	t.Helper()
	l, err := contextstore.List(t.Context(), base, contextstore.Viewer{Admin: true}, contextstore.Filter{})
	must(t, err)
	for _, v := range l.Views {
		if v.Status().Final() {
			all = append(all, fmt.Sprint(v.Metadata.UUID, v.Status(), v.Metadata.TaskKey, v.State.CompletedAt, v.State.MessageCount))
		}
	}
	slices.Sort(all)
	return all
}

func clean(t *testing.T, base string) {
	t.Helper()
	r, err := fsck.Check(t.Context(), base, fsck.Options{})
	must(t, err)
	for _, f := range r.Findings {
		t.Errorf("tori check of %s: %s %s", base, f.Path, f.What("en"))
	}
}

func repo(t *testing.T, o Options) *Repository {
	t.Helper()
	r, err := Open(o)
	must(t, err)
	return r
}

func (h *house) backup(r *Repository, s Source) Report {
	h.t.Helper()
	s.Base = h.base
	rep, err := r.Make(h.t.Context(), s)
	must(h.t, err)
	if rep.Failed != nil || rep.Unswept != nil {
		h.t.Fatal(rep.Failed, rep.Unswept)
	}
	return rep
}

// objects is how many objects of data lie in a place.
func objects(t *testing.T, r *Repository) (n int) {
	t.Helper()
	must(t, r.place.Each(t.Context(), dataDir, func(bucket.Object) error { n++; return nil }))
	return n
}

func restore(t *testing.T, r *Repository, number int, tg Target) Restored {
	t.Helper()
	g, err := r.Find(t.Context(), number)
	must(t, err)
	done, err := r.Restore(t.Context(), g, tg)
	must(t, err)
	return done
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What a generation is of comes back from each kind of place: the runs that had ended, conversations,
// the databases, audit and pins; what runs and what is secret does not. A night with nothing new
// writes kilobytes.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	must(t, err)
	for name, o := range map[string]Options{
		"directory": {Place: filepath.Join(t.TempDir(), "to", "backups")},
		"encrypted": {Place: filepath.Join(t.TempDir(), "backups"), Recipients: []string{key.Recipient().String()}},
		"bucket":    {Place: "s3://b/a prefix/of ours", S3: buckettest.New(t).S3},
		"container": {Place: "azure://b/a prefix/of ours", Azure: buckettest.New(t).Azure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, 4)
			running := h.run(task.Running)
			h.write("audit.jsonl", strings.Repeat(`{"action":"read"}`+"\n", 200_000)) // more than a chunk
			h.write("mcp/pins.json", "{}\n")
			h.write("mcp/logins/x", "secret")
			h.write("slack.token", "secret")
			h.write("sessions/terminal%3Ax/messages.jsonl", `{"seq":1,"role":"user","content":"hello","timestamp":"2024-01-01T00:00:00.000000Z"}`+"\n")
			must(t, h.store.SetMark(t.Context(), "test", "a", "kept"))
			r := repo(t, o)
			one := h.backup(r, Source{})
			if one.Runs != 4 || one.Sessions != 1 || one.Number != 1 || one.Encrypted != (len(o.Recipients) > 0) {
				t.Fatalf("%+v", one.Manifest)
			}
			then := listing(t, h.base)
			if two := h.backup(r, Source{}); two.Added > 64<<10 || two.Runs != 4 {
				t.Errorf("with nothing new %d bytes were written, of %d", two.Added, one.Added)
			}
			h.run(task.Failed)
			f, err := os.OpenFile(filepath.Join(h.base, "audit.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString(`{"action":"more"}` + "\n")
			must(t, errors.Join(err, f.Close()))
			three := h.backup(r, Source{})
			if three.Added > 256<<10 || three.Runs != 5 {
				t.Errorf("one run more: %+v", three.Manifest)
			}
			v, err := r.Verify(t.Context(), nil)
			must(t, err)
			for _, v := range v {
				if v.Why != nil || v.Broken > 0 || v.Units < 9 {
					t.Errorf("%+v", v)
				}
			}

			if len(o.Recipients) > 0 { // as on a machine that has nothing but the secret key
				r = repo(t, o)
				g, err := r.Find(t.Context(), 0)
				must(t, err)
				var locked *LockedError
				if _, err = r.Restore(t.Context(), g, Target{Dir: t.TempDir()}); !errors.As(err, &locked) {
					t.Fatal("without a key:", err)
				}
				o.Identity = filepath.Join(t.TempDir(), "key")
				must(t, os.WriteFile(o.Identity, []byte(key.String()+"\n"), 0o600))
				r = repo(t, o)
			}
			for n, want := range map[int][]string{1: then, 3: listing(t, h.base)} {
				dir := filepath.Join(t.TempDir(), "new", "base")
				done := restore(t, r, n, Target{Dir: dir})
				if done.Check.Left > 0 || done.Aside != "" || int(done.Runs) != len(want) || done.Sessions != 1 {
					t.Errorf("generation %d: %+v", n, done)
				}
				same(t, fmt.Sprint("generation ", n), listing(t, dir), want)
				clean(t, dir)
				for _, path := range []string{"running/" + running, "mcp/logins", "slack.token", ".restore", ".removed-restore"} {
					if exists(filepath.Join(dir, path)) {
						t.Errorf("%s is there", path)
					}
				}
				for _, path := range []string{"mcp/pins.json", "sessions/terminal%3Ax/messages.jsonl"} {
					was, err := os.ReadFile(filepath.Join(h.base, path))
					is, rerr := os.ReadFile(filepath.Join(dir, path))
					if must(t, errors.Join(err, rerr)); string(was) != string(is) {
						t.Errorf("%s differs", path)
					}
				}
				copied := &house{t: t, base: dir, now: time.Now()}
				copied.open()
				if v, err := copied.store.Mark(t.Context(), "test", "a"); v != "kept" || err != nil {
					t.Errorf("house.db: %q, %v", v, err)
				}
				if four, err := r.Make(t.Context(), Source{Base: dir, Keep: 99}); err != nil || len(o.Recipients) == 0 && four.Added > 512<<10 {
					t.Errorf("the next backup, of what was restored: %+v, %v", four.Manifest, err)
				}
			}
		})
	}
}

// Seven generations stay, whatever the clock says; what only older ones needed goes, and all that
// stay can be restored. Another base directory cannot use the place.
func TestGenerations(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 2)
	at := time.Now()
	r := repo(t, Options{Place: t.TempDir(), Now: func() time.Time { return at }})
	var wants [][]string
	for n := range 10 {
		switch n {
		case 4:
			at = at.AddDate(-3, 0, 0)
		case 8:
			at = at.AddDate(9, 0, 0)
		}
		h.backup(r, Source{Keep: 7})
		wants = append(wants, listing(t, h.base))
		h.run(task.Stopped)
		must(t, os.RemoveAll(first0(t, filepath.Join(h.base, "completed")))) // as retention does
		at = at.Add(time.Second)
	}
	all, err := r.Generations(t.Context())
	must(t, err)
	if len(all) != 7 || all[0].Number != 4 || all[6].Number != 10 {
		t.Fatalf("%d generations, from %d to %d", len(all), all[0].Number, all[len(all)-1].Number)
	}
	for _, g := range all {
		dir := t.TempDir()
		restore(t, r, g.Number, Target{Dir: dir})
		same(t, g.Name, listing(t, dir), wants[g.Number-1])
	}
	at = time.Now().AddDate(1, 0, 0)
	before := objects(t, r)
	must(t, os.WriteFile(filepath.Join(r.Place(), "data", "strangers.txt"), nil, 0o600))
	if rep := h.backup(r, Source{Keep: 1}); rep.Removed != 7 || objects(t, r) >= before {
		t.Errorf("%+v; %d objects of %d", rep, objects(t, r), before)
	}
	if !exists(filepath.Join(r.Place(), "data", "strangers.txt")) {
		t.Error("a stranger's file is gone")
	}
	restore(t, r, 11, Target{Dir: t.TempDir()})

	if _, err := r.Make(t.Context(), Source{Base: newHouse(t, 1).base}); err == nil || !strings.Contains(err.Error(), "another base directory") {
		t.Errorf("of another base directory: %v", err)
	}
}

func first0(t *testing.T, dir string) string {
	t.Helper()
	all, err := os.ReadDir(dir)
	must(t, err)
	return filepath.Join(dir, all[0].Name())
}

// Whatever byte is damaged, it is found, generations that do not need it are whole and are
// restored, and a fresh backup mends what the base directory still has.
func TestDamage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	place := t.TempDir()
	r := repo(t, Options{Place: place})
	h.backup(r, Source{})
	old := map[string]bool{}
	must(t, r.place.Each(t.Context(), "", func(o bucket.Object) error { old[o.Name] = true; return nil }))
	want := listing(t, h.base)
	h.run(task.Completed)
	h.backup(r, Source{})
	var all []string
	must(t, r.place.Each(t.Context(), "", func(o bucket.Object) error { all = append(all, o.Name); return nil }))
	for i, name := range all {
		path := filepath.Join(place, name)
		raw, err := os.ReadFile(path)
		must(t, err)
		for _, how := range []string{"flipped", "cut", "missing", "longer"} {
			bad := slices.Clone(raw)
			switch how {
			case "flipped":
				bad[(i*7919)%len(bad)] ^= 1 << (i % 8)
			case "cut":
				bad = bad[:len(bad)-1]
			case "longer":
				bad = append(bad, 0)
			}
			must(t, os.WriteFile(path, bad, 0o600))
			if how == "missing" {
				if strings.HasPrefix(name, generationsDir) {
					continue // it is then no generation
				}
				must(t, os.Remove(path))
			}
			found, err := r.Verify(t.Context(), nil)
			must(t, err)
			broken := 0
			for _, v := range found {
				g, err := r.Find(t.Context(), v.Number)
				if v.Why != nil {
					broken++
					if err == nil {
						dir := filepath.Join(t.TempDir(), "to")
						if _, err = r.Restore(t.Context(), g, Target{Dir: dir}); len(listing0(dir)) > 0 {
							t.Fatalf("%s %s: generation %d is damaged, and something was restored: %v", name, how, v.Number, err)
						}
					}
					if !IsDamage(err) {
						t.Fatalf("%s %s: generation %d is damaged, and was restored: %v", name, how, v.Number, err)
					}
				}
			}
			if broken == 0 || !old[name] && found[0].Why != nil {
				t.Fatalf("%s is %s: found in %d generations, the first: %v", name, how, broken, found[0].Why)
			}
			if !old[name] && how == "flipped" {
				dir := t.TempDir()
				restore(t, r, 1, Target{Dir: dir})
				same(t, name, listing(t, dir), want)
			}
			must(t, os.WriteFile(path, raw, 0o600))
		}
	}
	for _, name := range all {
		if strings.HasPrefix(name, dataDir) {
			must(t, os.WriteFile(filepath.Join(place, name), []byte("x"), 0o600))
		}
	}
	h.backup(r, Source{Fresh: true})
	dir := t.TempDir()
	restore(t, r, 0, Target{Dir: dir})
	same(t, "after all was damaged", listing(t, dir), listing(t, h.base))
}

// What only an older generation has, and is damaged there, is written anew by the next one that has it.
func TestWhatComesBack(t *testing.T) {
	t.Parallel()
	h, place := newHouse(t, 1), t.TempDir()
	r := repo(t, Options{Place: place})
	for _, text := range []string{"{\"was\":1}\n", "{\"is\":1}\n"} {
		h.write("audit.jsonl", text)
		h.backup(r, Source{})
	}
	all, err := filepath.Glob(filepath.Join(place, "data", "*", "*"))
	must(t, err)
	for _, f := range all {
		raw, err := os.ReadFile(f)
		must(t, err)
		if found, err := r.Verify(t.Context(), nil); err != nil || found[1].Why != nil {
			t.Fatal(found, err)
		}
		bad := slices.Clone(raw)
		bad[len(bad)/2] ^= 1
		must(t, os.WriteFile(f, bad, 0o600))
		if found, err := r.Verify(t.Context(), nil); err != nil || found[1].Why != nil {
			must(t, os.WriteFile(f, raw, 0o600)) // the last one needs it
		}
	}
	h.write("audit.jsonl", "{\"was\":1}\n")
	h.backup(r, Source{})
	if found, err := r.Verify(t.Context(), nil); err != nil || found[0].Why == nil || found[2].Why != nil {
		t.Errorf("%+v, %v", found, err)
	}
}

// A place that is full, and a base directory that cannot be written, are told as such.
func TestWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	run := filepath.Base(first0(t, filepath.Join(h.base, "completed")))
	fails := func(why error) *disk.FS {
		return &disk.FS{Before: func(op disk.Op) error { return &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: why} }}
	}
	for why, want := range map[error]string{syscall.ENOSPC: "is full: make room there", syscall.EDQUOT: "is full: make room there", syscall.EACCES: "does not take what is written to it"} {
		_, err := repo(t, Options{Place: t.TempDir(), FS: fails(why)}).Make(t.Context(), Source{Base: h.base})
		if !errors.Is(err, why) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", why, err)
		}
	}
	r := repo(t, Options{Place: t.TempDir()})
	rep := h.backup(r, Source{})
	for _, why := range []error{syscall.EROFS, syscall.EACCES} {
		for _, one := range []string{"", run} {
			_, err := r.Restore(t.Context(), rep.Generation, Target{Dir: t.TempDir(), Run: one, FS: fails(why)})
			if !errors.As(err, new(*RefusedError)) || !errors.Is(err, why) || !strings.Contains(err.Error(), "cannot be written") {
				t.Errorf("%v: %v", why, err)
			}
		}
	}
}

// listing0 are the runs that lie in a directory.
func listing0(dir string) []string {
	all, _ := filepath.Glob(filepath.Join(dir, "*", "*", "metadata.json"))
	return all
}

// hooked is a place that calls something before each object is written.
type hooked struct {
	bucket.Place
	before func() error
}

func (h hooked) Put(ctx context.Context, name string, data []byte) error {
	if err := h.before(); err != nil {
		return err
	}
	return h.Place.Put(ctx, name, data)
}

// Retention that compresses, slims or removes a run while it is read leaves the backup whole; and
// the runs of four workers that end meanwhile, too.
func TestWhileFilesChange(t *testing.T) {
	t.Parallel()
	for _, days := range []int{7, 30, 90} {
		h := newHouse(t, 6)
		r := repo(t, Options{Place: t.TempDir()})
		puts, did := 0, 0
		h.now = h.now.AddDate(0, 0, days)
		r.place = hooked{r.place, func() error {
			if puts++; puts%3 != 0 {
				return nil
			}
			h.run(task.Completed)
			return h.store.Retain(t.Context(), contextstore.Retention{Gzip: 7 * 24 * time.Hour, Slim: 30 * 24 * time.Hour, Delete: 90 * 24 * time.Hour}, false,
				func(contextstore.Retained) { did++ })
		}}
		h.backup(r, Source{})
		if did < 6 || puts < 6 {
			t.Fatalf("%d steps of retention in %d writes", did, puts)
		}
		dir := t.TempDir()
		done := restore(t, r, 0, Target{Dir: dir})
		if done.Check.Left > 0 {
			t.Errorf("%d days: %+v", days, done.Check.Findings)
		}
		for _, run := range listing(t, dir) {
			if slices.Contains(listing(t, h.base), run) || days == 90 {
				continue
			}
			t.Errorf("%d days: %s is not as it was", days, run)
		}
		v, err := r.Verify(t.Context(), nil)
		if must(t, err); v[0].Why != nil {
			t.Error(v[0].Why)
		}
	}
}

// What cannot be read is told, and is as it was in the generation before.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	r := repo(t, Options{Place: t.TempDir()})
	h.backup(r, Source{})
	want := listing(t, h.base)
	must(t, h.store.Close())
	must(t, os.WriteFile(filepath.Join(h.base, "house.db"), []byte(strings.Repeat("no database ", 999)), 0o600))
	rep, err := r.Make(t.Context(), Source{Base: h.base})
	if err != nil || rep.Failed == nil || rep.Manifest.Failed != 1 || rep.Runs != 3 {
		t.Fatalf("%+v, %v", rep, err)
	}
	dir := t.TempDir()
	restore(t, r, 2, Target{Dir: dir})
	same(t, "restored", listing(t, dir), want)
	clean(t, dir)
}

// What would lose or mix something is refused, and changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 2)
	refuse := func(what string, r *Repository, want string) {
		t.Helper()
		if _, err := r.Make(t.Context(), Source{Base: h.base}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, os.Symlink(h.base, filepath.Join(t.TempDir(), "link")))
	refuse("inside", repo(t, Options{Place: filepath.Join(h.base, "x", "backups")}), "base directory")
	refuse("the base itself", repo(t, Options{Place: h.base}), "base directory")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(h.base, link))
	refuse("by a link", repo(t, Options{Place: filepath.Join(link, "new")}), "base directory")
	r := repo(t, Options{Place: t.TempDir()})
	release, err := alone(h.base)
	must(t, err)
	if _, err := r.Make(t.Context(), Source{Base: h.base}); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("two at once: %v", err)
	}
	release()
	if _, err := r.Make(t.Context(), Source{Base: t.TempDir()}); err == nil {
		t.Error("a directory that is none of ours")
	}
	if _, err := Open(Options{Place: "s3://b"}); err == nil {
		t.Error("a bucket without a login")
	}
	if _, err := Open(Options{Place: "x", Recipients: []string{"age1nothing"}}); err == nil {
		t.Error("a recipient that is none")
	}
	if _, err := r.Find(t.Context(), 0); err == nil {
		t.Error("a generation of nothing")
	}
	h.backup(r, Source{})
	var newer *NewerError
	raw := []byte(`{"format":2,"number":9}`)
	must(t, r.place.Put(t.Context(), generationName(9, time.Now(), raw), raw))
	if _, err := r.Find(t.Context(), 9); !errors.As(err, &newer) {
		t.Errorf("a newer format: %v", err)
	}
	refuse("beside a newer format", r, "newer program")
	if g, err := r.Find(t.Context(), 0); err != nil || g.Number != 1 {
		t.Errorf("the latest that can be read: %d, %v", g.Number, err)
	}

	// A restore goes over nothing without Force, and nothing is lost with it.
	before := listing(t, h.base)
	g, err := r.Find(t.Context(), 1)
	must(t, err)
	if _, err := r.Restore(t.Context(), g, Target{Dir: h.base}); err == nil || !strings.Contains(err.Error(), "using") {
		t.Errorf("into a base directory in use: %v", err)
	}
	extra := h.run(task.Completed)
	must(t, h.store.Close())
	for _, end := range []string{"", "-wal", "-shm"} {
		h.write("search.db"+end, "of the runs that were there")
	}
	if _, err := r.Restore(t.Context(), g, Target{Dir: h.base}); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("over something newer: %v", err)
	}
	if now := listing(t, h.base); len(now) != 3 {
		t.Errorf("after the refusal: %q", now)
	}
	done, err := r.Restore(t.Context(), g, Target{Dir: h.base, Force: true})
	must(t, err)
	same(t, "with force", listing(t, h.base), before)
	clean(t, h.base)
	if !exists(filepath.Join(done.Aside, "completed", extra, "messages.jsonl")) || !exists(filepath.Join(done.Aside, "house.db")) {
		t.Errorf("what was there is not in %q", done.Aside)
	}
	for _, name := range []string{"search.db", "search.db-wal", "search.db-shm"} {
		if exists(filepath.Join(h.base, name)) || !exists(filepath.Join(done.Aside, name)) {
			t.Errorf("%s, which is of the runs that were there, stayed", name)
		}
	}
}

// One run comes back beside whatever goes on, also one that retention took things from.
func TestRestoreOneRun(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	id := h.run(task.Completed)
	r := repo(t, Options{Place: t.TempDir()})
	h.backup(r, Source{})
	want := listing(t, h.base)
	if done := restore(t, r, 1, Target{Dir: h.base, Run: id[:8]}); !done.Same {
		t.Errorf("of one that is there: %+v", done)
	}
	dir := filepath.Join(h.base, "completed", id)
	messages, err := os.ReadFile(filepath.Join(dir, "messages.jsonl"))
	must(t, err)

	must(t, os.Rename(dir, dir+"-away"))
	must(t, os.RemoveAll(dir+"-away"))
	if done := restore(t, r, 1, Target{Dir: h.base, Run: id}); done.Run != id || done.Check.Left > 0 {
		t.Errorf("of one that is gone: %+v", done)
	}
	must(t, h.store.Close())
	h.open() // gives it its row
	same(t, "listing", listing(t, h.base), want)
	clean(t, h.base)

	must(t, os.WriteFile(filepath.Join(dir, "messages.jsonl"), messages[:len(messages)/2], 0o600))
	g, err := r.Find(t.Context(), 1)
	must(t, err)
	if _, err := r.Restore(t.Context(), g, Target{Dir: h.base, Run: id}); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("over one that differs: %v", err)
	}
	done := restore(t, r, 1, Target{Dir: h.base, Run: id, Force: true})
	if now, err := os.ReadFile(filepath.Join(dir, "messages.jsonl")); err != nil || string(now) != string(messages) {
		t.Errorf("with force: %q, %v", now, err)
	}
	if old, err := os.ReadFile(filepath.Join(done.Aside, "completed", id, "messages.jsonl")); err != nil || len(old) != len(messages)/2 {
		t.Errorf("what was there: %q, %v", old, err)
	}
	if _, err := r.Restore(t.Context(), g, Target{Dir: h.base, Run: "nope"}); err == nil {
		t.Error("a run that is not in it")
	}
	elsewhere := t.TempDir()
	restore(t, r, 1, Target{Dir: elsewhere, Run: id})
	same(t, "elsewhere", listing(t, elsewhere), slices.DeleteFunc(want, func(s string) bool { return !strings.HasPrefix(s, id) }))
}

// A history of planning that cannot be read is told, and what the generation before has of the run stays.
func TestPlansUnreadable(t *testing.T) {
	t.Parallel()
	for _, damage := range []func(path string) error{
		func(path string) error { return os.Mkdir(path, 0o700) },
		func(path string) error { return os.Symlink(path, path) },
		func(path string) error { // the directory is none
			return errors.Join(os.Remove(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o600))
		},
	} {
		h := newHouse(t, 1)
		id := h.run(task.Completed)
		plans := filepath.Join(t.TempDir(), "plans")
		path := filepath.Join(plans, id+".jsonl")
		must(t, os.Mkdir(plans, 0o700))
		must(t, os.WriteFile(path, []byte("{}\n"), 0o600))
		r := repo(t, Options{Place: t.TempDir()})
		h.backup(r, Source{Plans: plans})
		must(t, os.Remove(path))
		must(t, damage(path))
		rep, err := r.Make(t.Context(), Source{Base: h.base, Plans: plans})
		if err != nil || rep.Manifest.Failed == 0 || rep.Failed == nil || rep.Runs != 2 {
			t.Errorf("%+v, %v, %v", rep.Manifest, rep.Failed, err)
		}
		dir := t.TempDir()
		restore(t, r, 0, Target{Dir: dir})
		if !exists(filepath.Join(dir, "completed", id, "planning", id+".jsonl")) {
			t.Error("the history is gone")
		}
	}
}

// Histories of planning that lie elsewhere are copied with their runs, and come back to where the
// settings have them.
func TestPlansElsewhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	id := h.run(task.Completed)
	h.write("plans/"+id+".jsonl", "{}\n")
	r := repo(t, Options{Place: t.TempDir()})
	h.backup(r, Source{Plans: filepath.Join(h.base, "plans")})
	one, two, plans := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "p")
	restore(t, r, 0, Target{Dir: one})
	restore(t, r, 0, Target{Dir: two, Plans: plans})
	if !exists(filepath.Join(one, "completed", id, "planning", id+".jsonl")) || exists(filepath.Join(two, "completed", id, "planning", id+".jsonl")) || !exists(filepath.Join(plans, id+".jsonl")) {
		t.Error("the history is not where it should be")
	}

	// One that is there stays in force without Force, and is moved aside with it.
	for _, run := range []string{"", id} {
		for _, old := range []string{".jsonl", ".jsonl.gz"} {
			for _, force := range []bool{false, true} {
				dir, plans := t.TempDir(), t.TempDir()
				must(t, os.WriteFile(filepath.Join(plans, id+old), []byte("old\n"), 0o600))
				done := restore(t, r, 0, Target{Dir: dir, Plans: plans, Run: run, Force: force})
				got, err := os.ReadFile(filepath.Join(plans, id+".jsonl"))
				switch {
				case force:
					aside, _ := filepath.Glob(filepath.Join(dir, asidePrefix+"*", "planning", id+old))
					if string(got) != "{}\n" || err != nil || len(aside) != 1 || old != ".jsonl" && exists(filepath.Join(plans, id+old)) {
						t.Errorf("%q %s: %q, %v, aside %q", run, old, got, err, aside)
					} else if was, err := os.ReadFile(aside[0]); string(was) != "old\n" || err != nil || done.Aside == "" {
						t.Errorf("%q %s aside (%q): %q, %v", run, old, done.Aside, was, err)
					}
				case string(got) == "{}\n" || !exists(filepath.Join(plans, id+old)) || done.Aside != "":
					t.Errorf("%q %s without force: %q, aside %q", run, old, got, done.Aside)
				}
			}
		}
	}
}

// A backup is restored for a test, and leaves nothing behind.
func TestTest(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	r := repo(t, Options{Place: t.TempDir()})
	rep := h.backup(r, Source{})
	done, err := r.Test(t.Context(), rep.Generation, h.base, 0, nil)
	if err != nil || done.Runs != 3 || done.Check.Left > 0 || done.Check.Contexts != 3 || exists(filepath.Join(h.base, testDir)) {
		t.Errorf("%+v, %v", done, err)
	}
	must(t, os.WriteFile(filepath.Join(r.Place(), objectName(rep.Lists[shardOf("completed/"+filepath.Base(first0(t, filepath.Join(h.base, "completed"))))][0].Object)), nil, 0o600))
	if done, err := r.Test(t.Context(), rep.Generation, h.base, 1<<62, nil); !errors.Is(err, ErrNoRoom) || done.Runs > 0 || exists(filepath.Join(h.base, testDir)) {
		t.Errorf("without room: %+v, %v", done, err)
	}
	if _, err := r.Test(t.Context(), rep.Generation, h.base, 0, nil); !IsDamage(err) || exists(filepath.Join(h.base, testDir)) {
		t.Errorf("of a damaged one: %v", err)
	}
}

// On a disk that cannot be written, what is there is copied nonetheless.
func TestReadOnlyBase(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 2)
	r := repo(t, Options{Place: t.TempDir()})
	h.backup(r, Source{})
	h.run(task.Completed)
	must(t, h.store.Close())
	for _, f := range []string{"house.db-wal", "house.db-shm", "tasks.db-wal", "tasks.db-shm"} {
		must(t, errors.Join(ignore(os.Remove(filepath.Join(h.base, f)))))
	}
	ro := &disk.FS{Before: func(op disk.Op) error {
		if strings.HasPrefix(op.Path, h.base) {
			return &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: errReadOnly}
		}
		return nil
	}}
	h.backup(r, Source{FS: ro})
	dir := t.TempDir()
	restore(t, r, 2, Target{Dir: dir})
	same(t, "restored", listing(t, dir), listing(t, h.base))
}

func ignore(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Of any sequence of runs, nights, retention and backups, each generation gives the listing of its
// time.
func TestRandomGenerations(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	h := newHouse(t, 1)
	r := repo(t, Options{Place: t.TempDir()})
	wants := map[int][]string{}
	for range 40 {
		switch dice.IntN(4) {
		case 0, 1:
			h.run([]task.Status{task.Completed, task.Stopped, task.Failed}[dice.IntN(3)])
		case 2:
			h.now = h.now.AddDate(0, 0, 1+dice.IntN(9))
			must(t, h.store.Retain(t.Context(), contextstore.Retention{Gzip: 7 * 24 * time.Hour, Slim: 30 * 24 * time.Hour, Delete: 90 * 24 * time.Hour}, false, func(contextstore.Retained) {}))
		default:
			wants[h.backup(r, Source{Keep: 7}).Number] = listing(t, h.base)
		}
	}
	all, err := r.Generations(t.Context())
	must(t, err)
	for _, g := range all {
		dir := t.TempDir()
		restore(t, r, g.Number, Target{Dir: dir})
		_, err := fsck.Reindex(t.Context(), dir, nil)
		must(t, err)
		same(t, g.Name, listing(t, dir), wants[g.Number])
		clean(t, dir)
	}
	if len(all) < 4 {
		t.Errorf("%d generations", len(all))
	}
}

// What a newer program wrote is copied, and not restored by this one.
func TestANewerBase(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	must(t, h.store.Close())
	db, err := sql.Open("sqlite", filepath.Join(h.base, "house.db"))
	must(t, err)
	_, err = db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
	must(t, errors.Join(err, db.Close()))
	r := repo(t, Options{Place: t.TempDir()})
	g := h.backup(r, Source{}).Generation
	dir := filepath.Join(t.TempDir(), "new")
	if _, err := r.Restore(t.Context(), g, Target{Dir: dir}); err == nil || !strings.Contains(err.Error(), "newer program") || len(listing0(dir)) > 0 {
		t.Errorf("%v", err)
	}
}

// Other recipients have everything written anew: what was plain, or for another key, is not in what
// they alone can read.
func TestOtherRecipients(t *testing.T) {
	t.Parallel()
	h, place := newHouse(t, 2), t.TempDir()
	plain := h.backup(repo(t, Options{Place: place}), Source{Keep: 9})
	for range 2 {
		key, err := age.GenerateX25519Identity()
		must(t, err)
		secret := filepath.Join(t.TempDir(), "key.txt")
		must(t, os.WriteFile(secret, []byte(key.String()+"\n"), 0o600))
		o := Options{Place: place, Recipients: []string{key.Recipient().String()}}
		if rep := h.backup(repo(t, o), Source{Keep: 9}); rep.Added < plain.Added {
			t.Errorf("%d bytes were written, not all %d", rep.Added, plain.Added)
		}
		o.Identity = secret
		r := repo(t, o) // which does not know the base directory's own key
		g, err := r.Find(t.Context(), 0)
		must(t, err)
		to := filepath.Join(t.TempDir(), "base")
		if _, err := r.Restore(t.Context(), g, Target{Dir: to, FS: &disk.FS{}}); err != nil {
			t.Errorf("generation %d: %v", g.Number, err)
		}
		must(t, os.WriteFile(filepath.Join(to, identityFile), []byte("{"), 0o600))
		if err := r.Know(to); err != nil {
			t.Errorf("beside a key that was given: %v", err)
		}
		must(t, os.MkdirAll(filepath.Join(to, restoreDir), 0o700))
		must(t, os.WriteFile(filepath.Join(to, contextstore.RestoreCommit), []byte("{}"), 0o600))
		if _, err := r.Restore(t.Context(), g, Target{Dir: to, Run: "x", FS: &disk.FS{}}); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("into a restore that was cut short: %v", err)
		}
	}
}

// What cannot be read while the recipients change is written for the new ones too, from the
// generation before; and another key of the base directory's own has everything written anew.
func TestOtherRecipientsOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	h, place := newHouse(t, 2), t.TempDir()
	h.backup(repo(t, Options{Place: place}), Source{})
	want := listing(t, h.base)
	must(t, h.store.Close())
	must(t, os.WriteFile(filepath.Join(h.base, "house.db"), []byte(strings.Repeat("no database ", 999)), 0o600))
	key, err := age.GenerateX25519Identity()
	must(t, err)
	secret := filepath.Join(t.TempDir(), "key.txt")
	must(t, os.WriteFile(secret, []byte(key.String()+"\n"), 0o600))
	o := Options{Place: place, Recipients: []string{key.Recipient().String()}, Identity: secret}
	rep, err := repo(t, o).Make(t.Context(), Source{Base: h.base})
	if err != nil || rep.Manifest.Failed != 1 || !rep.Encrypted {
		t.Fatalf("%+v, %v", rep.Manifest, err)
	}
	r := repo(t, o)
	must(t, r.each(t.Context(), rep.Generation, func(u unit) error {
		for _, c := range u.Chunks {
			if raw, err := r.raw(t.Context(), c); err != nil || !strings.HasPrefix(string(raw), ageHeader) {
				t.Errorf("%s is not encrypted: %v", u.Path, err)
			}
		}
		return nil
	}))
	dir := t.TempDir()
	restore(t, r, 2, Target{Dir: dir})
	same(t, "restored", listing(t, dir), want)
	clean(t, dir)

	id, err := readIdentity(h.base)
	must(t, err)
	h.write(identityFile, fmt.Sprintf(`{"house":%q}`, id.House))
	next, err := repo(t, o).Make(t.Context(), Source{Base: h.base}) // which can read what was written for the key that is given
	must(t, err)
	o.Identity = ""
	r = repo(t, o)
	must(t, r.Know(h.base))
	if _, err := r.Test(t.Context(), next.Generation, t.TempDir(), 0, nil); err != nil {
		t.Errorf("with the new key of the base directory: %v", err)
	}
}

// A base directory that lost its key writes everything anew, and removes nothing that it cannot
// read the lists of until those have gone.
func TestALostKey(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	must(t, err)
	h := newHouse(t, 2)
	at := time.Now().AddDate(1, 0, 0) // whatever is not needed is old
	o := Options{Place: t.TempDir(), Recipients: []string{key.Recipient().String()}, Now: func() time.Time { return at }}
	h.backup(repo(t, o), Source{Keep: 2})
	id, err := readIdentity(h.base)
	must(t, err)
	h.write(identityFile, fmt.Sprintf(`{"house":%q}`, id.House))
	for n := range 3 {
		before := objects(t, repo(t, o))
		rep, err := repo(t, o).Make(t.Context(), Source{Base: h.base, Keep: 2})
		if must(t, err); (rep.Unswept != nil) != (n == 0 && rep.Removed > 0) {
			t.Fatalf("%d: %+v", n, rep)
		}
		if n == 1 && objects(t, repo(t, o)) >= before {
			t.Errorf("nothing was swept: %+v", rep)
		}
	}
	found, err := repo(t, o).Verify(t.Context(), nil)
	if locked := (*LockedError)(nil); !errors.As(err, &locked) {
		t.Fatalf("without a key: %+v, %v", found, err)
	}
	r := repo(t, o)
	must(t, r.Know(h.base))
	if found, err = r.Verify(t.Context(), nil); err != nil || len(found) != 2 || found[0].Why != nil || found[1].Why != nil {
		t.Errorf("%+v, %v", found, err)
	}
}

// A generation that is damaged takes the place of none that is whole, and the latest is not taken
// for whole because an older one is.
func TestDamagedGenerationsDoNotCount(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	r := repo(t, Options{Place: t.TempDir()})
	want := listing(t, h.base)
	h.backup(r, Source{Keep: 2})
	bad := h.backup(r, Source{Keep: 2})
	must(t, os.WriteFile(filepath.Join(r.Place(), bad.Name), []byte("{"), 0o600))
	if g, err := r.Find(t.Context(), 0); err != nil || g.Number != 1 {
		t.Errorf("to restore: %d, %v", g.Number, err)
	}
	if g, err := r.Latest(t.Context()); g.Number != 2 || !IsDamage(err) {
		t.Errorf("the latest: %d, %v", g.Number, err)
	}
	for _, left := range [][]int{{1, 2, 3}, {3, 4}} {
		rep, err := r.Make(t.Context(), Source{Base: h.base, Keep: 2})
		must(t, err)
		all, err := r.Generations(t.Context())
		must(t, err)
		var have []int
		for _, g := range all {
			have = append(have, g.Number)
		}
		if !slices.Equal(have, left) {
			t.Fatalf("after generation %d: %v, not %v", rep.Number, have, left)
		}
		dir := t.TempDir()
		restore(t, r, left[0], Target{Dir: dir})
		same(t, "the oldest", listing(t, dir), want)
	}
	if g, err := r.Latest(t.Context()); g.Number != 4 || err != nil {
		t.Errorf("the latest: %d, %v", g.Number, err)
	}
}

// A run whose files come and go while they are listed is never taken for one that was removed, and
// a database that cannot be copied not for one that never was.
func TestNothingIsLeftOutInSilence(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	r := repo(t, Options{Place: t.TempDir()})
	m := &maker{Repository: r, Source: Source{Base: h.base, FS: &disk.FS{}}, report: &Report{}, tmp: filepath.Join(h.base, tmpDir)}
	run := first0(t, filepath.Join(h.base, "completed"))
	for i := range 200 {
		must(t, os.WriteFile(filepath.Join(run, fmt.Sprintf("x%03d", i)), nil, 0o600))
	}
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			name := filepath.Join(run, fmt.Sprintf("x%03d", i%200))
			err := errors.Join(os.Remove(name), os.WriteFile(name, nil, 0o600))
			if err != nil {
				<-stop
				stopped <- err
				return
			}
		}
	}()
	for range 50 {
		if _, err := m.pack(t.Context(), "completed/"+filepath.Base(run), unit{}); err != nil && !errors.Is(err, errChanged) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of a run that is there: %v", err)
		}
		if _, err := m.parts(run); errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of its files: %v", err)
		}
	}
	close(stop)
	must(t, <-stopped)
	if _, err := m.pack(t.Context(), "completed/none", unit{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of none: %v", err)
	}
	if _, err := m.pack(t.Context(), contextstore.HouseDBFile, unit{}); err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errChanged) {
		t.Errorf("without a directory for the copy: %v", err)
	}
}
