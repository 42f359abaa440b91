package blobs

import (
	"context"
	"errors"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/workspace"
)

// Keeper stores the latest snapshot of one run's workspace beside its work, one after the other: the
// run waits for nothing but Flush. A nil one keeps nothing.
type Keeper struct {
	store *Store
	of    *contextstore.Context
	ws    *workspace.Workspace

	asks    chan ask // the latest
	flushes chan chan error
	stop    context.CancelFunc
	ended   chan struct{}
}

type ask struct {
	snapshot workspace.Snapshot
	seq      int64
}

const (
	// keepTime bounds the storing of one snapshot.
	keepTime = 10 * time.Minute
	// keepAgain is how long a place that failed is left alone.
	keepAgain = 30 * time.Second
	// keepShare bounds the share of the time in which snapshots are stored, for a tree whose changes
	// are large: one in so many.
	keepShare = 10
)

// Keeper begins to keep the workspace of a context that the caller owns.
func (s *Store) Keeper(c *contextstore.Context, ws *workspace.Workspace) *Keeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &Keeper{store: s, of: c, ws: ws, asks: make(chan ask, 1), flushes: make(chan chan error), stop: stop, ended: make(chan struct{})}
	go k.work(ctx)
	return k
}

// Keep has a snapshot stored, in place of one that still waits. It returns at once.
func (k *Keeper) Keep(s workspace.Snapshot) {
	if k == nil {
		return
	}
	for a := (ask{s, k.of.LastSeq()}); ; {
		select {
		case k.asks <- a:
			return
		default:
		}
		select {
		case <-k.asks:
		default:
		}
	}
}

// Flush waits until what Keep was last given is stored, or fails to be.
func (k *Keeper) Flush(ctx context.Context) error {
	if k == nil {
		return nil
	}
	done := make(chan error, 1)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.ended:
		return contextstore.ErrNotOwner
	case k.flushes <- done:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.ended:
		return contextstore.ErrNotOwner
	case err := <-done:
		return err
	}
}

// Close ends the keeping; what is not stored yet is given up.
func (k *Keeper) Close() {
	if k != nil {
		k.stop()
		<-k.ended
	}
}

func (k *Keeper) work(ctx context.Context) {
	defer close(k.ended)
	var want *ask
	var next <-chan time.Time // before which nothing is stored
	failing := false
	for {
		var flushed chan<- error
		select {
		case <-ctx.Done():
			return
		case a := <-k.asks:
			if want = &a; next != nil {
				continue
			}
		case flushed = <-k.flushes:
			select {
			case a := <-k.asks:
				want = &a
			default:
			}
		case <-next:
		}
		next = nil
		var err error
		if want != nil {
			began := time.Now()
			if err = k.store.try(ctx, k, *want); err == nil {
				want, next = nil, time.After((keepShare-1)*time.Since(began))
			} else {
				next = time.After(keepAgain)
			}
			if ctx.Err() != nil || errors.Is(err, contextstore.ErrNotOwner) {
				return
			}
			if failing != (err != nil) {
				failing = err != nil
				k.store.tell(err)
			}
		}
		if flushed != nil {
			flushed <- err
		}
	}
}

func (s *Store) try(ctx context.Context, k *Keeper, a ask) error {
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	return s.keep(ctx, k.of, k.ws, a.snapshot, a.seq)
}

// tell says once that the place fails, and once that it is back.
func (s *Store) tell(err error) {
	if err == nil {
		s.Warn("The workspace is stored again in " + s.Place.String())
		return
	}
	s.Warn("The workspace is not stored in " + s.Place.String() + " for now, the run goes on: " + err.Error())
}
