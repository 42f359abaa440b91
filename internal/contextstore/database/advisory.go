package database

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"toritsugi/internal/contextstore/filelock"
)

// advisory are locks of a session of PostgreSQL: two numbers each, the schema's oid and which.
// They go with the connection, which is looked after (alive, tend).
type advisory struct {
	server *Server
	seen   atomic.Int64 // when the connection was known to live, in ns

	mu     sync.Mutex
	conn   *pgx.Conn              // nil until it is needed
	held   map[int64]heldAdvisory // on conn
	closed bool
	tended chan struct{} // closed at the end; nil before the first connection
	tender sync.WaitGroup
}

// heldAdvisory is how a lock is held: while exclusively, what was shared before stays.
type heldAdvisory struct{ shared, exclusive bool }

const (
	lockPatience = 10 * time.Second // for the answer to a change of a lock
	lookAgain    = 5 * time.Second  // between two looks at the connection

	// unheard is how long a process may stand still, with a lock or in a transaction: then the server
	// ends the connection, and others go on.
	unheard = time.Minute
)

// inMillis is a duration as a setting of the server.
func inMillis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// tend has the server hear of the connection.
func (a *advisory) tend() {
	t := time.NewTicker(unheard / 4)
	defer t.Stop()
	for {
		select {
		case <-a.tended:
			return
		case <-t.C:
		}
		a.mu.Lock()
		if a.conn != nil && !a.conn.IsClosed() {
			ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
			_ = a.conn.Ping(ctx) // the next look finds what is wrong
			cancel()
		}
		a.mu.Unlock()
	}
}

func (a *advisory) set(at int64, kind filelock.Kind) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	return a.change(ctx, at, kind)
}

// wait asks again and again: a question that ctx cuts short would cost the connection, and every
// lock that is held on it.
func (a *advisory) wait(ctx context.Context, at int64, kind filelock.Kind) error {
	return filelock.Poll(ctx, func() error { return a.set(at, kind) })
}

// same: an oid is of one schema for good.
func (a *advisory) same() bool { return true }

func (a *advisory) close() {
	defer a.tender.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed && a.tended != nil {
		close(a.tended)
	}
	if a.closed = true; a.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
		defer cancel()
		_ = a.conn.Close(ctx) // the locks go with it, also where it cannot be told
		a.conn = nil
	}
}

// errLost says that the connection was lost by which the place was had for itself.
var errLost = errors.New("the connection was lost")

// alive takes the shared lock again on a new connection where the server was restarted, or
// was away. Whoever had the place for itself must not go on then: errLost.
func (a *advisory) alive(ctx context.Context) error {
	if time.Since(time.Unix(0, a.seen.Load())) < lookAgain {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil && !a.conn.IsClosed() && a.conn.Ping(ctx) == nil {
		a.seen.Store(time.Now().UnixNano())
		return nil
	}
	return a.connect(ctx)
}

// connect opens the connection anew, with the shared lock that was held.
func (a *advisory) connect(ctx context.Context) error {
	if a.closed {
		return ErrClosed
	}
	had := a.held[byteHouse]
	if a.conn != nil {
		_ = a.conn.Close(ctx)
	}
	config := a.server.pool.Config().ConnConfig
	config.RuntimeParams["idle_session_timeout"] = inMillis(unheard)
	conn, err := pgx.ConnectConfig(ctx, config)
	if a.tended == nil {
		a.tended = make(chan struct{})
		a.tender.Go(a.tend)
	}
	a.conn, a.held = conn, map[int64]heldAdvisory{}
	if err == nil && (had.shared || had.exclusive) {
		err = a.take(ctx, byteHouse, filelock.Shared)
	}
	if err != nil {
		a.held[byteHouse] = had // to be tried again
		if conn != nil {
			_ = conn.Close(ctx)
		}
		return err
	}
	a.seen.Store(time.Now().UnixNano())
	if had.exclusive {
		return fmt.Errorf("have %s for itself: %w", a.server.name, errLost)
	}
	return nil
}

func (a *advisory) change(ctx context.Context, at int64, kind filelock.Kind) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn == nil || a.conn.IsClosed() {
		if err := a.connect(ctx); err != nil {
			return err
		}
	}
	err := a.take(ctx, at, kind)
	if err == nil {
		a.seen.Store(time.Now().UnixNano())
	}
	return err
}

// take changes a lock on the connection.
func (a *advisory) take(ctx context.Context, at int64, kind filelock.Kind) error {
	h := a.held[at]
	call := func(function string) error {
		var done bool
		if err := a.conn.QueryRow(ctx, `SELECT `+function+`($1::int4, $2::int4)`, a.server.schema, at).Scan(&done); err != nil {
			return err
		}
		if !done {
			return filelock.ErrLocked
		}
		return nil
	}
	var err error
	if kind == filelock.Exclusive && !h.exclusive {
		if err = call("pg_try_advisory_lock"); err == nil {
			h.exclusive = true
		}
	}
	if kind == filelock.Shared && !h.shared {
		if err = call("pg_try_advisory_lock_shared"); err == nil {
			h.shared = true
		}
	}
	if kind != filelock.Exclusive && h.exclusive && err == nil {
		err, h.exclusive = call("pg_advisory_unlock"), false
	}
	if kind == filelock.None && h.shared {
		err, h.shared = errors.Join(err, call("pg_advisory_unlock_shared")), false
	}
	a.held[at] = h
	return err
}
