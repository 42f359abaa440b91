package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A command in namespaces begins as a copy of the init, which the init makes
// without running a program: it is the first process of a process namespace
// of its own, builds the walls, starts the command as its only child, and
// reaps until that one ends; the kernel then ends what is left. Between the
// fork and the exec only system calls may be made, for the copy has one thread
// of a Go program and nothing of its runtime. So they are a list.

// sysCall is one system call of the list.
type sysCall struct {
	nr, a, b, c, d, e uintptr
	may               bool // fail
}

// launch is a list, and what its pointers point to.
type launch struct {
	walls []sysCall // made by the first process of the namespace
	last  []sysCall // made by its child, before the exec
	path  *byte
	argv  []*byte
	envv  []*byte
	keep  []any
}

func (l *launch) add(nr uintptr, args ...uintptr) { l.call(false, nr, args...) }
func (l *launch) try(nr uintptr, args ...uintptr) { l.call(true, nr, args...) }

func (l *launch) call(may bool, nr uintptr, args ...uintptr) {
	var a [5]uintptr
	copy(a[:], args)
	l.walls = append(l.walls, sysCall{nr, a[0], a[1], a[2], a[3], a[4], may})
}

// text is a pointer to s as the kernel reads it; "" is none.
func (l *launch) text(s string) uintptr {
	if s == "" {
		return 0
	}
	b := append([]byte(s), 0)
	return hold(l, &b[0])
}

// hold is the address of v, which stays where it is until the list was made:
// it lies on the heap, where nothing is moved.
func hold[T any](l *launch, v *T) uintptr {
	l.keep = append(l.keep, v)
	return uintptr(unsafe.Pointer(v))
}

// program sets what is executed in the end.
func (l *launch) program(path string, args, env []string) (err error) {
	if l.path, err = unix.BytePtrFromString(path); err != nil {
		return err
	}
	for _, list := range []struct {
		from []string
		to   *[]*byte
	}{{args, &l.argv}, {env, &l.envv}} {
		for _, s := range list.from {
			p, err := unix.BytePtrFromString(s)
			if err != nil {
				return err
			}
			*list.to = append(*list.to, p)
		}
		*list.to = append(*list.to, nil)
	}
	return nil
}

// execError is a program that could not be executed, though the walls stood.
type execError struct{ errno unix.Errno }

func (e execError) Error() string { return e.errno.Error() }

// fdReport is where the child tells of a call that failed: two words, the place
// in the list and the error. The walls close all above it, and the exec itself.
const fdReport = 3

// start makes the copy with these clone flags and waits until the command
// begins. The caller closes pidfd and waits for pid.
func (l *launch) start(flags uintptr) (pid, pidfd int, err error) {
	var report [2]int
	if err := unix.Pipe2(report[:], unix.O_CLOEXEC); err != nil {
		return 0, 0, err
	}
	defer func() { _ = unix.Close(report[0]) }()
	l.add(unix.SYS_DUP3, uintptr(report[1]), fdReport, unix.O_CLOEXEC)
	l.add(unix.SYS_CLOSE_RANGE, fdReport+1, 1<<31-1, 0)
	var none, old unix.Sigset_t
	l.last = append(l.last, sysCall{nr: unix.SYS_RT_SIGPROCMASK, a: unix.SIG_SETMASK, b: hold(l, &none), d: sigsetSize})
	all := unix.Sigset_t{}
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	fd := int32(-1)
	at := &fd
	runtime.LockOSThread()
	// No signal may reach a handler of ours in the copy.
	_, _, e := syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), sigsetSize, 0, 0)
	if e == 0 {
		pid, e = fork(flags|uintptr(unix.SIGCHLD)|unix.CLONE_PIDFD, at, l.walls, l.last, l.path, &l.argv[0], &l.envv[0])
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&old)), 0, sigsetSize, 0, 0)
	}
	runtime.UnlockOSThread()
	runtime.KeepAlive(l)
	_ = unix.Close(report[1])
	if e != 0 {
		return 0, 0, fmt.Errorf("make namespaces: %w", e)
	}
	var said [2]uintptr
	b := unsafe.Slice((*byte)(unsafe.Pointer(&said)), int(unsafe.Sizeof(said)))
	n := 0
	for n < len(b) {
		m, err := unix.Read(report[0], b[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if m <= 0 {
			break
		}
		n += m
	}
	if n < len(b) {
		return pid, int(fd), nil
	}
	_ = unix.Close(int(fd))
	waitFor(pid)
	if said[0] == failedExec {
		return 0, 0, execError{unix.Errno(said[1])}
	}
	nr := ^uintptr(0)
	if said[0] < uintptr(len(l.walls)) {
		nr = l.walls[said[0]].nr
	}
	return 0, 0, fmt.Errorf("call %d of the walls, number %d: %w", said[0], nr, unix.Errno(said[1]))
}

const (
	sigsetSize = 8 // bytes of the kernel's sigset_t
	failedExec = ^uintptr(0)
	failedFork = failedExec - 1
)

// fork clones and, in the copy, does not return.
//
//go:noinline
//go:norace
//go:nosplit
func fork(flags uintptr, pidfd *int32, walls, last []sysCall, path *byte, argv, envv **byte) (int, unix.Errno) {
	pid, _, e := syscall.RawSyscall6(unix.SYS_CLONE, flags, 0, uintptr(unsafe.Pointer(pidfd)), 0, 0, 0)
	if e != 0 || pid != 0 {
		return int(pid), e
	}
	for i := range walls {
		c := &walls[i]
		if _, _, e := syscall.RawSyscall6(c.nr, c.a, c.b, c.c, c.d, c.e, 0); e != 0 && !c.may {
			fail(uintptr(i), e)
		}
	}
	child, _, e := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		fail(failedFork, e)
	}
	if child == 0 {
		for i := range last {
			c := &last[i]
			_, _, _ = syscall.RawSyscall6(c.nr, c.a, c.b, c.c, c.d, c.e, 0)
		}
		_, _, e = syscall.RawSyscall6(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(argv)), uintptr(unsafe.Pointer(envv)), 0, 0, 0)
		fail(failedExec, e)
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOSE_RANGE, 0, 1<<31-1, 0, 0, 0, 0)
	var st uint32
	for {
		pid, _, e := syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
		if e == unix.ECHILD {
			st = 125 << 8
		} else if pid != child {
			continue
		}
		code := uintptr(st >> 8 & 0xff)
		if st&0x7f != 0 { // ended by a signal
			code = uintptr(128 + st&0x7f)
		}
		for {
			_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, code, 0, 0, 0, 0, 0)
		}
	}
}

// fail reports a call of the copy and ends it.
//
//go:noinline
//go:norace
//go:nosplit
func fail(at uintptr, e unix.Errno) {
	said := [2]uintptr{at, uintptr(e)}
	_, _, _ = syscall.RawSyscall6(unix.SYS_WRITE, fdReport, uintptr(unsafe.Pointer(&said)), unsafe.Sizeof(said), 0, 0, 0)
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 127, 0, 0, 0, 0, 0)
	}
}
