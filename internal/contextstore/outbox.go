package contextstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/task"
)

// Undelivered returns the outward effects of a run that were committed and not
// yet acknowledged, in the order in which they are to be delivered.
func (s *Store) Undelivered(ctx context.Context, uuid string) ([]Effect, error) {
	st, err := InDir(s.BaseDir, uuid, ReadState)
	if err != nil || len(st.Outbox) == 0 {
		return nil, err
	}
	acked, err := s.houseDB.acked(ctx, uuid)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(st.Outbox, func(e Effect) bool { _, done := acked[e.Key]; return done }), nil
}

// The files that are locked while the effects of a run are delivered, and those
// that nobody waits for.
const (
	outboxLock = ".outbox.lock"
	laterLock  = ".later.lock"
)

// LockOutbox keeps everybody else from delivering the effects of a run until
// release is called: of two who look for the mark of a delivery at once, both
// would miss it. It waits for them no longer than wait; ErrDelivering then.
func (s *Store) LockOutbox(ctx context.Context, uuid string, wait time.Duration) (release func(), err error) {
	return s.lockOutbox(ctx, uuid, outboxLock, wait)
}

// LockLater is LockOutbox for the effects that nobody waits for: those that
// somebody does need not wait for them. It does not wait.
func (s *Store) LockLater(ctx context.Context, uuid string) (release func(), err error) {
	return s.lockOutbox(ctx, uuid, laterLock, 0)
}

func (s *Store) lockOutbox(ctx context.Context, uuid, name string, wait time.Duration) (release func(), err error) {
	release, err = InDir(s.BaseDir, uuid, func(dir string) (func(), error) {
		return filelock.OpenWait(ctx, filepath.Join(dir, name), wait)
	})
	if errors.Is(err, filelock.ErrLocked) {
		err = fmt.Errorf("outbox of %s: %w", uuid, ErrDelivering)
	}
	return release, err
}

// Acknowledge records that an effect has been delivered, and what came of it
// (a URL, a commit). Doing it again changes nothing.
func (s *Store) Acknowledge(ctx context.Context, uuid string, e Effect, result string) error {
	if err := s.houseDB.ack(ctx, uuid, e, s.Redact(result), s.now()); err != nil {
		return fmt.Errorf("acknowledge %s: %w", e.Key, err)
	}
	s.tell(s.mendRow(ctx, uuid))
	return nil
}

// mendRow brings the row of a context that nobody owns in line with its files;
// an owner does so itself.
func (s *Store) mendRow(ctx context.Context, uuid string) error {
	dir, err := s.dir(uuid)
	if err != nil {
		return err
	}
	v, err := unowned(dir)
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	v.State.TaskStatus = v.Status()
	if err = s.putRow(ctx, v.Metadata, v.State); !errors.Is(err, ErrNotOwner) {
		return nil // was told
	}
	return err
}

// Delivered returns what came of each effect of a run that was acknowledged, by
// its key.
func (s *Store) Delivered(ctx context.Context, uuid string) (map[string]string, error) {
	return s.houseDB.acked(ctx, uuid)
}

// Undelivered is a run whose row says that the world has not seen all of it.
type Undelivered struct {
	UUID   string
	Source string // of its task key
	Status task.Status
	// Since is when its status began, as far as the row knows.
	Since Time
}

func undelivered(r Row) Undelivered {
	since := r.HeartbeatAt
	switch {
	case r.Status.Final():
		since = r.CompletedAt
	case r.Status == task.Running:
		since = r.StartedAt
	}
	return Undelivered{r.UUID, r.Key.Source, r.Status, since}
}

// EachUndelivered calls f for each run whose outbox is not empty, as far as the rows know,
// and for those that the index could not be told of; f may use the store.
func (s *Store) EachUndelivered(ctx context.Context, f func(Undelivered) error) error {
	err := s.index.Pending(ctx, func(r Row) error { return f(undelivered(r)) })
	if err != nil {
		return err
	}
	uuids, err := index.Unindexed(s.BaseDir, -1)
	for _, id := range uuids {
		v, verr := s.View(id)
		if verr != nil || len(v.State.Outbox) == 0 {
			continue
		}
		v.State.TaskStatus = v.Status()
		if err := f(undelivered(RowOf(v.Metadata, v.State))); err != nil {
			return err
		}
	}
	return err
}

// WithUndelivered returns the runs whose outbox is not empty. A row that says
// so wrongly, because a process died before it could correct it, is mended.
func (s *Store) WithUndelivered(ctx context.Context) (all []string, err error) {
	err = s.EachUndelivered(ctx, func(o Undelivered) error {
		uuid := o.UUID
		left, err := s.Undelivered(ctx, uuid)
		if err == nil && len(left) == 0 {
			s.tell(s.mendRow(ctx, uuid))
			return nil
		}
		all = append(all, uuid) // one that cannot be read is the caller's to hear of
		return nil
	})
	return all, err
}
