package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock (landlock(7)), by what they are for. The calls are made
// here and not by go-landlock, which restricts all threads of a process: ours
// restricts the one thread that the command is born from, and keeps the others
// to wait for it.
const (
	landRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// landNever is given to nobody: to make device files.
	landNever = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	// landFile are the rights that a rule about a file, not a directory, may give.
	landFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// landGrant gives a right on a path and what lies below it.
type landGrant struct {
	Path  string `json:"path"`
	Write bool   `json:"write,omitempty"`
	Must  bool   `json:"must,omitempty"` // it has to be there
}

// landlockABI is the version that the kernel has, 0 for none.
func landlockABI() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

// landHandled are the rights that a version knows.
func landHandled(abi int) uint64 {
	fs := uint64(landRead | landWrite | landNever)
	if abi < 2 {
		fs &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi < 3 {
		fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return fs
}

// landRuleset is a descriptor of the rules that leave these grants, no TCP
// where network is false, and signals and abstract sockets among those that it
// restricts, as far as the version knows of each. Paths that do not exist are
// left out, unless they must. The caller closes it.
func landRuleset(abi int, grants []landGrant, network bool) (int, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landHandled(abi)}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if abi >= 4 {
		size += unsafe.Sizeof(attr.Handled_access_net)
		if !network {
			attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if abi >= 6 {
		size += unsafe.Sizeof(attr.Scoped)
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	set, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return -1, fmt.Errorf("landlock: make a ruleset: %w", e)
	}
	for _, g := range grants {
		if err := landAdd(int(set), g, attr.Handled_access_fs); err != nil {
			return -1, errors.Join(fmt.Errorf("landlock: %s: %w", g.Path, err), unix.Close(int(set)))
		}
	}
	unix.CloseOnExec(int(set))
	return int(set), nil
}

func landAdd(set int, g landGrant, handled uint64) error {
	fd, err := unix.Open(g.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) && !g.Must {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	access := uint64(landRead)
	if g.Write {
		access |= landWrite | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= landFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access & handled, Parent_fd: int32(fd)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return e
	}
	return nil
}
