package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unconfined runs commands with the daemon's own rights.
type unconfined struct {
	spec  Spec
	tools func() toolchain
}

// Unconfined returns a Runner without a wall, for users who explicitly allow
// it. The environment is as clean as a sandbox's and the process group ends
// with the command, but the command has the network, can read and write all
// that the daemon can, and escapes the end of its group by making its own.
// A bad spec is the error of each Run.
func Unconfined(spec Spec) Runner {
	return &unconfined{spec: spec, tools: sync.OnceValue(func() toolchain {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return findToolchain(ctx)
	})}
}

func (u *unconfined) Confined() bool { return false }

// Run implements Runner.
func (u *unconfined) Run(ctx context.Context, c Command) (Exit, error) {
	spec, err := u.spec.check()
	if err != nil {
		return Exit{}, err
	}
	if err := c.check(); err != nil {
		return Exit{}, err
	}
	dir, err := spec.dir(c)
	if err != nil {
		return Exit{}, err
	}
	return run(ctx, c, func(p *process) (*exec.Cmd, error) { return u.prepare(p, spec, c, dir) })
}

func (u *unconfined) prepare(p *process, spec Spec, c Command, dir string) (*exec.Cmd, error) {
	tmp := spec.Scratch
	if tmp == "" {
		var err error
		if tmp, err = os.MkdirTemp("", "tori-cmd-"); err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		p.after(func() { _ = os.RemoveAll(tmp) })
	}
	if err := os.MkdirAll(filepath.Join(tmp, "home"), 0o700); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	args := scriptArgs(spec, c.Script, "")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = environment(spec, u.tools(), tmp)
	cmd.Dir = dir
	cmd.ExtraFiles = p.files
	if spec.Hold != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, spec.Hold)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.started = func(child *os.Process) error {
		p.terminate = func() error { return unix.Kill(-child.Pid, unix.SIGTERM) }
		p.end = func() error {
			_ = unix.Kill(-child.Pid, unix.SIGKILL)
			return nil
		}
		return nil
	}
	return cmd, nil
}
