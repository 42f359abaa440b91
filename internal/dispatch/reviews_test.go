package dispatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// reviewed is a lobby with a draft of ours that a run works on, and a review of
// it that asks for changes.
func reviewed(t *testing.T, by forge.Person) (l *lobby, k task.Key, c *contextstore.Context) {
	t.Helper()
	l = newLobby(t, "a")
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	k = key(5)
	k.Type = task.TypePull
	id, err := l.Store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: k, User: "ken"})
	if err == nil {
		c, _, err = l.Store.Claim(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.hub.items["5"] = forge.Item{Key: k, Open: true, Author: forge.Person{ID: 1}, Labels: []string{"processing"}, Pull: &forge.Pull{Marker: "x-pull"}}
	l.pass(time.Minute)
	l.hub.said = append(l.hub.said, forge.Comment{ID: "review/1", Kind: forge.Review, Verdict: forge.ChangesRequested, Item: "5", Author: by, Edited: l.hub.now})
	if err := l.look(false, time.Minute); err != nil {
		t.Fatal(err)
	}
	return l, k, c
}

// A review that asks for changes of what a run works on, and that the run does
// not hear, is followed up when the run has ended, also by another process; once.
func TestAReviewTooLateForTheRunIsFollowedUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by    forge.Person
		ends  task.Status
		heard bool
		want  int
	}{
		"completed":     {ken, task.Completed, false, 2},
		"failed":        {ken, task.Failed, false, 2},
		"heard":         {ken, task.Completed, true, 1},
		"stopped":       {ken, task.Stopped, false, 1},
		"by a stranger": {forge.Person{ID: 9, Login: "stranger"}, task.Completed, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, k, run := reviewed(t, c.by)
			if c.heard {
				line := fmt.Sprintf("{\"id\":\"review/1\",\"edited\":%q}\n", l.hub.said[0].Edited.Format(time.RFC3339Nano))
				if err := os.WriteFile(filepath.Join(run.Dir(), "heard.jsonl"), []byte(line), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.look(true, time.Minute); err != nil { // it goes on
				t.Fatal(err)
			}
			if err := errors.Join(run.Transition(t.Context(), task.Outcome{Status: c.ends, Reason: "x"}), run.Close()); err != nil {
				t.Fatal(err)
			}
			// Nothing is known but what the ledger holds.
			l.Intake = &Intake{Store: l.Store, Watches: l.Watches, Mailbox: &Mailbox{}, Interval: l.Interval, CommentsEvery: l.CommentsEvery, Lang: l.Lang, Log: l.Log, Now: l.Now, Wake: l.Wake, Stats: l.Stats}
			for range 2 {
				if err := l.look(true, time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			n, err := l.Store.CountSince(t.Context(), k, l.now.Add(-24*time.Hour), 10)
			if err != nil || n != c.want {
				t.Errorf("%d runs, %v", n, err)
			}
			if left, err := l.reviews(t.Context(), l.watch, forge.RepoOf(k)); err != nil || len(left) > 0 {
				t.Errorf("still remembered: %+v, %v", left, err)
			}
		})
	}
}

// While the pull request cannot be read the review is not forgotten.
func TestAReviewIsRememberedWhileTheForgeIsDown(t *testing.T) {
	t.Parallel()
	l, k, run := reviewed(t, ken)
	if err := errors.Join(run.Transition(t.Context(), task.Outcome{Status: task.Failed, Reason: "x"}), run.Close()); err != nil {
		t.Fatal(err)
	}
	l.hub.broken["5"] = down()
	_ = l.look(true, time.Hour)
	delete(l.hub.broken, "5")
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	if last, ok, err := l.Store.Latest(t.Context(), k); err != nil || !ok || last.Status() != task.Queued {
		t.Errorf("%s, %v", last.Status(), err)
	}
}
