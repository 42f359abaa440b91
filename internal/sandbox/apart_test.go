package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// apartVariable tells this program that it runs in namespaces of its own.
const apartVariable = "SANDBOX_TEST_APART"

// apart runs the calling test once more, in namespaces of its own, and reports
// whether this is that run. What root attempts without a wall then meets no
// process, mount, network, name or memory segment of the machine's, which is
// watched all the same.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apartVariable) != "" {
		return true
	}
	watchHost(t)
	args := []string{"-test.run=^" + t.Name() + "$"}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(deadline).String())
	}
	cmd := exec.CommandContext(t.Context(), helperPath, args...)
	cmd.Env = append(os.Environ(), apartVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID | unix.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("in namespaces of its own: %v\n%s", err, out)
	}
	return false
}

// furnish makes the namespaces of apart fit to be attacked: their own /proc, and
// a network with a way to everywhere that ends in the loopback.
func furnish() error {
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""),
		unix.Sethostname([]byte("apart")),
		loopbackUp(),
		defaultRoute())
}

// defaultRoute sends what goes to another machine to the loopback.
func defaultRoute() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	device := [16]byte{'l', 'o'}
	entry := make([]byte, 120) // struct rtentry: a pad, then destination, gateway and mask
	for _, at := range []int{8, 24, 40} {
		binary.NativeEndian.PutUint16(entry[at:], unix.AF_INET)
	}
	binary.NativeEndian.PutUint16(entry[56:], unix.RTF_UP)
	*(**byte)(unsafe.Pointer(&entry[88])) = &device[0]
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCADDRT, addressOf(entry)); e != 0 {
		return fmt.Errorf("add a default route: %w", e)
	}
	return nil
}

// watchHost fails the test if the machine is not at its end what it is now.
func watchHost(t *testing.T) {
	t.Helper()
	before, clock := hostState(t), clockOffset(t)
	t.Cleanup(func() {
		after := hostState(t)
		// Attempts of other tests, of this process and others, clean up as they end.
		for late := time.Now().Add(time.Minute); !maps.Equal(before, after) && time.Now().Before(late); after = hostState(t) {
			time.Sleep(100 * time.Millisecond)
		}
		for name, was := range before {
			if is := after[name]; is != was {
				t.Errorf("the attempts changed the machine: %s was %q and is %q", name, was, is)
			}
		}
		if moved := clockOffset(t) - clock; moved.Abs() > time.Minute { // more than a correction
			t.Errorf("the attempts changed the machine: its clock moved by %s", moved)
		}
	})
}

// clockOffset is how far the machine's clock is from the time since its start.
func clockOffset(t *testing.T) time.Duration {
	t.Helper()
	var wall, boot unix.Timespec
	if err := errors.Join(unix.ClockGettime(unix.CLOCK_REALTIME, &wall), unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)); err != nil {
		t.Fatal(err)
	}
	return time.Duration(wall.Nano() - boot.Nano())
}

// hostState is what the attempts could change of the machine and must not.
func hostState(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, path := range []string{"/proc/swaps", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf", "/etc/ld.so.preload"} {
		b, err := os.ReadFile(path)
		state[path] = fmt.Sprint(string(b), err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if !strings.Contains(line, "docker") && !strings.Contains(line, "containers") { // those of engines come and go with other tests
			state["mounts"] += line
		}
	}
	for _, path := range []string{"/etc", "/etc/shadow", "/usr/bin", "/usr/bin/env", "/dev/null"} {
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		state["mode of "+path] = fmt.Sprint(st.Mode, st.Uid, st.Gid, err)
	}
	for _, dir := range []string{"/", "/etc", "/usr/bin", "/tmp", "/dev/shm"} {
		left, err := filepath.Glob(filepath.Join(dir, "*tori-probe-*"))
		state["left in "+dir] = fmt.Sprint(left, err)
	}
	// All settings of the kernel that can be written, the names of the machine
	// among them, but those that the kernel itself changes as it goes.
	own := []string{"ns_last_pid", "perf_event_max_sample_rate", "perf_cpu_time_max_percent"}
	for _, dir := range []string{"fs", "kernel", "vm"} {
		err := filepath.WalkDir("/proc/sys/"+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // a directory that went
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o600 == 0o600 && !slices.Contains(own, d.Name()) {
				b, err := os.ReadFile(path)
				state[path] = fmt.Sprint(strings.TrimSpace(string(b)), err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return state
}
