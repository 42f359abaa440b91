package migrate

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/ancestortest"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/disk"
	"toritsugi/internal/memory"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// read is a file of a context, whoever keeps it.
func read(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := disk.Read(filepath.Join(parts...), disk.MaxWhole)
	must(t, err)
	return string(b)
}

func masked(s string) string { return strings.ReplaceAll(s, ancestortest.Secret, "[GITHUB_TOKEN]") }

// A tree of each older edition comes to each backend: nothing of it is lost, what is missing is made,
// nothing in it is left to go on, and what a completed run left can be inherited.
func TestAncestorsComeToEachBackend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		make  func(string) error
		runs  []string // uuid's end, status, fine status, calls, end, messages, error
		notes []Note
		last  string // summary
	}{
		{"store-v2", ancestortest.V2, []string{
			"0 failed failed 45 2024-01-15T10:35:22.456789Z 90 It had not ended when it was migrated from store-v2 (process 12345 on worker-node-1 had it then)",
			"1 completed completed 45 2024-01-15T10:45:23.000000Z 90 ",
			"2 failed timeout 45 2024-01-15T10:45:24.000000Z 90 ",
			"3 completed completed 45 2024-01-15T10:35:22.456789Z 90 ",
		}, []Note{{ancestortest.Running, Ended}}, "Implemented new feature for..."},
		{"store-v3", ancestortest.V3, []string{
			"0 failed failed 45 2024-01-15T10:31:30.000090Z 90 It had not ended when it was migrated from store-v3 (process 12345 on worker-node-1 had it then)",
			"1 completed completed 45 2024-01-15T10:45:23.000000Z 90 ",
			"2 failed failed 45 2024-01-15T10:45:24.123000Z 90 Task processing failed",
			"3 completed completed 45 2024-01-15T10:45:25.123456Z 90 ",
			"4 failed failed 0 2024-01-15T10:31:30.000090Z 90 Its row in tasks.db was missing when it was migrated from store-v3",
			"5 completed completed 45 2024-01-15T10:45:26.000000Z 0 ",
		}, []Note{{ancestortest.NoRow, NoRow}, {ancestortest.RowAlone, NoDirectory}, {ancestortest.Running, Ended}}, "Fixed auth bug..."},
	} {
		for backend, makeBase := range map[string]func(*testing.T) string{"jsonl": plain, "sqlite": sqlite, "postgres": postgres} {
			t.Run(c.name+" to "+backend, func(t *testing.T) {
				from := t.TempDir()
				must(t, c.make(from))
				before := tree(t, from)
				to := makeBase(t)
				o := Options{From: from, To: to, FS: &disk.FS{}, Redact: masked, DryRun: true}
				dry, err := Run(t.Context(), o)
				must(t, err)
				o.DryRun = false
				r, err := Run(t.Context(), o)
				must(t, err)
				slices.SortFunc(r.Notes, func(a, b Note) int { return strings.Compare(a.Kind, b.Kind) })
				want := slices.Clone(c.notes)
				slices.SortFunc(want, func(a, b Note) int { return strings.Compare(a.Kind, b.Kind) })
				if int(r.Copied) != len(c.runs) || dry.Copied != r.Copied || dry.Bytes != r.Bytes || !slices.Equal(r.Notes, want) {
					t.Errorf("%+v, %+v", dry, r)
				}
				if again, err := Run(t.Context(), o); err != nil || again.Copied != 0 || int(again.There) != len(c.runs) {
					t.Errorf("again: %+v, %v", again, err)
				}
				if !maps.Equal(before, tree(t, from)) {
					t.Error("the tree of then changed")
				}
				_, err = fsck.Reindex(t.Context(), to, nil)
				must(t, err)
				sameRuns(t, to, c.runs)
				for uuid, dir := range map[string]string{ancestortest.Running: "running", ancestortest.Completed: "completed"} {
					keeps(t, filepath.Join(from, dir, uuid), filepath.Join(to, "completed", uuid))
				}
				if checked, err := fsck.Check(t.Context(), to, fsck.Options{}); err != nil || checked.Found != 0 {
					t.Errorf("%+v %v", checked.Findings, err)
				}
				inherits(t, to, c.last)
			})
		}
	}
}

// tree is all files of a tree, with what is in them.
func tree(t *testing.T, base string) map[string]string {
	t.Helper()
	all, err := ancestortest.Files(base)
	must(t, err)
	return all
}

// sameRuns compares the runs that are listed with those that are wanted; of an error the beginning.
func sameRuns(t *testing.T, base string, want []string) {
	t.Helper()
	l, err := contextstore.List(t.Context(), base, contextstore.Viewer{Admin: true}, contextstore.Filter{Limit: 1000})
	must(t, err)
	var got []string
	for _, v := range l.Views {
		st, err := contextstore.ReadState(v.Dir)
		must(t, err)
		s := fmt.Sprintf("%s %s %s %d %s %d ", v.Metadata.UUID[35:], v.Status(), st.Status, v.State.LLMCallCount, v.State.CompletedAt, st.MessageCount)
		if st.Error != nil {
			s += *st.Error
		}
		got = append(got, s)
		if l.Scanned || v.Edition != 0 || st.TaskStatus != v.Status() || st.Generation != 1 {
			t.Errorf("%+v", v)
		}
	}
	slices.Sort(got)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// keeps compares a run with what became of it: its lines are the same but for what is masked, and its
// further fields are there.
func keeps(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{contextstore.Messages, contextstore.Summaries, contextstore.Tools} {
		old, now := masked(read(t, from, name)), read(t, to, name)
		rest, ok := strings.CutPrefix(now, old)
		if !ok || name != contextstore.Summaries && rest != "" || strings.Contains(now, ancestortest.Secret) {
			t.Errorf("%s of %s is not what it was: %q", name, to, rest)
		}
	}
	for _, want := range []string{`"node":"MDU6SXNzdWUx"`, `"site":{"zone":9007199254740993}`, `"format":1`, `"created_at":"2024-01-15T10:30:00.123456Z"`} {
		if got := read(t, to, contextstore.MetadataFile); !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	state := map[string]any{}
	must(t, json.Unmarshal([]byte(read(t, to, contextstore.StateFile)), &state))
	for _, key := range []string{"status", "started_at", "updated_at", "completed_at", "llm_call_count", "tool_call_count", "total_tokens_used", "current_context_tokens", "compression_count",
		"last_activity", "error", "task_status"} {
		if _, ok := state[key]; !ok {
			t.Errorf("%s is not in state.json", key)
		}
	}
	if _, v2 := os.Stat(filepath.Join(from, contextstore.StateFile)); v2 == nil && state["shard"] != "a" {
		t.Errorf("%v", state)
	}
	if disk.Exists(filepath.Join(to, contextstore.LockFile)) {
		t.Error("the lock of then came along")
	}
}

// inherits shows that a run of the same task takes over what a completed one left, as text that nobody
// vouches for.
func inherits(t *testing.T, base, want string) {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, Redact: masked})
	must(t, err)
	defer func() { _ = s.Close() }()
	h := &memory.InheritanceReader{Inheritance: memory.Inheritance{Enabled: true, Expiry: 90 * 24 * time.Hour}, Past: s, Clean: redact.New(nil, nil).Strict().String,
		Now: func() time.Time { return time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC) }, Log: slog.New(slog.DiscardHandler)}
	in, err := h.Find(t.Context(), task.Key{Source: "github", Owner: "notfolder", Repo: "coding_agent", Type: "issue", ID: "21"})
	if err != nil || in == nil || in.UUID != ancestortest.Completed || !strings.Contains(in.Content, want) || !in.Tainted() {
		t.Errorf("%+v, %v", in, err)
	}
}

// Stopped wherever, a migration of an older edition goes on when it is called again.
func TestAncestorsCutShort(t *testing.T) {
	t.Parallel()
	from, to, whole := t.TempDir(), plain(t), plain(t)
	must(t, ancestortest.V3(from))
	o := Options{From: from, To: whole, FS: &disk.FS{}, Redact: masked}
	_, err := Run(t.Context(), o)
	must(t, err)
	for n := 1; ; n += 5 {
		stop, calls := errors.New("stopped"), 0
		o.To, o.FS = to, &disk.FS{Before: func(disk.Op) error {
			if calls++; calls >= n {
				return stop
			}
			return nil
		}}
		if _, err := Run(t.Context(), o); err == nil {
			break
		} else if !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
	if got, want := contents(t, to), contents(t, whole); !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// An owner whose heart beat within the minute is left alone, what is torn stays torn, and a row whose
// uuid is a path leads nowhere.
func TestAncestorsThatAreNotAsTheyShould(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), plain(t)
	must(t, ancestortest.V2(from))
	lock := filepath.Join(from, "running", ancestortest.Running, ".lock")
	must(t, os.WriteFile(lock, []byte(`{"process_id":1,"hostname":"n","heartbeat_at":"`+time.Now().UTC().Format(time.RFC3339Nano)+`"}`), 0o600))
	o := Options{From: from, To: to, FS: &disk.FS{}, Redact: masked}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), ancestortest.Running) {
		t.Errorf("an owner that lives: %v", err)
	}
	must(t, os.Remove(lock))
	dir := filepath.Join(from, "completed", ancestortest.Completed)
	for name, end := range map[string]string{contextstore.Summaries: `{"summary_id":3,"sum`, contextstore.Tools: "\xff\xfe\n" + `{"seq":3,"tool_name":"x"}`} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(read(t, dir, name)+end), 0o600))
	}
	_, err := Run(t.Context(), o)
	must(t, err)
	now := filepath.Join(to, "completed", ancestortest.Completed)
	if got := read(t, now, contextstore.Summaries); got != read(t, dir, contextstore.Summaries) {
		t.Errorf("%q", got)
	}
	if got := read(t, now, contextstore.Tools); got != read(t, dir, contextstore.Tools)+"\n" {
		t.Errorf("%q", got)
	}
	third := t.TempDir()
	must(t, ancestortest.V3(third))
	db, err := sql.Open("sqlite", filepath.Join(third, "tasks.db"))
	must(t, err)
	_, err = db.ExecContext(t.Context(), `UPDATE tasks SET uuid='../../x' WHERE uuid=?`, ancestortest.RowAlone)
	must(t, errors.Join(err, db.Close()))
	r, err := Run(t.Context(), Options{From: third, To: plain(t), FS: &disk.FS{}, Redact: masked})
	if err != nil || r.Copied != 5 || !slices.Contains(r.Notes, Note{"../../x", NoUUID}) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Run(t.Context(), Options{From: filled(t, 1), To: from, FS: &disk.FS{}}); err == nil || !strings.Contains(err.Error(), "store-v2") {
		t.Errorf("into an ancestor's tree: %v", err)
	}
}
