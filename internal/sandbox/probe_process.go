package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processAttempts try to reach processes that are not the command's, above all
// the daemon, and what they know.
func processAttempts() []attempt {
	in := func(wall, name string, f func(t *target) error) attempt {
		return attempt{name: name, wall: wall, inside: f}
	}
	signalled := func(a attempt) attempt {
		a.check = func(s *stage, p *Probe) {
			if n, err := s.signals(); err != nil || n > 0 {
				p.Outcome, p.Detail = OutcomeEscaped, "the signal arrived"
			} else if p.Outcome == OutcomeEscaped {
				p.Outcome, p.Detail = OutcomeContained, "sent, but not to that process"
			}
		}
		a.alone = true
		return a
	}
	return []attempt{
		in("daemon", "environment-of-process", func(t *target) error { return t.read(fmt.Sprintf("/proc/%d/environ", t.Victim)) }),
		in("daemon", "environment-of-all", func(t *target) error { return t.all("environ") }),
		in("daemon", "arguments-of-process", func(t *target) error { return t.read(fmt.Sprintf("/proc/%d/cmdline", t.Victim)) }),
		in("daemon", "arguments-of-all", func(t *target) error { return t.all("cmdline") }),
		in("daemon", "environment-of-init", func(t *target) error { return t.read("/proc/1/environ") }),
		in("daemon", "environment-of-parent", func(t *target) error { return t.read(fmt.Sprintf("/proc/%d/environ", os.Getppid())) }),
		in("daemon", "memory-file", func(t *target) error {
			return t.at(fmt.Sprintf("/proc/%d/mem", t.Victim))
		}),
		in("daemon", "memory-read", func(t *target) error {
			b := make([]byte, 64)
			if _, err := readMemory(t.Victim, t.Address, b); err != nil {
				return err
			}
			return t.got(b)
		}),
		in("daemon", "memory-write", func(t *target) error {
			b := []byte("x")
			local := []unix.Iovec{{Base: &b[0], Len: 1}}
			_, err := unix.ProcessVMWritev(t.Victim, local, []unix.RemoteIovec{{Base: uintptr(t.Address) - 1, Len: 1}}, 0)
			return err
		}),
		in("daemon", "trace", func(t *target) error { return seize(t.Victim) }),
		in("daemon", "trace-helper", traceInit),
		in("processes", "signal-helper", signalHelper),
		in("daemon", "take-descriptor", func(t *target) error {
			pidfd, err := unix.PidfdOpen(t.Victim, 0)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(pidfd) }()
			fd, err := unix.PidfdGetfd(pidfd, t.VictimFD, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}),
		in("daemon", "descriptors-inherited", inherited),
		in("daemon", "limits-of-process", func(t *target) error {
			var l unix.Rlimit
			if err := unix.Prlimit(t.Victim, unix.RLIMIT_CORE, nil, &l); err != nil {
				return err
			}
			return unix.Prlimit(t.Victim, unix.RLIMIT_CORE, &l, nil)
		}),
		in("daemon", "priority-of-process", func(t *target) error { return unix.Setpriority(unix.PRIO_PROCESS, t.Victim, 1) }),
		in("daemon", "schedule-of-process", func(t *target) error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(t.Victim, &set); err != nil {
				return err
			}
			return unix.SchedSetaffinity(t.Victim, &set)
		}),
		in("daemon", "segment-of-memory", func(t *target) error {
			if t.ShmKey == 0 {
				return unavailable("no System V memory here")
			}
			id, err := unix.SysvShmGet(t.ShmKey, 0, 0)
			if err != nil {
				return err
			}
			b, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
			if err != nil {
				return err
			}
			defer func() { _ = unix.SysvShmDetach(b) }()
			return t.got(b)
		}),
		signalled(in("processes", "signal", func(t *target) error { return unix.Kill(t.Victim, unix.SIGUSR1) })),
		signalled(in("processes", "signal-group", func(t *target) error { return unix.Kill(-t.Victim, unix.SIGUSR1) })),
		signalled(in("processes", "signal-thread", func(t *target) error { return unix.Tgkill(t.Victim, t.Victim, unix.SIGUSR1) })),
		signalled(in("processes", "signal-by-descriptor", func(t *target) error {
			fd, err := unix.PidfdOpen(t.Victim, 0)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, unix.SIGUSR1, nil, 0)
		})),
		signalled(in("processes", "signal-by-owner", func(t *target) error { return signalByOwner(t.Victim) })),
		signalled(in("processes", "signal-by-socket", func(t *target) error { return signalBySocket(t.Victim) })),
		signalled(in("processes", "signal-queued", func(t *target) error {
			info := [128]byte{}
			*(*int32)(unsafe.Pointer(&info[0])) = int32(unix.SIGUSR1)
			*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
			if _, _, e := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(t.Victim), uintptr(unix.SIGUSR1), uintptr(unsafe.Pointer(&info))); e != 0 {
				return e
			}
			return nil
		})),
		in("processes", "signal-daemon", func(t *target) error { return unix.Kill(t.Daemon, 0) }),
		in("processes", "list", func(t *target) error {
			entries, err := os.ReadDir("/proc")
			if err != nil {
				return err
			}
			for _, e := range entries {
				if e.Name() != strconv.Itoa(t.Victim) {
					continue
				}
				if err := t.read("/proc/" + e.Name() + "/cmdline"); err == nil {
					return nil
				}
			}
			return errors.New("only processes of the command's own are listed")
		}),
		in("processes", "join-namespace", func(t *target) error {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", t.Victim), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			return onThread(func() error { return unix.Setns(fd, unix.CLONE_NEWNET) })
		}),
		in("processes", "terminal", func(*target) error { return opened("/dev/tty", os.O_RDWR) }),
		in("processes", "terminal-input", func(*target) error {
			c := byte('x')
			_, _, e := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
			if e == unix.ENOTTY || e == unix.ENXIO {
				return contained("the call is not refused, but there is no terminal to put anything into")
			}
			if e != 0 {
				return e
			}
			return nil
		}),
	}
}

// all reads a file of every process that can be seen.
func (t *target) all(file string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil && t.read("/proc/"+e.Name()+"/"+file) == nil {
			return nil
		}
	}
	return errNoCanary
}

// at reads the canary from a file that is a memory.
func (t *target) at(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, 64)
	if _, err := f.ReadAt(b, int64(t.Address)); err != nil {
		return err
	}
	return t.got(b)
}

// onThread runs f on a thread that ends with it.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// seize attaches to a process without stopping it. The tracer's end lets go.
func seize(pid int) error {
	return onThread(func() error {
		if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0); e != 0 {
			return e
		}
		return nil
	})
}

// traceInit attaches to what stands above the command within the walls; whoever
// has that process must not have more than the command.
func traceInit(t *target) error {
	if parent := os.Getppid(); parent != 1 {
		return eachThread(parent, seize)
	}
	b, err := os.ReadFile("/proc/1/cmdline")
	if err != nil {
		return err
	}
	if !bytes.Contains(b, []byte("bwrap")) && !bytes.Contains(b, []byte(helperArg)) {
		return unavailable("the first process is not the sandbox's")
	}
	if err := seize(1); err != nil {
		return err
	}
	var status string
	if b, err := os.ReadFile("/proc/1/status"); err == nil {
		status = string(b)
	}
	if strings.Contains(status, "Seccomp:\t2") && strings.Contains(status, "CapEff:\t0000000000000000") {
		return contained("it lives behind the same walls")
	}
	return nil
}

// signalHelper asks whether the helper, or a thread of it, could be sent a
// signal that ends it.
func signalHelper(*target) error {
	parent := os.Getppid()
	if parent == 1 {
		if err := unix.Kill(1, unix.SIGKILL); err != nil {
			return err
		}
		return contained("the first process of a namespace is not killed from within")
	}
	if err := unix.Kill(parent, 0); err == nil {
		return nil
	}
	if err := eachThread(parent, func(id int) error { return unix.Tgkill(parent, id, 0) }); err == nil {
		return nil
	}
	return eachThread(parent, func(id int) error {
		if _, _, e := unix.Syscall(unix.SYS_TKILL, uintptr(id), 0, 0); e != 0 {
			return e
		}
		return nil
	})
}

// eachThread tries the numbers that the threads of a process have if nothing
// else was started meanwhile.
func eachThread(pid int, try func(id int) error) error {
	var first error
	for id := pid; id < pid+64; id++ {
		if unix.Tgkill(os.Getpid(), id, 0) == nil {
			continue // a thread of our own
		}
		if err := try(id); err == nil {
			return nil
		} else if first == nil {
			first = err
		}
	}
	return first
}

// inherited looks for descriptors that somebody left open. The runtime's own
// close on exec.
func inherited(*target) error {
	for fd := 3; fd < 1024; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			return nil
		}
	}
	return errors.New("none but the standard three")
}

// signalByOwner has the kernel send a signal when a pipe can be read.
func signalByOwner(pid int) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	for _, c := range [][2]int{{unix.F_SETOWN, pid}, {unix.F_SETSIG, int(unix.SIGUSR1)}, {unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK}} {
		if _, err := unix.FcntlInt(r.Fd(), c[0], c[1]); err != nil {
			return err
		}
	}
	_, err = w.WriteString("x")
	return err
}

// signalBySocket is the same with a socket, its owner by another call, and the
// signal that the kernel chooses.
func signalBySocket(pid int) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeAll(pair[:])
	if err := unix.IoctlSetPointerInt(pair[0], fioSetOwn, pid); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(pair[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK); err != nil {
		return err
	}
	_, err = unix.Write(pair[1], []byte("x"))
	return err
}

// victim is a process of the daemon's that holds a canary in its environment,
// its arguments, its memory and a descriptor. It prints where, and then, for
// each line that it reads, how many signals it has had since the last one.
func victim(in io.Reader, out io.Writer) error {
	canary := os.Getenv("TORI_CANARY")
	held := make([]byte, 128)
	copy(held[16:], canary)
	f, err := os.Open("canary")
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, unix.SIGUSR1, unix.SIGIO, unix.SIGPWR)
	if _, err := fmt.Fprintf(out, "%d %d\n", uintptr(unsafe.Pointer(&held[16])), f.Fd()); err != nil {
		return err
	}
	for s := bufio.NewScanner(in); s.Scan(); {
		// One of its own comes after all that were sent before: the lower
		// number is delivered first.
		if err := unix.Kill(os.Getpid(), unix.SIGPWR); err != nil {
			return err
		}
		count := 0
		for got := range signals {
			if got == unix.SIGPWR {
				break
			}
			count++
		}
		if _, err := fmt.Fprintln(out, count); err != nil {
			return err
		}
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(f)
	return nil
}

// survivors are ways to be alive when the command has ended.
func survivors() []string {
	return []string{"background", "session", "double-fork", "stubborn", "shell-chain", "reaper", "stopped", "comets"}
}

// survive starts a process that outlives the command if it can: it holds a lock
// on a file of the workspace, and goes by itself after some seconds.
func survive(args []string) error {
	if len(args) != 1 {
		return errors.New("one way, please")
	}
	f, err := os.OpenFile("alive-"+args[0], os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
		return err
	}
	const linger = "trap '' TERM HUP INT; sleep 5"
	script := map[string]string{
		"background": linger, "session": linger, "stubborn": linger, "reaper": linger, "stopped": "kill -STOP $$; " + linger,
		"double-fork": "(" + linger + ") >/dev/null 2>&1 &",
		"shell-chain": `sh -c 'sh -c "sh -c \"sleep 5\" &" &' &`,
	}[args[0]]
	cmd := exec.Command("/bin/sh", "-c", script)
	if args[0] == "comets" {
		cmd = exec.Command(helperPath, helperArg, "probe", args[0])
	}
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: args[0] == "session" || args[0] == "double-fork" || args[0] == "reaper"}
	if args[0] == "reaper" {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = fmt.Println("started", filepath.Base(f.Name()))
	return err
}

// comets are processes that each fork the next one and end at once: they are gone
// before anybody who looks through the list of processes comes to them.
func comets([]string) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return err
	}
	runtime.LockOSThread()
	for range 16 {
		fly(now.Sec + 20)
	}
	return nil
}

// fly starts one. Nothing of the Go runtime may be used in the copies.
//
//go:noinline
//go:norace
//go:nosplit
func fly(until int64) {
	now := unix.Timespec{}
	pid, _, _ := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 {
		return
	}
	for now.Sec < until {
		if pid, _, _ = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
			break
		}
		_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&now)), 0, 0, 0, 0)
	}
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}
