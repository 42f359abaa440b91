package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"

	"toritsugi/internal/contextstore"
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
		return &Outbox{Store: s, Log: slog.New(slog.DiscardHandler), Handlers: map[string]Handler{"comment": post}}
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
