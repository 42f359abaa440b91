package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/contextstore"
)

// receiver is a member of the family whose events hold texts.
type receiver struct {
	receive func(ctx context.Context, e channel.Event, h channel.EventHandler) error

	mu   sync.Mutex
	told []string // ids, as their work began
}

func (r *receiver) Kind() channel.Kind                       { return "test" }
func (r *receiver) Post(context.Context, channel.Post) error { return nil }
func (r *receiver) Receive(ctx context.Context, e channel.Event, h channel.EventHandler) error {
	r.mu.Lock()
	r.told = append(r.told, e.ID)
	r.mu.Unlock()
	if r.receive != nil {
		return r.receive(ctx, e, h)
	}
	return h.Handle(ctx, channel.Message{Channel: "test", SessionID: "test:" + e.Queue, ID: e.ID, UserText: string(e.Body), ReceivedAt: e.ReceivedAt})
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

func openStore(t *testing.T, dir string) *contextstore.Store {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: dir, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, s *contextstore.Store) *Inbox {
	t.Helper()
	b, err := Open(t.Context(), s, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs b until stop is called, which waits for its end.
func run(b *Inbox, w Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); b.Run(ctx, w) }()
	return func() { cancel(); <-ended }
}

func event1(id, queue string) channel.Event {
	body, _ := json.Marshal("text of " + id)
	return channel.Event{Channel: "test", ID: id, Queue: queue, Body: body, ReceivedAt: time.Now()}
}

// bubble runs test with a store of its own, in a bubble.
func bubble(t *testing.T, test func(t *testing.T, s *contextstore.Store)) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, dir)
		test(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestWorkedOnOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *contextstore.Store) {
		b, r, h := open(t, s), &receiver{}, &channeltest.Handler{}
		if err := b.Put(t.Context(), event1("a", "q"), event1("b", "q"), event1("a", "q")); err != nil {
			t.Fatal(err)
		}
		stop := run(b, Worker{Handler: h, Receivers: []channel.Receiver{r}})
		if err := b.Put(t.Context(), event1("b", "q"), event1("c", "q")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		b.Close()
		b = open(t, s) // ids are known after a restart, too
		stop = run(b, Worker{Handler: h, Receivers: []channel.Receiver{r}})
		if err := b.Put(t.Context(), event1("a", "q"), event1("c", "other"), event1("d", "q")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := b.Waiting(); n != 0 {
			t.Errorf("%d wait", n)
		}
		time.Sleep(6 * 24 * time.Hour)
		if err := b.Put(t.Context(), event1("a", "q")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * 24 * time.Hour)
		synctest.Wait()
		if err := b.Put(t.Context(), event1("a", "q")); err != nil { // its id is forgotten by now
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		b.Close()
		var said []string
		for _, m := range h.Told() {
			said = append(said, m.UserText)
		}
		if got := strings.Join(said, " "); got != `"text of a" "text of b" "text of c" "text of d" "text of a"` {
			t.Error(got)
		}
	})
}

// What others put in is worked on, once, by whichever has taken the inbox; when that ends, another takes
// it with what waits.
func TestSharedInbox(t *testing.T) {
	bubble(t, func(t *testing.T, s *contextstore.Store) {
		log := slog.New(slog.DiscardHandler)
		one, two := Beside(s, log, time.Now), Beside(s, log, time.Now)
		put := func(b *Inbox, all ...channel.Event) {
			t.Helper()
			if err := b.Put(t.Context(), all...); err != nil {
				t.Fatal(err)
			}
		}
		put(two, event1("a", "q"))
		if one.Waiting()+two.Waiting() != 0 {
			t.Error("it waits where nobody works on it")
		}
		if err := one.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := two.Take(t.Context()); !errors.Is(err, contextstore.ErrBusy) {
			t.Fatal(err)
		}
		r, h := &receiver{}, &channeltest.Handler{}
		stop := run(one, Worker{Handler: h, Receivers: []channel.Receiver{r}})
		put(two, event1("b", "q"), event1("a", "q"))
		put(one, event1("c", "q"), event1("b", "q"))
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		if got := strings.Join(r.all(), " "); one.Waiting() != 0 || len(r.all()) != 3 {
			t.Errorf("%s, %d wait", got, one.Waiting())
		}
		stop()
		one.Close()
		put(one, event1("d", "q"))
		if err := two.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop = run(two, Worker{Handler: h, Receivers: []channel.Receiver{r}})
		synctest.Wait()
		stop()
		two.Close()
		if got := r.all(); len(got) != 4 || got[3] != "d" {
			t.Error(got)
		}
	})
}

// That the database is away is said now and then, not at each look.
func TestSharedInboxIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *contextstore.Store) {
		var said bytes.Buffer
		b := Beside(s, slog.New(slog.NewTextHandler(&said, nil)), time.Now)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithTimeout(t.Context(), 90*time.Second)
		defer end()
		b.watch(ctx)
		if n := strings.Count(said.String(), "What others put into the inbox waits"); n != 2 {
			t.Errorf("said %d times in 90 s", n)
		}
	})
}

// Events of one queue wait for each other, also while one is tried again; other queues, and
// events without one, do not wait for them.
func TestOrderPerQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *contextstore.Store) {
		b, tries := open(t, s), 0
		hold := make(chan struct{})
		r := &receiver{receive: func(_ context.Context, e channel.Event, _ channel.EventHandler) error {
			switch e.ID {
			case "slow1":
				<-hold
			case "fails1":
				if tries++; tries < 4 {
					return errors.New("not now")
				}
			}
			return nil
		}}
		stop := run(b, Worker{Receivers: []channel.Receiver{r}})
		for _, e := range []channel.Event{event1("slow1", "slow"), event1("fails1", "fails"), event1("slow2", "slow"), event1("fails2", "fails"), event1("free1", ""), event1("free2", ""), event1("other", "other")} {
			if err := b.Put(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if now := r.all(); len(now) != 5 || slices.Contains(now, "slow2") || slices.Contains(now, "fails2") {
			t.Errorf("at once: %q", now)
		}
		time.Sleep(time.Minute)
		close(hold)
		synctest.Wait()
		if now := r.all(); tries != 4 || len(now) != 10 || b.Waiting() != 0 || slices.Index(now, "fails2") < 7 {
			t.Errorf("in the end: %d tries, %q, %d wait", tries, now, b.Waiting())
		}
		stop()
		b.Close()
	})
}

// What cannot be worked on within an hour is given up, also where it panics; what is behind
// it goes on.
func TestGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *contextstore.Store) {
		b, r, h := open(t, s), &receiver{}, &channeltest.Handler{}
		r.receive = func(ctx context.Context, e channel.Event, h channel.EventHandler) error {
			if e.ID == "bad" {
				panic("no such field")
			}
			return h.Handle(ctx, channel.Message{ID: e.ID})
		}
		began := time.Now()
		given := func() []contextstore.GivenUp {
			all, err := s.GivenUpSince(t.Context(), began)
			if err != nil {
				t.Error(err)
			}
			return all
		}
		stop := run(b, Worker{Handler: h, Receivers: []channel.Receiver{r}})
		if err := b.Put(t.Context(), event1("bad", "q"), event1("good", "q")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(giveUp / 2)
		synctest.Wait()
		if given := given(); len(h.Told()) != 0 || len(given) != 0 {
			t.Errorf("after half of the time: %v %v", h.Told(), given)
		}
		time.Sleep(giveUp)
		synctest.Wait()
		stop()
		b.Close()
		if given := given(); len(h.Told()) != 1 || !slices.Equal(given, []contextstore.GivenUp{{Channel: "test", Events: 1, Last: "bad"}}) {
			t.Errorf("%v %+v", h.Told(), given)
		}
	})
}

// What is worked on when the program is told to end comes again, and so does what no member
// is set up for.
func TestStopped(t *testing.T) {
	bubble(t, func(t *testing.T, s *contextstore.Store) {
		b := open(t, s)
		r := &receiver{receive: func(ctx context.Context, _ channel.Event, _ channel.EventHandler) error {
			<-ctx.Done()
			return nil // as a turn does that is stopped
		}}
		stop := run(b, Worker{Receivers: []channel.Receiver{r}})
		other := event1("x", "q")
		other.Channel = "gone"
		if err := b.Put(t.Context(), event1("a", "q"), event1("b", "q"), other); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		if err := b.Put(t.Context(), event1("c", "q")); err != nil { // nobody works, but it is taken
			t.Fatal(err)
		}
		b.Close()
		b, r.receive = open(t, s), func(context.Context, channel.Event, channel.EventHandler) error { return nil }
		stop = run(b, Worker{Receivers: []channel.Receiver{r}})
		synctest.Wait()
		stop()
		if got := strings.Join(r.all(), " "); got != "a a b c" || b.Waiting() != 1 {
			t.Errorf("%s, %d wait", got, b.Waiting())
		}
		b.Close()
	})
}

func TestBounds(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	defer func() { _ = s.Close() }()
	b := open(t, s)
	defer b.Close()
	large := event1("large", "q")
	large.Body = make([]byte, channel.MaxEvent+1)
	if err := b.Put(t.Context(), event1("small", "q"), large); !errors.Is(err, ErrTooLarge) || b.Waiting() != 0 {
		t.Errorf("too large: %v, %d wait", err, b.Waiting())
	}
	for _, bad := range []channel.Event{{Channel: "test"}, {ID: "a"}, event1(strings.Repeat("a", MaxID+1), ""), event1("a", strings.Repeat("q", MaxID+1))} {
		if err := b.Put(t.Context(), bad); err == nil {
			t.Errorf("%.20q was taken", bad.ID)
		}
	}
	all := make([]channel.Event, maxWaiting)
	for i := range all {
		all[i] = event1(fmt.Sprint("e", i), "q")
	}
	if err := b.Put(t.Context(), all...); err != nil || b.Waiting() != maxWaiting {
		t.Fatalf("%v, %d wait", err, b.Waiting())
	}
	if err := b.Put(t.Context(), event1("more", "q")); !errors.Is(err, ErrFull) {
		t.Errorf("more than there may be: %v", err)
	}
	if _, err := Open(t.Context(), s, b.log, b.now); !errors.Is(err, contextstore.ErrBusy) {
		t.Errorf("a second one: %v", err)
	}
}

// Many that put at once are all kept, with what the ones know of the others.
func TestPutAtOnce(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir())
	defer func() { _ = s.Close() }()
	b := open(t, s)
	defer b.Close()
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if err := b.Put(t.Context(), event1(fmt.Sprint("e", i/2), "q")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	waiting, err := s.WaitingInbox(t.Context())
	if err != nil || len(waiting) != 100 || b.Waiting() != 100 {
		t.Errorf("%d are kept, %d wait, %v", len(waiting), b.Waiting(), err)
	}
}

// The program that puts is killed at any moment: whatever Put returned for is there.
func TestKilledWhilePutting(t *testing.T) {
	if dir := os.Getenv("INBOX_TEST_DIR"); dir != "" {
		s := openStore(t, dir)
		b := open(t, s)
		for i := 0; ; i++ {
			if err := b.Put(t.Context(), event1(fmt.Sprint("e", i), "q")); err != nil {
				t.Fatal(err)
			}
			fmt.Println(i)
		}
	}
	t.Parallel()
	dir := t.TempDir()
	p := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWhilePutting$") //nolint:gosec // this program
	p.Env = append(os.Environ(), "INBOX_TEST_DIR="+dir)
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	last := -1
	for last < 50 {
		if _, err := fmt.Fscanln(out, &last); err != nil {
			t.Fatal(err)
		}
	}
	_ = p.Process.Kill()
	for {
		if _, err := fmt.Fscanln(out, &last); err != nil {
			break
		}
	}
	_ = p.Wait()
	s := openStore(t, dir)
	defer func() { _ = s.Close() }()
	b := open(t, s)
	defer b.Close()
	r := &receiver{}
	h := &channeltest.Handler{}
	done := make(chan struct{})
	h.Reply = func(_ context.Context, m channel.Message) error {
		if m.ID == fmt.Sprint("e", last) {
			close(done)
		}
		return nil
	}
	stop := run(b, Worker{Handler: h, Receivers: []channel.Receiver{r}})
	<-done
	stop()
	for i, id := range r.all() {
		if id != fmt.Sprint("e", i) {
			t.Fatalf("event %d is %s", i, id)
		}
	}
}

// gatherer is a Gatherer that counts its looks.
type gatherer struct {
	mu     sync.Mutex
	looks  []int // how many events each answered
	refuse error
	hold   chan struct{}
}

func (g *gatherer) Kind() channel.Kind { return "forge" }

func (g *gatherer) Gather(_ context.Context, all []channel.Event) error {
	if g.hold != nil {
		<-g.hold
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.looks = append(g.looks, len(all))
	return g.refuse
}

func (g *gatherer) refuses(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = err
}

func called(id, queue string) channel.Event {
	e := event1(id, queue)
	e.Channel = "forge"
	return e
}

// What waits in a queue is answered by one look; what could not be looked at is looked at later, with what came
// meanwhile after it, and is known when it comes again.
func TestGathered(t *testing.T) {
	bubble(t, func(t *testing.T, s *contextstore.Store) {
		b, g := open(t, s), &gatherer{hold: make(chan struct{})}
		stop := run(b, Worker{Handler: &channeltest.Handler{}, Gatherers: []Gatherer{g}})
		put := func(events ...channel.Event) {
			t.Helper()
			for _, e := range events {
				if err := b.Put(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		put(called("a", "q"))
		put(called("b", "q"), called("c", "q"), called("b", "q"))
		close(g.hold)
		synctest.Wait()
		if fmt.Sprint(g.looks) != "[1 2]" || b.Waiting() != 0 {
			t.Errorf("%v, %d wait", g.looks, b.Waiting())
		}
		put(called("a", "q"), called("c", "q"))
		g.refuses(errors.New("the forge is down"))
		put(called("d", "q"))
		time.Sleep(10 * time.Second)
		g.refuses(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(g.looks); n < 4 || b.Waiting() != 0 {
			t.Errorf("%v, %d wait", g.looks, b.Waiting())
		}
		stop()
		b.Close()
		if left, err := s.WaitingInbox(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("%d are left, %v", len(left), err)
		}
	})
}

// A forge whose events fill the inbox keeps no other out.
func TestFullByChannel(t *testing.T) {
	bubble(t, func(t *testing.T, s *contextstore.Store) {
		b := open(t, s)
		defer b.Close()
		all := make([]channel.Event, maxWaiting)
		for i := range all {
			all[i] = called(fmt.Sprint(i), "q")
		}
		if err := errors.Join(b.Put(t.Context(), all...), b.Put(t.Context(), event1("a", "q"))); err != nil {
			t.Fatal(err)
		}
		if err := b.Put(t.Context(), called("more", "q")); !errors.Is(err, ErrFull) || b.Waiting() != maxWaiting+1 {
			t.Errorf("%v, %d wait", err, b.Waiting())
		}
	})
}
