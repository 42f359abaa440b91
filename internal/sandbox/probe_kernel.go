package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// kernelAttempts try what a command has no business to ask of the kernel.
func kernelAttempts() []attempt {
	in := func(wall, name string, f func(t *target) error) attempt {
		return attempt{name: name, wall: wall, inside: f}
	}
	// call makes a system call. These errors come from behind the permission
	// check of calls that are made with nonsense, so that nothing happens.
	call := func(nr uintptr, through []unix.Errno, args ...any) func(*target) error {
		return func(*target) error {
			var a [6]uintptr
			for i, arg := range args {
				switch v := arg.(type) {
				case int:
					a[i] = uintptr(v)
				case []byte:
					a[i] = addressOf(v)
				}
			}
			r, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
			runtime.KeepAlive(args)
			if slices.Contains(through, e) {
				return nil
			}
			if e != 0 {
				return e
			}
			if nr == unix.SYS_BPF || nr == unix.SYS_PERF_EVENT_OPEN || nr == unix.SYS_USERFAULTFD || nr == unix.SYS_MEMFD_CREATE ||
				nr == unix.SYS_FANOTIFY_INIT || nr == unix.SYS_FSOPEN || nr == unix.SYS_OPEN_TREE {
				_ = unix.Close(int(r))
			}
			return nil
		}
	}
	clone := func(flags uintptr) func(*target) error {
		return func(*target) error {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
			return cmd.Run()
		}
	}
	name := []byte("tori-probe\x00")
	mapAttr := make([]byte, 64)
	mapAttr[0], mapAttr[4], mapAttr[8], mapAttr[12] = 2, 4, 4, 1 // an array of one
	perf := make([]byte, 128)
	perf[0], perf[4] = 1, 128 // PERF_TYPE_SOFTWARE, its size
	perf[40] = 1 << 5 & 0xFF  // exclude_kernel
	all := []attempt{
		in("kernel", "keyring", call(unix.SYS_KEYCTL, nil, 0, -4, 1)), // KEYCTL_GET_KEYRING_ID, the user's
		in("kernel", "key-add", call(unix.SYS_ADD_KEY, []unix.Errno{unix.EFAULT, unix.EINVAL}, 0, 0, 0, 0, 0)),
		in("kernel", "bpf", call(unix.SYS_BPF, []unix.Errno{unix.EINVAL}, 0, mapAttr, 64)),
		in("kernel", "perf", call(unix.SYS_PERF_EVENT_OPEN, []unix.Errno{unix.EINVAL, unix.E2BIG}, perf, 0, -1, -1, 0)),
		in("kernel", "userfaultfd", call(unix.SYS_USERFAULTFD, nil, unix.O_CLOEXEC)),
		in("kernel", "memfd", call(unix.SYS_MEMFD_CREATE, nil, name, unix.MFD_CLOEXEC)),
		in("kernel", "file-lease", func(t *target) error {
			path := t.temporary("leased")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
			return err
		}),
		in("kernel", "asynchronous-io", func(*target) error {
			var aio uintptr
			_, _, e := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&aio)), 0)
			if e != 0 {
				return e
			}
			_, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, aio, 0, 0)
			return nil
		}),
		in("kernel", "semaphores", func(*target) error {
			id, _, e := unix.Syscall(unix.SYS_SEMGET, unix.IPC_PRIVATE, 100, 0o600|unix.IPC_CREAT)
			if e != 0 {
				return e
			}
			_, _, _ = unix.Syscall6(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID, 0, 0, 0)
			return nil
		}),
		in("kernel", "large-attribute", func(t *target) error {
			f, err := os.Create(t.temporary("attributed"))
			if err != nil {
				return err
			}
			defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
			return unix.Fsetxattr(int(f.Fd()), "user.tori", make([]byte, 1024), 0)
		}),
		in("kernel", "messages", func(*target) error {
			id, _, e := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600|unix.IPC_CREAT, 0)
			if e != 0 {
				return e
			}
			_, _, _ = unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
			return nil
		}),
		in("kernel", "space-without-a-name", func(t *target) error {
			f, err := os.Create(t.temporary("allocated"))
			if err != nil {
				return err
			}
			defer func() { _, _ = f.Close(), os.Remove(f.Name()) }()
			return unix.Fallocate(int(f.Fd()), 0, 0, 1<<20)
		}),
		in("kernel", "shared-segment", func(*target) error {
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 64<<10, 0o600|unix.IPC_CREAT)
			if err != nil {
				return err
			}
			_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			return err
		}),
		in("kernel", "module", call(unix.SYS_INIT_MODULE, []unix.Errno{unix.ENOEXEC, unix.EFAULT, unix.EINVAL}, 0, 0, name)),
		in("kernel", "kexec", call(unix.SYS_KEXEC_LOAD, []unix.Errno{unix.EINVAL, unix.EBUSY}, 0, 0, 0, 1<<30)),
		in("kernel", "reboot", call(unix.SYS_REBOOT, []unix.Errno{unix.EINVAL}, 0, 0, 0)),
		in("kernel", "swap", call(unix.SYS_SWAPON, []unix.Errno{unix.EINVAL, unix.ENOENT}, name, 0)),
		in("kernel", "accounting", call(unix.SYS_ACCT, []unix.Errno{unix.ENOENT}, name)),
		in("kernel", "log", call(unix.SYS_SYSLOG, nil, 10, 0, 0)),
		in("kernel", "clock", call(unix.SYS_SETTIMEOFDAY, nil, 0, 0)),
		in("kernel", "watch-all-files", call(unix.SYS_FANOTIFY_INIT, nil, unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, 0)),
		// The kernel takes 32 bits of the length: more would be a name, of no letters.
		in("kernel", "host-name", call(unix.SYS_SETHOSTNAME, []unix.Errno{unix.EINVAL}, name, -1)),
		in("kernel", "other-calls", func(*target) error {
			if nativeArch != unix.AUDIT_ARCH_X86_64 {
				return unavailable("this processor has one table of calls")
			}
			pid, _, e := unix.Syscall(unix.SYS_GETPID|0x40000000, 0, 0, 0)
			if e != 0 {
				return e
			}
			if int(pid) != os.Getpid() {
				return errors.New("answered with nonsense")
			}
			return nil
		}),
		in("kernel", "user-namespace", clone(unix.CLONE_NEWUSER)),
		in("kernel", "mount-namespace", clone(unix.CLONE_NEWNS)),
		in("kernel", "process-namespace", clone(unix.CLONE_NEWPID)),
		in("kernel", "network-namespace", clone(unix.CLONE_NEWNET)),
		in("kernel", "unshare", func(*target) error { return onThread(func() error { return unix.Unshare(unix.CLONE_NEWUTS) }) }),
		in("kernel", "mount", func(t *target) error {
			if err := os.MkdirAll(t.temporary("mnt"), 0o700); err != nil {
				return err
			}
			if err := unix.Mount("tmpfs", t.temporary("mnt"), "tmpfs", 0, "size=4k"); err != nil {
				return err
			}
			return unix.Unmount(t.temporary("mnt"), 0)
		}),
		in("kernel", "mount-bind", func(t *target) error {
			if err := os.MkdirAll(t.temporary("bind"), 0o700); err != nil {
				return err
			}
			if err := unix.Mount(t.Workspace, t.temporary("bind"), "", unix.MS_BIND, ""); err != nil {
				return err
			}
			return unix.Unmount(t.temporary("bind"), 0)
		}),
		in("kernel", "mount-new", call(unix.SYS_FSOPEN, nil, []byte("tmpfs\x00"), 1)),
		in("kernel", "mount-copy", call(unix.SYS_OPEN_TREE, nil, 0, []byte("/\x00"), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)),
		in("kernel", "pivot-root", call(unix.SYS_PIVOT_ROOT, []unix.Errno{unix.EINVAL, unix.EBUSY, unix.ENOENT}, name, name)),
		in("rights", "capabilities", func(*target) error { return capabilities("Prm", "Eff", "Inh", "Amb") }),
		in("rights", "capability-taken", func(*target) error {
			head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
			return onThread(func() error { return unix.Capset(&head, &data[0]) })
		}),
		in("rights", "programs-of-owners", func(*target) error {
			on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err == nil && on == 1 {
				err = errors.New("no program gives more rights than its caller has")
			}
			return err
		}),
		in("rights", "become-another", func(*target) error {
			return onThread(func() error {
				if _, _, e := unix.Syscall(unix.SYS_SETRESUID, 1, 1, 1); e != 0 {
					return e
				}
				return nil
			})
		}),
		in("rights", "join-group", func(*target) error {
			return onThread(func() error {
				group := uint32(1)
				if _, _, e := unix.Syscall(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&group)), 0); e != 0 {
					return e
				}
				return nil
			})
		}),
		in("limits", "raise-limit", func(*target) error {
			l := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
			return unix.Setrlimit(unix.RLIMIT_FSIZE, &l)
		}),
		// What the kernel counts for a user it counts for the daemon, too.
		in("limits", "watchers-of-files", func(*target) error {
			for n := range maxInotify + 1 {
				fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
				if err != nil {
					return fmt.Errorf("after %d: %w", n, err)
				}
				defer func() { _ = unix.Close(fd) }()
			}
			return nil
		}),
		{name: "signals-that-wait", wall: "limits", alone: true, inside: func(*target) error {
			const signal = 40
			runtime.LockOSThread()
			block := unix.Sigset_t{Val: [16]uint64{1 << (signal - 1)}}
			if err := unix.PthreadSigmask(unix.SIG_BLOCK, &block, nil); err != nil {
				return err
			}
			info := [32]int32{signal, 0, -1} // SI_QUEUE
			for n := range maxPending + 1 {
				if _, _, e := unix.Syscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(os.Getpid()), uintptr(unix.Gettid()), signal, uintptr(unsafe.Pointer(&info)), 0, 0); e != 0 {
					return fmt.Errorf("after %d: %w", n, e)
				}
			}
			return nil
		}},
		in("limits", "descriptors-on-their-way", func(t *target) error {
			const each = 250 // of SCM_MAX_FD
			for n := 0; n <= t.Descriptors; {
				pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				defer closeAll(pair[:])
				sent := unix.UnixRights(slices.Repeat(pair[:1], each)...)
				for err == nil && n <= t.Descriptors {
					if err = unix.Sendmsg(pair[1], []byte{0}, sent, nil, 0); err == nil {
						n += each
					}
				}
				if err != nil && !errors.Is(err, unix.EAGAIN) {
					return fmt.Errorf("after %d: %w", n, err)
				}
			}
			return nil
		}),
		in("limits", "priority", func(*target) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -20) }),
		in("limits", "last-to-be-killed", func(*target) error {
			return os.WriteFile("/proc/self/oom_score_adj", []byte("499"), 0)
		}),
		in("limits", "core-dumps", func(*target) error {
			var l unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
				return err
			}
			if l.Max == 0 {
				return errors.New("core files may have no byte")
			}
			return nil
		}),
	}
	root := in("kernel", "chroot", func(t *target) error { return unix.Chroot(t.Workspace) })
	root.alone = true
	return append(all, root)
}

// capabilities reports a set of capabilities that is not empty.
func capabilities(sets ...string) error {
	const prefix = "Cap"
	none := fmt.Errorf("%s: all sets are empty", prefix)
	b, err := os.ReadFile("/proc/self/status")
	if err != nil { // where /proc is hidden the kernel is asked
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&head, &data[0]); err != nil {
			return err
		}
		if data != [2]unix.CapUserData{} {
			return nil
		}
		return none
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		if set, ok := strings.CutPrefix(name, prefix); ok && slices.Contains(sets, set) && strings.Trim(value, " \t\n0") != "" {
			return nil
		}
	}
	return none
}
