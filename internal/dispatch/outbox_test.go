package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/task"
)

// Two processes start at once and find the same run undelivered: neither sees
// the mark that the other is about to leave.
func TestTwoDeliverOnce(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	entered, leave := make(chan string, 10), make(chan struct{})
	outbox := func() *Outbox {
		s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, Redact: func(s string) string { return s }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		post := func(_ context.Context, _ string, e contextstore.Effect) (string, error) {
			entered <- e.Key
			<-leave
			return "", nil
		}
		return &Outbox{Store: s, Log: slog.New(slog.DiscardHandler), Handlers: map[string]delivery.Handler{"comment": post}}
	}
	one, two := outbox(), outbox()
	id, err := one.Store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := one.Store.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	owed := func(key string) contextstore.Effect {
		return contextstore.Effect{Key: key, Kind: "comment", Data: json.RawMessage(`{}`)}
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed}, owed("a"), owed("b")); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := one.Deliver(t.Context(), id); err != nil {
			t.Error(err)
		}
	})
	if key := <-entered; key != "a" {
		t.Errorf("first %s", key)
	}
	two.DeliverAll(t.Context()) // leaves it to the first
	done.Go(func() {
		if err := two.Deliver(t.Context(), id); err != nil { // waits for the first
			t.Error(err)
		}
	})
	close(leave)
	done.Wait()
	close(entered)
	var rest []string
	for key := range entered {
		rest = append(rest, key)
	}
	if len(rest) != 1 || rest[0] != "b" {
		t.Errorf("delivered a, then %q", rest)
	}
}

// What nobody waits for is left out of a delivery, keeps none back and is kept back
// by none, and is delivered once.
func TestDeliverLater(t *testing.T) {
	t.Parallel()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	effect := func(kind string) contextstore.Effect {
		return contextstore.Effect{Key: kind, Kind: kind, Data: json.RawMessage(`{}`)}
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed}, effect("push"), effect("comment"), effect("summary")); err != nil {
		t.Fatal(err)
	}
	var did []string
	down := errors.New("down")
	note := func(_ context.Context, _ string, e contextstore.Effect) (string, error) {
		did = append(did, e.Kind)
		return "", down
	}
	o := &Outbox{Store: s, Log: slog.New(slog.DiscardHandler), Later: "summary", Handlers: map[string]delivery.Handler{"push": note, "comment": note}}
	made := func(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
		if did = append(did, e.Kind); len(did) == 2 { // it is being made: what is waited for goes out all the same
			down = nil
			o.DeliverAll(ctx)
			if err := o.DeliverLater(ctx, uuid, note); !errors.Is(err, contextstore.ErrDelivering) {
				t.Errorf("made twice: %v", err)
			}
			return "", context.Canceled
		}
		return "", nil
	}
	if err := o.Deliver(t.Context(), id); !errors.Is(err, down) {
		t.Error(err)
	}
	if err := o.DeliverLater(t.Context(), id, made); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 2 {
		if err := errors.Join(o.Deliver(t.Context(), id), o.DeliverLater(t.Context(), id, made)); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"push", "summary", "push", "comment", "summary"}; !slices.Equal(did, want) {
		t.Errorf("%q, want %q", did, want)
	}
	if left, err := s.WithUndelivered(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%q %v", left, err)
	}
}
