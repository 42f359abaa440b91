package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
)

// cheap is a hub that tells at little cost whether anything changed.
type cheap struct {
	*hub
	changed time.Time   // when something changed last
	asked   []time.Time // changes since when were asked for
	err     error
}

func (c *cheap) Changed(_ context.Context, r forge.Repo, since time.Time) (bool, error) {
	c.visited, c.asked = append(c.visited, r.Name+"?"), append(c.asked, since)
	return !c.changed.Before(since), c.err
}

// newCheap has looked twice at a repository where nothing happens: the first look reads no
// comments.
func newCheap(t *testing.T, repos ...string) (*lobby, *cheap) {
	t.Helper()
	l := newLobby(t, repos...)
	c := &cheap{hub: l.hub}
	l.watch.Host.Tracker, l.Interval = c, 5*time.Minute
	l.looks(2)
	return l, c
}

// looks looks for work so many times, and returns what was asked: a name for the whole of a
// repository, with a question mark for whether anything changed there.
func (l *lobby) looks(n int) string {
	l.t.Helper()
	l.hub.visited = nil
	for range n {
		if err := l.look(true, l.Interval); err != nil {
			l.t.Error(err)
		}
	}
	return strings.Join(l.hub.visited, " ")
}

// A quiet repository is only asked whether anything changed, since before the last look at the
// whole of it, which comes at every fourth look; as long as nothing does the question is the same.
func TestAQuietRepository(t *testing.T) {
	t.Parallel()
	l, c := newCheap(t, "a")
	began := l.hub.now
	if got := l.looks(8); got != "a? a? a? a a? a? a? a" {
		t.Errorf("asked %q", got)
	}
	for _, since := range c.asked {
		if want := began.Add(-l.Interval - stillFor); !since.Equal(want) {
			t.Errorf("changes since %v, want %v", since, want)
		}
	}
	if len(l.watch.quiet) != 1 {
		t.Errorf("kept of it: %v", l.watch.quiet)
	}
	l.hub.repos = []forge.Repository{{Repo: forge.Repo{Owner: "o", Name: "b"}}}
	l.pass(relist)
	l.looks(3)
	if len(l.watch.quiet) != 1 {
		t.Errorf("kept of what is not watched any more: %v", l.watch.quiet)
	}
}

// What is asked for or said while nothing goes on is found at the next look, and what did not move
// the time of an item with the whole.
func TestAQuietRepositoryIsHeard(t *testing.T) {
	t.Parallel()
	l, c := newCheap(t, "a")
	l.looks(2)
	l.asks(1)
	c.changed = l.hub.now
	if got := l.looks(1); got != "a? a" || !l.begun(1) {
		t.Errorf("asked %q, begun: %v", got, l.begun(1))
	}

	l, _ = newCheap(t, "a")
	l.asks(1)
	if got := l.looks(3); got != "a? a? a?" || l.begun(1) {
		t.Errorf("asked %q", got)
	}
	if got := l.looks(1); got != "a" || !l.begun(1) {
		t.Errorf("asked %q, begun: %v", got, l.begun(1))
	}

	l, c = newCheap(t, "a")
	l.hub.items["7"] = forge.Item{Key: proposed(l.watch, forge.Repo{Owner: "o", Name: "a"}, "7"), Open: true, Pull: &forge.Pull{}}
	l.watch.Host.Labels.Review = "coding agent review"
	l.hub.says("note/1", "7", ken, "@tori review")
	c.changed = l.hub.now
	if got := l.looks(1); got != "a? a" {
		t.Errorf("asked %q", got)
	}
	if _, ok, err := l.Store.Latest(t.Context(), l.hub.items["7"].Key.Review()); !ok || err != nil {
		t.Errorf("no review is begun: %v", err)
	}
}

// A review that a run ended without hearing is followed up at the next look, also a cheap one.
func TestAQuietRepositoryAndAReview(t *testing.T) {
	t.Parallel()
	l, _ := newCheap(t, "a")
	r := forge.Repo{Owner: "o", Name: "a"}
	if err := l.setReviews(t.Context(), l.watch, r, []review{{Item: "7", ID: "review/1", By: ken, At: l.now}}); err != nil {
		t.Fatal(err)
	}
	got := l.looks(1)
	if left, err := l.reviews(t.Context(), l.watch, r); got != "a?" || err != nil || len(left) != 0 {
		t.Errorf("asked %q, left %v, %v", got, left, err)
	}
}

// What changed around the time of the look that saw nothing else is looked at once more: a list may have
// shown it late. Then it is quiet again.
func TestAChangeAtTheTimeOfALook(t *testing.T) {
	t.Parallel()
	l, c := newCheap(t, "a")
	c.changed = l.hub.now.Add(-l.Interval - time.Minute)
	if got := l.looks(4); got != "a? a a? a? a?" {
		t.Errorf("asked %q", got)
	}
}

// Where something is asked for that was not begun, where a comment waits, where a run has not ended
// and after an error the whole is looked at.
func TestARepositoryThatIsNotQuiet(t *testing.T) {
	t.Parallel()
	l, _ := newCheap(t, "a")
	l.hub.by = forge.Person{ID: 8, Login: "eve"} // may not ask
	l.asks(1)
	if got := l.looks(6); got != "a? a? a? a a a" {
		t.Errorf("refused: asked %q", got)
	}

	l, c := newCheap(t, "a")
	l.hub.broken["ken"] = down()
	l.hub.items["1"] = forge.Item{Key: key(1), Open: true}
	l.hub.says("note/1", "1", ken, "/stop")
	c.changed = l.hub.now
	l.pass(time.Second)
	if got := l.looks(2); got != "a? a a" {
		t.Errorf("a comment that cannot be heard yet: asked %q", got)
	}

	l, _ = newCheap(t, "a")
	run := l.paused(1)
	if got := l.looks(2); got != "a a" {
		t.Errorf("a run: asked %q", got)
	}
	if _, err := l.Store.Control(t.Context(), run, "stop", "ken"); err != nil || !l.status(run).Final() {
		t.Fatal(err)
	}
	if got := l.looks(2); got != "a a?" {
		t.Errorf("after a run: asked %q", got)
	}

	l, c = newCheap(t, "a", "b")
	c.err = &forge.Error{Kind: forge.Forbidden, Err: errors.New("403")}
	if got := l.looks(1); got != "a? b?" {
		t.Errorf("asked %q", got)
	}
	c.err = nil
	if got := l.looks(2); got != "a b a? b?" {
		t.Errorf("after an error: asked %q", got)
	}
}

// A webhook's call looks at the whole; what only listens for runs leaves it as it is.
func TestACallAtAQuietRepository(t *testing.T) {
	t.Parallel()
	l, _ := newCheap(t, "a")
	l.asks(1)
	if err := l.calls("a", "1"); err != nil || !l.begun(1) {
		t.Errorf("not begun: %v", err)
	}
}

// A forge whose clock was ahead of time for a while hides nothing for longer than until the next look.
func TestAQuietRepositoryAndAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	l, _ := newCheap(t, "a")
	l.hub.now = l.hub.now.Add(-time.Hour)
	if got := l.looks(2); got != "a a?" {
		t.Errorf("asked %q", got)
	}
}
