package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// errNoFilter is of a processor whose system calls we have no table for.
var errNoFilter = errors.New("no seccomp filter for this processor")

// offsets in struct seccomp_data (linux/seccomp.h); arguments are 64 bit,
// little endian on both processors that we know.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

// cond is about one argument of a system call. Only 32 bits are looked at,
// which is all that the kernel takes of flags, families and process ids.
type cond struct {
	arg  uint32
	high bool   // the upper half
	mask uint32 // 0 for all bits
	test bpf.JumpTest
	val  uint32
}

// rule is what becomes of a system call whose arguments meet all conditions.
type rule struct {
	nr     uint32
	conds  []cond
	action uint32
}

func errno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// namespaceFlags are the clone and unshare flags that make a namespace. The
// flag of time namespaces lies among the signal's bits in clone, which does
// not take it.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// commonRules hold in every kind: what no build needs and what most ways out of
// a sandbox were made of. Calls that the kernel may lack are answered with
// ENOSYS, so that programs take their other way.
func commonRules() []rule {
	var all []rule
	deny := func(e unix.Errno, nrs ...uint32) {
		for _, nr := range nrs {
			all = append(all, rule{nr: nr, action: errno(e)})
		}
	}
	deny(unix.EPERM,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS,
		unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
		unix.SYS_FANOTIFY_INIT, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES)
	// io_uring does what it is asked past this filter. Memory of a memfd is in
	// no process, where the watcher would see it.
	deny(unix.ENOSYS, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_CLONE3,
		unix.SYS_IO_SETUP) // of which the machine has few
	// Space that is taken without being written is not seen where the file has
	// no name. Programs write zeroes instead.
	deny(unix.EOPNOTSUPP, unix.SYS_FALLOCATE)
	deny(unix.EPERM, nativeDenied()...)
	for _, nr := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		mask := uint32(namespaceFlags)
		if nr == unix.SYS_UNSHARE {
			mask |= unix.CLONE_NEWTIME
		}
		all = append(all, rule{nr, []cond{{arg: 0, mask: mask, test: bpf.JumpNotEqual}}, errno(unix.EPERM)})
	}
	// Characters put into a terminal's input are commands of whoever sits there.
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX} {
		all = append(all, rule{unix.SYS_IOCTL, []cond{{arg: 1, test: bpf.JumpEqual, val: request}}, errno(unix.EPERM)})
	}
	all = append(all, attributeRules()...)
	// A lease on a file that may only be read keeps everybody on the machine from
	// opening it.
	for _, command := range []uint32{unix.F_SETLEASE, unix.F_SETDELEG} {
		all = append(all, rule{unix.SYS_FCNTL, []cond{{arg: 1, test: bpf.JumpEqual, val: command}}, errno(unix.EINVAL)})
	}
	all = append(all, ownerRules()...)
	// What System V keeps lies in no process either, and stays until the run ends.
	// Of small segments and sets of semaphores, such as PostgreSQL asks for, there
	// are as many as are no harm (SHMMNI, SEMMNI); of queues there are too many.
	deny(unix.ENOSYS, unix.SYS_MSGGET)
	all = append(all,
		rule{unix.SYS_SHMGET, []cond{{arg: 1, test: bpf.JumpGreaterThan, val: 16 << 10}}, errno(unix.ENOSPC)},
		rule{unix.SYS_SHMGET, []cond{{arg: 1, high: true, test: bpf.JumpNotEqual}}, errno(unix.ENOSPC)},
		rule{unix.SYS_SEMGET, []cond{{arg: 1, test: bpf.JumpGreaterThan, val: 32}}, errno(unix.ENOSPC)})
	// Attributes of a file in memory count little, and access lists nothing: only
	// small ones are set.
	for _, nr := range []uint32{unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR} {
		all = append(all, rule{nr, []cond{{arg: 3, test: bpf.JumpGreaterThan, val: 512}}, errno(unix.ENOSPC)})
	}
	deny(unix.ENOSYS, unix.SYS_SETXATTRAT) // which hides the size
	return all
}

// tmpFile is __O_TMPFILE, which x/sys does not name: the same on both processors.
const tmpFile = 0o20000000

// Requests of ioctl(2) that x/sys does not name (linux/fs.h, asm/sockios.h).
const (
	fsGetVersion = 0x80087601
	fsSetVersion = 0x40087602
	fsGetXattr   = 0x801c581f
	fsSetXattr   = 0x401c5820
	fioSetOwn    = 0x8901
)

// attributeRules refuse what changes a file, or a file system, through a
// descriptor that may only read, which Landlock does not know of: flags, versions,
// projects, verity, encryption, subvolumes. A family of requests is refused whole,
// as by a file system that has none of them, but for those that only ask and those
// that copy to a descriptor that may write.
func attributeRules() []rule {
	all := []rule{{nr: unix.SYS_FILE_SETATTR, action: errno(unix.EOPNOTSUPP)}}
	for family, fine := range map[uint32][]uint32{
		'f':  {unix.FS_IOC_GETFLAGS, unix.FS_IOC_MEASURE_VERITY, unix.FS_IOC_READ_VERITY_METADATA, 0xc020660b, 0xc0686611}, // FIEMAP, PROCMAP_QUERY
		'v':  {fsGetVersion},
		'X':  {fsGetXattr},
		0x94: {unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE, 0x81009431}, // of Btrfs and all; FS_IOC_GETFSLABEL
		0xf5: nil,                                                               // of F2FS
	} {
		r := rule{unix.SYS_IOCTL, []cond{{arg: 1, mask: 0xff00, test: bpf.JumpEqual, val: family << 8}}, errno(unix.ENOTTY)}
		for _, request := range fine {
			r.conds = append(r.conds, cond{arg: 1, test: bpf.JumpNotEqual, val: request})
		}
		all = append(all, r)
	}
	return all
}

// asOwner are the bits of a mode that make a program run as its owner or group. A
// directory takes the second from the one that it is made in, if at all.
const asOwner = unix.S_ISUID | unix.S_ISGID

// ownerRules keep programs that run as their owner or group from being made: a
// file of the workspace outlives the sandbox, and others of the machine may run
// it. openat2 hides its mode from a filter.
func ownerRules() []rule {
	own := func(arg uint32) cond { return cond{arg: arg, mask: asOwner, test: bpf.JumpNotEqual} }
	create := func(arg uint32) cond { return cond{arg: arg, mask: unix.O_CREAT | tmpFile, test: bpf.JumpNotEqual} }
	all := []rule{
		{unix.SYS_FCHMOD, []cond{own(1)}, errno(unix.EPERM)},
		{unix.SYS_FCHMODAT, []cond{own(2)}, errno(unix.EPERM)},
		{unix.SYS_FCHMODAT2, []cond{own(2)}, errno(unix.EPERM)},
		{unix.SYS_MKNODAT, []cond{own(2)}, errno(unix.EPERM)},
		{unix.SYS_OPENAT, []cond{create(2), own(3)}, errno(unix.EPERM)},
		{unix.SYS_OPENAT2, nil, errno(unix.ENOSYS)},
	}
	chmods, opens := oldModes()
	for _, nr := range chmods {
		all = append(all, rule{nr, []cond{own(1)}, errno(unix.EPERM)})
	}
	for _, nr := range opens {
		all = append(all, rule{nr, []cond{create(1), own(2)}, errno(unix.EPERM)})
	}
	return all
}

// networkRules leave the families that a network namespace confines. AF_VSOCK,
// for one, talks to the host of a virtual machine from every namespace.
func networkRules() []rule {
	r := rule{nr: unix.SYS_SOCKET, action: errno(unix.EAFNOSUPPORT)}
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		r.conds = append(r.conds, cond{arg: 0, test: bpf.JumpNotEqual, val: family})
	}
	return []rule{r}
}

// filter is the program of these rules; the first that fits decides, and what
// none is about is allowed. Other instruction sets of the processor, whose
// calls have other numbers, get no call at all.
func filter(rules []rule) ([]bpf.RawInstruction, error) {
	if nativeArch == 0 {
		return nil, errNoFilter
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		bpf.RetConstant{Val: errno(unix.ENOSYS)},
		bpf.LoadAbsolute{Off: offNr, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: otherNumbers, SkipFalse: 1},
		bpf.RetConstant{Val: errno(unix.ENOSYS)},
	}
	for _, r := range rules {
		var body []bpf.Instruction
		for _, c := range r.conds {
			off := offArgs + 8*c.arg
			if c.high {
				off += 4
			}
			body = append(body, bpf.LoadAbsolute{Off: off, Size: 4})
			if c.mask != 0 {
				body = append(body, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask})
			}
			body = append(body, bpf.JumpIf{Cond: c.test, Val: c.val, SkipFalse: 0xFF}) // the distance follows
		}
		body = append(body, bpf.RetConstant{Val: r.action})
		for i, in := range body {
			if j, ok := in.(bpf.JumpIf); ok {
				j.SkipFalse = uint8(len(body) - 1 - i)
				body[i] = j
			}
		}
		if len(r.conds) > 0 {
			body = append(body, bpf.LoadAbsolute{Off: offNr, Size: 4})
		}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: r.nr, SkipFalse: uint8(len(body))})
		program = append(program, body...)
	}
	program = append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("sandbox: assemble filter: %w", err)
	}
	return raw, nil
}
