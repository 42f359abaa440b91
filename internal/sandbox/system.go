package sandbox

import (
	"os"
	"path/filepath"
)

// systemDirs are the programs and libraries that every command needs.
func systemDirs() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
}

// systemFiles are those files and directories of /etc that hold no secret.
// /etc/ssl is not given whole: it may hold private keys.
func systemFiles() []string {
	all := []string{
		"passwd", "group", "hosts", "nsswitch.conf", "protocols", "services", "localtime", "mime.types",
		"alternatives", "ca-certificates", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust/extracted",
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	}
	for i, p := range all {
		all[i] = filepath.Join("/etc", p)
	}
	return all
}

// small reports whether a file is copied into a bubblewrap sandbox, which costs
// a tenth of a mount.
func small(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Size() <= 64<<10
}

// maskedProc are files of /proc that tell of the whole machine or reach into
// it, and that no namespace changes.
func maskedProc() []string { return []string{"/proc/kcore", "/proc/keys", "/proc/timer_list"} }

// writableProc are directories and files of /proc that change the machine when
// they are written by the machine's own root, who is that in its sandbox, too.
func writableProc() []string {
	return []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"}
}

// tmpBytes is the size of each file system in memory that a command has: half
// of its memory.
func (s Spec) tmpBytes() int64 {
	if s.Limits.Memory > 0 {
		return max(1<<20, s.Limits.Memory/2)
	}
	return 2 << 30
}
