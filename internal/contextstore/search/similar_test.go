package search

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// labelled is a request of testdata/similar.txt.
type labelled struct{ group, title, body string }

// similarSet are the requests that are looked up, and those of the past.
func similarSet(t testing.TB) (asked, past []labelled) {
	t.Helper()
	raw, err := os.ReadFile("testdata/similar.txt")
	must(t, err)
	group := ""
	for line := range strings.Lines(string(raw)) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		title, body, _ := strings.Cut(text, " | ")
		switch kind {
		case "=":
			group = text
		case "?":
			asked = append(asked, labelled{group, title, body})
		case "-":
			past = append(past, labelled{group, title, body})
		}
	}
	return asked, past
}

// TestSimilarFinds measures what full text finds of a labelled set: of requests that have one like
// them how many get one first (recall@1) or among three, and of those that have none how many get one
// nonetheless. Decision 081 has the figures.
func TestSimilarFinds(t *testing.T) {
	t.Parallel()
	asked, past := similarSet(t)
	h := newHouse(t, nil)
	groups := map[string]string{}
	for _, p := range past {
		groups[h.ended(aRun{title: p.title, request: p.body})] = p.group
	}
	h.ended(aRun{repo: "gadgets", title: asked[0].title, request: asked[0].body}) // of another repository
	d := h.opened()
	k := task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "issue", ID: "new"}
	var first, three, all, wrong, alone, shown, right int
	for _, a := range asked {
		found, err := d.Similar(t.Context(), admin, Like{Key: k, Title: a.title, Body: a.body}, 3)
		must(t, err)
		told := a.title
		hit := -1
		for i, m := range found {
			told += fmt.Sprintf(" | %.2f %s", m.Score, m.View.Metadata.Title)
			if m.View.Metadata.TaskKey.Repo != "widgets" {
				t.Error("a run of another repository:", told)
			}
			shown++
			if groups[m.View.Metadata.UUID] == a.group && a.group != "alone" {
				right++
				if hit < 0 {
					hit = i
				}
			}
		}
		t.Log(told)
		if a.group == "alone" {
			alone++
			if len(found) > 0 {
				wrong++
			}
			continue
		}
		all++
		if hit == 0 {
			first++
		}
		if hit >= 0 {
			three++
		}
	}
	t.Logf("recall@1 %d/%d, recall@3 %d/%d, precision %d/%d, found for those that have none %d/%d", first, all, three, all, right, shown, wrong, alone)
	if all < 15 || alone < 6 {
		t.Fatal("the set is not read")
	}
	if first < 14 || right < 17 || shown > right+1 || wrong > 0 {
		t.Error("it finds less than it did: see decision 081")
	}
}

// A run that is looked up does not find itself, one without messages is found by its summary, and who
// may not see a run is not shown it.
func TestSimilarOf(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	a := h.ended(aRun{user: "hanako", title: "Login session expires", request: "The session cookie ends too early."})
	b := h.ended(aRun{user: "taro", title: "Session cookie", request: "It expires too early after login.", summary: "The lifetime of the session cookie is extended."})
	d := h.opened()
	dir, err := contextstore.FindDir(h.base, a)
	must(t, err)
	v, err := contextstore.ReadView(dir)
	must(t, err)
	like, err := LikeOf(v)
	must(t, err)
	if like.Title != v.Metadata.Title || like.Body != "The session cookie ends too early." {
		t.Errorf("%+v", like)
	}
	is := func(who contextstore.Viewer, want string) {
		t.Helper()
		found, err := d.Similar(t.Context(), who, like, 3)
		must(t, err)
		got := ""
		for _, m := range found {
			got += m.View.Metadata.UUID
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	is(admin, b)
	is(contextstore.Viewer{User: "taro"}, b)
	is(contextstore.Viewer{User: "hanako"}, "")
	must(t, h.Retain(t.Context(), contextstore.Retention{Slim: 1}, false, func(contextstore.Retained) {}))
	must(t, d.Update(t.Context(), b))
	is(admin, b)
	if found, err := d.Similar(t.Context(), admin, Like{Key: like.Key, Title: "、。 - !"}, 3); err != nil || found != nil {
		t.Error(found, err)
	}
}
