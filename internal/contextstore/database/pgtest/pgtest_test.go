package pgtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestChildDies is the child of the test below.
func TestChildDies(t *testing.T) {
	dir := os.Getenv("TORI_TEST_DIES")
	if dir == "" {
		t.Skip("run by another test")
	}
	t.Setenv("TMPDIR", dir)
	if os.Getenv("TORI_TEST_AT_ONCE") != "" {
		go func() { _, _ = forTests() }()
		time.Sleep(100 * time.Millisecond) // the server is being made
	} else if _, err := forTests(); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// Nothing is left of a server whose tests were killed, whenever that was.
func TestKilled(t *testing.T) {
	t.Parallel()
	if _, err := shared(); err != nil {
		t.Skip(err)
	}
	for _, when := range []string{"", "at once"} {
		dir, err := os.MkdirTemp(room(), "pg")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestChildDies$")
		cmd.Env = append(os.Environ(), "TORI_TEST_DIES="+dir, "TORI_TEST_AT_ONCE="+when)
		if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "FAIL") {
			t.Fatalf("%v: %s", err, out)
		}
		var left []string
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			// The name of its directory is in its arguments, too.
			if left, _ = filepath.Glob(dir + "/*"); len(left) == 0 && exec.Command("pgrep", "-f", dir).Run() != nil {
				break
			}
		}
		if len(left) > 0 {
			t.Errorf("killed %s: %v is left", when, left)
		}
	}
}

// A server stops and starts, and leaves nothing.
func TestOwn(t *testing.T) {
	t.Parallel()
	var dir string
	t.Run("lives", func(t *testing.T) {
		s := Own(t)
		dir = s.dir
		asks := func() error {
			c, err := pgx.Connect(t.Context(), s.URL())
			if err == nil {
				err = errors.Join(c.Ping(t.Context()), c.Close(context.Background()))
			}
			return err
		}
		if err := asks(); err != nil {
			t.Fatal(err)
		}
		s.Stop(t)
		if asks() == nil {
			t.Error("it answers")
		}
		s.Start(t)
		if err := asks(); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(dir); dir != "" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
