// Package tables keeps the directories of contexts in tables of a database, for who mounts
// it at the base directory (disk.Mount): what a context is stays as it is in files, a line
// is a row, and who owns a directory is told by a lease.
package tables

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what a DB keeps, and how.
type Options struct {
	Base  string        // the directory that it is mounted at, absolute and clean
	Lease time.Duration // how long a lock outlives its holder; 0 means 60 s (store-v2 §3.6)
	// Waiting hears that the database cannot be reached, and with nil that it can again; may be nil.
	Waiting func(err error)
	// Object reads an object that MoveOut had made, of at most most bytes, and proves it by its name.
	Object func(ctx context.Context, name string, most int64) ([]byte, error)
}

// areas are the directories of contexts below a base directory, and rootFiles the files beside them.
var (
	areas     = []string{"queued", "running", "paused", "completed", "sessions"}
	rootFiles = []string{"audit.jsonl", "audit.jsonl.cut", "auto_approve.jsonl", "auto_approve.jsonl.cut", ".keep.lock", ".serve.lock", ".inbox.lock", ".maintenance.lock", ".retention.lock", ".import.lock"}
)

// analyses begins the names of a database beside the conversations, and of what SQLite has beside that.
const analyses = "analyses.db"

// DB is a disk.Place.
type DB struct {
	Options
	engine engine
	ctx    context.Context // ends with the DB
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	queues map[int64]*queue // of the contexts that something is open or held of here
	locks  map[*lock]bool
	down   bool // the database cannot be reached

	commits atomic.Int64  // so many queues were committed
	back    chan struct{} // the database can be reached again
}

// closeWait is how long Close waits for a database that cannot be reached.
const closeWait = 4 * time.Second

// leaseTime is how long a lock outlives its holder (store-v2 §3.6).
const leaseTime = time.Minute

// start makes a DB of an engine whose schema is there.
func start(o Options, e engine) (*DB, error) {
	if o.Lease == 0 {
		o.Lease = leaseTime
	}
	if o.Waiting == nil {
		o.Waiting = func(error) {}
	}
	d := &DB{Options: o, engine: e, queues: map[int64]*queue{}, locks: map[*lock]bool{}, back: make(chan struct{}, 1)}
	d.ctx, d.stop = context.WithCancel(context.Background())
	if err := e.run(d.ctx, []stmt{{sql: `INSERT INTO contexts (area, name, made_at) VALUES ('', '', {now}) ON CONFLICT DO NOTHING`}}, false); err != nil {
		d.stop()
		return nil, errors.Join(err, e.close())
	}
	d.done.Go(d.renew)
	return d, nil
}

// Close commits what waits to be, gives up the locks that are held, and closes the database.
func (d *DB) Close() error {
	defer time.AfterFunc(closeWait, d.stop).Stop()
	d.mu.Lock()
	held, queues := slices.Collect(maps.Keys(d.locks)), slices.Collect(maps.Values(d.queues))
	d.mu.Unlock()
	var errs []error
	for _, q := range queues {
		errs = append(errs, q.flush())
	}
	for _, l := range held {
		l.Release()
	}
	d.stop()
	d.done.Wait()
	return errors.Join(append(errs, d.engine.close())...)
}

// place is a path within the tables.
type place struct{ area, name, file string }

// parse takes a path apart; ok is false where it is the kernel's.
func (d *DB) parse(path string) (p place, ok bool) {
	path, err := filepath.Abs(path)
	rel, below := strings.CutPrefix(path, d.Base+"/")
	if err != nil || !below {
		return p, false
	}
	p.area, rel, _ = strings.Cut(rel, "/")
	if slices.Contains(areas, p.area) {
		p.name, p.file, _ = strings.Cut(rel, "/")
		return p, !strings.HasPrefix(p.name, analyses)
	}
	for _, f := range rootFiles {
		if (p.area == f || p.area == "."+f+".tmp") && rel == "" {
			return place{file: p.area}, true
		}
	}
	return p, false
}

func (d *DB) at(op, path string) (place, error) {
	p, ok := d.parse(path)
	if !ok {
		return p, &fs.PathError{Op: op, Path: path, Err: errors.New("it does not lie in the database")}
	}
	return p, nil
}

// Has implements disk.Place.
func (d *DB) Has(path string) bool {
	_, ok := d.parse(path)
	return ok
}

// isArea reports whether a place is a directory of contexts, isContext whether it is one of these.
func (p place) isArea() bool    { return p.name == "" && p.file == "" }
func (p place) isContext() bool { return p.name != "" && p.file == "" }

// row is a file as its row describes it.
type row struct {
	context, id, size, version, changed int64
	made                                int64 // of the context
	raw                                 []byte
	found, whole                        bool // whole: raw is all of it
}

// atHand is how much of a file, in bytes, is read with its row: what is no longer is read
// as it was at one moment.
const atHand = 64 << 10

// look reads the row of a place, with what the file holds if that is asked for and little.
// The error is fs.ErrNotExist where there is no such context; found is false where there
// is no such file in it.
func (d *DB) look(p place, content bool) (r row, err error) {
	text := `SELECT c.id, c.made_at, f.id, f.size, f.version, f.changed_at, NULL FROM contexts c LEFT JOIN files f ON f.context = c.id AND f.name = ? WHERE c.area = ? AND c.name = ?`
	if content {
		text = fmt.Sprintf(`SELECT c.id, c.made_at, f.id, f.size, f.version, f.changed_at, l.raw FROM contexts c LEFT JOIN files f ON f.context = c.id AND f.name = ?
			LEFT JOIN lines l ON l.file = f.id AND f.size <= %d WHERE c.area = ? AND c.name = ? ORDER BY l.at`, atHand)
	}
	there := false
	err = d.query(text, []any{p.file, p.area, p.name}, func(scan func(...any) error) error {
		var id, size, version, changed *int64
		var raw []byte
		there = true
		if err := scan(&r.context, &r.made, &id, &size, &version, &changed, &raw); err != nil {
			return err
		}
		if id != nil {
			r.found, r.id, r.size, r.version, r.changed = true, *id, *size, *version, *changed
			r.raw = append(r.raw, raw...)
		}
		return nil
	}, func() { r, there = row{}, false })
	if err == nil && !there {
		err = fs.ErrNotExist
	}
	r.whole = content && r.found && r.size >= 0 && r.size <= atHand && int64(len(r.raw)) == r.size
	return r, err
}

// query asks the database, again where it cannot be reached.
// begin is called before each attempt, to forget what an earlier one told; it may be left out.
func (d *DB) query(text string, args []any, each func(scan func(...any) error) error, begin ...func()) error {
	return d.reach(func(ctx context.Context) error {
		for _, f := range begin {
			f()
		}
		return d.engine.query(ctx, text, args, each)
	}, nil)
}

// The pauses between two attempts to reach the database.
const (
	leastPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
)

// reach does something until the database can be reached for it, or is closed. What may have
// been done before its answer got lost is asked of done, where that is not nil.
func (d *DB) reach(f func(context.Context) error, done func() (bool, error)) error {
	var away error
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		ctx, cancel := context.WithTimeout(d.ctx, d.Lease/4)
		err := f(ctx)
		hangs := ctx.Err() != nil
		cancel()
		if err != nil && away != nil && d.ctx.Err() != nil { // closed before it was back
			return away
		}
		if err == nil || !hangs && !d.engine.unreachable(err) || d.ctx.Err() != nil {
			d.tell(nil)
			return err
		}
		d.tell(err)
		away = err
		select {
		case <-d.ctx.Done():
			return err
		case <-time.After(pause):
		}
		if done == nil {
			continue
		}
		if did, derr := done(); derr == nil && did {
			d.tell(nil)
			return nil
		}
	}
}

// tell says that the database cannot be reached, or can be again, once each.
func (d *DB) tell(err error) {
	d.mu.Lock()
	was := d.down
	d.down = err != nil
	d.mu.Unlock()
	if was == (err != nil) {
		return
	}
	d.Waiting(err)
	if err == nil { // leases may have ended meanwhile
		select {
		case d.back <- struct{}{}:
		default:
		}
	}
}

// number is a random number that no other file has had as its version.
func number() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.LittleEndian.Uint64(b[:]) & math.MaxInt64)
}
