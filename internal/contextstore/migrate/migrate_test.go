package migrate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plain, sqlite and postgres make an empty base directory that they keep.
func plain(t *testing.T) string { return t.TempDir() }

func sqlite(t *testing.T) string {
	base := t.TempDir()
	d, err := tables.OpenSQLite(t.Context(), tables.Options{Base: base}, true)
	must(t, err)
	t.Cleanup(disk.Mount(base, d))
	t.Cleanup(func() { must(t, d.Close()) })
	return base
}

func postgres(t *testing.T) string {
	base := t.TempDir()
	s, err := database.Dial(t.Context(), database.ServerOptions{URL: pgtest.URL(t)})
	must(t, err)
	t.Cleanup(s.Close)
	d, err := tables.OpenPostgres(t.Context(), tables.Options{Base: base}, s)
	must(t, err)
	t.Cleanup(disk.Mount(base, d))
	t.Cleanup(s.Serve(base))
	t.Cleanup(func() { must(t, d.Close()) })
	return base
}

// filled is a base directory of files with runs of each status, and what stands beside them.
func filled(t *testing.T, runs int) string {
	t.Helper()
	base := plain(t)
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, NoSync: true, Redact: func(s string) string { return s }})
	must(t, err)
	statuses := task.Statuses()
	for n := range runs {
		uuid, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "folder", Owner: "a", Repo: "r", Type: "issue", ID: fmt.Sprint(n)}, Title: "日本"})
		must(t, err)
		to := statuses[n%len(statuses)]
		if to == task.Queued {
			continue
		}
		c, _, err := s.Claim(t.Context(), uuid)
		must(t, err)
		for i := range 5 {
			_, err = c.Append(contextstore.Message{Role: "user", Content: strings.Repeat("言葉 ", i*100)})
			must(t, err)
		}
		if to == task.Running {
			must(t, c.Close())
			continue
		}
		e := contextstore.Effect{Key: uuid + ".comment", Kind: "comment", Data: []byte(`{"a":1}`)}
		must(t, c.Transition(t.Context(), task.Outcome{Status: to, Summary: "done"}, e))
		if n%2 == 0 {
			must(t, s.Acknowledge(t.Context(), uuid, e, "there"))
		}
	}
	must(t, s.SetMark(t.Context(), "github/a/r", "comments", "7"))
	_, err = s.ChangeInbox(t.Context(), []contextstore.Incoming{{Channel: "slack", ID: "a", Body: []byte("\x00\xffx"), ReceivedAt: contextstore.Time{Time: time.Now()}}}, nil)
	must(t, err)
	must(t, contextstore.Audit(&disk.FS{}, base, time.Now(), func(s string) string { return s }, contextstore.AuditEntry{Actor: "me", Action: "look"}))
	must(t, s.Session("slack:C1:T", func(s string) string { return s }).Write(t.Context(), func(w *contextstore.SessionWriter) error {
		return w.Append("messages.jsonl", map[string]any{"text": "hello"})
	}))
	must(t, s.Close())
	// What another writer left: fields that we do not know, a torn end, bytes that are no text.
	must(t, contextstore.Walk(base, []string{contextstore.DirCompleted}, func(dir string) error {
		f, err := os.OpenFile(filepath.Join(dir, "tools.jsonl"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		must(t, err)
		_, err = f.WriteString("{\"seq\":1,\"zz\":{\"unknown\": 1}}\n\xff\xfe\x00\n{\"torn")
		return errors.Join(err, f.Close())
	}))
	return base
}

// contents are the hashes of all files of contexts below a base directory.
func contents(t *testing.T, base string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, area := range append(contextstore.StatusDirs[:len(contextstore.StatusDirs):len(contextstore.StatusDirs)], "sessions") {
		must(t, contextstore.Walk(base, []string{area}, func(dir string) error {
			return source{dir: dir}.each(func(name string, isDir bool) error {
				if isDir {
					return nil
				}
				b, err := disk.Read(filepath.Join(dir, name), disk.MaxWhole)
				all[filepath.Join(area, filepath.Base(dir), name)] = fmt.Sprintf("%d %x", len(b), sha256.Sum256(b))
				return err
			})
		}))
	}
	return all
}

func listed(t *testing.T, base string) (all []string) {
	t.Helper()
	l, err := contextstore.List(t.Context(), base, contextstore.Viewer{Admin: true}, contextstore.Filter{Limit: 1000})
	must(t, err)
	for _, v := range l.Views {
		all = append(all, fmt.Sprint(v.Metadata.UUID, v.Status(), v.State.LLMCallCount, v.Metadata.Title))
	}
	return all
}

// From files to SQLite, to PostgreSQL and to files again every line is the same, and so is what is
// listed and what house.db knows.
func TestThroughEachBackend(t *testing.T) {
	t.Parallel()
	first := filled(t, 30)
	want, rows := contents(t, first), int64(0)
	_, err := fsck.Reindex(t.Context(), first, nil)
	must(t, err)
	list := listed(t, first)
	from := first
	for n, make := range []func(*testing.T) string{sqlite, postgres, plain} {
		to := make(t)
		dry, err := Run(t.Context(), Options{From: from, To: to, DryRun: true, FS: &disk.FS{}})
		must(t, err)
		r, err := Run(t.Context(), Options{From: from, To: to, FS: &disk.FS{}})
		must(t, err)
		if r.Copied != 31 || r.There != 0 || dry.Copied != 31 || dry.Bytes != r.Bytes {
			t.Errorf("%d: %+v, %+v", n, dry, r)
		}
		if rows == 0 {
			rows = r.Rows
		}
		if r.Rows != rows+int64(n) || rows == 0 {
			t.Errorf("%d: %d rows of %d", n, r.Rows, rows)
		}
		again, err := Run(t.Context(), Options{From: from, To: to, FS: &disk.FS{}})
		if err != nil || again.Copied != 0 || again.There != 31 {
			t.Errorf("%d: again: %+v, %v", n, again, err)
		}
		if got := contents(t, to); !maps.Equal(got, want) {
			t.Errorf("%d: %v\nwant %v", n, got, want)
		}
		_, err = fsck.Reindex(t.Context(), to, nil)
		must(t, err)
		if got := listed(t, to); fmt.Sprint(got) != fmt.Sprint(list) {
			t.Errorf("%d: %v\nwant %v", n, got, list)
		}
		s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: to, Redact: func(s string) string { return s }})
		must(t, err)
		if v, err := s.Mark(t.Context(), "github/a/r", "comments"); v != "7" || err != nil {
			t.Errorf("%d: %q %v", n, v, err)
		}
		all, err := s.WaitingInbox(t.Context())
		if err != nil || len(all) != 1+n {
			t.Fatalf("%d: %+v %v", n, all, err)
		}
		if body, err := s.InboxBody(t.Context(), all[0].Seq); err != nil || string(body) != "\x00\xffx" {
			t.Errorf("%d: %q %v", n, body, err)
		}
		if fresh, err := s.ChangeInbox(t.Context(), []contextstore.Incoming{{Channel: "slack", ID: fmt.Sprint("b", n), Body: []byte("y"), ReceivedAt: contextstore.Time{Time: time.Now()}}}, nil); err != nil || len(fresh) != 1 || fresh[0].Seq <= all[0].Seq {
			t.Errorf("%d: the next event: %+v %v", n, fresh, err)
		}
		must(t, s.Close())
		from = to
	}
}

// Stopped wherever, it goes on when it is called again.
func TestCutShort(t *testing.T) {
	t.Parallel()
	from, to := filled(t, 12), sqlite(t)
	want := contents(t, from)
	for n := 1; ; n += 17 {
		stop, calls := errors.New("stopped"), 0
		fs := &disk.FS{Before: func(disk.Op) error {
			if calls++; calls >= n {
				return stop
			}
			return nil
		}}
		_, err := Run(t.Context(), Options{From: from, To: to, FS: fs})
		if err == nil {
			break
		}
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
	if got := contents(t, to); !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

func TestWhatIsThereStays(t *testing.T) {
	t.Parallel()
	from, to := filled(t, 3), plain(t)
	_, err := Run(t.Context(), Options{From: from, To: to, FS: &disk.FS{}})
	must(t, err)
	var dir string
	must(t, contextstore.Walk(to, []string{contextstore.DirQueued}, func(d string) error { dir = d; return nil }))
	must(t, os.WriteFile(filepath.Join(dir, "state.json"), []byte("{}"), 0o600))
	if _, err := Run(t.Context(), Options{From: from, To: to, FS: &disk.FS{}}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("another one of the same name: %v", err)
	}
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: from, Redact: func(s string) string { return s }})
	must(t, err)
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Run(ctx, Options{From: from, To: to, FS: &disk.FS{}}); err == nil {
		t.Error("it copied what others work on")
	}
}
