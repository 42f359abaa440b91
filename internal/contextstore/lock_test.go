package contextstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"toritsugi/internal/task"
)

// Looking for children of a dead owner leaves no lock on a context that ended
// meanwhile: nobody would remove it.
func TestLookingForOrphansLeavesNoLock(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.killOrphans(c.UUID()); err != nil {
		t.Fatal(err)
	}
	if _, err := kernel.Lstat(filepath.Join(c.Dir(), LockFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a lock is left: %v", err)
	}
	if _, err := s.hold(c.UUID()); !errors.Is(err, ErrEnded) {
		t.Errorf("held: %v", err)
	}
}
