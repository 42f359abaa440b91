package tables

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"toritsugi/internal/disk"
)

// lock is a lock that is held: a row with a token of the holder's, which is taken over once
// it was not renewed for the time of a lease, or its process is known to be gone.
type lock struct {
	db    *DB
	queue *queue
	at    place  // where it lies now
	name  string // of the file
	token string
	lost  bool // another has it by now
}

// self names this process: where it is, its number, and when it began.
var self = sync.OnceValue(func() string {
	return here() + "/" + strconv.Itoa(os.Getpid()) + "/" + begun(os.Getpid())
})

// here names what process numbers mean something in: a start of a machine, and a namespace of it.
var here = sync.OnceValue(func() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + "," + space
})

// begun is when a process of this machine began, in its kernel's ticks, "" where there is
// none (proc(5), "stat", the 22nd field).
func begun(pid int) string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	rest := string(raw)
	rest = rest[strings.LastIndex(rest, ") ")+1:] // behind the name, which may hold anything
	if fields := strings.Fields(rest); len(fields) > 19 && fields[0] != "Z" {
		return fields[19]
	}
	return ""
}

// gone reports whether the process of a token was one of this machine and is there no more.
func gone(token string) bool {
	boot, rest, _ := strings.Cut(token, "/")
	number, rest, _ := strings.Cut(rest, "/")
	when, _, _ := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(number)
	if err != nil || boot != here() || begun(pid) == when {
		return false
	}
	return begun(pid) != "" || !errors.Is(syscall.Kill(pid, 0), syscall.EPERM) // another user's may not be looked into
}

// Lock implements disk.Place.
func (d *DB) Lock(path string, create bool) (disk.Lock, error) {
	p, err := d.at("lock", path)
	if err != nil {
		return nil, err
	}
	r, err := d.current(p, false)
	if err == nil && !r.found {
		if err = fs.ErrNotExist; create {
			r, err = d.make(p, r.context, 0, false)
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	l := &lock{db: d, at: p, name: filepath.Base(p.file), token: self() + "/" + rand.Text()}
	dead, alive, err := d.holder(r.context, p.file)
	if err != nil {
		return nil, err
	}
	if alive != "" {
		return nil, fmt.Errorf("lock %s: %w", path, disk.ErrLocked)
	}
	err = d.commit([]stmt{{sql: `INSERT INTO locks (context, name, token, until_ms) SELECT id, ?, ?, {now} + ? FROM contexts WHERE id = ?
		ON CONFLICT (context, name) DO UPDATE SET token = excluded.token, until_ms = excluded.until_ms WHERE locks.until_ms < {now} OR locks.token = ?`,
		args: []any{p.file, l.token, d.Lease.Milliseconds(), r.context, dead}, must: mustFree}}, true,
		func() (bool, error) {
			_, token, err := d.holder(r.context, p.file)
			return token == l.token, err
		})
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	l.queue = d.queueOf(r.context)
	if l.name == disk.OwnerLock {
		l.queue.mu.Lock()
		if before := l.queue.owner; before != nil { // of this process, and its lease ended
			before.lose()
		}
		l.queue.owner = l
		l.queue.mu.Unlock()
	}
	d.mu.Lock()
	d.locks[l] = true
	d.mu.Unlock()
	if now, err := d.look(p, false); err != nil || now.context != r.context || !now.found { // it was moved or removed meanwhile
		l.Release()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: cmp.Or(err, fs.ErrNotExist)}
	}
	return l, nil
}

// holder is the token that a lock is held with, "" where it is free; dead is that of a holder
// that is known to be gone.
func (d *DB) holder(context int64, name string) (dead, token string, err error) {
	err = d.query(`SELECT token FROM locks WHERE context = ? AND name = ? AND until_ms >= {now}`, []any{context, name}, func(scan func(...any) error) error { return scan(&token) }, func() { token = "" })
	if token != "" && gone(token) {
		return token, "", err
	}
	return "", token, err
}

// Locked implements disk.Place.
func (d *DB) Locked(path string) bool {
	p, err := d.at("lock", path)
	if err != nil {
		return false
	}
	r, err := d.look(p, false)
	if err != nil {
		return false
	}
	_, token, err := d.holder(r.context, p.file)
	return err == nil && token != ""
}

// fence is the statement that lets nothing be written without the lock.
func (l *lock) fence() stmt {
	return stmt{sql: `SELECT 1 FROM locks WHERE context = ? AND name = ? AND token = ?`, args: []any{l.queue.context, l.file(), l.token}, must: mustOwn}
}

// file is the name of the file in its context.
func (l *lock) file() string {
	l.db.mu.Lock()
	defer l.db.mu.Unlock()
	return l.at.file
}

// Write implements disk.Lock.
func (l *lock) Write(b []byte) error {
	l.db.mu.Lock()
	path := filepath.Join(l.db.Base, l.at.area, l.at.name, l.at.file)
	l.db.mu.Unlock()
	return l.db.Replace(path, b, false)
}

// Held implements disk.Lock.
func (l *lock) Held(string) bool {
	l.db.mu.Lock()
	defer l.db.mu.Unlock()
	return !l.lost
}

// lose notes that another has the lock.
func (l *lock) lose() {
	l.db.mu.Lock()
	defer l.db.mu.Unlock()
	l.lost = true
}

// Release implements disk.Lock.
func (l *lock) Release() {
	l.db.mu.Lock()
	held := l.db.locks[l]
	delete(l.db.locks, l)
	l.db.mu.Unlock()
	if !held {
		return
	}
	_ = l.queue.flush() // what nobody waited for; a fault showed before, or shows at the next owner's
	l.queue.mu.Lock()
	if l.queue.owner == l {
		l.queue.owner = nil
	}
	l.queue.mu.Unlock()
	_ = l.queue.leave()
	// Where the database cannot be reached the lease ends by itself.
	ctx, cancel := context.WithTimeout(l.db.ctx, l.db.Lease/4)
	defer cancel()
	_ = l.db.engine.run(ctx, []stmt{{sql: `DELETE FROM locks WHERE context = ? AND token = ?`, args: []any{l.queue.context, l.token}}}, false)
}

// renew keeps the leases of all locks that are held.
func (d *DB) renew() {
	t := time.NewTicker(d.Lease / 4)
	defer t.Stop()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-t.C:
		case <-d.back:
		}
		d.mu.Lock()
		held := slices.Collect(maps.Keys(d.locks))
		d.mu.Unlock()
		if len(held) == 0 {
			continue
		}
		ours, err := d.renewed(held)
		for _, l := range held {
			if err == nil && !ours[l.token] {
				l.lose()
			}
		}
	}
}

// renewed renews leases, and tells the tokens of those that are still ours. A lock that could not be
// released is not among them, so that it ends.
func (d *DB) renewed(held []*lock) (ours map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(d.ctx, d.Lease/4)
	defer cancel()
	var tokens []string
	for _, l := range held {
		tokens = append(tokens, l.token)
	}
	list, err := json.Marshal(tokens)
	if err != nil {
		return nil, err
	}
	const which = ` WHERE token IN (SELECT value FROM {each})`
	if err := d.engine.run(ctx, []stmt{{sql: `UPDATE locks SET until_ms = {now} + ?` + which, args: []any{d.Lease.Milliseconds(), string(list)}}}, false); err != nil {
		return nil, err
	}
	ours = map[string]bool{}
	return ours, d.engine.query(ctx, `SELECT token FROM locks`+which, []any{string(list)}, func(scan func(...any) error) error {
		var token string
		err := scan(&token)
		ours[token] = true
		return err
	})
}
