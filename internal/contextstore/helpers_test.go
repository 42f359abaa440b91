package contextstore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// healthy makes a base directory with one run that has a bit of everything, and
// returns it with its context, closed as status says.
func healthy(t *testing.T, status task.Status) (base, dir string) {
	t.Helper()
	made, _ := templates.LoadOrStore(status, &template{})
	tmpl := made.(*template)
	tmpl.once.Do(func() { tmpl.files, tmpl.dir = makeHealthy(t, status) })
	base = filepath.Join(t.TempDir(), "base")
	must(t, os.CopyFS(base, tmpl.files))
	tightenBase(base)
	for _, d := range StatusDirs {
		tighten(filepath.Join(base, d))
	}
	placed(t, base)
	return base, filepath.Join(base, tmpl.dir)
}

// template is a base directory in memory: making one takes longer than copying it.
type template struct {
	once  sync.Once
	files fstest.MapFS
	dir   string
}

var templates sync.Map // task.Status -> *template

func makeHealthy(t *testing.T, status task.Status) (files fstest.MapFS, dir string) {
	t.Helper()
	base := t.TempDir()
	mountedBases.Store(base, true) // files of the kernel's, which are copied
	s := open(t, Options{BaseDir: base, OnIndexError: func(error) {}})
	c := begin(t, s)
	if _, err := c.Append(Message{Role: "system", Content: "be good at this"}, Message{Role: "user", Content: "please do it well"}); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		id := fmt.Sprint("call-", n)
		if _, err := c.Append(Message{Role: "assistant", Content: "calling again", ToolCalls: []ToolCall{{ID: redact.Opaque(id), Name: "shell"}}, Usage: spent(n + 1)}); err != nil {
			t.Fatal(err)
		}
		if err := c.AppendTools(ToolRun{Tool: "shell", CallID: redact.Opaque(id), Status: "success", Args: json.RawMessage(`{"a":1}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(Message{Role: "tool", ToolCallID: redact.Opaque(id), ToolName: "shell", Content: "結果です。長い結果です。"}); err != nil {
			t.Fatal(err)
		}
	}
	m := all(t, c)[4]
	if err := c.AppendWindow(WindowEvent{Type: "truncate", FromSeq: m.Seq, Offset: m.Offset, Dropped: 2}); err != nil {
		t.Fatal(err)
	}
	if err := c.AppendCheck(CheckRun{Command: "true"}); err != nil {
		t.Fatal(err)
	}
	switch status {
	case task.Running:
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	default:
		if err := c.Transition(t.Context(), task.Outcome{Status: status, Summary: "summed up"}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, s.Close())
	files = fstest.MapFS{}
	must(t, filepath.WalkDir(s.BaseDir, func(p string, e os.DirEntry, err error) error {
		if err != nil || p == s.BaseDir {
			return err
		}
		rel, _ := filepath.Rel(s.BaseDir, p)
		if e.IsDir() {
			files[rel] = &fstest.MapFile{Mode: os.ModeDir | 0o700}
			return nil
		}
		b, err := readFile(p)
		files[rel] = &fstest.MapFile{Data: b, Mode: 0o600}
		return err
	}))
	return files, filepath.Join(DirOf(status), c.UUID())
}

// appendTo adds raw bytes to a file.
func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := (&disk.FS{}).OpenAppend(path)
	must(t, err)
	_, err = f.Append([]byte(text))
	must(t, errors.Join(err, f.Close()))
}

// write makes a file of raw bytes.
func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, (&disk.FS{}).Replace(path, []byte(text), false))
}

// readFile is all that a file holds.
func readFile(path string) ([]byte, error) { return disk.Read(path, disk.MaxWhole) }

// edit replaces the first old in a file.
func edit(t *testing.T, path, old, now string) {
	t.Helper()
	b, err := readFile(path)
	if err != nil || !strings.Contains(string(b), old) {
		t.Fatalf("%s holds no %q: %v\n%s", path, old, err, b)
	}
	write(t, path, strings.Replace(string(b), old, now, 1))
}

// lineOf returns the n-th line of a file, from 0, with its newline.
func lineOf(t *testing.T, path string, n int) string {
	t.Helper()
	b, err := readFile(path)
	must(t, err)
	return strings.SplitAfter(string(b), "\n")[n]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, base string, repair bool) Checked {
	t.Helper()
	r, err := CheckBase(t.Context(), base, repair)
	must(t, err)
	return r
}

func kinds(r Checked) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.Kind)
	}
	slices.Sort(all)
	return all
}

// execIn runs SQL on a database that lies at path.
func execIn(path, query string) error {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	_, err = db.Exec(query)
	return errors.Join(err, db.Close())
}

// query runs SQL on the index of a base directory that nobody has open.
func query(t *testing.T, base, sql string) {
	t.Helper()
	must(t, execIn(filepath.Join(base, index.File), sql))
}

func rowIn(t *testing.T, i *index.Index, uuid string) Row {
	t.Helper()
	r, ok, err := i.Row(t.Context(), uuid)
	if err != nil || !ok {
		t.Fatalf("no row of %s: %v", uuid, err)
	}
	return r
}

// indexed is every row of an index, by uuid.
func indexed(t *testing.T, base string) map[string]Row {
	t.Helper()
	i, err := index.OpenReader(t.Context(), base)
	must(t, err)
	defer func() { _ = i.Close() }()
	all := map[string]Row{}
	must(t, i.Each(t.Context(), func(r Row) error {
		if r.Status == task.Running {
			r.HeartbeatAt = Time{} // a row may be behind the files of a run that goes on
		}
		all[r.UUID] = r
		return nil
	}))
	return all
}

// sameCounters fails where the sums that the index keeps are not those of its rows.
func sameCounters(t *testing.T, i *index.Index) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+i.Path())
	must(t, err)
	defer func() { _ = db.Close() }()
	sums := func(query string) (all [5]int64) {
		must(t, db.QueryRow(query).Scan(&all[0], &all[1], &all[2], &all[3], &all[4]))
		return all
	}
	want := sums(`SELECT count(*), coalesce(sum(total_tokens), 0), coalesce(sum(llm_call_count), 0), coalesce(sum(bytes), 0), coalesce(sum(cost_micro_usd), 0)
		FROM tasks WHERE status IN ('completed', 'stopped', 'failed')`)
	for _, table := range []string{"task_days", "task_months", "task_repo_days", "task_repo_months", "task_sums", "task_repos"} {
		if got := sums(`SELECT coalesce(sum(tasks), 0), coalesce(sum(tokens), 0), coalesce(sum(llm_calls), 0), coalesce(sum(bytes), 0), coalesce(sum(cost_micro_usd), 0) FROM ` + table); got != want {
			t.Errorf("%s: %v, want %v", table, got, want)
		}
	}
}

func removeIndex(t *testing.T, s *Store) {
	t.Helper()
	for _, f := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(s.BaseDir, index.File+f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}
