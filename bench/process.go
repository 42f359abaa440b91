package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// selfCPU is what a process says of its own processor time, its children's not
// included.
type selfCPU struct {
	UserUS   int64 `json:"user_us"`
	SystemUS int64 `json:"system_us"`
}

// total is user and system time.
func (c selfCPU) total() time.Duration { return time.Duration(c.UserUS+c.SystemUS) * time.Microsecond }

func ownCPU() (selfCPU, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return selfCPU{u.Utime.Nano() / 1e3, u.Stime.Nano() / 1e3}, err
}

// spent is the time that do takes, and that this process spends on it.
func spent(do func() error) (took, used time.Duration, err error) {
	before, err := ownCPU()
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	took = time.Since(start)
	after, err := ownCPU()
	return took, after.total() - before.total(), err
}

// usage is what the kernel counted of a process that ended, wait4's view: its
// peak memory is its own or its largest child's.
type usage struct {
	WallUS   int64 `json:"wall_us"`
	PeakKiB  int64 `json:"peak_kib"`
	OutBytes int64 `json:"out_bytes"` // to the disk, children included
	Exit     int   `json:"exit"`
}

// launch runs a command for measure and writes its usage to file. It exists
// because the kernel charges a started process with the memory of the one that
// started it (the peak survives exec), and this one is small.
func launch(file string, argv []string) error {
	runtime.LockOSThread() // the parent-death signal is the starting thread's
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("no resource usage on this system")
	}
	// ru_oublock counts in 512 bytes (getrusage(2)).
	b, err := json.Marshal(usage{wall.Microseconds(), u.Maxrss, u.Oublock * 512, cmd.ProcessState.ExitCode()})
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// part has this program measure something in a process of its own, and returns
// the figures that it printed, beside what it used.
func (b *bench) part(ctx context.Context, dir string, args ...string) (s sample, u usage, err error) {
	out, u, err := b.measure(ctx, dir, append([]string{b.self}, args...)...)
	if err != nil {
		return nil, u, err
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return nil, u, fmt.Errorf("its figures: %w", err)
	}
	return s, u, nil
}

// measure runs a command with dir as its working directory, home and place for
// temporary files, and returns what it printed and used. A command that fails is
// an error that ends with its last words.
func (b *bench) measure(ctx context.Context, dir string, argv ...string) (out []byte, u usage, err error) {
	file := filepath.Join(dir, "usage.json")
	stdout, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		return nil, u, err
	}
	defer func() { _ = stdout.Close() }()
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return nil, u, err
	}
	defer func() { _ = stderr.Close() }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, b.self, append([]string{"launch", file}, argv...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, stderr
	// Nothing of the user's settings may change what is measured.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if err == nil {
		var b []byte
		if b, err = os.ReadFile(file); err == nil {
			err = json.Unmarshal(b, &u)
		}
	}
	if err == nil && u.Exit != 0 {
		err = fmt.Errorf("exit code %d", u.Exit)
	}
	if err != nil {
		return nil, u, fmt.Errorf("%s: %w\n%s", filepath.Base(argv[0]), err, lastWords(stderr.Name(), stdout.Name()))
	}
	out, err = os.ReadFile(stdout.Name())
	return out, u, err
}

// lastWords are the ends of files, for an error.
func lastWords(files ...string) []byte {
	var all []byte
	for _, f := range files {
		b, _ := os.ReadFile(f) // what cannot be read says nothing
		all = append(all, b[max(0, len(b)-1500):]...)
	}
	return all
}

// syncCosts measures n times what one fdatasync takes after an append of 1.5 KB
// to a file in dir.
func syncCosts(dir string, n int) ([]time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	line := make([]byte, 1536)
	costs := make([]time.Duration, 0, n)
	for range n {
		if _, err := f.Write(line); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		start := time.Now()
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		costs = append(costs, time.Since(start))
	}
	return costs, f.Close()
}
