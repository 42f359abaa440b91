package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
	"toritsugi/internal/forge"
	"toritsugi/internal/queue"
	"toritsugi/internal/task"
)

// eachQueue tries something with the ledger as the queue, and with River on PostgreSQL.
func eachQueue(t *testing.T, try func(t *testing.T, s *contextstore.Store, q Queue)) {
	t.Helper()
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		try(t, openStore(t, t.TempDir()), nil)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, pgtest.URL(t))
		try(t, m.store, m.queue)
	})
}

// machine is a store in a schema, as a process of another machine has it, and the queue there.
type machine struct {
	store *contextstore.Store
	queue *queue.Queue
	db    *tables.DB
}

func newMachine(t *testing.T, url string) *machine {
	t.Helper()
	base := t.TempDir()
	server, err := database.Dial(t.Context(), database.ServerOptions{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{}
	if m.db, err = tables.OpenPostgres(t.Context(), tables.Options{Base: base}, server); err != nil {
		t.Fatal(err)
	}
	unmount, release := disk.Mount(base, m.db), server.Serve(base)
	var offered atomic.Pointer[queue.Queue]
	m.store, err = contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, Redact: func(s string) string { return s }, Offer: func(uuid string) {
		if q := offered.Load(); q != nil {
			if err := q.Offer(context.WithoutCancel(t.Context()), uuid); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if m.queue, err = queue.Open(t.Context(), server, m.store.Turn, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	offered.Store(m.queue)
	t.Cleanup(func() {
		if err := errors.Join(m.store.Close(), m.db.Close()); err != nil {
			t.Error(err)
		}
		release()
		unmount()
		server.Close()
	})
	return m
}

// The limits of a repository and of a user hold over the pools of all machines, and what they hold
// back begins as soon as another run ends, wherever.
func TestLimitsHoldOverMachines(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	limits := Limits{Max: 4, PerRepository: 2, PerUser: 3}
	var all []*shop
	var first *machine
	for range 3 {
		m := newMachine(t, url)
		if first == nil {
			first = m
		}
		h := newShop(t, m.store, m.queue, limits)
		h.run(t)
		all = append(all, h)
	}
	want := map[string]bool{}
	for n := range 6 {
		want[enqueue(t, first.store, "github", "a", "ken", n)] = true
		want[enqueue(t, first.store, "github", "b", "ken", n)] = true
	}
	ended, left := 0, map[string]int{"a": 6, "b": 6}
	for end := time.Now().Add(time.Minute); ended < len(want); {
		type at struct {
			h  *shop
			id string
		}
		var works []at
		for _, h := range all {
			h.mu.Lock()
			for id := range h.at {
				works = append(works, at{h, id})
			}
			h.mu.Unlock()
		}
		per, last := map[string]int{}, ""
		for _, w := range works {
			v, err := first.store.View(w.id)
			if err != nil {
				t.Fatal(err)
			}
			last = v.Metadata.TaskKey.Repo
			per[last]++
		}
		if per["a"] > limits.PerRepository || per["b"] > limits.PerRepository || len(works) > limits.PerUser {
			t.Fatalf("at once: %v", per)
		}
		if len(works) == min(limits.PerUser, min(limits.PerRepository, left["a"])+min(limits.PerRepository, left["b"])) { // all that may
			w := works[len(works)-1]
			w.h.finish(w.id, task.Completed)
			<-w.h.ended
			ended++
			left[last]--
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d ended, at once %v", ended, len(want), per)
		}
		time.Sleep(time.Millisecond)
	}
	for id := range want {
		if v, err := first.store.View(id); err != nil || v.Status() != task.Completed || v.State.Generation != 1 {
			t.Errorf("%s, owned %d times, %v", v.Status(), v.State.Generation, err)
		}
	}
}

// What nobody was woken for, because who put it into the queue died, is offered later, once.
func TestMissedIsOffered(t *testing.T) {
	t.Parallel()
	m := newMachine(t, pgtest.URL(t))
	m.store.Offer = func(string) {} // dies before
	id := enqueue(t, m.store, "github", "a", "ken", 1)
	h := newShop(t, m.store, m.queue, Limits{Max: 1, PerRepository: 1})
	for range 2 {
		if err := h.OfferMissed(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := m.queue.Offered(t.Context()); err != nil || len(all) != 1 || !all[id] {
		t.Fatalf("%v, %v", all, err)
	}
	h.run(t)
	if began := h.next(); began != id {
		t.Errorf("began %q", began)
	}
	h.finish(id, task.Completed)
	<-h.ended
	if all, err := m.queue.Offered(t.Context()); err != nil || len(all) != 0 || h.more() != "" {
		t.Errorf("left: %v, %v", all, err)
	}
}

// atOnce is a queue whose jobs are worked on before Offer returns.
type atOnce struct {
	Queue
	woken func(uuid string)
}

func (q atOnce) Offer(_ context.Context, uuids ...string) error {
	for _, uuid := range uuids {
		q.woken(uuid)
	}
	return nil
}

// A run that is offered, and held back again at once, has a mark still.
func TestHeldBackAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t, pgtest.URL(t))
	m.store.Offer = func(string) {}
	id := enqueue(t, m.store, "github", "a", "ken", 1)
	w, _, err := m.store.Waits(id)
	if err != nil {
		t.Fatal(err)
	}
	woken := 0
	hold := func(string) {
		woken++
		if err := m.store.SetMark(t.Context(), heldScope, w.Cursor, id); err != nil {
			t.Error(err)
		}
	}
	hold("")
	h := newShop(t, m.store, atOnce{m.queue, hold}, Limits{Max: 1, PerRepository: 1})
	h.offerHeld(t.Context())
	if held, err := m.store.Marks(t.Context(), heldScope); err != nil || len(held) != 1 || woken != 2 {
		t.Errorf("%q, %v, woken %d times", held, err, woken-1)
	}
}

// A run that one pool cannot begin for long is not kept from the others for as long.
func TestOthersGetWhatOneCannotBegin(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	m := newMachine(t, url)
	id := enqueue(t, m.store, "github", "a", "ken", 1)
	h := newShop(t, m.store, m.queue, Limits{Max: 1})
	h.resting.failed(id, time.Now(), mostRetry, 0)
	if again := h.offered(t.Context(), id); again <= 0 || again > mostSnooze {
		t.Errorf("kept back for %s", again)
	}
	h = newShop(t, m.store, m.queue, Limits{Max: 1})
	h.Claim = func(context.Context, string) (*contextstore.Context, error) { return nil, errors.New("no disk") }
	for n := range 4 {
		if n > 0 {
			h.resting.all[id] = retry{pause: h.resting.all[id].pause}
		}
		if again := h.offered(t.Context(), id); again <= 0 || again > mostSnooze {
			t.Errorf("kept back for %s", again)
		}
	}
}

// What one machine hears of a run reaches the machine that works on it, once and in order.
func TestMailboxOfMachines(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one, two := newMachine(t, url), newMachine(t, url)
	now := time.Now()
	here := &Mailbox{House: one.store, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
	there := &Mailbox{House: two.store, Log: here.Log, Now: here.Now}
	k := task.Key{Source: "github", Owner: "o", Repo: "a", Type: task.TypeIssue, ID: "1"}
	other := k
	other.ID = "2"
	if said := there.Take(k); len(said) != 0 {
		t.Errorf("%v", said)
	}
	for n, key := range []task.Key{k, other, k} {
		now = now.Add(time.Second)
		c := forge.Comment{ID: fmt.Sprint("note/", n), Body: "Mind the line end.", Author: forge.Person{Login: "hanako"}, Created: now.UTC()}
		if err := here.put(t.Context(), key, c); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(askHouse)
	said := there.Take(k)
	if len(said) != 2 || said[0].ID != "note/0" || said[1].ID != "note/2" || said[0].Author.Login != "hanako" {
		t.Errorf("%+v", said)
	}
	now = now.Add(askHouse)
	if again := there.Take(k); len(again) != 0 {
		t.Errorf("heard again: %v", again)
	}
	keys, err := here.keys(t.Context(), "github")
	if err != nil || len(keys) != 1 || keys[0] != other {
		t.Errorf("%v, %v", keys, err)
	}
}

// What was said is not lost where it cannot be taken out of the house: it comes again until it can, and
// the run, which notes what it was told, takes it once (dialogue).
func TestMailboxThatCannotForget(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	m := newMachine(t, url)
	now := time.Now()
	box := &Mailbox{House: m.store, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
	k := task.Key{Source: "github", Owner: "o", Repo: "a", Type: task.TypeIssue, ID: "1"}
	if err := box.put(t.Context(), k, forge.Comment{ID: "note/0", Body: "Mind the line end."}); err != nil {
		t.Fatal(err)
	}
	pool := database.ServerOf(m.store.BaseDir).Pool()
	exec := func(text string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.scope <> 'said' THEN RAISE EXCEPTION 'no'; END IF; RETURN OLD; END $$`)
	exec(`CREATE TRIGGER refuse BEFORE DELETE ON marks FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if said := box.Take(k); len(said) != 1 {
		t.Errorf("heard %v", said)
	}
	exec(`DROP TRIGGER refuse ON marks`)
	for _, want := range []int{1, 0} {
		now = now.Add(askHouse)
		if again := box.Take(k); len(again) != want {
			t.Errorf("heard again: %v, want %d", again, want)
		}
	}
	if left, err := m.store.Marks(t.Context(), scopeOf(k)); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
