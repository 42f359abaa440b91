package sandbox

import "golang.org/x/sys/unix"

const (
	nativeArch   = unix.AUDIT_ARCH_AARCH64
	otherNumbers = 0x40000000 // there are none
)

func nativeDenied() []uint32 { return []uint32{unix.SYS_KEXEC_FILE_LOAD} }

// oldCalls are calls that this processor never had.
func oldCalls() (modes, owners, others []uint32) { return nil, nil, nil }

// oldModes are calls that this processor never had.
func oldModes() (chmods, opens []uint32) { return nil, nil }
