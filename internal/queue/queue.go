// Package queue has River on PostgreSQL wake who works on runs, on whatever machine. A job carries
// the uuid of a run and nothing else: how it stands and whose it is, the ledger says. What comes
// round, River's elected leader hands to the process that leads the house (Lead).
package queue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/i18n"
)

// Queue is River's in a schema of a server. Its methods may be called from several goroutines.
type Queue struct {
	server *database.Server
	insert *river.Client[pgx.Tx]
	config river.Config
	every  map[string]time.Duration // of what comes round, by its name

	leaves atomic.Bool           // runs to other processes
	told   chan struct{}         // Take was called
	client *river.Client[pgx.Tx] // of Run
	works  chan struct{}         // closed once client works
	led    atomic.Pointer[leader]
}

// leader does what comes round, by its name.
type leader map[string]*duty

// duty is one thing that comes round; who does it holds it.
type duty struct {
	sync.Mutex
	do   func()
	last time.Time // when it was begun last
}

// round does what has come round, where that is not being done already. What came while nobody led is
// done once: it is this clock that tells, since that of whoever said so may be another one.
func (l leader) round(name string, every time.Duration) {
	d := l[name]
	if d == nil || !d.TryLock() {
		return
	}
	defer d.Unlock()
	if time.Since(d.last) >= every/2 {
		d.last = time.Now()
		d.do()
	}
}

// Round is work that comes round. It is done by one process of all, at intervals.
type Round struct {
	Name  string
	Every time.Duration // at least a second
}

// run is the job that wakes for a run.
type run struct {
	UUID string `json:"uuid"`
}

// Kind implements river.JobArgs.
func (run) Kind() string { return "run" }

// round is the job that says that work has come round.
type round struct {
	Name string `json:"name"`
}

// Kind implements river.JobArgs.
func (round) Kind() string { return "round" }

// The queues of River.
const (
	runs   = "runs"
	rounds = "rounds"
)

const (
	// fetchEvery is the least time between two looks for jobs: as a run takes at least some tens of
	// milliseconds, a place stands empty for little of it.
	fetchEvery = 20 * time.Millisecond
	// rescueAfter is for how long a job may be worked on before it is handed out again: that
	// costs a look at the ledger, where the run has an owner.
	rescueAfter = 5 * time.Minute
	// keepCompleted is how long jobs are kept that are done.
	keepCompleted = time.Hour
	// stopTime is how long Run waits for what it has under way.
	stopTime = 25 * time.Second
)

// Open brings River's tables up to date, or makes them, in a turn of its own. Programs of the
// version before go on beside it; none begins.
func Open(ctx context.Context, s *database.Server, turn func(context.Context) (func(), error), comesRound []Round, log *slog.Logger) (*Queue, error) {
	log = slog.New(&seldom{Handler: log.Handler(), told: map[string]time.Time{}})
	q := &Queue{server: s, told: make(chan struct{}, 1), works: make(chan struct{}), every: map[string]time.Duration{}}
	release, err := turn(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	driver := riverpgxv5.New(s.Pool())
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: s.Schema(), Logger: log})
	if err != nil {
		return nil, err
	}
	v, err := version(ctx, s)
	if err != nil {
		return nil, s.Explain(err)
	}
	all := m.AllVersions()
	if known := all[len(all)-1].Version; v > known {
		return nil, i18n.E("queue.newer", s.Name(), v, known)
	} else if v < known {
		if _, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return nil, s.Explain(err)
		}
	}
	q.config = river.Config{Schema: s.Schema(), Logger: log, JobTimeout: -1, RescueStuckJobsAfter: rescueAfter, CompletedJobRetentionPeriod: keepCompleted, FetchCooldown: fetchEvery}
	insert := q.config
	if q.insert, err = river.NewClient(driver, &insert); err != nil {
		return nil, fmt.Errorf("queue in %s: %w", s.Name(), err)
	}
	for _, r := range comesRound {
		q.every[r.Name] = r.Every
		q.config.PeriodicJobs = append(q.config.PeriodicJobs, river.NewPeriodicJob(river.PeriodicInterval(r.Every), func() (river.JobArgs, *river.InsertOpts) {
			return round{r.Name}, &river.InsertOpts{Queue: rounds, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: r.Every}} // one of a process that died keeps no other back
		}, &river.PeriodicJobOpts{RunOnStart: true}))
	}
	return q, nil
}

// version is that of River's tables, 0 where there are none.
func version(ctx context.Context, s *database.Server) (v int, err error) {
	var there bool
	if err = s.Pool().QueryRow(ctx, `SELECT to_regclass('river_migration') IS NOT NULL`).Scan(&there); err == nil && there {
		err = s.Pool().QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM river_migration WHERE line = 'main'`).Scan(&v)
	}
	return v, err
}

// Offer has a process woken that has a place for each of the runs.
func (q *Queue) Offer(ctx context.Context, uuids ...string) error {
	if len(uuids) == 0 {
		return nil
	}
	jobs := make([]river.InsertManyParams, len(uuids))
	for i, uuid := range uuids {
		jobs[i] = river.InsertManyParams{Args: run{uuid}, InsertOpts: &river.InsertOpts{Queue: runs}}
	}
	_, err := q.insert.InsertManyFast(ctx, jobs)
	return q.server.Explain(err)
}

// offeredWithin is when a run has to be offered again for Offered to count it, by the server's clock: what is
// put off for longer was so by a machine whose clock is ahead.
const offeredWithin = "40 seconds"

// Offered are the runs that a process will be woken for soon, without those that one works on.
func (q *Queue) Offered(ctx context.Context) (map[string]bool, error) {
	rows, err := q.server.Pool().Query(ctx, `SELECT args->>'uuid' FROM river_job WHERE queue = $1 AND state IN ('available', 'scheduled', 'retryable') AND scheduled_at < now() + $2::text::interval`, runs, offeredWithin)
	if err != nil {
		return nil, q.server.Explain(err)
	}
	all := map[string]bool{}
	var uuid string
	_, err = pgx.ForEachRow(rows, []any{&uuid}, func() error { all[uuid] = true; return nil })
	return all, q.server.Explain(err)
}

// Run calls work for each run that this process is woken for, so many side by side, until ctx ends,
// and then waits for those that are under way. work returns after how long the run is to be
// offered again, 0 for not.
func (q *Queue) Run(ctx context.Context, places int, work func(uuid string) (again time.Duration)) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, j *river.Job[run]) error {
		if ctx.Err() != nil {
			return river.JobSnooze(0) // another process has it
		}
		if again := work(j.Args.UUID); again > 0 {
			return river.JobSnooze(again)
		}
		return nil
	}))
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, j *river.Job[round]) error {
		if l := q.led.Load(); l != nil {
			l.round(j.Args.Name, q.every[j.Args.Name])
		}
		return nil // it comes round again
	}))
	c, ours := q.config, river.QueueConfig{MaxWorkers: places}
	c.Workers, c.Queues = workers, map[string]river.QueueConfig{runs: ours}
	var err error
	if q.client, err = river.NewClient(riverpgxv5.New(q.server.Pool()), &c); err != nil {
		return fmt.Errorf("queue in %s: %w", q.server.Name(), err)
	}
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return q.server.Explain(err)
	}
	close(q.works)
	for left := false; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-q.told:
			leaves := q.leaves.Load()
			if leaves == left {
				continue
			}
			if leaves {
				err = q.client.Queues().Remove(ctx, runs) // which waits for what is worked on
			} else {
				err = q.client.Queues().Add(runs, ours)
			}
			if left = leaves; err != nil && ctx.Err() == nil {
				q.config.Logger.Error("Whether this process takes runs: " + err.Error())
			}
		}
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return q.client.Stop(late)
}

// Take says whether this process is to be woken for runs, as it is until it is told otherwise. One that
// is woken and begins nothing would keep a run from those that have a place. It returns at once; a run that
// is worked on goes on.
func (q *Queue) Take(take bool) {
	q.leaves.Store(!take)
	select {
	case q.told <- struct{}{}:
	default: // Run has yet to look
	}
}

// Lead has this process do what comes round until ctx ends, while Run works. do has what each
// round consists of, by its name; it gets ctx. Of one name one is done at a time.
func (q *Queue) Lead(ctx context.Context, do map[string]func(context.Context)) error {
	select {
	case <-q.works:
	case <-ctx.Done():
		return nil
	}
	l := leader{}
	for name, f := range do {
		l[name] = &duty{do: func() { f(ctx) }}
	}
	q.led.Store(&l)
	if err := q.client.Queues().Add(rounds, river.QueueConfig{MaxWorkers: 2 * len(do)}); err != nil {
		return fmt.Errorf("queue in %s: %w", q.server.Name(), err)
	}
	<-ctx.Done()
	return nil
}
