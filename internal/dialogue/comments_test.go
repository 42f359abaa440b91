package dialogue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
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
