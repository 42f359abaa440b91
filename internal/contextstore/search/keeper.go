package search

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Keeper brings search.db in line with runs as they end, are summed up, or are removed: behind what
// is waited for, one after the other. Where there is no search.db nothing is kept, until somebody
// looks for something (Open, CatchUp), or Fill makes one. Its methods may be called from several goroutines.
type Keeper struct {
	o     Options
	tell  func(error) // hears of errors, which fail nothing
	db    *DB         // its loop's alone
	ctx   context.Context
	close context.CancelFunc

	mu      sync.Mutex
	changed []string
	fill    bool          // all that is missing is to be put in, too
	idle    chan struct{} // closed when the loop has ended; nil where none is at work
	closed  bool
}

// NewKeeper is a keeper at rest; nothing is opened.
func NewKeeper(o Options, tell func(error)) *Keeper {
	k := &Keeper{o: o, tell: tell}
	k.ctx, k.close = context.WithCancel(context.Background())
	return k
}

// Changed notes that a run ended, or that its summary or its logs changed, or that it was removed. It
// does not wait.
func (k *Keeper) Changed(uuid string) {
	if Exists(k.o.BaseDir) {
		k.begin(func() { k.changed = append(k.changed, uuid) })
	}
}

// Fill makes search.db, where there is none, and puts in what is missing. It does not wait.
func (k *Keeper) Fill() { k.begin(func() { k.fill = true }) }

func (k *Keeper) begin(note func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	note()
	if k.idle == nil {
		k.idle = make(chan struct{})
		go k.work(k.idle)
	}
}

// work does what is noted until nothing is left.
func (k *Keeper) work(done chan struct{}) {
	defer close(done)
	for {
		k.mu.Lock()
		uuids, fill := k.changed, k.fill
		k.changed, k.fill = nil, false
		if len(uuids) == 0 && !fill {
			k.idle = nil
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		if err := k.do(uuids, fill); err != nil && k.ctx.Err() == nil {
			k.tell(err)
		}
	}
}

func (k *Keeper) do(uuids []string, fill bool) (err error) {
	if k.db == nil {
		if k.db, err = Open(k.ctx, k.o); err != nil {
			return err
		}
	}
	for _, uuid := range uuids {
		if uerr := k.db.Update(k.ctx, uuid); uerr != nil {
			err = errors.Join(err, fmt.Errorf("run %s: %w", uuid, uerr))
		}
	}
	if fill {
		err = errors.Join(err, k.db.CatchUp(k.ctx, nil))
	}
	return errors.Join(err, k.db.embed(k.ctx))
}

// keepTime is how long Close lets what is noted be put in.
const keepTime = 2 * time.Second

// Close waits a moment for what is noted, and closes the database. What was left is made up for by
// the next CatchUp.
func (k *Keeper) Close() error {
	k.mu.Lock()
	k.closed = true
	idle := k.idle
	k.mu.Unlock()
	if idle != nil {
		t := time.AfterFunc(keepTime, k.close)
		<-idle
		t.Stop()
	}
	k.close()
	if k.db == nil {
		return nil
	}
	return k.db.Close()
}
