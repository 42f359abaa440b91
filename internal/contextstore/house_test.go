package contextstore

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/task"
)

func enterHouse(t *testing.T, base string) *house {
	t.Helper()
	h, err := openHouse(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

// soonOver is a context that ends after one or two polls.
func soonOver(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestTheHouseIsSharedOrAlone(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	a, b := enterHouse(t, base), enterHouse(t, base)
	if _, err := a.exclusive(soonOver(t)); err == nil || !strings.Contains(err.Error(), "stop them first") || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("alone among two: %v", err)
	}
	b.close()
	release, err := a.exclusive(t.Context())
	if err != nil || !a.isAlone() {
		t.Fatal(err)
	}
	if _, err := openHouse(soonOver(t), base); err == nil || !strings.Contains(err.Error(), "another process has") {
		t.Fatalf("a second one came in: %v", err)
	}
	came := make(chan error)
	go func() {
		c, err := openHouse(t.Context(), base)
		if err == nil {
			c.close()
		}
		came <- err
	}()
	release()
	if err := <-came; err != nil || a.isAlone() {
		t.Error("after the release:", err)
	}
	// What is held now is the shared lock.
	enterHouse(t, base)
	if _, err := a.exclusive(soonOver(t)); err == nil {
		t.Error("the release gave up the shared lock of the other too")
	}
}

// Two that are in and want to be alone would wait for each other for ever.
func TestOfTwoWhoWantToBeAloneOneGetsIt(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	a, b := enterHouse(t, base), enterHouse(t, base)
	got := make(chan error)
	go func() {
		release, err := a.exclusive(t.Context())
		if err == nil {
			release()
		}
		got <- err
	}()
	for probe := (unix.Flock_t{}); probe.Type != unix.F_WRLCK; { // until a waits
		probe = unix.Flock_t{Type: unix.F_WRLCK, Start: byteAlone, Len: 1}
		if err := unix.FcntlFlock(b.f.Fd(), unix.F_OFD_GETLK, &probe); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	if _, err := b.exclusive(t.Context()); !errors.Is(err, errLocked) {
		t.Fatalf("the second: %v", err)
	}
	b.close()
	if err := <-got; err != nil {
		t.Error("the first:", err)
	}
}

func TestAHouseThatWasRemovedIsNoLock(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	h := enterHouse(t, base)
	if err := os.Remove(filepath.Join(base, houseFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.exclusive(t.Context()); err == nil || !strings.Contains(err.Error(), "removed or replaced") {
		t.Error(err)
	}
}

func TestTurnsAreTaken(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	houses := []*house{enterHouse(t, base), enterHouse(t, base)}
	houses = append(houses, houses[0]) // two goroutines of one store
	var inside, n atomic.Int64         // the lock is the kernel's, which the race detector does not see
	var wg sync.WaitGroup
	for _, h := range houses {
		wg.Go(func() {
			for range 20 {
				release, err := h.turn(t.Context())
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
	release, err := houses[0].turn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, h := range houses[:2] {
		if _, err := h.turn(soonOver(t)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a turn that is taken: %v", err)
		}
	}
}

// What a child process of these tests does is named by its environment.
const (
	childBase = "TORI_TEST_BASE"
	childKey  = "TORI_TEST_KEY"
)

// child runs one test of this binary in a process of its own.
func child(t *testing.T, prefix []string, test string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(prefix, exe, "-test.run=^"+test+"$", "-test.v")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// TestChildEnqueues is the child of the test below.
func TestChildEnqueues(t *testing.T) {
	base := os.Getenv(childBase)
	if base == "" {
		t.Skip("run by another test")
	}
	s := open(t, Options{BaseDir: base})
	k := key
	k.ID = os.Getenv(childKey)
	if _, err := s.Enqueue(t.Context(), Metadata{TaskKey: k}); err != nil {
		t.Fatal(err)
	}
}

// Ten processes that start at once on an empty directory make one database.
func TestTenStartAtOnce(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var wg sync.WaitGroup
	for i := range 10 {
		cmd := child(t, nil, "TestChildEnqueues", childBase+"="+base, childKey+"="+string(rune('a'+i)))
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "SKIP") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	s := open(t, Options{BaseDir: base})
	p, err := s.index.list(t.Context(), Filter{Status: task.Queued})
	if err != nil || p.Total != 10 {
		t.Error(p.Total, err)
	}
	if left, _ := filepath.Glob(filepath.Join(base, ".*.new*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
