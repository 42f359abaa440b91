package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// opened is the store of a base directory.
func openStore(t *testing.T, base string, fs *disk.FS) *contextstore.Store {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, FS: fs, OnIndexError: func(error) {}, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[SECRET]") }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recorded makes a run that ended, with a history of planning and something owed, and returns its
// directory and its record.
func recorded(t *testing.T) (dir, uuid string, record []byte) {
	t.Helper()
	s := openStore(t, t.TempDir(), nil)
	uuid, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "issue", ID: "7"}, User: "ken", Title: "Mend <it> & go"})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), uuid)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []contextstore.Message{{Role: "system", Content: "be good"}, {Role: "user", Content: "直して <x> & y"},
		{Role: "assistant", Content: "on it", ToolCalls: []contextstore.ToolCall{{ID: redact.Opaque("call-1"), Name: "shell", Arguments: "{\"a\": 1.50}"}}}, {Role: "tool", ToolName: "shell", ToolCallID: "call-1", Content: "done"}} {
		if _, err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	plans := filepath.Join(c.Dir(), "planning")
	err = errors.Join(os.Mkdir(plans, 0o700), os.WriteFile(filepath.Join(plans, uuid+".jsonl"), []byte("{\"type\":\"plan\"}\n"), 0o600),
		c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "summed up"}, contextstore.Effect{Key: "k", Kind: "push", Data: json.RawMessage("{}")}), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Export(&b, s.BaseDir, uuid, ExportOptions{Format: FormatJSON, History: filepath.Join("planning", uuid+".jsonl")}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(s.BaseDir, "completed", uuid), uuid, b.Bytes()
}

func importOf(t *testing.T, base string, fs *disk.FS, record []byte) error {
	t.Helper()
	s := openStore(t, base, fs)
	_, err := s.Import(t.Context(), bytes.NewReader(record), func(base string) error { return fsck.Imported(context.Background(), base) })
	return errors.Join(err, s.Close())
}

// files are the files of a directory by name.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.Walk(dir, func(path string, st os.FileInfo, err error) error {
		if err != nil || st.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		if all[name] = string(b); st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %s", name, st.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A run comes back byte for byte, but owes nothing, and is found as others are; over one that is
// there nothing is written.
func TestImport(t *testing.T) {
	t.Parallel()
	dir, uuid, record := recorded(t)
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, record, "", "  "); err != nil {
		t.Fatal(err)
	}
	for _, form := range [][]byte{record, pretty.Bytes()} {
		base := t.TempDir()
		if err := importOf(t, base, nil, form); err != nil {
			t.Fatal(err)
		}
		got, want := filesOf(t, filepath.Join(base, "completed", uuid)), filesOf(t, dir)
		for name, text := range want {
			if name == "state.json" {
				text = text[:strings.Index(text, `"outbox":`)] + `"outbox":null` + text[strings.Index(text, `,"files":`):]
			}
			if got[name] != text && !strings.HasPrefix(name, ".") {
				t.Errorf("%s:\n%s\nwant\n%s", name, got[name], text)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			t.Errorf("beside: %v", got)
		}
		r, err := fsck.Check(t.Context(), base, fsck.Options{})
		if err != nil || r.Found > 0 {
			t.Errorf("%+v, %v", r.Findings, err)
		}
		l, err := contextstore.List(t.Context(), base, contextstore.Viewer{Admin: true}, contextstore.Filter{User: "ken"})
		if err != nil || l.Total != 1 || l.Scanned || l.Views[0].Status() != task.Completed {
			t.Errorf("%+v, %v", l, err)
		}
		s := openStore(t, base, nil)
		if owes, err := s.WithUndelivered(t.Context()); err != nil || len(owes) > 0 {
			t.Errorf("%v, %v", owes, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := importOf(t, base, nil, bytes.ReplaceAll(record, []byte("on it"), []byte("off it"))); err == nil || !strings.Contains(err.Error(), "is here already") || strings.Contains(filesOf(t, filepath.Join(base, "completed", uuid))["messages.jsonl"], "off it") {
			t.Error(err)
		}
	}
}

// What is none of a record, or not whole, is refused, saying what it is; nothing of it stays. What
// this house knows as a secret is masked.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	dir, uuid, record := recorded(t)
	base := t.TempDir()
	replaced := func(old, by string) string {
		if !bytes.Contains(record, []byte(old)) {
			t.Fatal(old)
		}
		return strings.Replace(string(record), old, by, 1)
	}
	exported := func(format string) string {
		var b bytes.Buffer
		if err := Export(&b, filepath.Dir(filepath.Dir(dir)), uuid, ExportOptions{Format: format, Redact: func(s string) string { return s }}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, c := range []struct{ text, want string }{
		{"", "its format is ?"}, {"[]", "its format is ?"}, {"null", "its format is ?"}, {"{}", "this is no record"},
		{exported(FormatMarkdown), "its format is md"}, {exported(FormatHTML), "its format is html"}, {exported(FormatATIF), "its format is atif"}, {exported(FormatSWEBench), "its format is swebench"},
		{string(record[:len(record)/2]), "damaged at byte"}, {string(record) + "{", "something follows its end"},
		{replaced(`"task_status":"completed"`, `"task_status":"paused"`), `is "paused" in its record`},
		{replaced(`"format":1`, `"format":2`), "format 2"},
		{replaced(`"uuid":"`+uuid, `"uuid":"../../x`), "this is no record"},
		{strings.ReplaceAll(string(record), uuid, "../../evil"), "this is no record"},
		{strings.ReplaceAll(string(record), uuid, strings.ToUpper(uuid)), "this is no record"},
		{replaced(`"messages.jsonl":[`, `"../messages.jsonl":[`), `has a file "../messages.jsonl"`},
		{replaced(`"messages.jsonl":[`, `"":[`), `has a file ""`},
		{replaced(`"messages.jsonl":[`, `"state.json":[`), `has a file "state.json"`},
		{replaced(`"messages.jsonl":[`, `"planning.jsonl":[`), `has a file "planning.jsonl"`},
		{replaced(`"seq":3,`, `"seq":9,`), "messages.jsonl line 3: "},
		{replaced(`{"seq":3,`, `[`), "damaged at byte"},
		{replaced(`"messages.jsonl":[`, `"messages.jsonl":[7,`), "not a JSON object"},
	} {
		if err := importOf(t, base, nil, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %s", c.text, err, c.want)
		}
		left, err := filepath.Glob(filepath.Join(base, "*", "*"))
		half, herr := filepath.Glob(filepath.Join(base, ".import-*"))
		if half = append(half, left...); errors.Join(err, herr) != nil || len(half) > 1 || len(half) == 1 && filepath.Base(half[0]) != ".import-.lock" {
			t.Fatalf("%.60q leaves %v", c.text, half)
		}
	}
	if err := importOf(t, base, nil, []byte(replaced("Mend <it>", "use hunter2"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range filesOf(t, filepath.Join(base, "completed", uuid)) {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Whichever call fails, and whatever a power cut leaves, the run is there whole, with its row, or not
// at all; the next import brings it.
func TestImportCutShort(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute: opens each state after a power cut")
	}
	t.Parallel()
	_, uuid, record := recorded(t)
	whole := func(base, how string) {
		t.Helper()
		s := openStore(t, base, nil)
		if err := s.Close(); err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		_, serr := os.Stat(filepath.Join(base, "completed", uuid))
		r, err := fsck.Check(t.Context(), base, fsck.Options{})
		if err != nil || r.Found > 0 || r.Contexts != map[bool]int64{true: 1}[serr == nil] {
			t.Fatalf("%s: %d, %+v, %v", how, r.Contexts, r.Findings, err)
		}
		if err := importOf(t, base, nil, record); (err == nil) != (serr != nil) {
			t.Fatalf("%s, then: %v", how, err)
		}
		if r, err := fsck.Check(t.Context(), base, fsck.Options{}); err != nil || r.Found > 0 || r.Contexts != 1 {
			t.Fatalf("%s, then: %+v, %v", how, r.Findings, err)
		}
		if half, err := filepath.Glob(filepath.Join(base, ".import-*-*")); err != nil || len(half) > 0 {
			t.Fatalf("%s: %v, %v", how, half, err)
		}
	}
	for at := 1; ; at++ {
		base := t.TempDir()
		f, armed := &disktest.Failer{At: at, Err: io.ErrShortWrite}, false
		s := openStore(t, base, &disk.FS{Before: func(op disk.Op) error {
			if !armed {
				return nil
			}
			return f.Before(op)
		}})
		armed = true
		_, err := s.Import(t.Context(), bytes.NewReader(record), func(base string) error { return fsck.Imported(t.Context(), base) })
		armed = false
		if cerr := s.Close(); cerr != nil {
			t.Fatal(cerr)
		}
		if f.Hit().Kind == "" {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		whole(base, string(f.Hit().Kind)+" "+f.Hit().Path)
	}
	base := t.TempDir()
	rec, err := disktest.NewRecorder(base)
	if err != nil {
		t.Fatal(err)
	}
	if err := importOf(t, base, rec.Watch(&disk.FS{}), record); err != nil {
		t.Fatal(err)
	}
	n, err := rec.PowerCuts(0, func(state disktest.State) {
		cut := t.TempDir()
		if err := state.Materialize(cut); err != nil {
			t.Fatal(err)
		}
		whole(cut, state.How)
	})
	if err != nil || n.Checked < 10 {
		t.Errorf("%+v, %v", n, err)
	}
}
