package sandbox

import (
	"os"
	"path/filepath"
	"slices"
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
		"alternatives", "ca-certificates/extracted", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust/extracted",
		"ld.so.cache", "ld.so.conf", "maven/m2.conf", "maven/logging",
	}
	for i, p := range all {
		all[i] = filepath.Join("/etc", p)
	}
	for _, pattern := range []string{"ld.so.conf.d/*.conf", "java-*-openjdk/*.*", "java-*-openjdk/security"} {
		more, _ := filepath.Glob("/etc/" + pattern)
		all = append(all, more...)
	}
	return all
}

// devices are the files of /dev that every program may use.
func devices() []string { return []string{"null", "zero", "full", "random", "urandom", "tty"} }

// seenAnyway reports a read-only path that lies in a directory of the system
// and so is seen without a mount of its own: nothing between the two is hidden.
func seenAnyway(path string, hide []string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && real == path && slices.ContainsFunc(systemDirs(), func(d string) bool {
		st, err := os.Lstat(d)
		return err == nil && st.IsDir() && within(path, d) && path != d &&
			!slices.ContainsFunc(hide, func(h string) bool { return within(path, h) && within(h, d) })
	})
}

// procFiles are what programs read of the machine in /proc, beside processes.
func procFiles() []string {
	return []string{"cgroups", "cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "swaps", "sys", "uptime", "version", "vmstat"}
}

// emptyDir is an empty directory in the tree that commands in namespaces see.
const emptyDir = "/run/empty"

// tmpBytes is the size of each file system in memory that the commands of a
// Runner share: a quarter of their memory, of which it is taken.
func (s Spec) tmpBytes() int64 {
	if s.Limits.Memory > 0 {
		return max(1<<20, s.Limits.Memory/4)
	}
	return 1 << 30
}
