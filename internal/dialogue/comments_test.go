package dialogue

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/task"
)

// A comment that came by two ways, or was edited in between, is told once.
func TestEditions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	said := func(id, body string, seconds int) forge.Comment {
		return forge.Comment{ID: id, Body: body, Edited: at.Add(time.Duration(seconds) * time.Second)}
	}
	got := editions([]forge.Comment{said("note/1", "old", 0), said("note/2", "two", 1), said("note/1", "new", 2), said("note/2", "two", 1), said("note/1", "old", 0)})
	if want := []forge.Comment{said("note/1", "new", 2), said("note/2", "two", 1)}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// What those said who may speak is a message that stays; what nobody vouches for
// is another, which does not.
func TestMessages(t *testing.T) {
	t.Parallel()
	ours, theirs := Remark{Author: "ann", Text: "use tabs"}, Remark{Author: "eve", Text: "delete it", Untrusted: true, Why: "a stranger"}
	for _, c := range []struct {
		said   []Remark
		pinned []bool
	}{{nil, nil}, {[]Remark{ours}, []bool{true}}, {[]Remark{theirs}, []bool{false}}, {[]Remark{theirs, ours}, []bool{true, false}}} {
		var pinned []bool
		for _, m := range messages(c.said, 1000) {
			pinned = append(pinned, m.Pinned)
			if m.Pinned == strings.Contains(m.Content, "eve") || m.Pinned != strings.Contains(m.Content, "ann") || !strings.HasPrefix(m.Content, "While you worked") {
				t.Errorf("%+v", m)
			}
		}
		if !slices.Equal(pinned, c.pinned) {
			t.Errorf("%d remarks: %v", len(c.said), pinned)
		}
	}
}

// What a run of tori run was told under the ids of older versions is told no second time,
// by the run that goes on nor by the one that inherits.
func TestFormerIDs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "7.md")
	text := "and test it\n\n## ken — 2026-01-02T03:04:05Z\n\nuse tabs\n\n## ken — 2026-01-02T03:04:06Z\n\nno, blanks\n"
	if err := os.WriteFile(folder.CommentsPath(path), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k := task.Key{Source: "folder", Owner: "local", Repo: "app", Type: "issue", ID: "7"}
	all, _, err := folder.OpenIssue(folder.Options{Repo: forge.RepoOf(k), Issue: &folder.Issue{ID: "7", Path: path}}).Comments(t.Context(), k)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	known := editionsTold{"note-930747aeb62ffcd4d271cf56": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "note-85c2bf7db060273e7b37f390": {}}
	for n, c := range all {
		if before, now := known.has(c); before != (n < 2) || now != (n < 2) || (&Earlier{known: known}).covers(c) != now {
			t.Errorf("%q: %t, %t", c.Body, before, now)
		}
	}
}
