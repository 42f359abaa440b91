package dispatch

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// left is the run of an issue that left its work to the task of draft 7, as it is before that is
// delivered, and the effect.
func left(t *testing.T, s *contextstore.Store) (id string, e contextstore.Effect) {
	t.Helper()
	id = enqueue(t, s, "github", "a", "ken", 1)
	run, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	e = contextstore.Effect{Key: id + ".task", Kind: delivery.EffectTask, Data: json.RawMessage(`{"draft":"7"}`)}
	if err := run.Transition(t.Context(), task.Outcome{Status: task.Completed}, e); err != nil {
		t.Fatal(err)
	}
	return id, e
}

func draftHandler(s *contextstore.Store) delivery.Handler {
	d := &delivery.Service{Store: s, Now: time.Now, Lang: i18n.English, Log: slog.New(slog.DiscardHandler), Hosts: map[string]*delivery.Host{"github": {}}}
	return d.Handlers()[delivery.EffectTask]
}

// However often it is delivered that the work goes on at a draft, and whatever runs there are on
// that by then, one of them is that of the issue's run.
func TestWorkIsLeftOnce(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	id, e := left(t, s)
	issue, err := s.Metadata(id)
	if err != nil {
		t.Fatal(err)
	}
	draft := issue.TaskKey
	draft.Type, draft.ID = task.TypePull, "7"
	ask := func() (uuid string) { // somebody asks at the draft itself
		uuid, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: draft, Run: json.RawMessage(`{"ask":{"event":"other"}}`)})
		if err != nil {
			t.Fatal(err)
		}
		return uuid
	}
	end := func(uuid string) {
		if _, err := s.Control(t.Context(), uuid, contextstore.Stop, "a test"); err != nil {
			t.Fatal(err)
		}
	}
	deliver := draftHandler(s)
	other := ask()
	if _, err := deliver(t.Context(), id, e); err == nil || !delivery.Held(err) {
		t.Fatalf("a second run at once: %v", err)
	}
	end(other)
	for range 2 {
		if came, err := deliver(t.Context(), id, e); err != nil || came != "7" {
			t.Fatalf("%q, %v", came, err)
		}
	}
	v, _, err := s.Latest(t.Context(), draft)
	if err != nil {
		t.Fatal(err)
	}
	o, err := order.Parse(v.Metadata)
	if err != nil || o.For == nil || o.For.Issue != issue.TaskKey || o.For.Run != id || o.Act == nil || o.Act.How != order.ByLabel {
		t.Errorf("%+v, %v", o, err)
	}
	end(v.Metadata.UUID)
	end(ask())
	if came, err := deliver(t.Context(), id, e); err != nil || came != "7" {
		t.Errorf("%q, %v", came, err)
	}
	if all, err := s.Before(t.Context(), draft, "", 10); err != nil || len(all) != 3 {
		t.Errorf("%d runs, %v", len(all), err)
	}
}

// What is said and done at an issue is about the run on its draft; one that begins there later
// knows the issue, too.
func TestAnIssueFollowsItsDraft(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	id, e := left(t, s)
	came, err := draftHandler(s)(t.Context(), id, e)
	if err == nil {
		err = s.Acknowledge(t.Context(), id, e, came)
	}
	m, merr := s.Metadata(id)
	if err != nil || merr != nil {
		t.Fatal(err, merr)
	}
	on, ok, err := delivery.Newest(t.Context(), s, m.TaskKey)
	if err != nil || !ok || on.Metadata.TaskKey.ID != "7" || on.Metadata.User != m.User {
		t.Fatalf("%+v, %v", on.Metadata, err)
	}
	i := &Intake{Store: s, Lang: i18n.English, Log: slog.New(slog.DiscardHandler), Now: time.Now, Wake: func() {}, Stats: &Stats{}}
	row := contextstore.RowOf(on.Metadata, on.State)
	if all := i.items(row); len(all) != 2 || all[1] != m.TaskKey {
		t.Errorf("%v", all)
	}
	if _, err := s.Control(t.Context(), on.Metadata.UUID, contextstore.Stop, "a test"); err != nil {
		t.Fatal(err)
	}
	on, _, err = delivery.Newest(t.Context(), s, m.TaskKey)
	if err != nil {
		t.Fatal(err)
	}
	w := &Watch{Host: &delivery.Host{Tracker: &hub{}}}
	a := candidate{on.Metadata.TaskKey, forge.Item{Key: on.Metadata.TaskKey, Author: ken}, order.Act{By: ken, Event: "later", At: time.Now()}}
	if v, err := i.begin(t.Context(), w, a, on); err != nil || v != Begun {
		t.Fatal(v, err)
	}
	v, _, err := s.Latest(t.Context(), on.Metadata.TaskKey)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := order.Parse(v.Metadata); err != nil || o.For == nil || o.For.Issue != m.TaskKey || o.For.Run != "" {
		t.Errorf("%+v, %v", o, err)
	}
}

// The run on a draft stops where somebody closes the issue, and where they said /stop there
// before there was this run.
func TestTheIssueStopsTheRunOnItsDraft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		closed, marked bool
		says           string
	}{"closed": {true, false, "dispatch.closed_origin"}, "stopped before": {false, true, "dispatch.stopped"}, "neither": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, t.TempDir())
			id, e := left(t, s)
			if _, err := draftHandler(s)(t.Context(), id, e); err != nil {
				t.Fatal(err)
			}
			m, err := s.Metadata(id)
			if err != nil {
				t.Fatal(err)
			}
			draft := m.TaskKey
			draft.Type, draft.ID = task.TypePull, "7"
			on, _, err := s.Latest(t.Context(), draft)
			if err != nil {
				t.Fatal(err)
			}
			i := &Intake{Store: s, Lang: i18n.English, Log: slog.New(slog.DiscardHandler), Now: time.Now, Wake: func() {}, Stats: &Stats{}}
			if c.marked {
				if err := i.stopBefore(t.Context(), m.TaskKey, forge.Comment{Edited: time.Now()}); err != nil {
					t.Fatal(err)
				}
			}
			h := &hub{items: map[string]forge.Item{"7": {Key: draft, Open: true, Pull: &forge.Pull{}}, "1": {Key: m.TaskKey, Open: !c.closed}}}
			w := &Watch{Host: &delivery.Host{Tracker: h}, StopRemoved: true}
			if err := i.stopUnwanted(t.Context(), w, contextstore.RowOf(on.Metadata, on.State)); err != nil {
				t.Fatal(err)
			}
			v, err := s.View(on.Metadata.UUID)
			if err != nil {
				t.Fatal(err)
			}
			stopped := v.Status() == task.Stopped && v.State.Error != nil && strings.Contains(*v.State.Error, c.says)
			if stopped != (c.closed || c.marked) || !stopped && v.Status() != task.Queued {
				t.Errorf("%s, %v", v.Status(), v.State.Error)
			}
		})
	}
}
