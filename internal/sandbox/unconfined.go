package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// hostTools asks go once: each run has several runners.
var hostTools = sync.OnceValue(func() toolchain { return findToolchain(context.Background()) })

// Unconfined returns a Runner without a wall, for users who explicitly allow
// it. The environment is as clean as a sandbox's and the process group ends
// with the command, but the command has the network, can read and write all
// that the daemon can, and escapes the end of its group by making its own.
// A bad spec is the error of each Run.
func Unconfined(spec Spec) Runner {
	if spec.Usage == nil {
		spec.Usage = &SharedUsage{}
	}
	return &runner{kind: KindNone, spec: spec.check, prepare: func(p *process, spec Spec, c Command, dir string) (child, error) {
		return bare(p, spec, c, dir, hostTools())
	}}
}

func bare(p *process, spec Spec, c Command, dir string, tools toolchain) (child, error) {
	tmp, err := scratch(p, spec)
	if err != nil {
		return nil, err
	}
	if err := p.gate(); err != nil {
		return nil, err
	}
	args := scriptArgs(spec, c, "", -1)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = environment(spec, tools, tmp)
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
	return &program{Cmd: cmd, p: p}, nil
}

// scratch is a directory for temporary files with a home in it; one that Spec
// does not name goes with the command, and has no home where Spec.Env names one.
func scratch(p *process, spec Spec) (string, error) {
	tmp := spec.Scratch
	if tmp == "" {
		var err error
		if tmp, err = os.MkdirTemp("", "tori-cmd-"); err != nil {
			return "", fmt.Errorf("sandbox: %w", err)
		}
		p.after(func() { _ = os.RemoveAll(tmp) })
		if spec.Env["HOME"] != "" {
			return tmp, nil
		}
	}
	if err := os.MkdirAll(filepath.Join(tmp, "home"), 0o700); err != nil {
		return "", fmt.Errorf("sandbox: %w", err)
	}
	return tmp, nil
}
