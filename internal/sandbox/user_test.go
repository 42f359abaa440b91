package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"toritsugi/internal/disk/disktest"
)

// asUser says that this is the test binary of TestAsUser.
const asUser = "SANDBOX_TEST_AS_USER"

// An ordinary user has other ways to make namespaces than root has: what holds
// for one need not for the other.
func TestAsUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 || os.Getenv(asUser) != "" {
		t.Skip("only root becomes another user")
	}
	dir, err := os.MkdirTemp("/tmp", "tori-as-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const nobody = 65534
	tmp := filepath.Join(dir, "tmp")
	for _, err := range []error{os.Mkdir(tmp, 0o700), os.Chown(tmp, nobody, nobody), os.Chmod(dir, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "test")
	disktest.Program(t, exe, self)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `ulimit -n 2048; exec "$0" "$@"`, exe, "-test.v", "-test.run",
		"^Test(NothingEscapes|Exit|Dir|ConfinedReach|Descriptors|Hold|HoldOutOfReach|Rest|MemoryTogether)$")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + tmp, asUser + "=1"}
	cmd.Dir = tmp
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "bwrap does not work here") && !strings.Contains(string(out), "namespaces does not work here") {
		t.Errorf("bubblewrap works for root alone:\n%s", out)
	}
}
