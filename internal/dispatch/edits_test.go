package dispatch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// scribe is a hub that tells who edited, or says why it does not.
type scribe struct {
	*hub
	by    []forge.Person
	err   error
	asked int
	at    time.Time // work was asked for
}

func (s *scribe) Asked(_ context.Context, k task.Key, _ forge.Trigger) (forge.Asked, error) {
	return forge.Asked{By: s.hub.by, At: s.at, Event: "e" + k.ID}, nil
}

func (s *scribe) EditedSince(context.Context, task.Key, time.Time) ([]forge.Person, error) {
	s.asked++
	return s.by, s.err
}

// It is asked once for what is about to be begun, who changed it; where that
// cannot be told now the item waits, for a while, and nothing else does.
func TestWhoEditedWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	eve, self := forge.Person{ID: 9, Login: "eve"}, forge.Person{ID: 1, Login: "tori"}
	fails := func(k forge.Kind) error { return &forge.Error{Kind: k, Wait: time.Hour, Err: errors.New(string(k))} }
	for name, c := range map[string]struct {
		by     []forge.Person
		err    error
		want   string
		waits  bool // for as long as that lasts, an hour at most
		logged int
	}{
		"nobody":                  {nil, nil, "", false, 0},
		"who may":                 {[]forge.Person{ken}, nil, "", false, 0},
		"an outsider":             {[]forge.Person{ken, eve}, nil, "eve", false, 0},
		"somebody who left":       {[]forge.Person{{Login: "ghost"}}, nil, "ghost", false, 0},
		"a program":               {[]forge.Person{{ID: 5, Login: "helper", Bot: true}}, nil, "helper", false, 0},
		"ourselves":               {[]forge.Person{self}, nil, "", false, 0},
		"no permission":           {nil, fails(forge.Forbidden), "", false, 1},
		"a server without it":     {nil, fails(forge.Invalid), "", false, 1},
		"down":                    {nil, fails(forge.Unavailable), "", true, 1},
		"a limit of the question": {nil, fails(forge.RateLimited), "", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLobby(t, "a")
			var log bytes.Buffer
			l.Log = slog.New(slog.NewTextHandler(&log, nil))
			s := &scribe{hub: l.hub, by: c.by, err: c.err, at: l.hub.now}
			l.watch.Host.Tracker = s
			for _, n := range []string{"1", "2"} {
				k := key(0)
				k.ID = n
				l.hub.items[n] = forge.Item{Key: k, Open: true, Labels: []string{"coding agent"}}
			}
			if err := l.look(true, time.Minute); err != nil {
				t.Fatal(err)
			}
			if c.waits {
				if last, ok, err := l.Store.Latest(t.Context(), key(1)); ok || err != nil {
					t.Fatalf("it was begun: %s, %v", last.Status(), err)
				}
				if l.now.Before(l.watch.heldUntil()) {
					t.Error("all of the forge is left alone")
				}
				l.pass(keepFor)
				if err := l.look(true, time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			last, ok, err := l.Store.Latest(t.Context(), key(1))
			if err != nil || !ok {
				t.Fatalf("it was not begun: %v\n%s", err, log.String())
			}
			if job, err := order.Parse(last.Metadata); err != nil || job.Act.EditedBy != c.want {
				t.Errorf("edited by %q, %v", job.Act.EditedBy, err)
			}
			if n := strings.Count(log.String(), "does not tell who changes"); n != c.logged {
				t.Errorf("logged %d times\n%s", n, log.String())
			}
			if !c.waits && s.asked != 2 {
				t.Errorf("asked %d times for two items", s.asked)
			}
			before := s.asked
			_ = l.look(true, time.Minute)
			if s.asked != before {
				t.Error("asked again for what is in hand")
			}
		})
	}
}
