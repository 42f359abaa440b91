package sandbox

import "golang.org/x/sys/unix"

const (
	nativeArch = unix.AUDIT_ARCH_X86_64
	// otherNumbers begins the calls of x32, a second table for the same ones.
	otherNumbers = 0x40000000
)

func nativeDenied() []uint32 {
	return []uint32{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_USELIB, unix.SYS_MODIFY_LDT}
}

// oldCalls change a file's mode or owner by older numbers than those that every C
// library uses; others change its times, or watch it.
func oldCalls() (modes, owners, others []uint32) {
	return []uint32{unix.SYS_CHMOD}, []uint32{unix.SYS_CHOWN, unix.SYS_LCHOWN},
		[]uint32{unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT, unix.SYS_INOTIFY_INIT}
}

// oldModes are older calls that take a file's mode, as their second argument
// and after flags.
func oldModes() (chmods, opens []uint32) {
	return []uint32{unix.SYS_CHMOD, unix.SYS_CREAT, unix.SYS_MKNOD}, []uint32{unix.SYS_OPEN}
}
