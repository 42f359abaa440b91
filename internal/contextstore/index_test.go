package contextstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pressly/goose/v3"

	"toritsugi/internal/task"
)

var sameRow = cmp.Options{cmpopts.IgnoreUnexported(Row{})}

func rowIn(t *testing.T, i *index, uuid string) Row {
	t.Helper()
	rows, err := rowsOf(t.Context(), i.h.w, `SELECT rowid, `+columns+` FROM tasks WHERE uuid=?`, uuid)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows of %s, %v", len(rows), uuid, err)
	}
	return rows[0]
}

func TestTheRowSaysWhatTheFilesSay(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	words := "red\x00 日本 ' \" \\ %"
	now := s.now()
	m := Metadata{
		UUID: "u1", TaskKey: key, CreatedAt: now, ProcessID: 7, Hostname: "here", User: "ken", Title: words,
		Config: MetadataConfig{Provider: "openai", Model: "m", ContextLength: 9},
	}
	st := State{
		TaskStatus: task.Queued, UpdatedAt: now, LLMCallCount: 1, ToolCallCount: 2, TotalTokensUsed: 3, CompressionCount: 4, Generation: 5,
		MessageCount: 6, Bytes: 1 << 40, Failures: 8, Phase: "ending", Outbox: []Effect{{Key: "a"}, {Key: "b"}}, Spending: Spending{1, 2, 3, 4, 5, 1 << 50, 7},
	}
	if err := s.index.insert(t.Context(), m, st); err != nil {
		t.Fatal(err)
	}
	got := rowIn(t, s.index, "u1")
	if d := cmp.Diff(rowOf(m, st), got, sameRow); d != "" {
		t.Error(d)
	}
	if got.ProcessID != 7 || got.Hostname != "here" || got.OutboxPending != 2 || got.Bytes != 1<<40 || got.Title != words {
		t.Errorf("%+v", got)
	}
	st.ProcessID, st.Hostname, st.StartedAt, st.TaskStatus, st.Error, st.Outbox, st.Phase = 8, "there", now, task.Failed, &words, nil, ""
	st.CompletedAt, st.Spending = now, Spending{10, 20, 30, 40, 50, 60, 70}
	if err := s.index.put(t.Context(), m, st); err != nil {
		t.Fatal(err)
	}
	got = rowIn(t, s.index, "u1")
	if d := cmp.Diff(rowOf(m, st), got, sameRow); d != "" {
		t.Error(d)
	}
	if got.Error != words || got.ProcessID != 8 {
		t.Errorf("%+v", got)
	}
}

func TestOddValuesOfAPersonDoNotHideAListing(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	someTasks(t, s, 3)
	if _, err := s.index.h.w.Exec(`UPDATE tasks SET total_tokens='many', created_at='yesterday', process_id=x'ff', hostname=7, context_length=1.5`); err != nil {
		t.Fatal(err)
	}
	p, err := s.index.list(t.Context(), Filter{})
	if err != nil || len(p.Rows) != 3 || p.Rows[0].Hostname != "7" || !p.Rows[0].CreatedAt.IsZero() {
		t.Error(p, err)
	}
}

// A turn writes its row and nothing else, no counter for one.
func TestATurnTouchesOneRow(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	st := c.State()
	changes := func() (n int64) {
		if err := s.index.h.w.QueryRow(`SELECT total_changes()`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := changes()
	st.LLMCallCount, st.TotalTokensUsed, st.MessageCount, st.Bytes = 9, 99, 9, 999
	st.Spending = Spending{1, 2, 3, 4, 5, 6, 7}
	if err := s.index.put(t.Context(), c.Metadata(), st); err != nil {
		t.Fatal(err)
	}
	if n := changes() - before; n != 1 {
		t.Errorf("%d changes", n)
	}
	st.TaskStatus, st.CompletedAt = task.Completed, s.now()
	if err := s.index.put(t.Context(), c.Metadata(), st); err != nil {
		t.Fatal(err)
	}
	sameCounters(t, s.index)
}

func TestPathsWithOddCharacters(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b?c#d%41&e=1;'\"日本\\", "line\nbreak", "bad\xffutf8", "?mode=memory", "file:x"} {
		base := filepath.Join(t.TempDir(), name)
		s := open(t, Options{BaseDir: base})
		someTasks(t, s, 3)
		r, err := openReader(t.Context(), base)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []*index{s.index, r} {
			if p, err := i.list(t.Context(), Filter{}); err != nil || p.Total != 3 {
				t.Errorf("%q: %d %v", name, p.Total, err)
			}
		}
		if err := errors.Join(r.close(), s.Close()); err != nil {
			t.Error(err)
		}
		if st, err := os.Stat(filepath.Join(base, "tasks.db")); err != nil || st.Size() < 4096 {
			t.Errorf("%q: the database lies elsewhere: %v", name, err)
		}
	}
}

func removeIndex(t *testing.T, s *Store) {
	t.Helper()
	for _, f := range []string{"tasks.db", "tasks.db-wal", "tasks.db-shm"} {
		if err := os.Remove(filepath.Join(s.BaseDir, f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func TestDeletedWhileInUse(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	other := open(t, Options{BaseDir: s.BaseDir})
	if yes, err := s.index.complete(t.Context()); err != nil || !yes {
		t.Errorf("an index of nothing is incomplete: %v", err)
	}
	c := begin(t, s)
	if reopened, err := s.index.check(t.Context()); err != nil || reopened {
		t.Fatal(reopened, err)
	}
	removeIndex(t, s)
	// Whoever lists makes it anew; who owns contexts is told by check all the same.
	if p, err := other.index.list(t.Context(), Filter{}); err != nil || p.Total != 1 || p.Rows[0].UUID != c.UUID() {
		t.Fatalf("the live run is missing: %+v %v", p, err)
	}
	if reopened, err := other.index.check(t.Context()); err != nil || !reopened {
		t.Fatal(reopened, err)
	}
	if reopened, err := s.index.check(t.Context()); err != nil || !reopened {
		t.Fatal(reopened, err)
	}
	if reopened, err := s.index.check(t.Context()); err != nil || reopened {
		t.Fatal("told twice", err)
	}
	if yes, err := s.index.complete(t.Context()); err != nil || yes {
		t.Errorf("complete beside contexts that it may lack: %v", err)
	}
	st := c.State()
	st.LLMCallCount = 7
	if err := s.index.put(t.Context(), c.Metadata(), st); err != nil {
		t.Fatal(err)
	}
	if p, err := other.index.list(t.Context(), Filter{}); err != nil || p.Rows[0].LLMCalls != 7 {
		t.Errorf("the two see different files: %+v %v", p, err)
	}
}

// A WAL whose database was deleted is not replayed into the new one.
func TestAnOrphanedWAL(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	someTasks(t, s, 200)
	if err := os.Remove(filepath.Join(s.BaseDir, "tasks.db")); err != nil {
		t.Fatal(err)
	}
	other := open(t, Options{BaseDir: s.BaseDir})
	if p, err := other.index.list(t.Context(), Filter{}); err != nil || p.Total != 0 {
		t.Errorf("%d rows, %v", p.Total, err)
	}
	if reopened, err := s.index.check(t.Context()); err != nil || !reopened {
		t.Error(reopened, err)
	}
	var ok string
	if err := other.index.h.w.QueryRow(`PRAGMA integrity_check`).Scan(&ok); err != nil || ok != "ok" {
		t.Error(ok, err)
	}
}

// While it is deleted again and again nobody gets an error, and what is written
// after the last check stays.
func TestDeletedAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	done, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for done.Err() == nil {
				if err := s.index.put(t.Context(), c.Metadata(), c.State()); err != nil {
					t.Error("put:", err)
				}
				if _, err := s.index.live(t.Context(), key); err != nil {
					t.Error("live:", err)
				}
			}
		})
	}
	for range 20 {
		removeIndex(t, s)
		if reopened, err := s.index.check(t.Context()); err != nil || !reopened {
			t.Error(reopened, err)
		}
		if _, err := s.index.list(t.Context(), Filter{}); err != nil {
			t.Error("list:", err)
		}
		if _, err := s.index.stats(t.Context(), StatsFilter{}); err != nil {
			t.Error("stats:", err)
		}
	}
	stop()
	wg.Wait()
	if err := s.index.put(t.Context(), c.Metadata(), c.State()); err != nil {
		t.Error(err)
	}
	if p, err := open(t, Options{BaseDir: s.BaseDir}).index.list(t.Context(), Filter{}); err != nil || p.Total != 1 {
		t.Error(p.Total, err)
	}
}

func TestDatabasesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(path string) error
		want  string
		is    error
	}{
		"newer": {func(path string) error {
			return execIn(path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
		}, "schema version 99, this program knows versions up to 3", errNewer},
		"no database": {func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("hello ", 2000)), 0o600)
		}, "tori reindex", errBroken},
		"another program's": {func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600), execIn(path, `CREATE TABLE tasks (uuid TEXT PRIMARY KEY)`))
		}, "tori reindex", errBroken},
		"malformed": {func(path string) error {
			b, err := os.ReadFile(path)
			for at := 100; at < len(b); at += 7 {
				b[at] ^= 0x5a
			}
			return errors.Join(err, os.WriteFile(path, b, 0o600))
		}, "tori reindex", errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			begin(t, s)
			path := s.index.path
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			if _, err := openReader(t.Context(), s.BaseDir); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("read only: %v", err)
			}
			var told error
			o := open(t, Options{BaseDir: s.BaseDir, OnIndexError: func(err error) { told = err }})
			if o.index != nil || !errors.Is(told, c.is) || !strings.Contains(told.Error(), c.want) || !strings.Contains(told.Error(), path) {
				t.Fatalf("%v", told)
			}
			k := key
			k.ID = "2"
			if _, err := o.Enqueue(t.Context(), Metadata{TaskKey: k}); err != nil {
				t.Errorf("without an index: %v", err)
			}
			if _, err := renewIndex(t.Context(), o.BaseDir, o.house, o.houseDB); err == nil {
				t.Error("renewed while others may use it")
			}
			release, err := o.house.exclusive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			i, err := renewIndex(t.Context(), o.BaseDir, o.house, o.houseDB)
			if err != nil {
				t.Fatal(err)
			}
			defer i.close()
			if p, err := i.list(t.Context(), Filter{}); err != nil || p.Total != 2 {
				t.Errorf("%d rows, %v", p.Total, err)
			}
			if _, err := os.Stat(path + ".broken-1"); err != nil {
				t.Error("what was broken is gone:", err)
			}
		})
	}
}

func execIn(path, query string) error {
	h, err := indexSchema.connect(path)
	if err != nil {
		return err
	}
	_, err = h.w.Exec(query)
	return errors.Join(err, h.close())
}

// olderIndex makes base's tasks.db as an earlier version had it, with one row
// that has ended.
func olderIndex(t *testing.T, base string, version int64) {
	t.Helper()
	path := filepath.Join(base, "tasks.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := indexSchema.connect(path)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := fs.Sub(migrations, "migrations")
	p, err := goose.NewProvider(goose.DialectSQLite3, h.w, files, goose.WithLogger(goose.NopLogger()))
	if err == nil {
		_, err = p.UpTo(t.Context(), version)
	}
	if err == nil {
		_, err = h.w.Exec(`INSERT INTO tasks (uuid, task_source, owner, repo, task_type, task_id, status, created_at, started_at, completed_at, total_tokens, user, generation)
			VALUES ('old', 'github', 'o', 'r', 'issue', '1', 'completed', '2024-01-15T10:30:00.000000Z', '2024-01-15T10:30:01.500000Z', '2024-01-15T10:30:03.750000Z', 42, 'ken', 3)`)
	}
	if err := errors.Join(err, h.close()); err != nil {
		t.Fatal(err)
	}
}

func TestAnOlderIndexIsMigratedByOneAlone(t *testing.T) {
	t.Parallel()
	for version := range int64(2) {
		t.Run(fmt.Sprint("version ", version+1), func(t *testing.T) { t.Parallel(); migrated(t, version+1) })
	}
}

func migrated(t *testing.T, version int64) {
	base := t.TempDir()
	olderIndex(t, base, version)
	if _, err := openReader(t.Context(), base); !errors.Is(err, errOlder) {
		t.Errorf("read only: %v", err)
	}
	stays := enterHouse(t, base)
	h := enterHouse(t, base)
	h.patience = time.Millisecond
	if _, err := openIndex(t.Context(), base, h, nil); err == nil || !strings.Contains(err.Error(), "stop them first") || !h.isHeld() {
		t.Fatalf("migrated under another process: %v", err)
	}
	h.close()
	stays.close()
	var wg sync.WaitGroup
	stores := make([]*Store, 4)
	for n := range stores { // that start at once
		wg.Go(func() {
			var err error
			stores[n], err = Open(t.Context(), Options{BaseDir: base, Redact: func(s string) string { return s }, OnIndexError: func(err error) { t.Error(err) }})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		p, err := s.index.list(t.Context(), Filter{})
		if err != nil || p.Total != 1 || p.Rows[0].Tokens != 42 || p.Rows[0].Generation != 3 {
			t.Errorf("%+v %v", p, err)
		}
		sameCounters(t, s.index)
		if st, err := s.index.stats(t.Context(), StatsFilter{}); err != nil || st.ByUser["ken"].DurationMS != 2250 {
			t.Errorf("%+v %v", st, err)
		}
		if yes, err := s.index.complete(t.Context()); err != nil || yes {
			t.Error("its new columns are empty, and it says to be complete", err)
		}
		_ = s.Close()
	}
}

// TestChildReads is the child of the test below.
func TestChildReads(t *testing.T) {
	base := os.Getenv(childBase)
	if base == "" {
		t.Skip("run by another test")
	}
	if err := os.WriteFile(filepath.Join(base, "probe"), nil, 0o600); err == nil {
		t.Fatal("the disk can be written")
	}
	i, err := openReader(t.Context(), base)
	if os.Getenv(childKey) == "stale" {
		if err == nil || !strings.Contains(err.Error(), "without losing") {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer i.close()
	if p, err := i.list(t.Context(), Filter{}); err != nil || p.Total != 40 {
		t.Error(p.Total, err)
	}
	if s, err := i.stats(t.Context(), StatsFilter{}); err != nil || s.Tasks != 40 {
		t.Error(s.Tasks, err)
	}
	if err := i.open(t.Context(), func(Row) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("bubblewrap is not installed: run scripts/setup.sh")
	}
	prefix := []string{bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}
	if err := exec.CommandContext(t.Context(), prefix[0], append(prefix[1:], "true")...).Run(); err != nil {
		t.Skip("bubblewrap does not work here:", err)
	}
	base := t.TempDir()
	read := func(what, how string) {
		t.Helper()
		out, err := child(t, prefix, "TestChildReads", childBase+"="+base, childKey+"="+how).CombinedOutput()
		if err != nil || strings.Contains(string(out), "SKIP") {
			t.Errorf("%s: %v: %s", what, err, out)
		}
	}
	if _, err := openReader(t.Context(), base); err == nil || !strings.Contains(err.Error(), "there is no index") {
		t.Errorf("without a database: %v", err)
	}
	s := open(t, Options{BaseDir: base})
	someTasks(t, s, 40)
	read("while it is in use", "")
	r, err := openReader(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := r.list(t.Context(), Filter{}); err != nil || p.Total != 40 {
		t.Error("on a disk that can be written:", p.Total, err)
	}
	if err := r.put(t.Context(), Metadata{UUID: "x"}, State{}); !errors.Is(err, errReadOnly) {
		t.Error("written through a reader:", err)
	}
	_ = r.close()
	// A copy of what lies there while it is in use, without the shared memory.
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(base)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	read("after it was closed", "")
	base = copied
	if err := os.Remove(filepath.Join(base, "tasks.db-shm")); err != nil {
		t.Fatal(err)
	}
	read("a WAL alone", "stale")
}
