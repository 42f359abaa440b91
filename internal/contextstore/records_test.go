package contextstore

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
