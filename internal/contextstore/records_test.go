package contextstore

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

// A line behind one that a crash tore is read, and what a line says is redacted.
func TestRecords(t *testing.T) {
	t.Parallel()
	type line struct {
		ID string `json:"id"`
	}
	const file Records[line] = "x.jsonl"
	dir := t.TempDir()
	s, err := Open(t.Context(), Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return strings.ReplaceAll(s, "secret", "[REDACTED]") }})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	if there, err := file.Each(dir, func(line) { t.Error("a line of nothing") }); there || err != nil {
		t.Errorf("a missing file: %t, %v", there, err)
	}
	must(t, kernel.WriteFile(filepath.Join(dir, "x.jsonl"), []byte("{\"id\":\"a\"}\n{\"id\":\"to"), 0o600))
	for _, id := range []string{"b", "a secret"} {
		must(t, file.Append(s, dir, line{id}, true))
	}
	var ids []string
	if there, err := file.Each(dir, func(l line) { ids = append(ids, l.ID) }); !there || err != nil || !slices.Equal(ids, []string{"a", "b", "a [REDACTED]"}) {
		t.Errorf("%t, %q, %v", there, ids, err)
	}
}

// What somebody found in one directory is read in that where it lies now.
func TestRecordsOfWhatMoved(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	const file Records[string] = "x.jsonl"
	c := begin(t, s)
	before := c.Dir()
	must(t, file.Append(s, before, "a line", true))
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Paused, Reason: "for now"}))
	var all []string
	there, err := file.Each(before, func(line string) { all = append(all, line) })
	if disk.Exists(before) || !there || err != nil || !slices.Equal(all, []string{"a line"}) {
		t.Errorf("%t, %q, %v", there, all, err)
	}
	for _, dir := range []string{before, filepath.Join(s.BaseDir, DirRunning, "00000000-0000-4000-8000-000000000000")} {
		if _, err := ReadFile(dir, "y.json"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
