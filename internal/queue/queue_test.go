package queue

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
)

func dial(t *testing.T, url string) *database.Server {
	t.Helper()
	s, err := database.Dial(t.Context(), database.ServerOptions{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// process is a queue as a process has it, that has been told to run.
type process struct {
	*Queue
	end  context.CancelFunc
	done chan error
}

// begin opens a queue, one process at a time, and runs it.
func begin(t *testing.T, s *database.Server, all []Round, work func(string) time.Duration) *process {
	t.Helper()
	p := &process{Queue: opened(t, s, all), done: make(chan error, 1)}
	ctx, end := context.WithCancel(t.Context())
	p.end = end
	go func() { p.done <- p.Run(ctx, 2, work) }()
	t.Cleanup(func() { p.stop(t) })
	return p
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	p.end()
	select {
	case err := <-p.done:
		if err != nil {
			t.Error(err)
		}
		p.done <- nil
	case <-time.After(stopTime):
		t.Error("it does not end")
	}
}

func opened(t *testing.T, s *database.Server, all []Round) *Queue {
	t.Helper()
	q, err := Open(t.Context(), s, func(context.Context) (func(), error) { return func() {}, nil }, all, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// What one process offers another works on; what it puts down at its end a third one gets at once.
func TestOffered(t *testing.T) {
	t.Parallel()
	s := dial(t, pgtest.URL(t))
	offers := opened(t, s, nil)
	began, again := make(chan string, 10), make(chan time.Duration)
	p := begin(t, s, nil, func(uuid string) time.Duration {
		began <- uuid
		return <-again
	})
	if err := offers.Offer(t.Context(), "a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	got := []string{<-began, <-began}
	slices.Sort(got)
	if all, err := offers.Offered(t.Context()); err != nil || len(all) != 1 || !all["c"] || got[0] != "a" || got[1] != "b" {
		t.Errorf("%v begun, %v wait, %v", got, all, err)
	}
	p.end()
	again <- 0
	again <- time.Nanosecond
	p.stop(t)
	other := begin(t, s, nil, func(uuid string) time.Duration { began <- uuid; return 0 })
	left := []string{<-began, <-began}
	slices.Sort(left)
	if left[1] != "c" || left[0] == "c" {
		t.Errorf("then %v", left)
	}
	other.stop(t)
	if all, err := offers.Offered(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// A process that takes no runs leaves all to others, lets what it works on end, and takes some again.
func TestTake(t *testing.T) {
	t.Parallel()
	s := dial(t, pgtest.URL(t))
	offers := opened(t, s, nil)
	began, end := make(chan string), make(chan struct{})
	one := begin(t, s, nil, func(uuid string) time.Duration {
		began <- "one " + uuid
		<-end
		return 0
	})
	offer := func(uuid string) {
		t.Helper()
		if err := offers.Offer(t.Context(), uuid); err != nil {
			t.Fatal(err)
		}
	}
	offer("a")
	got := []string{<-began}
	one.Take(false)
	close(end)
	for len(one.told) > 0 {
		time.Sleep(time.Millisecond)
	}
	_ = one.client.Queues().Remove(t.Context(), runs) // it is gone when this returns, and mostly was before
	other := begin(t, s, nil, func(uuid string) time.Duration { began <- "other " + uuid; return 0 })
	for _, uuid := range []string{"b", "c", "d", "e"} {
		offer(uuid)
		got = append(got, <-began)
	}
	other.stop(t)
	one.Take(true)
	offer("f")
	if got = append(got, <-began); !slices.Equal(got, []string{"one a", "other b", "other c", "other d", "other e", "one f"}) {
		t.Errorf("%v", got)
	}
}

// What a machine whose clock is ahead puts off is not taken for something that a process is woken for soon.
func TestPutOffByAnotherClock(t *testing.T) {
	t.Parallel()
	q := opened(t, dial(t, pgtest.URL(t)), nil)
	for uuid, after := range map[string]time.Duration{"soon": 25 * time.Second, "late": 90 * time.Second} {
		if _, err := q.insert.Insert(t.Context(), run{uuid}, &river.InsertOpts{Queue: runs, ScheduledAt: time.Now().Add(after)}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := q.Offered(t.Context()); err != nil || len(all) != 1 || !all["soon"] {
		t.Errorf("%v, %v", all, err)
	}
}

// What comes round is done by the process that leads, though another one, that dies while it is at
// it, led before.
func TestLead(t *testing.T) {
	t.Parallel()
	s := dial(t, pgtest.URL(t))
	all := []Round{{"poll", time.Second}, {"night", time.Second}}
	work := func(string) time.Duration { return 0 }
	one, two := begin(t, s, all, work), begin(t, s, all, work)
	var mu sync.Mutex
	atOnce, most := 0, 0
	nights, hung := make(chan struct{}, 100), make(chan struct{})
	lead := func(q *process, ctx context.Context, poll func(context.Context)) {
		go func() {
			if err := q.Lead(ctx, map[string]func(context.Context){"poll": poll, "night": func(context.Context) { nights <- struct{}{} }}); err != nil {
				t.Error(err)
			}
		}()
	}
	first, die := context.WithCancel(t.Context())
	lead(one, first, func(ctx context.Context) {
		mu.Lock()
		atOnce++
		most = max(most, atOnce)
		mu.Unlock()
		select {
		case hung <- struct{}{}:
		default:
		}
		<-ctx.Done() // longer than its interval
		mu.Lock()
		atOnce--
		mu.Unlock()
	})
	<-hung
	for range 3 { // the other one goes on meanwhile
		<-nights
	}
	die()
	one.stop(t)
	polls := make(chan struct{}, 100)
	lead(two, t.Context(), func(context.Context) { polls <- struct{}{} })
	<-polls
	<-polls
	if mu.Lock(); most != 1 {
		t.Errorf("%d at once", most)
	}
	mu.Unlock()
}

// What comes round is done whatever the clock of the machine says that had it inserted; what came
// while nobody led, once.
func TestRoundsOfAnotherClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all  []Round
		jobs int
	}{"behind": {nil, 1}, "nobody led": {[]Round{{"poll", time.Hour}}, 5}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := dial(t, pgtest.URL(t))
			p := begin(t, s, c.all, func(string) time.Duration { return 0 })
			for range c.jobs {
				if _, err := p.insert.Insert(t.Context(), round{"poll"}, &river.InsertOpts{Queue: rounds, ScheduledAt: time.Now().Add(-2 * time.Minute)}); err != nil {
					t.Fatal(err)
				}
			}
			polls := make(chan struct{}, 100)
			go func() {
				if err := p.Lead(t.Context(), map[string]func(context.Context){"poll": func(context.Context) { polls <- struct{}{} }}); err != nil {
					t.Error(err)
				}
			}()
			select {
			case <-polls:
			case <-time.After(time.Minute):
				t.Fatal("not done")
			}
			for left := c.jobs; left > 0; time.Sleep(time.Millisecond) {
				if err := s.Pool().QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'round' AND state <> 'completed'`).Scan(&left); err != nil {
					t.Fatal(err)
				}
			}
			if len(polls) != 0 {
				t.Errorf("done %d times more", len(polls))
			}
		})
	}
}

// A queue of a later version is refused.
func TestNewer(t *testing.T) {
	t.Parallel()
	s := dial(t, pgtest.URL(t))
	opened(t, s, nil)
	if _, err := s.Pool().Exec(t.Context(), `INSERT INTO river_migration (line, version) VALUES ('main', 999)`); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), s, func(context.Context) (func(), error) { return func() {}, nil }, nil, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "has version 999, this program knows versions up to") {
		t.Errorf("%v", err)
	}
}
