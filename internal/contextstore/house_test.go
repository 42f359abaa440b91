package contextstore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"toritsugi/internal/task"
)

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
	kernelOnly(t)
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
	p, err := s.index.List(t.Context(), Filter{Status: task.Queued})
	if err != nil || p.Total != 10 {
		t.Error(p.Total, err)
	}
	if left, _ := filepath.Glob(filepath.Join(base, ".*.new*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
