package disktest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Program writes a program that the test starts, with mode 0755, and the
// directories above it. No process is forked
// while the file is open for writing: a child would hold it until its own exec,
// and the kernel starts no program that somebody may write (ETXTBSY).
func Program[T string | []byte](t testing.TB, path string, body T) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // others start it
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}
