package dialogue

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/order"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// square is a forge where ken may write and everybody may speak.
type square struct{ forge.Tracker }

func (square) Source() string { return "github" }
func (square) Self(context.Context) (forge.Person, error) {
	return forge.Person{ID: 1, Login: "tori"}, nil
}

func (square) Permission(_ context.Context, _ forge.Repo, p forge.Person) (forge.Permission, error) {
	if p.ID == 7 {
		return forge.Write, nil
	}
	return forge.Read, nil
}

// hears is a dialogue that is handed what is in the inbox.
func hears(t *testing.T, at forge.Tracker, inbox *[]forge.Comment) *Dialogue {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	k := task.Key{Source: "github", Owner: "acme", Repo: "app", Type: "issue", ID: "1"}
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: k, User: "ken"})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	r := &delivery.Run{Service: &delivery.Service{Store: s, Now: time.Now, Log: slog.New(slog.DiscardHandler), Rules: delivery.Rules{Filter: broker.NewFilter(broker.FilterOptions{Sanitizer: redact.New(nil, nil)})}},
		Ledger: c, Host: &delivery.Host{Tracker: at, Least: forge.Write}, Order: order.Order{Act: &order.Act{}}}
	if err := r.OpenBroker(); err != nil {
		t.Fatal(err)
	}
	d := New(r, Settings{Signals: func(task.Key) (all []forge.Comment) { all, *inbox = *inbox, nil; return all }}, 1<<16)
	d.CaughtUp()
	return d
}

// Strangers fill no window: of what nobody vouches for an owner tells its run
// fifty comments, and all of what people who may ask say; what was left out is
// not told later either.
func TestStrangersAreToldUpToABound(t *testing.T) {
	t.Parallel()
	var inbox []forge.Comment
	d := hears(t, square{}, &inbox)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	says := func(who int64, from, to int) {
		for n := from; n < to; n++ {
			at = at.Add(time.Second)
			inbox = append(inbox, forge.Comment{ID: fmt.Sprintf("note/%d/%d", who, n), Kind: forge.Note, Item: "1", Author: forge.Person{ID: who, Login: fmt.Sprint("p", who)}, Body: fmt.Sprintf("Word %d of %d.", n, who), Edited: at})
		}
	}
	told := func(strangers, vouched int) {
		t.Helper()
		all, err := d.Heard(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, m := range all {
			text += m.Content
		}
		ours, rest, _ := strings.Cut(text, "<untrusted_comments>")
		if n, m := strings.Count(rest, "of 9."), strings.Count(ours, "of 7."); n != strangers || m != vouched || strings.Contains(ours, "of 9.") {
			t.Errorf("%d comments of strangers, not %d; %d of ken's, not %d\n%s", n, strangers, m, vouched, text)
		}
	}
	says(9, 0, 40)
	says(7, 0, 2)
	told(40, 2)
	says(9, 100, 130)
	says(7, 2, 60)
	told(10, 58)
	says(9, 200, 210)
	told(0, 0)
	told(0, 0)
	if heard, err := WasTold(d.run.Ledger.Dir(), "note/9/129", at); err != nil || heard {
		t.Errorf("an edition that there is not: %v, %v", heard, err)
	}
	if heard, err := WasTold(d.run.Ledger.Dir(), "note/9/129", at.Add(-time.Hour)); err != nil || !heard {
		t.Errorf("what was left out is not on record: %v, %v", heard, err)
	}
}
