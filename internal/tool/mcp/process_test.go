package mcp_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/tool/mcp"
)

// TestEnvironmentOfAServer holds nothing of the caller's.
func TestEnvironmentOfAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mode("my server")
	s.Env = map[string]string{"TOKEN": "t0ken-of-the-server"}
	m := open(t, mcp.Options{Dir: dir, Start: self}, s)
	got := map[string]string{}
	for _, l := range strings.Split(call(t, m, mcp.Name("my server", "env"), "").Text, "\n") {
		k, v, _ := strings.Cut(l, "=")
		got[k] = v
	}
	home := got["HOME"]
	if !strings.HasPrefix(home, dir) {
		t.Errorf("HOME is %q", home)
	}
	if st, err := os.Stat(home); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("its home: %v, %v", st, err)
	}
	want := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "TOKEN": "t0ken-of-the-server", "MCP_FAKE": "my server"}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %q, want %q", k, got[k], v)
		}
		delete(got, k)
	}
	delete(got, "GOCOVERDIR")
	if len(got) > 0 {
		t.Errorf("it also has %v", got)
	}
}

// gone waits for the end of a process that is not a child.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
	}
	t.Errorf("process %d is still there", pid)
}

// TestNothingStaysBehind: what a server started ends with it, whether it is
// closed or dies.
func TestNothingStaysBehind(t *testing.T) {
	t.Parallel()
	m := mustOpen(t, mcp.Options{Start: self}, mode("s"))
	first, err := strconv.Atoi(call(t, m, "s__spawn", "").Text)
	if err != nil {
		t.Fatal(err)
	}
	says(t, call(t, m, "s__die", ""), true, "ended during the call", "exit status 7", "the disk is on fire")
	gone(t, first)
	second, err := strconv.Atoi(call(t, m, "s__spawn", "").Text) // of the new process
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	gone(t, second)
}

// TestStubbornServer neither ends when its input does, nor at SIGTERM.
func TestStubbornServer(t *testing.T) {
	t.Parallel()
	m := mustOpen(t, mcp.Options{Start: self, Grace: 20 * time.Millisecond}, mode("stubborn"))
	pid, err := strconv.Atoi(call(t, m, "stubborn__spawn", "").Text)
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	gone(t, pid)
}

func TestFloodOnStandardError(t *testing.T) {
	t.Parallel()
	m := open(t, mcp.Options{Start: self}, mode("stderr"))
	says(t, call(t, m, "stderr__echo", ""), false, "echo {}")
	s := status(t, m, "stderr")
	if len(s.Stderr) > 4096 || !strings.Contains(s.Stderr, "line 99999 of") || !strings.HasPrefix(s.Stderr, "line ") {
		t.Errorf("%d bytes are kept: %.80q", len(s.Stderr), s.Stderr)
	}
}

// TestSecretsOfASettingStayOutOfErrors even where a server prints them.
func TestSecretsOfASettingStayOutOfErrors(t *testing.T) {
	t.Parallel()
	s := mode("x")
	s.Command = []string{"sh", "-c", `echo "bad token $TOKEN" >&2; exit 1`}
	s.Env = map[string]string{"TOKEN": "hunter2hunter2"}
	m := open(t, mcp.Options{Start: mcp.Unconfined}, s)
	st := status(t, m, "x")
	if !strings.Contains(st.Reason, "it ended (exit status 1); it last said: bad token [hidden]") || st.Stderr != "bad token [hidden]" {
		t.Errorf("status %+v", st)
	}
}

func TestProgramsAreLookedUpInTheirOwnPath(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ program, path, want string }{
		{"sh", "/nowhere:/bin", ""},
		{"sh", "/nowhere", `there is no program "sh" in the PATH /nowhere`},
		{"sh", ".:", `there is no program`},
		{"/nowhere/sh", "/bin", "no such file"},
	} {
		p, err := mcp.Unconfined(context.Background(), mcp.Command{Argv: []string{tc.program, "-c", "exit 5"}, Env: []string{"PATH=" + tc.path}})
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s in %s: %v", tc.program, tc.path, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
			t.Errorf("it ended with %v", err)
		}
		if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("killed after its end: %v", err)
		}
		for _, c := range []io.Closer{p.Stdin, p.Stdout, p.Stderr} {
			_ = c.Close()
		}
	}
}

func TestStartCmdKeepsTheCallersAttributes(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "cat; env")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pgid: 0}
	p, err := mcp.StartCmd(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p.Stdin, "in\n"); err != nil {
		t.Fatal(err)
	}
	_ = p.Stdin.Close()
	out, err := io.ReadAll(p.Stdout)
	if err != nil || !strings.HasPrefix(string(out), "in\n") || strings.Contains(string(out), "HOME=") {
		t.Errorf("it said %q, %v", out, err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	_, _ = p.Stdout.Close(), p.Stderr.Close()
}
