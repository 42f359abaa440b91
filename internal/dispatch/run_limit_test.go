package dispatch

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// end ends what is in the queue of a lobby.
func (l *lobby) end(uuid string) {
	l.t.Helper()
	if _, err := l.Store.Control(l.t.Context(), uuid, contextstore.Stop, "ken"); err != nil {
		l.t.Fatal(err)
	}
}

// A /retry over the limit of the hour is answered each time that somebody gives
// it, and begun when it is given after the hour; a label is answered once, and is
// begun by itself. Two programs that answer each other come to an end.
func TestTooOften(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	l.watch.MaxPerHour = 2
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	l.end(l.queued(1))
	l.end(l.queued(1))
	n, runs := 0, func() int {
		c, err := l.Store.CountSince(t.Context(), key(1), time.Time{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	retry := func() {
		t.Helper()
		n++
		l.hub.says(fmt.Sprint("note/", n), "1", ken, "/retry")
		if err := l.look(true, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	l.hub.broken["post"] = down()
	retry()
	if len(l.hub.posted) > 0 {
		t.Fatal(l.hub.posted)
	}
	delete(l.hub.broken, "post")
	if err := l.look(true, time.Second); err != nil || !l.hub.posted["1 often-note-1"] {
		t.Errorf("the refusal is not told once it can be: %v, %v", l.hub.posted, err)
	}
	retry()
	if !l.hub.posted["1 often-note-2"] {
		t.Errorf("the second refusal is not told: %v", l.hub.posted)
	}
	retry() // as many answers within the hour as there may be runs
	if len(l.hub.posted) != 2 || runs() != 2 {
		t.Errorf("%v, %d runs", l.hub.posted, runs())
	}
	it := l.hub.items["1"]
	it.Labels = append(it.Labels, "coding agent")
	l.hub.items["1"] = it
	for range 3 {
		if err := l.look(true, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.hub.posted) != 3 {
		t.Errorf("of the label: %v", l.hub.posted)
	}
	it.Labels = it.Labels[:1]
	l.hub.items["1"] = it
	l.pass(time.Hour)
	retry()
	v, _, err := l.Store.Latest(t.Context(), key(1))
	if runs() != 3 || err != nil {
		t.Fatalf("%d runs after the hour: %v, %v", runs(), l.hub.posted, err)
	}
	l.end(v.Metadata.UUID)
	l.now = time.Now() // the hour in which that one was begun, by the ledger's clock
	retry()
	if !l.hub.posted[fmt.Sprint("1 often-note-", n)] || runs() != 3 {
		t.Errorf("refused after it was granted: %v, %d runs", l.hub.posted, runs())
	}
}

// Where nobody can be told, the label is begun after the hour all the same.
func TestTooOftenAndLocked(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	l.watch.MaxPerHour = 1
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	id := l.queued(1)
	l.end(id)
	it := l.hub.items["1"]
	it.Labels = []string{"coding agent"}
	l.hub.items["1"] = it
	l.hub.broken["post"] = &forge.Error{Kind: forge.Forbidden, Err: errors.New("403: locked")}
	if err := l.look(true, time.Hour); err != nil || l.watch.failing.waits(key(1).String(), l.now.Add(-time.Hour)) {
		t.Errorf("it is taken for broken: %v", err)
	}
	if err := l.look(true, 0); err != nil {
		t.Fatal(err)
	}
	if v, _, err := l.Store.Latest(t.Context(), key(1)); err != nil || v.Metadata.UUID == id || v.Status() != task.Queued {
		t.Errorf("%s, %v", v.Status(), err)
	}
}
