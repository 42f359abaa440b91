package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// hanging is a forge that takes calls and answers none, until they are given up.
type hanging struct{ hub }

func (*hanging) Source() string { return "gitea" }

func (*hanging) Self(ctx context.Context) (forge.Person, error) {
	<-ctx.Done()
	return forge.Person{}, context.Cause(ctx)
}

// A forge that hangs is looked at for as long as it does, and the others meanwhile.
func TestAForgeThatHangsKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	l.hub.items["1"] = forge.Item{Key: key(1), Open: true, Labels: []string{"coding agent"}}
	l.Watches = []*Watch{{Host: &delivery.Host{Tracker: &hanging{}, Labels: l.watch.Host.Labels}, Patterns: l.watch.Patterns}, l.watch}
	ctx, stop := context.WithCancel(t.Context())
	begun := make(chan struct{}, 10)
	l.Wake = func() { begun <- struct{}{} }
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	<-begun
	stop()
	<-ended
	if c := l.Stats.Counts(); c.Polls["github"].All != 1 || c.Polls["gitea"].All != 0 {
		t.Errorf("looked at %v", c.Polls)
	}
	ctx, stop = context.WithCancel(t.Context())
	l.hub.late = stop // the one that answers has been looked at
	l.pass(firstLook)
	if err := l.PollAll(ctx, true); err != nil {
		t.Error(err)
	}
}

// What is owed to a forge that hangs keeps nothing back that is owed to another, and neither do
// the questions whether its runs may go on.
func TestWhatIsOwedToAForgeThatHangs(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	var paused string
	for n, source := range []string{"gitea", "gitea", "gitea", "gitea", "gitea", "github", "github", "gitea"} {
		id := enqueue(t, s, source, "a", "ken", n)
		c, _, err := s.Claim(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		out, owes := task.Outcome{Status: task.Completed}, []contextstore.Effect{{Key: id + ".comment", Kind: "comment", Data: json.RawMessage(`{}`)}}
		if n > 5 {
			out.Status, owes = task.Paused, nil
			paused = id
			if source == "github" {
				defer func() {
					if v, err := s.View(id); err != nil || v.Status() != task.Queued {
						t.Errorf("%s %v", v.Status(), err)
					}
				}()
			}
		}
		if err := errors.Join(c.Transition(t.Context(), out, owes...), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	arrived := make(chan string, 10)
	wait := func(ctx context.Context, source string) error {
		if source == "gitea" {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}
	sources, log := map[string]bool{"github": true, "gitea": true}, slog.New(slog.DiscardHandler)
	of := func(uuid string) string { m, _ := s.Metadata(uuid); return m.TaskKey.Source }
	d := NewDeliverer(&Deliverer{Store: s, Sources: sources, Log: log, Now: time.Now, Outbox: &Outbox{Store: s, Log: log, Handlers: map[string]delivery.Handler{
		"comment": func(ctx context.Context, uuid string, _ contextstore.Effect) (string, error) {
			err := wait(ctx, of(uuid))
			if err == nil {
				arrived <- of(uuid)
			}
			return "", err
		}}}})
	m := &Monitor{Store: s, Sources: sources, Every: 1 << 40, Log: log, Now: time.Now, Stats: &Stats{}, Wake: func() { arrived <- "goes on" },
		Permitted: func(ctx context.Context, v contextstore.View) (bool, error) {
			err := wait(ctx, v.Metadata.TaskKey.Source)
			return err == nil, err
		}}
	ended := make(chan struct{}, 2)
	for _, run := range []func(context.Context){d.Run, m.Run} {
		go func() { run(ctx); ended <- struct{}{} }()
	}
	if a, b := <-arrived, <-arrived; a == b || a == "gitea" || b == "gitea" {
		t.Errorf("%s, %s", a, b)
	}
	stop()
	<-ended
	<-ended
	if v, err := s.View(paused); err != nil || v.Status() != task.Paused {
		t.Errorf("%s %v", v.Status(), err)
	}
}
