package contextstore

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore/ancestortest"
	"toritsugi/internal/task"
)

// files are those below a directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, err := ancestortest.Files(dir)
	must(t, err)
	return all
}

// A tree of each older edition is listed, filtered, summed up and found where it lies, by its own
// authority, and stays as it is, file by file. Nothing works in it.
func TestAncestorsAreReadInPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		edition int
		make    func(string) error
		want    []string // uuid's end, status, calls, when it ended, error
	}{
		{StoreV2, ancestortest.V2, []string{
			"0 running 45 ", "1 completed 45 2024-01-15T10:45:23.000000Z", "2 failed 45 2024-01-15T10:45:24.000000Z", "3 completed 45 ",
		}},
		{StoreV3, ancestortest.V3, []string{
			"0 running 45 ", "1 completed 45 2024-01-15T10:45:23.000000Z", "2 failed 45 2024-01-15T10:45:24.123000Z Task processing failed",
			"3 completed 45 2024-01-15T10:45:25.123456Z", "4 failed 0 ",
		}},
	} {
		base := t.TempDir()
		must(t, c.make(base))
		before := files(t, base)
		if got := EditionOf(t.Context(), base); got != c.edition {
			t.Errorf("edition %d, want %d", got, c.edition)
		}
		l, err := List(t.Context(), base, Viewer{Admin: true}, Filter{})
		must(t, err)
		var got []string
		for _, v := range l.Views {
			s := fmt.Sprintf("%s %s %d %s", v.Metadata.UUID[35:], v.Status(), v.State.LLMCallCount, v.State.CompletedAt)
			if v.State.Error != nil {
				s += " " + *v.State.Error
			}
			got = append(got, s)
			if v.Edition != c.edition || v.Interrupted() || v.State.ProcessID != 12345 || v.State.Hostname != "worker-node-1" {
				t.Errorf("%+v", v)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("store-v%d: %q\nwant %q", c.edition, got, c.want)
		}
		l, err = List(t.Context(), base, Viewer{Admin: true}, Filter{Status: task.Completed, User: "notfolder"})
		if err != nil || l.Total != 2 {
			t.Errorf("store-v%d: %d completed, %v", c.edition, l.Total, err)
		}
		sums, _, err := Sum(t.Context(), base, Viewer{Admin: true}, StatsFilter{Status: task.Completed}, "")
		if err != nil || len(sums.Users) != 1 || sums.Users[0].Name != "notfolder" || sums.Users[0].Tasks != 2 || sums.Users[0].Tokens != 2*45678 {
			t.Errorf("store-v%d: %+v, %v", c.edition, sums, err)
		}
		v, err := Find(base, ancestortest.Running, Viewer{Admin: true})
		if err != nil || v.Status() != task.Running || v.Edition != c.edition || v.State.TotalTokensUsed != 45678 {
			t.Errorf("store-v%d: %+v, %v", c.edition, v, err)
		}
		if _, err := Open(t.Context(), Options{BaseDir: base, Redact: strings.ToUpper}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("store-v%d", c.edition)) {
			t.Errorf("somebody may work in it: %v", err)
		}
		if after := files(t, base); !maps.Equal(before, after) {
			t.Errorf("store-v%d: %d files were there, %d are", c.edition, len(before), len(after))
		}
	}
}

// One of ours that lost its databases, and an empty one, are no ancestor's.
func TestOursIsNoAncestors(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	_, err := s.Enqueue(t.Context(), Metadata{TaskKey: task.Key{Source: "folder", ID: "1"}})
	must(t, err)
	must(t, s.Close())
	for _, name := range []string{"", HouseDBFile, "tasks.db"} {
		if name != "" {
			must(t, os.Remove(filepath.Join(s.BaseDir, name)))
		}
		if e := EditionOf(t.Context(), s.BaseDir); e != 0 {
			t.Errorf("without %q: store-v%d", name, e)
		}
	}
	if e := EditionOf(t.Context(), t.TempDir()); e != 0 {
		t.Errorf("an empty one: store-v%d", e)
	}
}
