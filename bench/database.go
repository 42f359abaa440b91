package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"toritsugi/internal/contextstore/database/pgtest"
)

// Turns are measured with the contexts in files, in SQLite and in PostgreSQL, beside the floor. The
// server is one of its own as it is installed, on the same disk, reached over loopback.

// databaseTurns are the turns of the runs.
var databaseTurns = []int{100, 1000}

// The budgets (docs/database.md).
const (
	maxBareCommits  = 4.0 // of time per turn above files, in bare transactions
	maxTransactions = 2.0 // that append, per turn
)

// databases are the figures by turns and kind.
type databases struct {
	kinds []string
	of    map[int]map[string]sample
	bare  map[int][]time.Duration // BEGIN; INSERT; COMMIT, beside the runs
	turn  conversing              // of the long runs

	cluster *cluster
}

// databases measures each kind in turns, and what shares a server, or that alone.
func (b *bench) databases(ctx context.Context, runs int, alone bool) (d *databases, err error) {
	d = &databases{kinds: []string{"floor", "files", "sqlite"}, of: map[int]map[string]sample{}, bare: map[int][]time.Duration{}}
	server, address, err := b.postgres()
	if err != nil {
		note("only SQLite is measured: %v", err)
	} else {
		defer server.Close()
		d.kinds = append(d.kinds, "postgres")
	}
	if alone {
		if err == nil {
			d.cluster, err = b.cluster(ctx, address)
		}
		return d, err
	}
	all := map[int]map[string][]sample{}
	for _, turns := range databaseTurns {
		all[turns], d.of[turns] = map[string][]sample{}, map[string]sample{}
	}
	for k := range runs {
		for _, turns := range databaseTurns {
			for i := range d.kinds {
				kind := d.kinds[(i+k)%len(d.kinds)]
				note("round %d of %d: %d turns, %s", k+1, runs, turns, kind)
				if kind == "postgres" { // beside it, for a disk is not as fast at each time
					some, err := bareCommits(ctx, databaseURL(address, "bare"), max(1, syncSamples/runs))
					if err != nil {
						return nil, err
					}
					d.bare[turns] = append(d.bare[turns], some...)
				}
				s, err := b.inDatabase(ctx, kind, turns, address)
				if err != nil {
					return nil, fmt.Errorf("%s, %d turns: %w", kind, turns, err)
				}
				all[turns][kind] = append(all[turns][kind], s)
			}
		}
	}
	for turns, kinds := range all {
		for kind, some := range kinds {
			d.of[turns][kind] = medians(some)
		}
	}
	if server == nil {
		return d, nil
	}
	if d.turn, err = b.conversing(ctx, address); err != nil {
		return nil, err
	}
	d.cluster, err = b.cluster(ctx, address)
	return d, err
}

// inDatabase makes one run.
func (b *bench) inDatabase(ctx context.Context, kind string, turns int, address string) (sample, error) {
	p := plan{turns: turns, context: largeContext}
	switch kind {
	case "floor":
		return b.floor(ctx, p)
	case "sqlite":
		p.backend = kind
	case "postgres":
		p.backend, p.url = kind, databaseURL(address, fmt.Sprint("run_", b.runs))
	}
	return b.agent(ctx, p)
}

// postgres starts a server; bench makes its directory.
func (b *bench) postgres() (s *pgtest.Server, address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	address = l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, "", err
	}
	dir := filepath.Join(b.dir, "pg")
	if err := errors.Join(os.Chmod(b.dir, 0o711), os.Mkdir(dir, 0o700), os.Chmod(dir, os.ModeSticky|0o777)); err != nil {
		return nil, "", err
	}
	s, err = pgtest.Start(dir, l.Addr().(*net.TCPAddr).Port)
	return s, address, err
}

func databaseURL(address, schema string) string {
	return "postgres://tori@" + address + "/postgres?sslmode=disable&search_path=" + schema
}

// bareCommits measures transactions of one message and one row of 1.5 KB.
func bareCommits(ctx context.Context, url string, n int) (all []time.Duration, err error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	if _, err := c.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS bare; CREATE TABLE IF NOT EXISTS bare (id bigserial PRIMARY KEY, raw text)`); err != nil {
		return nil, err
	}
	for range n {
		start := time.Now()
		if _, err := c.Exec(ctx, `BEGIN; INSERT INTO bare (raw) VALUES (repeat('x', 1536)); COMMIT`); err != nil {
			return nil, err
		}
		all = append(all, time.Since(start))
	}
	return all, nil
}

// conversing is what is said to the server for a turn.
type conversing struct {
	trips, reads, appends, others float64 // round trips: all; that only read; of several statements, which append; that write a row
}

// conversing counts between the ends of a short and of a long run, with somebody between who reads
// what the server says.
func (b *bench) conversing(ctx context.Context, server string) (c conversing, err error) {
	first, last := databaseTurns[0], databaseTurns[len(databaseTurns)-1]
	for _, turns := range []int{first, last} {
		note("round trips of %d turns", turns)
		p, err := listenBetween(server)
		if err != nil {
			return c, err
		}
		_, err = b.inDatabase(ctx, "postgres", turns, p.l.Addr().String())
		if err = errors.Join(err, p.close()); err != nil {
			return c, err
		}
		for n, to := range []*float64{&c.trips, &c.appends, &c.others} {
			*to = float64(p.counts[n].Load()) - *to
		}
	}
	for _, n := range []*float64{&c.trips, &c.appends, &c.others} {
		*n /= float64(last - first)
	}
	c.reads = c.trips - c.appends - c.others
	return c, nil
}

// between stands between clients and a server of PostgreSQL, and counts.
type between struct {
	l      net.Listener
	server string
	done   sync.WaitGroup
	counts [3]atomic.Int64 // round trips: all; of several statements; that write a row
}

func listenBetween(server string) (*between, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &between{l: l, server: server}
	b.done.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			b.done.Go(func() { b.serve(client) })
		}
	})
	return b, nil
}

// close waits for the clients that are there.
func (b *between) close() error {
	err := b.l.Close()
	b.done.Wait()
	return err
}

func (b *between) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", b.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	b.done.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.(*net.TCPConn).CloseWrite()
	})
	b.count(io.TeeReader(server, client))
}

// count reads messages: a letter, a length with itself, the rest. ReadyForQuery ends a round trip,
// CommandComplete says what was done (postgresql.org/docs/current/protocol-message-formats.html).
func (b *between) count(r io.Reader) {
	said, writes := 0, false
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(r, head); err != nil {
			return
		}
		rest := int64(binary.BigEndian.Uint32(head[1:])) - 4
		if head[0] == 'C' {
			tag := make([]byte, rest)
			if _, err := io.ReadFull(r, tag); err != nil {
				return
			}
			said++
			writes = !bytes.HasPrefix(tag, []byte("SELECT"))
			continue
		}
		if _, err := io.CopyN(io.Discard, r, rest); err != nil {
			return
		}
		if head[0] != 'Z' {
			continue
		}
		b.counts[0].Add(1)
		if said > 1 {
			b.counts[1].Add(1)
		} else if writes {
			b.counts[2].Add(1)
		}
		said, writes = 0, false
	}
}

func (r *report) databases(d *databases) {
	if d == nil {
		return
	}
	defer r.cluster(d.cluster)
	if len(d.of) == 0 {
		return
	}
	var columns []string
	for _, n := range databaseTurns {
		for _, k := range d.kinds {
			columns = append(columns, fmt.Sprintf("%s %d", k, n))
		}
	}
	r.title("Contexts in a database (turns of the run above)", columns...)
	cells := func(name string) (all []float64) {
		for _, n := range databaseTurns {
			for _, k := range d.kinds {
				f, ok := d.of[n][k][name]
				if !ok {
					f = math.NaN()
				}
				all = append(all, f)
			}
		}
		return all
	}
	r.row("overhead, tool included: median, ms", "%.2f", cells(overhead), "")
	r.row("tool: mean, ms", "%.2f", cells(tool), "")
	r.row("own time: median overhead − tool, ms", "%.2f", cells(own), "")
	r.row("own time in the last tenth, ms", "%.2f", cells(ownLast), "")
	r.row("own time: mean, ms", "%.2f", cells(ownMean), "")
	r.row("own CPU, ms", "%.0f", cells(cpu), "")
	r.row("wall time, ms", "%.0f", cells(wall), "")
	r.row("peak memory, MiB", "%.1f", cells(peak), "")
	if len(d.bare) == 0 {
		return
	}
	var above, judged []float64 // the last tenth of a short run is ten turns, which tell nothing
	for _, n := range databaseTurns {
		bare := inMS(d.bare[n])
		_, _ = fmt.Fprintf(r.w, "One BEGIN; INSERT; COMMIT there, beside %d turns: median %.3f ms (p95 %.3f, of %d)\n", n, median(bare), quantile(bare, 0.95), len(bare))
		for _, name := range []string{own, ownLast} {
			above = append(above, (d.of[n]["postgres"][name]-d.of[n]["files"][name])/median(bare))
		}
		judged = append(judged, above[len(above)-2])
	}
	r.row("PostgreSQL above files, in these; last tenth", "%.2f", above, r.verdict(maxBareCommits, " each turn", judged...))
	r.row("round trips per turn of the long run", "%.2f", []float64{d.turn.trips}, "")
	last := databaseTurns[len(databaseTurns)-1]
	turn := d.turn.appends - d.of[last]["files"][events]/float64(last)
	r.row("  that append, each a transaction", "%.2f", []float64{d.turn.appends}, r.verdict(maxTransactions, ", without decisions of the window", turn))
	r.row("  that write a row of a run", "%.2f", []float64{d.turn.others}, "")
	r.row("  that read, for the window", "%.2f", []float64{d.turn.reads}, "")
}
