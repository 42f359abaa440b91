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

// A review that a run did not take any more before it ended asks for another one,
// also where that cannot be begun at once; what a paused run did not take it reads
// from its item when it goes on.
func TestReviewComesTooLate(t *testing.T) {
	t.Parallel()
	for _, status := range []task.Status{task.Completed, task.Paused} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			l := newLobby(t, "a")
			if err := l.look(true, time.Minute); err != nil {
				t.Fatal(err)
			}
			k := task.Key{Source: "github", Owner: "o", Repo: "a", Type: forge.PullType("github"), ID: "1"}
			id, err := l.Store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: k, User: "ken"})
			if err != nil {
				t.Fatal(err)
			}
			c, _, err := l.Store.Claim(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			l.hub.items["1"] = forge.Item{Key: k, Open: true, Author: forge.Person{ID: 1}, Labels: []string{"processing"}, Pull: &forge.Pull{Marker: "m"}}
			l.hub.said = append(l.hub.said, forge.Comment{ID: "review/1", Kind: forge.Review, Verdict: forge.ChangesRequested, Item: "1", Author: ken, Body: "Say why.", Created: l.hub.now, Edited: l.hub.now})
			if err := l.look(true, time.Second); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.Transition(t.Context(), task.Outcome{Status: status}), c.Close()); err != nil {
				t.Fatal(err)
			}
			l.hub.broken["1"] = down()
			_ = l.look(true, time.Hour)
			delete(l.hub.broken, "1")
			for range 2 {
				if err := l.look(true, time.Second); err != nil {
					t.Fatal(err)
				}
			}
			n, err := l.Store.CountSince(t.Context(), k, time.Time{}, 10)
			if want := map[task.Status]int{task.Completed: 2, task.Paused: 1}[status]; err != nil || n != want {
				t.Errorf("%d runs, not %d: %v", n, want, err)
			}
			if left := fmt.Sprint(l.Mailbox.Take(k)); left != "[]" {
				t.Errorf("left on the desk: %s", left)
			}
		})
	}
}
