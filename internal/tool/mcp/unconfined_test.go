package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unconfined starts a command with all that the user may do.
func Unconfined(_ context.Context, c Command) (*Process, error) {
	path := ""
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	program, err := look(c.Argv[0], path)
	if err != nil {
		return nil, err
	}
	return start(program, c)
}

// look finds a program as a shell would, in path and not in this process's own PATH.
func look(program, path string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, program)
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no program %q in the PATH %s", program, path)
}

func start(program string, c Command) (*Process, error) {
	return StartCmd(&exec.Cmd{Path: program, Args: c.Argv, Env: c.Env, Dir: c.Home})
}

// StartCmd starts cmd, whose standard files must be unset, as a Process: in a
// process group of its own, all of which ends with it. For a server in a
// sandbox, cmd is the call of the sandbox's program.
func StartCmd(cmd *exec.Cmd) (*Process, error) {
	var ours, theirs []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(ours, theirs...))
			return nil, err
		}
		if len(ours) == 0 { // its input
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	// Files and not Writers: Wait would otherwise wait for whoever holds the pipe.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would mean all of this process's
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	err := cmd.Start()
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	g := &group{cmd: cmd, ended: make(chan struct{})}
	go g.reap()
	return &Process{
		Stdin: ours[0], Stdout: ours[1], Stderr: ours[2],
		Terminate: func() error { return g.signal(unix.SIGTERM) },
		Kill:      func() error { return g.signal(unix.SIGKILL) },
		Wait:      func() error { <-g.ended; return g.err },
	}, nil
}

// group is a process with all that stayed in its process group.
type group struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	gone  bool // reaped: its number may be another's
	ended chan struct{}
	err   error
}

func (g *group) signal(sig unix.Signal) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return os.ErrProcessDone
	}
	return unix.Kill(-g.cmd.Process.Pid, sig)
}

// reap waits for the leader, and ends what it left behind before its number
// is given back.
func (g *group) reap() {
	for {
		err := unix.Waitid(unix.P_PID, g.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = g.signal(unix.SIGKILL) // usually nobody is left
	g.mu.Lock()
	g.gone = true
	g.err = g.cmd.Wait()
	g.mu.Unlock()
	close(g.ended)
}
