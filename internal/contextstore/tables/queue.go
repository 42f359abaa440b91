package tables

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// queue is what is to be written to a context and not yet committed. It is committed in
// one transaction: when something of it must be, when it has grown, or soon.
type queue struct {
	db      *DB
	context int64

	mu     sync.Mutex
	owner  *lock // that every write needs, nil where nobody here owns the context
	ops    []op
	bytes  int
	timer  *time.Timer
	err    error // of a commit that nobody waited for; the next one tells it
	behind bool  // something was committed that is not durable
	uses   int   // handles and locks that keep the queue
}

// op is one call's part of a transaction.
type op struct {
	file    string // the name of the file that it changes; "" for all of them
	replace bool   // it overwrites what is in the file
	stmts   []stmt
	bytes   int
	done    func() (bool, error) // whether it was committed, where the answer got lost; nil of what may be done twice
	failed  func(error)          // hears that it was not committed; nil where who puts it waits, or the next caller is told
	owner   *lock                // that it was begun under, nil where nobody here owned the context
}

// When a queue is committed: after soon, so that who reads elsewhere sees what was
// written, and when it holds so many bytes.
const (
	soon      = 250 * time.Millisecond
	mostQueue = 1 << 20
)

// queueOf is the queue of a context, kept until it is left as often as it was asked for.
func (d *DB) queueOf(context int64) *queue {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[context]
	if q == nil {
		q = &queue{db: d, context: context}
		d.queues[context] = q
	}
	q.uses++
	return q
}

// leave gives the queue up once what is in it is committed.
func (q *queue) leave() error {
	err := q.flush()
	q.db.mu.Lock()
	defer q.db.mu.Unlock()
	if q.uses--; q.uses == 0 {
		delete(q.db.queues, q.context)
	}
	return err
}

// part gives the queue up without waiting for what is in it.
func (q *queue) part() {
	q.mu.Lock()
	empty := len(q.ops) == 0 && q.owner == nil
	q.mu.Unlock()
	q.db.mu.Lock()
	defer q.db.mu.Unlock()
	if q.uses--; q.uses == 0 && empty {
		delete(q.db.queues, q.context)
	}
}

// holder is the lock of the context's owner, nil where nobody here is.
func (q *queue) holder() *lock {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.owner
}

// pending reports whether something of a file is not committed.
func (d *DB) pending(context int64, file string) *queue {
	d.mu.Lock()
	q := d.queues[context]
	d.mu.Unlock()
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range q.ops {
		if file == "" || o.file == "" || o.file == file {
			return q
		}
	}
	return nil
}

// put adds a write, to be committed soon.
func (q *queue) put(o op) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.take(o); err != nil {
		return err
	}
	if same := func(before op) bool { return before.file == o.file }; o.replace && !slices.ContainsFunc(q.ops, func(before op) bool { return same(before) && !before.replace }) {
		q.ops = slices.DeleteFunc(q.ops, same) // what it overwrites is not written
	}
	q.ops = append(q.ops, o)
	if q.bytes += o.bytes; q.bytes > mostQueue || q.db.engine.atOnce() {
		return q.commit(false)
	}
	if q.timer == nil {
		q.timer = time.AfterFunc(soon, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.timer = nil
			if err := q.commit(false); err != nil && q.err == nil {
				q.err = err
			}
		})
	}
	return nil
}

// flush commits what is in the queue, and more.
func (q *queue) flush(more ...op) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.take(more...); err != nil {
		return err
	}
	q.ops = append(q.ops, more...)
	return q.commit(true)
}

// take returns the error that nobody has heard of, or why more is not written: another owns the
// context by now.
func (q *queue) take(more ...op) error {
	for _, o := range more {
		if o.owner != nil && !o.owner.Held("") {
			return demanded(mustOwn)
		}
	}
	err := q.err
	q.err = nil
	return err
}

// commit is flush for who has mu.
func (q *queue) commit(durable bool) error {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	ops := q.ops
	q.ops, q.bytes = nil, 0
	if durable && len(ops) == 0 && q.behind { // what was committed so far has to be durable
		ops = []op{{stmts: []stmt{{sql: `UPDATE contexts SET made_at = made_at WHERE id = ?`, args: []any{q.context}}}}}
	}
	if len(ops) == 0 {
		return nil
	}
	var all []stmt
	if q.owner != nil {
		all = append(all, q.owner.fence())
	}
	for _, o := range ops {
		all = append(all, o.stmts...)
	}
	var done func() (bool, error)
	for _, o := range ops { // all of it was committed, or nothing
		if o.done != nil {
			done = o.done
		}
	}
	err := q.db.commit(all, durable, done)
	q.db.commits.Add(1)
	if err != nil {
		for _, o := range ops {
			if o.failed != nil {
				o.failed(err)
			}
		}
	}
	q.behind = err == nil && !durable || q.behind && err != nil
	if q.owner != nil && errors.Is(err, demanded(mustOwn)) {
		q.owner.lose()
	}
	return err
}

// commit executes statements in one transaction.
func (d *DB) commit(all []stmt, durable bool, done func() (bool, error)) error {
	return d.reach(func(ctx context.Context) error { return d.engine.run(ctx, all, durable) }, done)
}
