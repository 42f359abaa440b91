package blobs

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/bucket"
	"toritsugi/internal/bucket/buckettest"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// town has a ledger, a bucket and a repository.
type town struct {
	*Store
	t    *testing.T
	s3   *buckettest.Server
	repo string
	now  time.Time
	mu   sync.Mutex
	told []string
}

func newTown(t *testing.T) *town { return townAt(t, filepath.Join(t.TempDir(), "base")) }

// townAt is a town whose contexts lie in a base directory.
func townAt(t *testing.T, base string) *town {
	t.Helper()
	w := &town{t: t, s3: buckettest.New(t), repo: filepath.Join(t.TempDir(), "repo"), now: time.Now()}
	must(t, os.MkdirAll(w.repo, 0o755))
	must(t, os.WriteFile(filepath.Join(w.repo, "README.md"), []byte("hello\n"), 0o600))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=k", "-c", "user.email=k@example.com", "commit", "-q", "-m", "start"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = w.repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, Redact: func(s string) string { return s }, OnIndexError: func(error) {}, Now: func() time.Time { return w.now }})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	w.Store = w.storeOf(s)
	return w
}

func (w *town) storeOf(c *contextstore.Store) *Store {
	p, err := bucket.Open(bucket.Options{Place: "s3://b/p", S3: w.s3.S3, Tries: 1})
	must(w.t, err)
	return &Store{Place: p, Contexts: c, Warn: func(text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, text)
	}}
}

// claim takes a run, and opens its workspace.
func (w *town) claim(id string) (*contextstore.Context, *workspace.Workspace) {
	w.t.Helper()
	if id == "" {
		var err error
		id, err = w.Contexts.Enqueue(w.t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: "1"}, User: "ken"})
		must(w.t, err)
	}
	c, _, err := w.Contexts.Claim(w.t.Context(), id)
	must(w.t, err)
	w.t.Cleanup(func() { _ = c.Close() })
	box := workspace.Box{Shell: func(s sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(s), nil }}
	src, err := workspace.Inspect(w.t.Context(), w.repo, workspace.InspectOptions{Box: box})
	must(w.t, err)
	ws, err := workspace.Create(w.t.Context(), workspace.CreateOptions{Source: src, Dir: w.Contexts.WorkspaceDir(id), Branch: "tori/1", Box: box})
	must(w.t, err)
	w.t.Cleanup(func() { _ = ws.Close() })
	return c, ws
}

// change makes a step.
func (w *town) change(ws *workspace.Workspace, name string, data []byte) workspace.Snapshot {
	w.t.Helper()
	must(w.t, os.WriteFile(filepath.Join(ws.Tree(), name), data, 0o600))
	s, err := ws.Snapshot(w.t.Context(), name)
	must(w.t, err)
	return s
}

// objects are the names of what lies in the bucket.
func (w *town) objects() (all []string) {
	w.t.Helper()
	must(w.t, w.Place.Each(w.t.Context(), "", func(o bucket.Object) error { all = append(all, o.Name); return nil }))
	slices.Sort(all)
	return all
}

// referred are the names that a run refers to.
func (w *town) names(c *contextstore.Context) (all []string) {
	w.t.Helper()
	of, err := Read(c.Dir())
	must(w.t, err)
	house, err := w.house(w.t.Context())
	must(w.t, err)
	for _, p := range of.Pieces {
		all = append(all, house+"/"+p.Name)
	}
	slices.Sort(all)
	return all
}

func noise(n int) []byte {
	b, r := make([]byte, n), rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

// A new tree takes nothing. What is stored is what the run refers to, in pieces, the latest alone; the
// same again is not written again.
func TestKeep(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	c, ws := w.claim("")
	k := w.Keeper(c, ws)
	defer k.Close()
	s, err := ws.Snapshot(t.Context(), "start")
	must(t, err)
	k.Keep(s)
	must(t, k.Flush(t.Context()))
	if all := w.objects(); len(all) > 0 {
		t.Errorf("%q", all)
	}
	big := noise(pieceBytes + 1000)
	k.Keep(w.change(ws, "one", big))
	k.Keep(w.change(ws, "two", []byte("2\n"))) // soon enough, or not
	must(t, k.Flush(t.Context()))
	all := w.objects()
	if of := w.names(c); !slices.Equal(all, of) || len(all) != 2 {
		t.Errorf("%q\nreferred to: %q", all, of)
	}
	of, err := Read(c.Dir())
	must(t, err)
	if of.Label != "two" || !strings.HasPrefix(of.Pieces[0].Name, c.UUID()+"/1/") {
		t.Errorf("%+v", of)
	}
	requests := w.s3.Requests()
	k.Keep(w.change(ws, "two", []byte("2\n")))
	must(t, k.Flush(t.Context()))
	if now := w.s3.Requests(); now != requests {
		t.Errorf("%d requests for what is stored", now-requests)
	}
	var pack, again bytes.Buffer
	must(t, w.Write(t.Context(), of, &pack))
	must(t, ws.Pack(t.Context(), of.Stored, &again))
	if pack.Len() < pieceBytes || pack.Len() != again.Len() {
		t.Errorf("the pack has %d bytes and not %d", pack.Len(), again.Len())
	}

	// What was written is compared, and what is missing is told from a place that fails.
	name := w.names(c)[0]
	b, err := w.Place.Get(t.Context(), name, pieceBytes)
	must(t, err)
	b[10]++
	must(t, w.Place.Put(t.Context(), name, b))
	if err := w.Write(t.Context(), of, &again); err == nil || Passing(err) || !strings.Contains(err.Error(), "not what was written") {
		t.Errorf("damaged: %v", err)
	}
	must(t, w.Place.Remove(t.Context(), name))
	if err := w.Write(t.Context(), of, &again); !errors.Is(err, fs.ErrNotExist) || Passing(err) {
		t.Errorf("missing: %v", err)
	}
	w.s3.Refuse(func(int, *http.Request) int { return http.StatusForbidden })
	if err := w.Write(t.Context(), of, &again); !Passing(err) {
		t.Errorf("refused: %v", err)
	}
}

// A place that refuses is told of once, and once that it is back; the run refers to what is there
// all the while. One that hangs keeps nobody waiting.
func TestKeepWhereItFails(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	c, ws := w.claim("")
	k := w.Keeper(c, ws)
	defer k.Close()
	k.Keep(w.change(ws, "one", []byte("1\n")))
	must(t, k.Flush(t.Context()))
	was := w.names(c)
	w.s3.Refuse(func(_ int, q *http.Request) int {
		if q.Method == http.MethodPut {
			return http.StatusServiceUnavailable
		}
		return 0
	})
	for _, name := range []string{"two", "three"} {
		k.Keep(w.change(ws, name, []byte(name)))
		if err := k.Flush(t.Context()); !Passing(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := w.names(c); !slices.Equal(now, was) || !slices.Equal(w.objects(), was) {
		t.Errorf("it refers to %q, and was %q", now, was)
	}
	w.s3.Refuse(nil)
	must(t, k.Flush(t.Context())) // of what could not be stored
	if of, err := Read(c.Dir()); err != nil || of.Label != "three" {
		t.Errorf("%+v, %v", of, err)
	}
	w.mu.Lock()
	if len(w.told) != 2 || !strings.Contains(w.told[0], "for now") || !strings.Contains(w.told[1], "again") {
		t.Errorf("%q", w.told)
	}
	w.mu.Unlock()

	hangs, free := make(chan struct{}), make(chan struct{})
	defer close(free)
	w.s3.Refuse(func(int, *http.Request) int { hangs <- struct{}{}; <-free; return http.StatusTeapot })
	k.Keep(w.change(ws, "four", []byte("4")))
	waiting, give := context.WithCancel(t.Context())
	go func() { <-hangs; give() }()
	if err := k.Flush(waiting); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	k.Keep(w.change(ws, "five", []byte("5")))
	k.Keep(w.change(ws, "six", []byte("6")))
	k.Close()
	k.Keep(w.change(ws, "seven", []byte("7")))
	if err := k.Flush(t.Context()); err == nil {
		t.Error("it was stored after the end")
	}
}

// The night removes what nothing refers to once it is old enough: of runs that are gone or slimmed,
// and what a killed owner left. What is referred to, what a run writes now, and another ledger's stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	c, ws := w.claim("")
	k := w.Keeper(c, ws)
	k.Keep(w.change(ws, "one", []byte("1\n")))
	must(t, k.Flush(t.Context()))
	k.Close()
	house, err := w.house(t.Context())
	must(t, err)
	if again, err := w.storeOf(w.Contexts).house(t.Context()); again != house || err != nil {
		t.Errorf("the house is %s and %s: %v", house, again, err)
	}
	litter := house + "/" + c.UUID() + "/1/" + bucket.Hash([]byte("cut short"))
	gone := house + "/11111111-2222-3333-4444-555555555555/1/" + bucket.Hash(nil)
	for _, name := range []string{litter, gone, "another house/x/1/y"} {
		must(t, w.Place.Put(t.Context(), name, []byte("x")))
	}
	sweep := func(what string, after time.Duration, removed int, left ...string) {
		t.Helper()
		w.now = time.Now().Add(after)
		n, err := w.Sweep(t.Context())
		must(t, err)
		left = append(left, "another house/x/1/y")
		slices.Sort(left)
		if all := w.objects(); n != removed || !slices.Equal(all, left) {
			t.Errorf("%s: removed %d, left %q and not %q", what, n, all, left)
		}
	}
	kept := w.names(c)[0]
	sweep("too young", time.Hour, 0, kept, litter, gone)
	sweep("while it runs", 25*time.Hour, 1, kept, litter)
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Paused}))
	sweep("paused", 25*time.Hour, 1, kept)
	c, ws = w.claim(c.UUID())
	k = w.Keeper(c, ws)
	k.Keep(w.change(ws, "two", []byte("2\n")))
	must(t, k.Flush(t.Context()))
	k.Close()
	now := w.names(c)
	if !strings.Contains(now[0], c.UUID()+"/2/") {
		t.Errorf("of the second owner: %q", now)
	}
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Failed, Summary: "failed"}))
	sweep("ended", 25*time.Hour, 0, now...)
	w.now = time.Now().Add(50 * time.Hour)
	must(t, w.Contexts.Retain(t.Context(), contextstore.Retention{Slim: 24 * time.Hour}, false, func(contextstore.Retained) {}))
	sweep("slimmed", 50*time.Hour, 1)
	w.s3.Refuse(func(int, *http.Request) int { return http.StatusForbidden })
	if _, err := w.Sweep(t.Context()); err == nil {
		t.Error("nobody hears that the place refuses")
	}
}

// What a database has no more of an ended run stays as long as the run has it, and a place that
// refuses leaves it where it is.
func TestMoveOut(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	db, err := tables.OpenSQLite(t.Context(), tables.Options{Base: base}, true)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	t.Cleanup(disk.Mount(base, db))
	w := townAt(t, base)
	db.Object = func(ctx context.Context, name string, most int64) ([]byte, error) {
		return Get(ctx, w.Place, name, most)
	}
	c, _ := w.claim("")
	big := noise(pieceBytes + 1000)
	must(t, w.Contexts.FS.MkdirAll(filepath.Join(c.Dir(), "spill")))
	must(t, w.Contexts.FS.Replace(filepath.Join(c.Dir(), "spill", "1.txt"), big, true))
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Failed, Summary: "failed"}))
	night := func(after, slim time.Duration) {
		t.Helper()
		w.now = time.Now().Add(after)
		must(t, w.Contexts.Retain(t.Context(), contextstore.Retention{Gzip: time.Hour, Slim: slim, MoveOut: func(ctx context.Context, dir string) error {
			err := w.MoveOut(ctx, dir)
			if Passing(err) {
				return nil
			}
			return err
		}}, false, func(contextstore.Retained) {}))
		w.s3.Refuse(nil)
		_, err := w.Sweep(t.Context())
		must(t, err)
	}
	same := func() {
		t.Helper()
		dir, err := contextstore.FindDir(base, c.UUID())
		must(t, err)
		if got, err := disk.Read(filepath.Join(dir, "spill", "1.txt"), disk.MaxWhole); err != nil || !bytes.Equal(got, big) {
			t.Errorf("%d bytes and not %d: %v", len(got), len(big), err)
		}
	}
	w.s3.Refuse(func(n int, _ *http.Request) int { return map[bool]int{true: http.StatusForbidden}[n > 1] })
	night(2*time.Hour, 0)
	same()
	w.s3.Refuse(func(_ int, q *http.Request) int { return map[bool]int{true: http.StatusOK}[q.Method == http.MethodPut] }) // and stores nothing
	dir, err := contextstore.FindDir(base, c.UUID())
	must(t, err)
	if err := w.MoveOut(t.Context(), dir); !Passing(err) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was stored: %v", err)
	}
	w.s3.Refuse(nil)
	same()
	night(26*time.Hour, 0)
	if all := w.objects(); len(all) != 2 {
		t.Errorf("moved to %q", all)
	}
	same()
	night(60*time.Hour, 0)
	if all := w.objects(); len(all) != 2 {
		t.Errorf("left are %q", all)
	}
	same()

	// A database that does not answer is none that has no such run.
	file, err := sql.Open("sqlite", "file:"+filepath.Join(base, tables.File))
	must(t, err)
	t.Cleanup(func() { must(t, file.Close()) })
	rename := func(from, to string) {
		_, err := file.ExecContext(t.Context(), `ALTER TABLE `+from+` RENAME TO `+to)
		must(t, err)
	}
	rename("contexts", "away")
	if removed, err := w.Sweep(t.Context()); err == nil || removed > 0 {
		t.Errorf("removed %d that nobody could look for: %v", removed, err)
	}
	if _, over := w.Contexts.Settled(t.Context(), c.UUID()); over {
		t.Error("the workspace of such a run may go")
	}
	rename("away", "contexts")
	same()
	night(120*time.Hour, time.Hour)
	if all := w.objects(); len(all) != 0 {
		t.Errorf("left of a slimmed run: %q", all)
	}
}

// forgetful is a database that does not answer when it is asked whether a run is kept.
type forgetful struct{ disk.Place }

func (f forgetful) Stat(path string) (fs.FileInfo, error) {
	if filepath.Base(path) == "keep.json" {
		return nil, errors.New("canceling statement due to statement timeout")
	}
	return f.Place.Stat(path)
}

// A run of which a database does not say whether it is kept is not removed.
func TestKeptWhereNobodyCanTell(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	db, err := tables.OpenSQLite(t.Context(), tables.Options{Base: base}, true)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	t.Cleanup(disk.Mount(base, forgetful{db}))
	w := townAt(t, base)
	c, _ := w.claim("")
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Failed, Summary: "failed"}))
	if did, err := w.Contexts.Keep(t.Context(), c.UUID(), "ken", false); did || err == nil {
		t.Errorf("said to be kept: %v, %v", did, err)
	}
	w.now = w.now.Add(48 * time.Hour)
	must(t, w.Contexts.Retain(t.Context(), contextstore.Retention{Delete: time.Hour}, false, func(r contextstore.Retained) { t.Errorf("%+v", r) }))
}
