package fsck

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/ancestortest"
)

// The shape of an older edition is no damage, what is lost or torn is; a repair changes nothing.
func TestAncestors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		make func(string) error
		want []string
	}{
		{ancestortest.V2, []string{"edition", "open_files"}},
		{ancestortest.V3, []string{"edition", "no_row_v3", "open_files", "row_alone"}},
	} {
		base := t.TempDir()
		must(t, c.make(base))
		names := func() map[string]int64 {
			all := map[string]int64{}
			must(t, filepath.WalkDir(base, func(path string, _ os.DirEntry, err error) error {
				st, serr := os.Stat(path)
				must(t, serr)
				all[path] = st.ModTime().UnixNano()
				return err
			}))
			return all
		}
		before := names()
		for _, repair := range []bool{false, true} {
			r := check(t, base, repair)
			got := kinds(r)
			slices.Sort(got)
			if !slices.Equal(got, c.want) || r.Found != int64(len(c.want)-2) || r.Mended != 0 || r.Contexts < 4 {
				t.Errorf("%q, want %q: %+v", got, c.want, r)
			}
		}
		if !maps.Equal(before, names()) {
			t.Errorf("a look changed the tree")
		}
		path := filepath.Join(base, contextstore.DirCompleted, ancestortest.Failed, contextstore.Messages)
		b, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, []byte(strings.Replace(string(b), `{"seq":7,`, `{"seq":70,`, 1)+`{"seq":91,"role`), 0o600))
		r := check(t, base, true)
		if got := kinds(r); !slices.Contains(got, "gap") || !slices.Contains(got, "torn") || r.Mended != 0 || r.Left < 2 {
			t.Errorf("damage: %q", got)
		}
		if _, err := Reindex(t.Context(), base, nil); err == nil || !strings.Contains(err.Error(), "tori migrate") {
			t.Errorf("reindex: %v", err)
		}
	}
}

// A tasks.db of store-v3 that cannot be read, and a state.json of store-v2 that is missing, are damage.
func TestAncestorsWithoutTheirAuthority(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	must(t, ancestortest.V3(base))
	must(t, os.WriteFile(filepath.Join(base, "tasks.db"), []byte(strings.Repeat("no database", 1000)), 0o600))
	if got := kinds(check(t, base, true)); !slices.Contains(got, "rows_unreadable") || !slices.Contains(got, "no_row_v3") {
		t.Errorf("%q", got)
	}
	base = t.TempDir()
	must(t, ancestortest.V2(base))
	must(t, os.Remove(filepath.Join(base, contextstore.DirCompleted, ancestortest.Completed, contextstore.StateFile)))
	if got := kinds(check(t, base, true)); !slices.Contains(got, "no_state") {
		t.Errorf("%q", got)
	}
}
