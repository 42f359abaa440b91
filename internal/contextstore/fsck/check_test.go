package fsck

import (
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/contextstore/jsonl"
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
	must(t, filepath.Walk(base, func(p string, st os.FileInfo, err error) error {
		return errors.Join(err, disk.RestrictToOwner(p, st))
	}))
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
	s := open(t, contextstore.Options{OnIndexError: func(error) {}})
	c := begin(t, s)
	if _, err := c.Append(contextstore.Message{Role: "system", Content: "be good at this"}, contextstore.Message{Role: "user", Content: "please do it well"}); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		id := fmt.Sprint("call-", n)
		if _, err := c.Append(contextstore.Message{Role: "assistant", Content: "calling again", ToolCalls: []contextstore.ToolCall{{ID: redact.Opaque(id), Name: "shell"}}, Usage: spent(n + 1)}); err != nil {
			t.Fatal(err)
		}
		if err := c.AppendTools(contextstore.ToolRun{Tool: "shell", CallID: redact.Opaque(id), Status: "success", Args: json.RawMessage(`{"a":1}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(contextstore.Message{Role: "tool", ToolCallID: redact.Opaque(id), ToolName: "shell", Content: "結果です。長い結果です。"}); err != nil {
			t.Fatal(err)
		}
	}
	m := all(t, c)[4]
	if err := c.AppendWindow(contextstore.WindowEvent{Type: "truncate", FromSeq: m.Seq, Offset: m.Offset, Dropped: 2}); err != nil {
		t.Fatal(err)
	}
	if err := c.AppendCheck(contextstore.CheckRun{Command: "true"}); err != nil {
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
		b, err := os.ReadFile(p)
		files[rel] = &fstest.MapFile{Data: b, Mode: 0o600}
		return err
	}))
	return files, filepath.Join(contextstore.DirOf(status), c.UUID())
}

func check(t *testing.T, base string, repair bool) Report {
	t.Helper()
	r, err := Check(t.Context(), base, Options{Repair: repair, StateLockTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
			if s := f.What(l) + f.Does(l); strings.Contains(s, "%!") || strings.Contains(s, "check.") {
				t.Errorf("text of %s: %s", f.Kind, s)
			}
		}
	}
	return r
}

func kinds(r Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.Kind)
	}
	slices.Sort(all)
	return all
}

func TestAHealthyBaseIsClean(t *testing.T) {
	t.Parallel()
	for _, status := range task.Statuses() {
		if status == task.Queued {
			continue
		}
		base, _ := healthy(t, status)
		for _, repair := range []bool{false, true, false} {
			if r := check(t, base, repair); r.Found != 0 || r.Contexts != 1 || r.Bytes == 0 || r.InUse != 0 {
				t.Errorf("%s: %+v", status, r)
			}
		}
	}
	s := open(t, contextstore.Options{})
	if _, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: key}); err != nil {
		t.Fatal(err)
	}
	if r := check(t, s.BaseDir, true); r.Found != 0 {
		t.Errorf("queued: %+v", r)
	}
}

// appendTo adds raw bytes to a file.
func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// edit replaces the first old in a file.
func edit(t *testing.T, path, old, now string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), old) {
		t.Fatalf("%s holds no %q: %v\n%s", path, old, err, b)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, now, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lineOf returns the n-th line of a file, from 0, with its newline.
func lineOf(t *testing.T, path string, n int) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(string(b), "\n")[n]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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

var key = task.Key{Source: "folder", Owner: "abc", Repo: "demo", Type: "issue", ID: "1"}

func open(t *testing.T, o contextstore.Options) *contextstore.Store {
	t.Helper()
	if o.BaseDir == "" {
		o.BaseDir = t.TempDir()
	}
	o.Redact = func(s string) string { return s }
	s, err := contextstore.Open(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func begin(t *testing.T, s *contextstore.Store) *contextstore.Context {
	t.Helper()
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: key, User: "ken"})
	must(t, err)
	c, repairs, err := s.Claim(t.Context(), id)
	if err != nil || len(repairs) > 0 {
		t.Fatal(err, repairs)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func all(t *testing.T, c *contextstore.Context) (out []contextstore.Message) {
	t.Helper()
	must(t, c.Messages(0, func(m contextstore.Message) bool { out = append(out, m); return true }))
	return out
}

// spent is what a call took, with every figure in it; an odd one has no price.
func spent(n int) *contextstore.Usage {
	u := &contextstore.Usage{Prompt: 100 * n, Completion: 10 * n, Cached: 7 * n, CacheWrite: 5 * n, Reasoning: 3 * n}
	if n%2 == 0 {
		cost := int64(1001 * n)
		u.Cost = &cost
	}
	return u
}

var damages = []struct {
	name   string
	status task.Status
	damage func(t *testing.T, base, dir string)
	want   string // kinds, sorted
	mends  bool   // all of them
}{
	{"a torn message", task.Running, func(t *testing.T, _, dir string) {
		appendTo(t, filepath.Join(dir, contextstore.Messages), `{"seq":9,"role":"assistant","content":"I wi`)
	}, "torn", true},
	{"a NUL tail", task.Running, func(t *testing.T, _, dir string) {
		appendTo(t, filepath.Join(dir, contextstore.Tools), strings.Repeat("\x00", 70000))
	}, "nul_end", true},
	{"a summary without newline", task.Completed, func(t *testing.T, _, dir string) {
		p := filepath.Join(dir, contextstore.Summaries)
		st, _ := os.Stat(p)
		must(t, os.Truncate(p, st.Size()-1))
	}, "newline", true},
	{"an acknowledged message torn", task.Completed, func(t *testing.T, _, dir string) {
		p := filepath.Join(dir, contextstore.Messages)
		st, _ := os.Stat(p)
		must(t, os.Truncate(p, st.Size()-9))
	}, "end_damaged", false},
	{"acknowledged messages gone", task.Completed, func(t *testing.T, _, dir string) {
		p := filepath.Join(dir, contextstore.Messages)
		st, _ := os.Stat(p)
		must(t, os.Truncate(p, st.Size()-int64(len(lineOf(t, p, 7)))))
	}, "short", false},
	{"garbage within the messages", task.Running, func(t *testing.T, _, dir string) {
		p := filepath.Join(dir, contextstore.Messages)
		l := lineOf(t, p, 3)
		edit(t, p, l, strings.Repeat("#", len(l)-1)+"\n")
	}, "garbage", false},
	{"NULs within the messages", task.Completed, func(t *testing.T, _, dir string) {
		p := filepath.Join(dir, contextstore.Messages)
		l := lineOf(t, p, 2)
		edit(t, p, l, strings.Repeat("\x00", len(l)-1)+"\n")
	}, "nul", false},
	{"a message is missing", task.Completed, func(t *testing.T, _, dir string) {
		p := filepath.Join(dir, contextstore.Messages)
		edit(t, p, lineOf(t, p, 1), "")
	}, "gap sum", false},
	{"a message stands twice", task.Paused, func(t *testing.T, _, dir string) {
		p := filepath.Join(dir, contextstore.Messages)
		edit(t, p, lineOf(t, p, 1), lineOf(t, p, 1)+lineOf(t, p, 1))
	}, "again", false},
	{"a line of another kind", task.Running, func(t *testing.T, _, dir string) {
		appendTo(t, filepath.Join(dir, contextstore.Messages), `{"hello":"world"}`+"\n")
	}, "strange", false},
	{"an unknown role", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.Messages), `"role":"user"`, `"role":"usfr"`)
	}, "role", false},
	{"a wrong total", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.Messages), `"sum":7`, `"sum":8`)
	}, "sum sum", false},
	{"bytes that are no UTF-8", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.Messages), "please", "pl\xffase")
	}, "utf8", false},
	{"a result that nobody asked for", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.Messages), `"tool_call_id":"call-1"`, `"tool_call_id":"call-x"`)
	}, "open orphan", false},
	{"an open call in the last answer of a paused run", task.Paused, func(t *testing.T, _, dir string) {
		appendTo(t, filepath.Join(dir, contextstore.Messages), `{"seq":9,"role":"assistant","content":"","timestamp":"2024-01-15T10:32:00Z","tokens":0,"sum":25,"tool_calls":[{"id":"a","name":"b","arguments":""}]}`+"\n")
	}, "", true},
	{"summaries of messages that are not there", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.Summaries), `"end_seq":8`, `"end_seq":9`)
	}, "range", false},
	{"tools without a number", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.Tools), `"seq":2`, `"seq":5`)
	}, "again gap", false},
	{"a window event of nothing", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.Window), `"from_seq":5`, `"from_seq":6`)
	}, "window", false},
	{"a torn plan", task.Completed, func(t *testing.T, _, dir string) {
		must(t, os.Mkdir(filepath.Join(dir, "planning"), 0o700))
		appendTo(t, filepath.Join(dir, "planning", "x.jsonl"), `{"type":"plan"}`+"\n"+`{"type`)
	}, "torn", true},
	{"state.json is torn", task.Completed, func(t *testing.T, _, dir string) {
		must(t, os.Truncate(filepath.Join(dir, contextstore.StateFile), 77))
	}, "state", true},
	{"state.json is gone", task.Running, func(t *testing.T, _, dir string) {
		must(t, os.Remove(filepath.Join(dir, contextstore.StateFile)))
	}, "no_state", true},
	{"no such task status", task.Stopped, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.StateFile), `"task_status":"stopped"`, `"task_status":"stoqped"`)
	}, "task_status", true},
	{"no such status", task.Running, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.StateFile), `"status":"processing"`, `"status":"x"`)
	}, "status", true},
	{"an end that was not finished", task.Completed, func(t *testing.T, base, dir string) {
		edit(t, filepath.Join(dir, contextstore.StateFile), `"phase":""`, `"phase":"ending"`)
		must(t, os.Rename(dir, filepath.Join(base, contextstore.DirRunning, filepath.Base(dir))))
		appendTo(t, filepath.Join(base, contextstore.DirRunning, filepath.Base(dir), contextstore.LockFile), "{}\n")
		query(t, base, `UPDATE tasks SET status='running'`)
	}, "half_done", true},
	{"a claim that was not finished", task.Running, func(t *testing.T, base, dir string) {
		must(t, os.Rename(dir, filepath.Join(base, contextstore.DirQueued, filepath.Base(dir))))
	}, "half_done", true},
	{"an end without a time", task.Failed, func(t *testing.T, _, dir string) {
		s, err := contextstore.ReadState(dir)
		must(t, err)
		edit(t, filepath.Join(dir, contextstore.StateFile), `"completed_at":"`+s.CompletedAt.String()+`"`, `"completed_at":null`)
	}, "completed_at row", true},
	{"no generation", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.StateFile), `"generation":1`, `"generation":0`)
	}, "generation", true},
	{"a checkpoint in the middle of a line", task.Paused, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.StateFile), `"tools.jsonl":{"bytes":`, `"tools.jsonl":{"bytes":1`)
	}, "mark", true},
	{"a counter that knows more", task.Paused, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.StateFile), `"message_count":8`, `"message_count":11`)
	}, "lost row", false},
	{"more bytes than there are", task.Paused, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.StateFile), `"bytes":`, `"bytes":9999`)
	}, "bytes row", true},
	{"no metadata", task.Completed, func(t *testing.T, _, dir string) {
		must(t, os.Remove(filepath.Join(dir, contextstore.MetadataFile)))
	}, "no_metadata", false},
	{"unreadable metadata", task.Completed, func(t *testing.T, _, dir string) {
		must(t, os.Truncate(filepath.Join(dir, contextstore.MetadataFile), 30))
	}, "metadata", false},
	{"another's metadata", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.MetadataFile), filepath.Base(dir), "00000000-0000-4000-8000-000000000000")
	}, "other_uuid", false},
	{"an empty directory", task.Completed, func(t *testing.T, base, _ string) {
		must(t, os.Mkdir(filepath.Join(base, contextstore.DirPaused, "00000000-0000-4000-8000-000000000000"), 0o700))
	}, "empty", true},
	{"one uuid in two places", task.Completed, func(t *testing.T, base, dir string) {
		must(t, os.CopyFS(filepath.Join(base, contextstore.DirPaused, filepath.Base(dir)), os.DirFS(dir)))
		must(t, filepath.Walk(filepath.Join(base, contextstore.DirPaused), func(p string, st os.FileInfo, err error) error {
			if err == nil {
				_ = disk.RestrictToOwner(p, st)
			}
			return err
		}))
	}, "half_done twice", false},
	{"what is not ours", task.Completed, func(t *testing.T, base, _ string) {
		appendTo(t, filepath.Join(base, contextstore.DirCompleted, "notes.txt"), "x")
	}, "foreign", false},
	{"a context that was never made", task.Completed, func(t *testing.T, base, _ string) {
		p := filepath.Join(base, contextstore.DirQueued, ".tmp-00000000-0000-4000-8000-000000000000")
		must(t, os.Mkdir(p, 0o700))
		appendTo(t, filepath.Join(p, ".state.json.tmp"), "x")
		old := time.Now().Add(-2 * unfinishedAge)
		must(t, os.Chtimes(p, old, old))
	}, "unfinished", true},
	{"a context that is being made", task.Completed, func(t *testing.T, base, _ string) {
		must(t, os.Mkdir(filepath.Join(base, contextstore.DirQueued, ".tmp-00000000-0000-4000-8000-000000000000"), 0o700))
	}, "", true},
	{"a leftover of a write", task.Completed, func(t *testing.T, _, dir string) {
		appendTo(t, filepath.Join(dir, ".state.json.tmp"), "{")
	}, "temporary", true},
	{"a leftover lock", task.Completed, func(t *testing.T, _, dir string) {
		appendTo(t, filepath.Join(dir, contextstore.LockFile), "{}\n")
	}, "lock", true},
	{"rights of others", task.Completed, func(t *testing.T, _, dir string) {
		must(t, os.Chmod(dir, 0o755))
		must(t, os.Chmod(filepath.Join(dir, contextstore.Tools), 0o644))
	}, "mode mode", true},
	{"rights of others on the index", task.Completed, func(t *testing.T, base, _ string) {
		must(t, os.Chmod(filepath.Join(base, "tasks.db"), 0o666))
	}, "mode", true},
	{"a link", task.Completed, func(t *testing.T, _, dir string) {
		must(t, os.Remove(filepath.Join(dir, contextstore.Checks)))
		must(t, os.Symlink("/etc/passwd", filepath.Join(dir, contextstore.Checks)))
	}, "short symlink", false},
	{"a pipe", task.Completed, func(t *testing.T, _, dir string) {
		must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	}, "special", false},
	{"a row that says otherwise", task.Completed, func(t *testing.T, base, _ string) {
		query(t, base, `UPDATE tasks SET status='failed', total_tokens=1`)
	}, "row", true},
	{"no row", task.Completed, func(t *testing.T, base, _ string) {
		query(t, base, `DELETE FROM tasks`)
	}, "no_row", true},
	{"no index", task.Completed, func(t *testing.T, base, _ string) {
		must(t, os.Remove(filepath.Join(base, "tasks.db")))
	}, "", true},
	{"an index that is none", task.Completed, func(t *testing.T, base, _ string) {
		must(t, os.WriteFile(filepath.Join(base, "tasks.db"), []byte(strings.Repeat("no database", 1000)), 0o600))
	}, "rows_unreadable", true},
	{"a row of nothing", task.Completed, func(t *testing.T, base, _ string) {
		query(t, base, `INSERT INTO tasks (uuid, task_source, owner, repo, task_type, task_id, status, created_at)
			VALUES ('00000000-0000-4000-8000-000000000000', 's', 'o', 'r', 't', 'i', 'completed', '2024-01-15T10:32:00.000000Z')`)
	}, "stray_row", true},
	{"a conversation that a power cut ended", task.Completed, func(t *testing.T, base, _ string) {
		dir := conversation(t, base)
		appendTo(t, filepath.Join(dir, sessionMessages), `{"seq":3,"role":"us`)
		appendTo(t, filepath.Join(dir, sessionLegs, "1.1.jsonl"), strings.Repeat("\x00", 100))
		appendTo(t, filepath.Join(dir, ".session.json.tmp"), "{")
		must(t, os.Chmod(filepath.Join(dir, sessionEvents), 0o644))
	}, "mode nul_end temporary torn", true},
	{"messages of a conversation that are missing", task.Completed, func(t *testing.T, base, _ string) {
		appendTo(t, filepath.Join(conversation(t, base), sessionMessages), `{"seq":5,"role":"user"}`+"\n###\n"+`{"seq":4,"role":"user"}`+"\n"+`{"seq":6,"role":"root"}`+"\n")
	}, "again gap garbage strange", false},
	{"a conversation that cannot be gone on with", task.Completed, func(t *testing.T, base, _ string) {
		must(t, os.Truncate(filepath.Join(conversation(t, base), sessionState), 9))
	}, "unreadable", false},
	{"a conversation of nobody", task.Completed, func(t *testing.T, base, _ string) {
		edit(t, filepath.Join(conversation(t, base), sessionState), "session_id", "session")
	}, "strange", false},
	{"a newer format", task.Completed, func(t *testing.T, _, dir string) {
		edit(t, filepath.Join(dir, contextstore.MetadataFile), `"format":1`, `"format":2`)
		appendTo(t, filepath.Join(dir, contextstore.Messages), "in a way of its own")
	}, "newer", true},
}

// conversation makes a healthy one beside the contexts.
func conversation(t *testing.T, base string) (dir string) {
	t.Helper()
	dir = filepath.Join(contextstore.SessionsDir(base), "terminal%3Aa%3Ab")
	must(t, os.MkdirAll(filepath.Join(dir, sessionLegs), 0o700))
	for name, text := range map[string]string{
		sessionState: `{"session_id":"terminal:a:b","channel":"terminal"}`, sessionMessages: `{"seq":1,"role":"user"}` + "\n" + `{"seq":2,"role":"assistant"}`,
		sessionEvents: `{"event":"final.route"}`, sessionLegs + "/1.1.jsonl": `{"seq":1,"role":"system"}`,
	} {
		appendTo(t, filepath.Join(dir, name), text+"\n")
	}
	if r := check(t, base, false); r.Found != 0 {
		t.Errorf("%+v", r.Findings)
	}
	return dir
}

// What became of a message is no damage.
func TestAMessageThatWasTakenBack(t *testing.T) {
	t.Parallel()
	base, _ := healthy(t, task.Completed)
	appendTo(t, filepath.Join(conversation(t, base), sessionMessages), `{"seq":3,"role":"revised","id":"1"}`+"\n"+`{"seq":4,"role":"withdrawn","id":"1"}`+"\n")
	if r := check(t, base, false); r.Found != 0 {
		t.Errorf("%+v", r.Findings)
	}
}

// A message that is being written is no damage, and is not cut.
func TestAConversationThatIsWrittenTo(t *testing.T) {
	t.Parallel()
	base, _ := healthy(t, task.Completed)
	dir := conversation(t, base)
	appendTo(t, filepath.Join(dir, sessionMessages), `{"seq":3,"role":"us`)
	release, err := contextstore.HoldSession(t.Context(), dir, true, time.Second)
	must(t, err)
	for _, repair := range []bool{false, true} {
		r, err := Check(t.Context(), base, Options{Repair: repair, StateLockTimeout: time.Millisecond})
		if err != nil || r.Found != 0 {
			t.Errorf("%+v, %v", r.Findings, err)
		}
	}
	if release(); check(t, base, true).Mended != 1 {
		t.Error("it is not mended when nobody writes")
	}
}

// Of every damage check says what it is; repair mends what can be, and nothing
// that was acknowledged is lost by it.
func TestDamages(t *testing.T) {
	t.Parallel()
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			base, dir := healthy(t, d.status)
			d.damage(t, base, dir)
			before := tree(t, base)
			r := check(t, base, false)
			if got := strings.Join(kinds(r), " "); got != d.want {
				t.Fatalf("found %q, want %q: %+v", got, d.want, r.Findings)
			}
			if after := tree(t, base); !maps.Equal(before, after) {
				t.Error("a check without repair changed something")
			}
			lines := goodLines(t, base)
			r = check(t, base, true)
			if d.mends != (r.Left == 0) {
				t.Errorf("left %d: %+v", r.Left, r.Findings)
			}
			for l := range lines {
				if !goodLines(t, base)[l] {
					t.Errorf("a good line is gone: %s", l)
				}
			}
			damaged := tree(t, base)
			r = check(t, base, true)
			if r.Mended != 0 || d.mends && r.Found != 0 {
				t.Errorf("a second repair: %+v", r.Findings)
			}
			if after := tree(t, base); !maps.Equal(damaged, after) {
				t.Error("a second repair changed something")
			}
		})
	}
}

// tree is the content of every file below base but for the index.
func tree(t *testing.T, base string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.Walk(base, func(p string, st os.FileInfo, err error) error {
		if err != nil || strings.Contains(p, "tasks.db") {
			return err
		}
		text := st.Mode().String()
		if st.Mode().IsRegular() {
			b, err := os.ReadFile(p)
			must(t, err)
			text += string(b)
		}
		all[strings.TrimPrefix(p, base)] = text
		return nil
	}))
	return all
}

// goodLines are the whole JSON lines of all logs.
func goodLines(t *testing.T, base string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	must(t, filepath.Walk(base, func(p string, st os.FileInfo, err error) error {
		if err != nil || !st.Mode().IsRegular() || !strings.HasSuffix(p, ".jsonl") {
			return err
		}
		b, err := os.ReadFile(p)
		must(t, err)
		for l := range strings.SplitSeq(string(b), "\n") {
			if jsonl.Check([]byte(l)) == nil {
				all[filepath.Base(p)+" "+l] = true
			}
		}
		return nil
	}))
	return all
}

// What a live process owns is not damage and is never touched.
func TestAContextInUseIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := open(t, contextstore.Options{})
	c := begin(t, s)
	if _, err := c.Append(contextstore.Message{Role: "user", Content: "one"}); err != nil {
		t.Fatal(err)
	}
	must(t, c.Committed(0, ""))
	appendTo(t, filepath.Join(c.Dir(), contextstore.Messages), `{"seq":2,"role":"us`)
	appendTo(t, filepath.Join(c.Dir(), ".state.json.tmp"), `{`)
	before := tree(t, s.BaseDir)
	r := check(t, s.BaseDir, true)
	if r.InUse != 1 || r.Found != 0 || r.Contexts != 1 || kinds(r)[0] != "in_use" {
		t.Errorf("%+v", r)
	}
	if !maps.Equal(before, tree(t, s.BaseDir)) {
		t.Error("it was touched")
	}
	// What was acknowledged is looked at.
	edit(t, filepath.Join(c.Dir(), contextstore.Messages), `"role"`, `"rol`)
	if r := check(t, s.BaseDir, true); r.Left != 1 || kinds(r)[0] != "end_damaged" {
		t.Errorf("%+v", r)
	}
}

// Whoever changes a state.json holds its lock: a repair waits for it, and not
// for ever.
func TestRepairWaitsForTheStateLock(t *testing.T) {
	t.Parallel()
	base, dir := healthy(t, task.Completed)
	edit(t, filepath.Join(dir, contextstore.StateFile), `"generation":1`, `"generation":0`)
	f, err := os.OpenFile(filepath.Join(dir, ".state.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	defer func() { _ = f.Close() }()
	must(t, filelock.Set(f, filelock.Whole, filelock.Exclusive))
	if r := check(t, base, true); r.Left != 1 || !errors.Is(r.Findings[0].Err, filelock.ErrLocked) {
		t.Errorf("%+v", r)
	}
	must(t, f.Close())
	if r := check(t, base, true); r.Mended != 1 || r.Left != 0 {
		t.Errorf("%+v", r)
	}
}

// A fault of the disk during a repair leaves what a later repair can mend.
func TestRepairSurvivesEveryFault(t *testing.T) {
	t.Parallel()
	for _, d := range damages {
		if !d.mends || d.want == "" || d.want == "newer" {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			base, dir := healthy(t, d.status)
			d.damage(t, base, dir)
			lines := goodLines(t, base)
			for fail := 0; fail < 40; fail++ {
				n := 0
				fs := &disk.FS{Before: func(disk.Op) error {
					if n++; n > fail {
						return syscall.EIO
					}
					return nil
				}}
				r, err := Check(t.Context(), base, Options{Repair: true, FS: fs, StateLockTimeout: time.Millisecond})
				must(t, err)
				if r.Left == 0 {
					break
				}
			}
			if r := check(t, base, true); r.Left != 0 {
				t.Errorf("%+v", r.Findings)
			}
			if r := check(t, base, false); r.Found != 0 {
				t.Errorf("%+v", r.Findings)
			}
			now := goodLines(t, base)
			for l := range lines {
				if !now[l] {
					t.Errorf("a good line is gone: %s", l)
				}
			}
		})
	}
}

func TestTwoLiveRunsOfOneKey(t *testing.T) {
	t.Parallel()
	base, dir := healthy(t, task.Paused)
	const other = "00000000-0000-4000-8000-000000000000"
	for _, d := range []string{contextstore.DirQueued, contextstore.DirPaused} { // found before and after the one that has the row
		to := filepath.Join(base, d, other)
		must(t, os.Mkdir(to, 0o700))
		for _, f := range []string{contextstore.MetadataFile, contextstore.StateFile, contextstore.Messages, contextstore.Tools, contextstore.Window, contextstore.Checks} {
			b, err := os.ReadFile(filepath.Join(dir, f))
			must(t, err)
			b = []byte(strings.ReplaceAll(string(b), filepath.Base(dir), other))
			if d == contextstore.DirQueued {
				b = []byte(strings.ReplaceAll(strings.ReplaceAll(string(b), `"task_status":"paused"`, `"task_status":"queued"`), `"status":"paused"`, `"status":"initializing"`))
			}
			must(t, os.WriteFile(filepath.Join(to, f), b, 0o600))
		}
		for _, repair := range []bool{false, true} {
			if r := check(t, base, repair); strings.Join(kinds(r), " ") != "two_live" || r.Left != 1 {
				t.Errorf("%+v", r.Findings)
			}
		}
		must(t, os.RemoveAll(to))
	}
}

// A tree of the older edition and one whose old messages retention has taken
// are no damage.
func TestOlderAndSlimContexts(t *testing.T) {
	t.Parallel()
	base, dir := healthy(t, task.Completed)
	must(t, os.Remove(filepath.Join(dir, contextstore.Messages)))
	must(t, os.Remove(filepath.Join(dir, contextstore.Tools)))
	if r := check(t, base, true); r.Found != 0 {
		t.Errorf("slim: %+v", r.Findings)
	}
	base, dir = healthy(t, task.Completed)
	for _, name := range []string{contextstore.Messages, contextstore.Tools} {
		p := filepath.Join(dir, name)
		b, err := os.ReadFile(p)
		must(t, err)
		f, err := os.OpenFile(p+".gz", os.O_CREATE|os.O_WRONLY, 0o600)
		must(t, err)
		z := gzip.NewWriter(f)
		_, err = z.Write(b)
		must(t, errors.Join(err, z.Close(), f.Close(), os.Remove(p)))
	}
	if r := check(t, base, true); r.Found != 0 {
		t.Errorf("compressed: %+v", r.Findings)
	}
	base = t.TempDir()
	dir = filepath.Join(base, contextstore.DirCompleted, "550e8400-e29b-41d4-a716-446655440000")
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.Chmod(filepath.Dir(dir), 0o700))
	for name, text := range map[string]string{
		contextstore.MetadataFile: `{"uuid":"550e8400-e29b-41d4-a716-446655440000","task_key":{"task_source":"github"},"created_at":"2024-01-15T10:30:00.123456Z","process_id":1,"hostname":"n","config":{}}`,
		contextstore.StateFile:    `{"status":"timeout","started_at":"2024-01-15T10:30:01.000000Z","updated_at":"2024-01-15T10:35:22.456789Z","completed_at":null,"llm_call_count":1}`,
		contextstore.Messages: `{"seq":1,"role":"system","content":"a","timestamp":"2024-01-15T10:30:01.123Z","token_count":250}` + "\n" +
			`{"seq":2,"role":"tool","content":"b","timestamp":"2024-01-15T10:30:20.123Z","token_count":1200,"tool_name":"x"}` + "\n",
		contextstore.Summaries: `{"summary_id":1,"start_seq":1,"end_seq":2,"summary":"s","created_at":"2024-01-15T10:32:00.000Z","original_tokens":1,"summary_tokens":1,"compression_ratio":1}` + "\n",
		contextstore.Tools:     `{"seq":1,"tool_name":"x","arguments":{},"result":{"a":1},"status":"success","duration_ms":2,"timestamp":"2024-01-15T10:30:20.123Z"}` + "\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if r := check(t, base, true); r.Found != 0 {
		t.Errorf("older: %+v", r.Findings)
	}
}

// Fields of state.json that this program does not know survive a repair, and
// what cannot be read is kept.
func TestRepairedStateKeepsWhatItCan(t *testing.T) {
	t.Parallel()
	base, dir := healthy(t, task.Completed)
	p := filepath.Join(dir, contextstore.StateFile)
	edit(t, p, `"generation":1`, `"generation":0,"of_the_future":{"a":[1]}`)
	if r := check(t, base, true); r.Mended != 1 {
		t.Fatalf("%+v", r.Findings)
	}
	if b, _ := os.ReadFile(p); !strings.Contains(string(b), `"of_the_future":{"a":[1]}`) {
		t.Errorf("%s", b)
	}
	want, err := contextstore.ReadState(dir)
	must(t, err)
	must(t, os.WriteFile(p, []byte("torn {"), 0o600))
	if r := check(t, base, true); r.Mended != 1 || r.Left != 0 {
		t.Fatalf("%+v", r.Findings)
	}
	if b, _ := os.ReadFile(p + ".cut"); string(b) != "torn {" {
		t.Errorf("kept %q", b)
	}
	got, err := contextstore.ReadState(dir)
	must(t, err)
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(contextstore.State{}, "UpdatedAt", "LastActivity", "ActiveMS", "StartedAt", "BootID")); d != "" {
		t.Error(d)
	}
	if got.ActiveMS != want.ActiveMS || got.ActiveMS > want.ActiveMS+1000 {
		t.Errorf("%d ms, %d before", got.ActiveMS, want.ActiveMS)
	}
}

// How a run ended, which commit it had and its time survive the loss of its
// state; what nothing tells counts against it, and is said.
func TestARebuiltStateClaimsNoMore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		outcome task.Outcome
		old     bool // a final summary of an earlier version
		model   bool // wrote another one
		index   bool
		status  string
		lost    string
	}{
		{name: "unverified", outcome: task.Outcome{Status: task.Completed, Unverified: true}, index: true, status: "completed", lost: "committed_seq, active_ms, outbox"},
		{name: "verified", outcome: task.Outcome{Status: task.Completed}, model: true, status: "completed", lost: "committed_seq, active_ms, outbox"},
		{name: "out of time", outcome: task.Outcome{Status: task.Failed, TimedOut: true, Reason: "60 minutes"}, model: true, status: contextstore.Timeout, lost: "committed_seq, active_ms, outbox"},
		{name: "of an earlier version", outcome: task.Outcome{Status: task.Completed}, old: true, index: true, status: "completed", lost: "unverified, committed_seq, active_ms, outbox"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			s := open(t, contextstore.Options{Now: func() time.Time { return now }})
			run := begin(t, s)
			_, err := run.Append(contextstore.Message{Role: "user", Content: "x"})
			must(t, err)
			must(t, run.AppendCheck(contextstore.CheckRun{Command: "true", Commit: "c0ffee"}))
			must(t, run.Committed(1, "c0ffee"))
			now = now.Add(90 * time.Second)
			must(t, run.Transition(t.Context(), c.outcome, contextstore.Effect{Key: "k", Kind: "push"}))
			if c.model {
				must(t, s.AppendFinal(t.Context(), run.UUID(), contextstore.Summary{Summary: "well done"}))
			}
			dir := filepath.Join(s.BaseDir, contextstore.DirCompleted, run.UUID())
			must(t, s.Close())
			if c.old {
				edit(t, filepath.Join(dir, contextstore.Summaries), `"outcome":"completed",`, "")
			}
			want, err := contextstore.ReadState(dir)
			must(t, err)
			must(t, os.Remove(filepath.Join(dir, contextstore.StateFile)))
			if !c.index {
				must(t, os.Remove(filepath.Join(s.BaseDir, index.File)))
			}
			r := check(t, s.BaseDir, true)
			got, err := contextstore.ReadState(dir)
			must(t, err)
			if got.Status != c.status || got.Commit != "c0ffee" || got.Unverified != (c.outcome.Unverified || c.old) || got.ActiveMS < want.ActiveMS || want.ActiveMS < 90_000 {
				t.Errorf("%+v", got)
			}
			if f := r.Findings[0]; f.Kind != "no_state" || !strings.Contains(f.Does(i18n.English), " tells "+c.lost+":") {
				t.Errorf("%+v %s", f, f.Does(i18n.English))
			}
		})
	}
}

func TestManyFindingsOfOneFile(t *testing.T) {
	t.Parallel()
	base, dir := healthy(t, task.Completed)
	var b strings.Builder
	for n := range 500 {
		fmt.Fprintf(&b, `{"seq":%d,"role":"user","content":"x","timestamp":"2024-01-15T10:30:01Z","tokens":0,"sum":0}`+"\n", 10+2*n)
	}
	appendTo(t, filepath.Join(dir, contextstore.Messages), b.String())
	r := check(t, base, false)
	if n := len(r.Findings); n != maxPerFile+1 || r.Findings[n-1].Kind != "more" || r.Findings[n-1].Args[0] != int64(500-maxPerFile) {
		t.Errorf("%d findings: %+v", n, r.Findings)
	}
}

// Whatever bytes of a context are damaged: no panic, no good line is removed,
// and a second repair finds nothing more to mend.
func FuzzCheck(f *testing.F) {
	files := []string{contextstore.Messages, contextstore.Tools, contextstore.Window, contextstore.Checks, contextstore.Summaries, contextstore.StateFile, contextstore.MetadataFile}
	for n := range files {
		for kind := range 5 {
			f.Add(uint8(n), uint8(kind), uint16(97*kind+13*n), uint8(31), n%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, file, kind uint8, at uint16, n uint8, paused bool) {
		status := task.Completed
		if paused {
			status = task.Paused
		}
		base, dir := healthy(t, status)
		p := filepath.Join(dir, files[int(file)%len(files)])
		b, err := os.ReadFile(p)
		if errors.Is(err, os.ErrNotExist) {
			t.Skip("no such file in this context")
		}
		must(t, err)
		i := int(at) % (len(b) + 1)
		end := min(i+int(n), len(b))
		switch kind % 5 {
		case 0:
			if i < len(b) {
				b[i] ^= n | 1
			}
		case 1:
			b = b[:i]
		case 2:
			b = slices.Insert(b, i, []byte(strings.Repeat("}\n{\"", int(n)/4+1))...)
		case 3:
			b = slices.Delete(b, i, end)
		case 4:
			clear(b[i:end])
		}
		must(t, os.WriteFile(p, b, 0o600))
		lines := goodLines(t, base)
		check(t, base, false)
		first := check(t, base, true)
		now := goodLines(t, base)
		for l := range lines {
			if !now[l] {
				t.Errorf("a good line is gone: %s", l)
			}
		}
		if r := check(t, base, true); r.Mended != 0 || r.Left != first.Left {
			t.Errorf("first %+v\nthen %+v", first.Findings, r.Findings)
		}
	})
}

// Beside live runs a check raises no alarm and takes nothing from anybody.
func TestCheckBesideLiveRuns(t *testing.T) {
	t.Parallel()
	s := open(t, contextstore.Options{})
	stop := make(chan struct{})
	var checks sync.WaitGroup
	for _, repair := range []bool{false, true} {
		checks.Go(func() {
			for n := 0; ; n++ {
				r, err := Check(t.Context(), s.BaseDir, Options{Repair: repair})
				if err != nil || r.Found > 0 {
					t.Errorf("%v %+v", err, r.Findings)
					return
				}
				select {
				case <-stop:
					if n > 0 {
						return
					}
				default:
				}
			}
		})
	}
	outcomes := []task.Status{task.Completed, task.Paused, task.Failed}
	for n := range 12 {
		k := key
		k.ID = fmt.Sprint(n)
		id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: k})
		must(t, err)
		c, _, err := s.Claim(t.Context(), id)
		for errors.Is(err, contextstore.ErrBusy) { // the check looks whether it can be mended
			c, _, err = s.Claim(t.Context(), id)
		}
		must(t, err)
		for range 5 {
			_, err := c.Append(contextstore.Message{Role: "assistant", ToolCalls: []contextstore.ToolCall{{ID: "a"}}}, contextstore.Message{Role: "tool", ToolCallID: "a", Content: "result"})
			must(t, err)
			must(t, c.AppendTools(contextstore.ToolRun{Tool: "x"}))
			must(t, c.Activity(contextstore.Processing, "llm_call"))
		}
		must(t, c.Transition(t.Context(), task.Outcome{Status: outcomes[n%3], Summary: "s"}))
	}
	close(stop)
	checks.Wait()
}

func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	base, _ := healthy(t, task.Completed)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Check(ctx, base, Options{Repair: true, Progress: func(Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) || r.Found != 0 || r.Contexts != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := Check(t.Context(), filepath.Join(base, "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestCheckLooksAtHouseDB(t *testing.T) {
	t.Parallel()
	for _, repair := range []bool{false, true} {
		base, _ := healthy(t, task.Completed)
		must(t, os.WriteFile(filepath.Join(base, contextstore.HouseDBFile), []byte(strings.Repeat("no database", 1000)), 0o600))
		r, err := Check(t.Context(), base, Options{Repair: repair})
		if err != nil || r.Left != 1 || r.Findings[0].Kind != "house_unreadable" {
			t.Errorf("repair %v: %+v %v", repair, r, err)
		}
	}
}

// A search.db that is damaged anywhere is named, and removed by a repair: the next search makes it anew.
func TestCheckLooksAtSearchDB(t *testing.T) {
	t.Parallel()
	for _, from := range []int64{0, 4096} {
		base, _ := healthy(t, task.Completed)
		path := filepath.Join(base, search.File)
		find := func() int {
			db, err := search.Open(t.Context(), search.Options{BaseDir: base})
			must(t, err)
			must(t, db.CatchUp(t.Context(), nil))
			hits, _, err := db.Find(t.Context(), contextstore.Viewer{Admin: true}, search.Parse([]string{"please"}), search.Filter{Limit: 1})
			must(t, errors.Join(err, db.Close()))
			return len(hits)
		}
		found := find()
		if got := kinds(check(t, base, false)); len(got) > 0 {
			t.Errorf("of a whole one: %q", got)
		}
		raw, err := os.ReadFile(path)
		must(t, err)
		for i := from; i < int64(len(raw)); i++ {
			raw[i] ^= 0xa5
		}
		must(t, os.WriteFile(path, raw, 0o600))
		for _, repair := range []bool{false, true} {
			r, err := Check(t.Context(), base, Options{Repair: repair})
			if err != nil || r.Found != 1 || r.Findings[0].Kind != "search_unreadable" || r.Findings[0].Mended != repair {
				t.Errorf("damaged from %d on, repair %v: %+v %v", from, repair, r, err)
			}
		}
		if got := kinds(check(t, base, false)); len(got) > 0 || search.Exists(base) {
			t.Errorf("after the repair: %q", got)
		}
		if again := find(); again != found || found == 0 {
			t.Errorf("%d are found, not %d", again, found)
		}
	}
}
