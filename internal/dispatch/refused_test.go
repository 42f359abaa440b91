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
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// blind is a forge that takes no pull request.
type blind struct {
	hub
	tries int
}

func (b *blind) Propose(context.Context, forge.Repo, forge.Proposal) (forge.Item, error) {
	b.tries++
	return forge.Item{}, &forge.Error{Kind: forge.Invalid, Status: 422, Err: errors.New("Head sha can't be blank")}
}

// A pull request that is refused as invalid is tried again for ten minutes, over
// restarts; then it is said that it will never be there, and nothing waits for it.
func TestAPullRequestThatStaysInvalid(t *testing.T) {
	t.Parallel()
	s, f := openStore(t, t.TempDir()), &blind{}
	id := enqueue(t, s, "github", "a", "ken", 1)
	run, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	owed := func(kind, data string) contextstore.Effect {
		return contextstore.Effect{Key: id + "." + kind, Kind: kind, Data: json.RawMessage(data)}
	}
	if err := run.Transition(t.Context(), task.Outcome{Status: task.Completed}, owed(delivery.EffectPull, `{"head":"b","base":"main","title":"t"}`), owed("comment", `{}`)); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now, said := began, 0
	start := func() *Deliverer {
		d := &delivery.Service{Store: s, Now: func() time.Time { return now }, Lang: i18n.English, Hosts: map[string]*delivery.Host{"github": {Tracker: f, Code: f}}}
		return NewDeliverer(&Deliverer{Store: s, Sources: map[string]bool{"github": true}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
			Outbox: &Outbox{Store: s, Log: slog.New(slog.DiscardHandler), Handlers: map[string]delivery.Handler{
				delivery.EffectPull: d.Handlers()[delivery.EffectPull], "comment": func(context.Context, string, contextstore.Effect) (string, error) { said++; return "x", nil }}}})
	}
	c := start()
	for ; now.Sub(began) < 10*time.Minute; now = now.Add(sweep) {
		if now.Sub(began) == 3*time.Minute {
			c = start()
		}
		if c.Sweep(t.Context()); said > 0 {
			t.Fatalf("given up after %s", now.Sub(began))
		}
	}
	if f.tries < 3 || f.tries > 20 {
		t.Errorf("%d tries within ten minutes", f.tries)
	}
	for end := now.Add(lastPause); said == 0 && now.Before(end); now = now.Add(sweep) {
		c.Sweep(t.Context())
	}
	done, err := s.Delivered(t.Context(), id)
	left, lerr := s.Undelivered(t.Context(), id)
	if err != nil || lerr != nil || said != 1 || len(left) > 0 || done[id+"."+delivery.EffectPull] != delivery.NotDelivered+"Head sha can't be blank" {
		t.Errorf("%v, %d left, said %d times, %v, %v", done, len(left), said, err, lerr)
	}
}
