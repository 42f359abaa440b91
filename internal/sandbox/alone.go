package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// aloneRules make up for the namespaces that KindLandlock has not: no sockets
// but pairs, nothing of the machine's System V IPC, no hand on other processes
// of the user. helper and thread are the helper and that thread of it which
// lives behind the same walls as the command; uid and gid are the user's.
//
// Landlock does not know of changes to a file's mode, owner, times and
// extended attributes. Those are decided by the helper (judge), or not done: to give a
// file to whom it belongs is nothing, attributes are not supported here.
func aloneRules(abi, helper, thread, uid, gid int) []rule {
	var all []rule
	is := func(arg uint32, v int) cond { return cond{arg: arg, test: bpf.JumpEqual, val: uint32(v)} }
	not := func(arg uint32, v int) cond { return cond{arg: arg, test: bpf.JumpNotEqual, val: uint32(v)} }
	when := func(e unix.Errno, nr uint32, conds ...cond) {
		all = append(all, rule{nr, conds, errno(e)})
	}
	ask := func(nrs ...uint32) {
		for _, nr := range nrs {
			all = append(all, rule{nr: nr, action: unix.SECCOMP_RET_USER_NOTIF})
		}
	}
	when(unix.EACCES, unix.SYS_SOCKET)
	// A pair that is not connected for good (SOCK_DGRAM, and SOCK_RAW, which is the
	// same) can be sent from to any other socket.
	when(unix.EACCES, unix.SYS_SOCKETPAIR, cond{arg: 1, mask: 0xF, test: bpf.JumpNotEqual, val: unix.SOCK_STREAM},
		cond{arg: 1, mask: 0xF, test: bpf.JumpNotEqual, val: unix.SOCK_SEQPACKET})
	when(unix.EACCES, unix.SYS_SOCKETPAIR, not(0, unix.AF_UNIX))
	for _, nr := range []uint32{unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK} {
		when(unix.ENOSYS, nr)
	}
	for _, nr := range []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
		unix.SYS_PROCESS_MRELEASE, unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_INOTIFY_INIT1} {
		when(unix.EPERM, nr)
	}
	for _, nr := range []uint32{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR} {
		when(unix.EPERM, nr, not(0, 0))
	}
	for nr, process := range map[uint32]int{unix.SYS_SETPRIORITY: unix.PRIO_PROCESS, unix.SYS_IOPRIO_SET: 1} { // IOPRIO_WHO_PROCESS
		when(unix.EPERM, nr, not(1, 0))
		when(unix.EPERM, nr, not(0, process)) // 0 is also all of the user
	}
	for _, nr := range []uint32{unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
		unix.SYS_FREMOVEXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT,
		unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR,
		unix.SYS_GETXATTRAT, unix.SYS_LISTXATTRAT, unix.SYS_FILE_GETATTR} { // those that ask, since they ask of hidden files, too
		when(unix.ENOTSUP, nr)
	}
	modes, owners, others := oldCalls()
	for _, nr := range others {
		when(unix.ENOSYS, nr)
	}
	for nr, at := range map[uint32]uint32{unix.SYS_FCHOWN: 1, unix.SYS_FCHOWNAT: 2} {
		all = append(all, ownRules(nr, at, uid, gid)...)
	}
	for _, nr := range owners {
		all = append(all, ownRules(nr, 1, uid, gid)...)
	}
	ask(unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_UTIMENSAT)
	ask(modes...)
	if abi < 3 {
		when(unix.EPERM, unix.SYS_TRUNCATE)
	}
	signalRules(abi, helper, thread, when, ask, is)
	return all
}

// signalRules keep the command's signals from others. The helper's thread is
// one of the command's own to Landlock, but its end would be the helper's; and
// before version 6 Landlock knows nothing of signals.
func signalRules(abi, helper, thread int, when func(unix.Errno, uint32, ...cond), ask func(...uint32), is func(uint32, int) cond) {
	for _, id := range []int{helper, thread} {
		for _, nr := range []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN} {
			when(unix.EPERM, nr, is(0, id))
		}
		for _, nr := range []uint32{unix.SYS_TGKILL, unix.SYS_RT_TGSIGQUEUEINFO} {
			when(unix.EPERM, nr, is(1, id))
		}
	}
	when(unix.EPERM, unix.SYS_FCNTL, is(1, unix.F_SETSIG)) // F_SETSIG chooses the signal that a descriptor sends, the others to whom
	if abi >= 6 {
		return
	}
	when(unix.EPERM, unix.SYS_FCNTL, is(1, unix.F_SETOWN))
	when(unix.EPERM, unix.SYS_IOCTL, is(1, fioSetOwn))
	when(unix.EPERM, unix.SYS_IOCTL, is(1, unix.SIOCSPGRP))
	when(unix.EPERM, unix.SYS_FCNTL, is(1, unix.F_SETOWN_EX))
	when(unix.EPERM, unix.SYS_PIDFD_SEND_SIGNAL)
	ask(unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO)
}

// ownRules let a change of owner to the user itself be a success that does
// nothing, and any other one fail; at is the argument of the owner, the group
// follows.
func ownRules(nr, at uint32, uid, gid int) []rule {
	not := func(arg uint32, v int) cond { return cond{arg: arg, test: bpf.JumpNotEqual, val: uint32(v)} }
	return []rule{
		{nr, []cond{not(at, -1), not(at, uid)}, errno(unix.EPERM)},
		{nr, []cond{not(at+1, -1), not(at+1, gid)}, errno(unix.EPERM)},
		{nr, nil, errno(0)},
	}
}

// notification is struct seccomp_notif, verdict struct seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type verdict struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// judge decides the calls that the filter asks about until there is nobody left
// to ask. What they say of a file by its path is read and done here and not let
// through: the path could be another one by the time the kernel reads it again.
func (o *orders) judge(listener int) {
	for {
		var n notification
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); e != 0 {
			if e == unix.EINTR || e == unix.ENOENT {
				continue
			}
			return
		}
		v := verdict{id: n.id}
		switch err := o.decide(listener, &n); {
		case errors.Is(err, errContinue):
			v.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
		case err != nil:
			e := unix.EPERM
			_ = errors.As(err, &e)
			v.errno = -int32(e)
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v)))
	}
}

var errContinue = errors.New("let the kernel do it")

func (o *orders) decide(listener int, n *notification) error {
	fd, flags := int32(n.args[0]), 0
	modes, _, _ := oldCalls()
	switch nr := uint32(n.nr); nr {
	case unix.SYS_FCHMOD:
		return o.change(listener, n, fd, 0, unix.AT_EMPTY_PATH, uint32(n.args[1]))
	case unix.SYS_FCHMODAT2:
		flags = int(n.args[3])
		fallthrough
	case unix.SYS_FCHMODAT:
		return o.change(listener, n, fd, n.args[1], flags, uint32(n.args[2]))
	case unix.SYS_UTIMENSAT:
		flags = int(n.args[3])
		if n.args[1] == 0 {
			flags |= unix.AT_EMPTY_PATH
		}
		return o.touch(listener, n, fd, n.args[1], flags)
	case unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO:
		return ownProcess(int(fd))
	default:
		if len(modes) > 0 && nr == modes[0] {
			return o.change(listener, n, unix.AT_FDCWD, n.args[0], 0, uint32(n.args[1]))
		}
	}
	return unix.ENOSYS
}

// change is chmod. The bits that make a program run as another are not given.
func (o *orders) change(listener int, n *notification, dir int32, path uint64, flags int, mode uint32) error {
	f, err := o.open(listener, n, dir, path, flags)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(f) }()
	if mode&asOwner != 0 {
		return unix.EPERM
	}
	return unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(f), mode, 0)
}

// touch is utimensat.
func (o *orders) touch(listener int, n *notification, dir int32, path uint64, flags int) error {
	var times *[2]unix.Timespec
	if n.args[2] != 0 {
		times = new([2]unix.Timespec)
		b := unsafe.Slice((*byte)(unsafe.Pointer(times)), unsafe.Sizeof(*times))
		if got, err := readMemory(int(n.pid), n.args[2], b); err != nil || got != len(b) {
			return unix.EFAULT
		}
	}
	f, err := o.open(listener, n, dir, path, flags)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(f) }()
	name := []byte("/proc/self/fd/" + strconv.Itoa(f) + "\x00")
	at := unix.AT_FDCWD
	if _, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(at), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(times)), 0, 0, 0); e != 0 {
		return e
	}
	return nil
}

// open is the file that a process means, which must be one that it may write.
func (o *orders) open(listener int, n *notification, dir int32, path uint64, flags int) (int, error) {
	name := ""
	if path != 0 {
		var err error
		if name, err = readPath(int(n.pid), path); err != nil {
			return -1, err
		}
	}
	from := "/proc/" + strconv.Itoa(int(n.pid)) + "/cwd"
	if dir != unix.AT_FDCWD {
		from = "/proc/" + strconv.Itoa(int(n.pid)) + "/fd/" + strconv.Itoa(int(dir))
	}
	base := -1
	if !filepath.IsAbs(name) {
		var err error
		if base, err = unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return -1, unix.EBADF
		}
	}
	f := base
	if name == "" && flags&unix.AT_EMPTY_PATH == 0 {
		_ = unix.Close(base)
		return -1, unix.ENOENT
	}
	if name != "" {
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
		if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
			how.Flags |= unix.O_NOFOLLOW
		}
		var err error
		if base < 0 {
			f, err = unix.Openat2(unix.AT_FDCWD, name, &how)
		} else {
			f, err = unix.Openat2(base, name, &how)
			_ = unix.Close(base)
		}
		if err != nil {
			return -1, err
		}
	}
	// The process may be gone and its number another's.
	id := n.id
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id)))
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(f))
	if e != 0 || err != nil || !slices.ContainsFunc(o.Writable, func(w string) bool { return within(real, w) }) {
		_ = unix.Close(f)
		return -1, unix.EPERM
	}
	return f, nil
}

// ownProcess lets a signal go to the command's own processes.
func ownProcess(id int) error {
	if id == 0 {
		return errContinue
	}
	w := &watcher{proc: "/proc", root: os.Getpid()}
	for _, p := range w.tree() {
		if p.pid == os.Getpid() || id == -1 {
			continue
		}
		if p.pid == id {
			return errContinue
		}
		if group, err := unix.Getpgid(p.pid); id < -1 && err == nil && group == -id {
			return errContinue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", p.pid, id)); err == nil {
			return errContinue
		}
	}
	return unix.EPERM
}

// readPath is the text at an address of a process.
func readPath(pid int, at uint64) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := readMemory(pid, at, b)
	if i := bytes.IndexByte(b[:n], 0); i >= 0 {
		return string(b[:i]), nil
	}
	if err != nil {
		return "", unix.EFAULT
	}
	return "", unix.ENAMETOOLONG
}

// readMemory reads page by page, since what lies behind a text may be nothing.
func readMemory(pid int, at uint64, b []byte) (int, error) {
	page := uint64(os.Getpagesize())
	for n := 0; n < len(b); {
		part := min(uint64(len(b)-n), page-at%page)
		local := []unix.Iovec{{Base: &b[n]}}
		local[0].SetLen(int(part))
		got, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: int(part)}}, 0)
		if err != nil || got == 0 {
			return n, unix.EFAULT
		}
		n, at = n+got, at+uint64(got)
	}
	return len(b), nil
}

// keepGitFile remembers the workspace's .git file and gives what puts it back:
// where it cannot be mounted over itself, a command may write it, and git that
// a person runs in the tree would obey what it names. Landlock cannot forbid
// that: its rules only add, a right on a directory is one on all that is in it,
// and without the right on the workspace itself nothing could be made there. So
// it is put back each time the watcher looks and at the end; our own git is told
// where the git directory is and never reads the file.
func keepGitFile(spec Spec) (func() error, error) {
	f, err := openGitFile(spec)
	if err != nil || f == nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	want := make([]byte, 8<<10)
	n, _ := f.Read(want)
	want = want[:n]
	path := filepath.Join(spec.Workspace, ".git")
	return func() error {
		if f, err := openGitFile(spec); err == nil && f != nil {
			got := make([]byte, len(want)+1)
			n, _ := f.Read(got)
			_ = f.Close()
			if bytes.Equal(got[:n], want) {
				return nil
			}
		}
		if err := putBack(path, want); err != nil {
			return fmt.Errorf("sandbox: put back %s, which a command changed: %w", path, err)
		}
		return nil
	}, nil
}

// putBack makes path a plain file with this content, whatever is there. Several
// may do so at once. A directory that is not empty comes to lie beside it: to
// remove it could take as long as a command likes.
func putBack(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".git-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if errors.Is(err, unix.EISDIR) || errors.Is(err, os.ErrExist) { // a directory
		err = unix.Renameat2(unix.AT_FDCWD, f.Name(), unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
	}
	_ = os.Remove(f.Name()) // what was in the way, or could not be put there
	return err
}
