package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hiddenVariable makes this program one that runs a command in a sandbox of that
// kind, hidden or not, says what came of it, and waits.
const hiddenVariable = "SANDBOX_TEST_HIDDEN"

// actHidden is what such a program does; order is HIDE:KIND.
func actHidden(order string) {
	hide, kind, _ := strings.Cut(order, ":")
	said := func() string {
		if hide == "hidden" {
			if err := Hide(); err != nil {
				return err.Error()
			}
		}
		dir, err := os.MkdirTemp("", "tori-hidden-")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = os.RemoveAll(dir) }()
		box, err := Choose(context.Background(), Options{Prefer: kind})
		if err != nil {
			return "none: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		r, err := box.Runner(Spec{Workspace: dir})
		if err != nil {
			return err.Error()
		}
		var out bytes.Buffer
		exit, err := r.Run(context.Background(), Command{Script: "echo kept > f; cat f", Output: &out, Timeout: time.Minute})
		return fmt.Sprintf("%d %v %s", exit.Code, err, strings.TrimSpace(out.String()))
	}()
	fmt.Println(said)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestHidden: no process of the same ordinary user sees into a hidden one, and
// every kind of sandbox works from there as it does from one that is not hidden.
func TestHidden(t *testing.T) {
	t.Parallel()
	ordinary := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		ordinary.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for _, kind := range []string{KindBwrap, KindNamespaces, KindLandlock} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			said := map[string]string{}
			for _, hide := range []string{"seen", "hidden"} {
				p := exec.CommandContext(t.Context(), "/proc/self/exe")
				p.Env = []string{hiddenVariable + "=" + hide + ":" + kind, "PATH=" + os.Getenv("PATH"), "TMPDIR=/tmp", "API_KEY=the-secret"}
				p.Dir, p.Stderr, p.SysProcAttr = "/", os.Stderr, ordinary
				in, err := p.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out, err := p.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				line, err := bufio.NewReader(out).ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				said[hide] = strings.TrimSpace(line)
				for _, look := range []string{"cat /proc/%d/environ", "ls /proc/%d/fd", ": < /proc/%d/mem"} {
					script := fmt.Sprintf(look, p.Process.Pid)
					cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
					cmd.SysProcAttr = ordinary
					cmd.Dir = "/"
					b, err := cmd.CombinedOutput()
					if seen := err == nil; seen != (hide == "seen") {
						t.Errorf("%s, %s: %q: %v: %s", hide, kind, script, err, b)
					}
				}
				_ = in.Close()
				if err := p.Wait(); err != nil {
					t.Error(err)
				}
			}
			if strings.HasPrefix(said["seen"], "none: ") {
				t.Skip(said["seen"])
			}
			if said["seen"] != "0 <nil> kept" || said["hidden"] != said["seen"] {
				t.Errorf("%q", said)
			}
		})
	}
}
