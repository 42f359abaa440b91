package contextstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/task"
)

func TestTheRowSaysWhatTheFilesSay(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		words := "red\x00 日本 ' \" \\ %"
		kept := func(text string) string { return text }
		if database.ServerOf(s.BaseDir) != nil {
			kept = database.Kept
		}
		wanted := func(m Metadata, st State) Row {
			r := RowOf(m, st)
			r.Title, r.Error = kept(r.Title), kept(r.Error)
			return r
		}
		now := s.now()
		m := Metadata{
			UUID: "u1", TaskKey: key, CreatedAt: now, ProcessID: 7, Hostname: "here", User: "ken", Title: words,
			Config: MetadataConfig{Provider: "openai", Model: "m", ContextLength: 9},
		}
		st := State{
			TaskStatus: task.Queued, UpdatedAt: now, LLMCallCount: 1, ToolCallCount: 2, TotalTokensUsed: 3, CompressionCount: 4, Generation: 5,
			MessageCount: 6, Bytes: 1 << 40, Failures: 8, Phase: "ending", Outbox: []Effect{{Key: "a"}, {Key: "b"}}, Spending: Spending{PromptTokens: 1, CachedTokens: 2, CacheWriteTokens: 3, CompletionTokens: 4, ReasoningTokens: 5, CostMicroUSD: 1 << 50, UnpricedCalls: 7},
		}
		if err := s.insertRow(t.Context(), m, st); err != nil {
			t.Fatal(err)
		}
		got := rowIn(t, s.index, "u1")
		if d := cmp.Diff(wanted(m, st), got, sameRow); d != "" {
			t.Error(d)
		}
		if got.ProcessID != 7 || got.Hostname != "here" || got.OutboxPending != 2 || got.Bytes != 1<<40 || got.Title != kept(words) {
			t.Errorf("%+v", got)
		}
		st.ProcessID, st.Hostname, st.StartedAt, st.TaskStatus, st.Error, st.Outbox, st.Phase = 8, "there", now, task.Failed, &words, nil, ""
		st.CompletedAt, st.Spending = now, Spending{PromptTokens: 10, CachedTokens: 20, CacheWriteTokens: 30, CompletionTokens: 40, ReasoningTokens: 50, CostMicroUSD: 60, UnpricedCalls: 70}
		if err := s.putRow(t.Context(), m, st); err != nil {
			t.Fatal(err)
		}
		got = rowIn(t, s.index, "u1")
		if d := cmp.Diff(wanted(m, st), got, sameRow); d != "" {
			t.Error(d)
		}
		if got.Error != kept(words) || got.ProcessID != 8 {
			t.Errorf("%+v", got)
		}
	})
}

func TestDatabasesThatCannotBeUsed(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(path string) error
		want  string
		is    error
	}{
		"newer": {func(path string) error {
			return execIn(path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
		}, "schema version 99, this program knows versions up to 5", database.ErrNewer},
		"no database": {func(path string) error {
			return kernel.WriteFile(path, []byte(strings.Repeat("hello ", 2000)), 0o600)
		}, "tori reindex", database.ErrBroken},
		"another program's": {func(path string) error {
			return errors.Join(kernel.Remove(path), kernel.WriteFile(path, nil, 0o600), execIn(path, `CREATE TABLE tasks (uuid TEXT PRIMARY KEY)`))
		}, "tori reindex", database.ErrBroken},
		"malformed": {func(path string) error {
			b, err := readFile(path)
			for at := 100; at < len(b); at += 7 {
				b[at] ^= 0x5a
			}
			return errors.Join(err, kernel.WriteFile(path, b, 0o600))
		}, "tori reindex", database.ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			must(t, begin(t, s).Close())
			path := s.index.Path()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			if _, err := index.OpenReader(t.Context(), s.BaseDir); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
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
			if _, err := index.Renew(t.Context(), o.BaseDir, o.base); err == nil {
				t.Error("renewed while others may use it")
			}
			release, err := o.base.Exclusive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			i, err := index.Renew(t.Context(), o.BaseDir, o.base)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := i.List(t.Context(), Filter{}); err != nil || p.Total != 0 {
				t.Errorf("%d rows, %v", p.Total, err)
			}
			must(t, i.Close())
			release()
			must(t, o.Close())
			must(t, ReindexBase(t.Context(), o.BaseDir))
			if rows := indexed(t, o.BaseDir); len(rows) != 2 {
				t.Errorf("%d rows", len(rows))
			}
			if _, err := kernel.Stat(path + ".broken-1"); err != nil {
				t.Error("what was broken is gone:", err)
			}
		})
	}
}

// An index of an older version is made anew by one alone, with the rows of the
// directories.
func TestAnOlderIndexIsMadeAnewByOneAlone(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	id := ended(t, s, key, task.Outcome{Status: task.Completed})
	want := rowIn(t, s.index, id)
	base := s.BaseDir
	must(t, s.Close())
	query(t, base, `DELETE FROM goose_db_version WHERE version_id = 5`)
	query(t, base, `UPDATE tasks SET total_tokens = 42`)
	if _, err := index.OpenReader(t.Context(), base); !errors.Is(err, database.ErrOlder) {
		t.Errorf("read only: %v", err)
	}
	stays, err := database.Enter(t.Context(), base)
	must(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 5*time.Second) // it comes as far as to wait for the other
	defer cancel()
	var told error
	if s, err := Open(soon, Options{BaseDir: base, Redact: asIs, OnIndexError: func(err error) { told = err }}); err == nil {
		must(t, s.Close())
	}
	if told == nil || !strings.Contains(told.Error(), "stop them first") {
		t.Fatalf("made anew under another process: %v", told)
	}
	stays.Close()
	var wg sync.WaitGroup
	stores := make([]*Store, 4)
	for n := range stores { // that start at once
		wg.Go(func() {
			var err error
			stores[n], err = Open(t.Context(), Options{BaseDir: base, Redact: asIs, OnIndexError: func(err error) { t.Error(err) }})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		if d := cmp.Diff(want, rowIn(t, s.index, id), sameRow); d != "" {
			t.Error(d)
		}
		sameCounters(t, s.index)
		if yes, err := s.index.Complete(t.Context()); err != nil || !yes {
			t.Error(yes, err)
		}
		must(t, s.Close())
	}
}

// TestChildReads is the child of the test below.
func TestChildReads(t *testing.T) {
	base := os.Getenv(childBase)
	if base == "" {
		t.Skip("run by another test")
	}
	if err := kernel.WriteFile(filepath.Join(base, "probe"), nil, 0o600); err == nil {
		t.Fatal("the disk can be written")
	}
	i, err := index.OpenReader(t.Context(), base)
	if os.Getenv(childKey) == "stale" {
		if err == nil || !strings.Contains(err.Error(), "without losing") {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if p, err := i.List(t.Context(), Filter{}); err != nil || p.Total != 40 {
		t.Error(p.Total, err)
	}
	if err := i.Unfinished(t.Context(), func(Row) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	databaseFiles(t)
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("bubblewrap is not installed: run scripts/setup.sh")
	}
	prefix := []string{bwrap, "--ro-bind", "/", "/", "--proc", "/proc"}
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
	if _, err := index.OpenReader(t.Context(), base); err == nil || !strings.Contains(err.Error(), "there is no index") {
		t.Errorf("without a database: %v", err)
	}
	s := open(t, Options{BaseDir: base})
	for n := range 40 {
		must(t, s.index.Insert(t.Context(), Row{UUID: fmt.Sprint(n), Key: keyOf(fmt.Sprint(n)), Status: task.Queued}))
	}
	read("while it is in use", "")
	r, err := index.OpenReader(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := r.List(t.Context(), Filter{}); err != nil || p.Total != 40 {
		t.Error("on a disk that can be written:", p.Total, err)
	}
	if err := r.Put(t.Context(), Row{UUID: "x"}); !errors.Is(err, database.ErrReadOnly) {
		t.Error("written through a reader:", err)
	}
	_ = r.Close()
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
	if err := kernel.Remove(filepath.Join(base, "tasks.db-shm")); err != nil {
		t.Fatal(err)
	}
	read("a WAL alone", "stale")
}

var sameRow = cmp.Options{cmpopts.IgnoreUnexported(Row{})}
