package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/queue"
	"toritsugi/internal/task"
)

// Tasks are worked on by processes on PostgreSQL that River wakes, beside one process on files and
// beside jobs of River that do nothing.
const (
	clusterTasks   = 1000
	clusterTurns   = 20
	clusterWorkers = 4
	clusterPlaces  = 4 // of each process
	clusterNoops   = 20_000
)

// The figures of a server, of one task.
const (
	walBytes   = "WAL, KiB"
	tableBytes = "tables, KiB"
)

// cluster are the figures: of files, and of so many processes on the server.
type cluster struct{ files, one, four, noop sample }

// cluster measures them.
func (b *bench) cluster(ctx context.Context, address string) (c *cluster, err error) {
	c = &cluster{}
	dir, err := os.MkdirTemp(b.dir, "cluster-")
	if err != nil {
		return nil, err
	}
	note("%d tasks of %d turns: one process on files", clusterTasks, clusterTurns)
	if c.files, err = measurePool(ctx, filepath.Join(dir, "files"), clusterTasks, clusterPlaces, clusterTurns); err != nil {
		return nil, err
	}
	for n, to := range map[int]*sample{1: &c.one, clusterWorkers: &c.four} {
		note("the same, %d processes on PostgreSQL", n)
		if *to, err = b.workers(ctx, filepath.Join(dir, strconv.Itoa(n)), databaseURL(address, fmt.Sprint("cluster_", n)), n); err != nil {
			return nil, err
		}
	}
	note("%d jobs of River that do nothing", clusterNoops)
	c.noop, err = noops(ctx, filepath.Join(dir, "noop"), databaseURL(address, "noop"))
	return c, err
}

// seat is a store on a server, as a process of its own machine has it, and the queue there.
type seat struct {
	store  *contextstore.Store
	queue  *queue.Queue
	server *database.Server
	close  func() error
}

func sit(ctx context.Context, base, url string) (s *seat, err error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	server, err := database.Dial(ctx, database.ServerOptions{URL: url})
	if err != nil {
		return nil, err
	}
	db, err := tables.OpenPostgres(ctx, tables.Options{Base: base}, server)
	if err != nil {
		server.Close()
		return nil, err
	}
	unmount, release := disk.Mount(base, db), server.Serve(base)
	s = &seat{server: server}
	s.close = func() error {
		err := errors.Join(s.store.Close(), db.Close())
		release()
		unmount()
		server.Close()
		return err
	}
	if s.store, err = openStore(ctx, base, contextstore.Options{}); err == nil {
		s.queue, err = queue.Open(ctx, server, s.store.Turn, nil, slog.New(slog.DiscardHandler))
	}
	return s, err
}

// wal is how many bytes of WAL the server has written.
func (s *seat) wal(ctx context.Context) (float64, error) {
	return s.number(ctx, `SELECT pg_current_wal_lsn() - '0/0'`)
}

func (s *seat) number(ctx context.Context, query string) (n float64, err error) {
	err = s.server.Pool().QueryRow(ctx, `SELECT (`+query+`)::float8`).Scan(&n)
	return n, err
}

// workers has the tasks worked on by so many processes.
func (b *bench) workers(ctx context.Context, dir, url string, n int) (s sample, err error) {
	at, err := sit(ctx, filepath.Join(dir, "base"), url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	var uuids []string
	for i := range clusterTasks {
		k := task.Key{Source: "github", Owner: "o", Repo: "r" + strconv.Itoa(i%50), Type: task.TypeIssue, ID: strconv.Itoa(i)}
		uuid, err := at.store.Enqueue(ctx, contextstore.Metadata{TaskKey: k, User: "u" + strconv.Itoa(i%20), Title: "Task " + k.ID})
		if err != nil {
			return nil, err
		}
		uuids = append(uuids, uuid)
	}
	if err := at.queue.Offer(ctx, uuids...); err != nil {
		return nil, err
	}
	var all []*exec.Cmd
	var ends []io.Closer
	for i := range n {
		cmd := exec.CommandContext(ctx, b.self, "cluster", filepath.Join(dir, fmt.Sprint("w", i)), url)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, err
		}
		all, ends = append(all, cmd), append(ends, in)
	}
	s = sample{}
	before, err := at.wal(ctx)
	if err != nil {
		return nil, err
	}
	ms, err := stopwatch(func() error {
		for {
			l, err := contextstore.List(ctx, at.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{Status: task.Completed, Limit: 1})
			if err != nil || l.Total == clusterTasks {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	for i, cmd := range all {
		err = errors.Join(err, ends[i].Close(), cmd.Wait())
	}
	wrong := 0
	for _, uuid := range uuids {
		v, verr := at.store.View(uuid)
		err = errors.Join(err, verr)
		if v.Status() != task.Completed || v.State.Generation != 1 || v.State.LLMCallCount != clusterTurns {
			wrong++
		}
	}
	after, werr := at.wal(ctx)
	size, serr := at.number(ctx, `SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'`)
	err = errors.Join(err, werr, serr)
	s[walBytes], s[tableBytes] = (after-before)/clusterTasks/1024, size/clusterTasks/1024
	s[taskRate], s[turnRate], s[wrongTasks] = clusterTasks/ms*1000, clusterTasks*clusterTurns/ms*1000, float64(wrong)
	return s, err
}

// clusterMain is one of the processes. It works until its input ends.
func clusterMain(ctx context.Context, dir, url string) (err error) {
	at, err := sit(ctx, filepath.Join(dir, "base"), url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	w, err := newScripted(dir, clusterTurns)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	dispatch.NewPool(dispatch.PoolOptions{Store: at.store, Queue: at.queue, Sources: map[string]bool{"github": true}, Limits: dispatch.Limits{Max: clusterPlaces}, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Stats: &dispatch.Stats{}, Work: w.work,
		Claim: func(ctx context.Context, uuid string) (*contextstore.Context, error) {
			c, _, err := at.store.Claim(ctx, uuid)
			return c, err
		},
		Ended: func(_ task.Key, _ agent.Report, err error) {
			if err != nil {
				w.fail(err)
				stop()
			}
		}}).Run(working)
	return w.failed
}

// noops has River hand out jobs that do nothing to one process.
func noops(ctx context.Context, dir, url string) (s sample, err error) {
	at, err := sit(ctx, filepath.Join(dir, "base"), url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	uuids := make([]string, clusterNoops)
	for i := range uuids {
		uuids[i] = strconv.Itoa(i)
	}
	if err := at.queue.Offer(ctx, uuids...); err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var done atomic.Int64
	var once sync.Once
	ms, err := stopwatch(func() error {
		return at.queue.Run(working, clusterWorkers*clusterPlaces, func(string) time.Duration {
			if done.Add(1) == clusterNoops {
				once.Do(stop)
			}
			return 0
		})
	})
	return sample{taskRate: clusterNoops / ms * 1000}, err
}

// cluster prints the figures.
func (r *report) cluster(c *cluster) {
	if c == nil {
		return
	}
	r.title(fmt.Sprintf("%d tasks of %d turns", clusterTasks, clusterTurns), "files, 1", "postgres, 1", fmt.Sprintf("postgres, %d", clusterWorkers), "no-op jobs")
	three := func(name string) []float64 { return []float64{c.files[name], c.one[name], c.four[name]} }
	r.row("tasks per second", "%.0f", append(three(taskRate), c.noop[taskRate]), "")
	r.row("turns per second", "%.0f", three(turnRate), "")
	r.row("WAL of a task, KiB", "%.0f", []float64{c.one[walBytes], c.four[walBytes]}, "")
	r.row("tables and indexes of a task, KiB", "%.0f", []float64{c.one[tableBytes], c.four[tableBytes]}, "")
	r.row("lost or run twice", "%.0f", three(wrongTasks), r.verdict(0, "", three(wrongTasks)...))
}
