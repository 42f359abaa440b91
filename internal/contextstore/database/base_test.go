package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/contextstore/filelock"
)

// places runs a test with the locks of a directory and with those of a schema.
func places(t *testing.T, f func(t *testing.T, enter func(context.Context) (*Base, error))) {
	t.Parallel()
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		f(t, func(ctx context.Context) (*Base, error) { return Enter(ctx, dir) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s := dial(t, ServerOptions{URL: pgtest.URL(t)})
		f(t, s.Enter)
	})
}

func dial(t *testing.T, o ServerOptions) *Server {
	t.Helper()
	s, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func enterBase(t *testing.T, enter func(context.Context) (*Base, error)) *Base {
	t.Helper()
	h, err := enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// somebodyWaits reports whether somebody is about to have the place for itself.
func somebodyWaits(t *testing.T, b *Base) bool {
	t.Helper()
	if a, ok := b.locks.(*advisory); ok {
		var n int
		if err := a.server.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype='advisory' AND classid=$1 AND objid=$2 AND granted`, uint32(a.server.schema), byteAlone).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	probe := unix.Flock_t{Type: unix.F_WRLCK, Start: byteAlone, Len: 1}
	if err := unix.FcntlFlock(b.locks.(fileLocks).f.Fd(), unix.F_OFD_GETLK, &probe); err != nil {
		t.Fatal(err)
	}
	return probe.Type == unix.F_WRLCK
}

// soonOver is a context that ends after one or two polls.
func soonOver(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestTheHouseIsSharedOrAlone(t *testing.T) {
	places(t, func(t *testing.T, enter func(context.Context) (*Base, error)) {
		a, b := enterBase(t, enter), enterBase(t, enter)
		if _, err := a.Exclusive(soonOver(t)); err == nil || !strings.HasSuffix(err.Error(), "stop them first") || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("alone among two: %v", err)
		}
		b.Close()
		release, err := a.Exclusive(t.Context())
		if err != nil || !a.Alone() {
			t.Fatal(err)
		}
		if _, err := enter(soonOver(t)); err == nil || !strings.Contains(err.Error(), "another process has") {
			t.Fatalf("a second one came in: %v", err)
		}
		came := make(chan error)
		go func() {
			c, err := enter(t.Context())
			if err == nil {
				c.Close()
			}
			came <- err
		}()
		release()
		if err := <-came; err != nil || a.Alone() {
			t.Error("after the release:", err)
		}
		// What is held now is the shared lock.
		enterBase(t, enter)
		if _, err := a.Exclusive(soonOver(t)); err == nil {
			t.Error("the release gave up the shared lock of the other too")
		}
	})
}

// Two that are in and want to be alone would wait for each other for ever.
func TestOfTwoWhoWantToBeAloneOneGetsIt(t *testing.T) {
	places(t, func(t *testing.T, enter func(context.Context) (*Base, error)) {
		a, b := enterBase(t, enter), enterBase(t, enter)
		got := make(chan error)
		go func() {
			release, err := a.Exclusive(t.Context())
			if err == nil {
				release()
			}
			got <- err
		}()
		for !somebodyWaits(t, b) {
			runtime.Gosched()
		}
		if _, err := b.Exclusive(t.Context()); !errors.Is(err, filelock.ErrLocked) {
			t.Fatalf("the second: %v", err)
		}
		b.Close()
		if err := <-got; err != nil {
			t.Error("the first:", err)
		}
	})
}

func TestAHouseThatWasRemovedIsNoLock(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	h := enterBase(t, func(ctx context.Context) (*Base, error) { return Enter(ctx, base) })
	if err := os.Remove(filepath.Join(base, lockFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Exclusive(t.Context()); err == nil || !strings.Contains(err.Error(), "removed or replaced") {
		t.Error(err)
	}
}

func TestTurnsAreTaken(t *testing.T) {
	places(t, func(t *testing.T, enter func(context.Context) (*Base, error)) {
		houses := []*Base{enterBase(t, enter), enterBase(t, enter)}
		houses = append(houses, houses[0]) // two goroutines of one store
		var inside, n atomic.Int64         // the lock is the kernel's, which the race detector does not see
		var wg sync.WaitGroup
		for _, h := range houses {
			wg.Go(func() {
				for range 20 {
					release, err := h.Turn(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 {
						t.Error("two have the turn")
					}
					n.Add(1)
					inside.Add(-1)
					release()
				}
			})
		}
		wg.Wait()
		if n.Load() != 60 {
			t.Errorf("%d turns", n.Load())
		}
		release, err := houses[0].Turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		for _, h := range houses[:2] {
			if _, err := h.Turn(soonOver(t)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a turn that is taken: %v", err)
			}
		}
	})
}
