package sandbox

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func writeFile(file, text string) error { return os.WriteFile(file, []byte(text), 0o600) }

func TestFindCgroups(t *testing.T) {
	t.Parallel()
	full := map[string]string{"cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "memory pids\n"}
	mount := t.TempDir()
	writeAll(t, filepath.Join(mount, "svc"), full)
	writeAll(t, filepath.Join(mount, "svc/daemon"), map[string]string{"cgroup.controllers": "memory pids\n"})
	writeAll(t, filepath.Join(mount, "bare"), map[string]string{"cgroup.controllers": "cpu\n"})
	for own, want := range map[string]string{
		"0::/svc\n":                  "svc",
		"4:memory:/x\n0::/svc/sub\n": "svc",
		"0::/svc/daemon\n":           "svc/daemon",
		"0::/bare\n":                 "",
		"4:memory:/x\n":              "",
		"0::/../svc\n":               "",
		"0::/..\n":                   "",
		"":                           "",
	} {
		c := findCgroups([]string{filepath.Join(mount, "none"), mount}, []byte(own))
		switch {
		case c == nil && want != "":
			t.Errorf("%q: none found", own)
		case c != nil && (want == "" || c.dir != filepath.Join(mount, want)):
			t.Errorf("%q: %s", own, c.dir)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(mount, "svc/daemon/cgroup.subtree_control")); string(b) != "+memory +pids" {
		t.Errorf("not switched on: %q", b)
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	c := &cgroups{t.TempDir(), writeFile}
	g, err := c.group(Limits{Memory: 100 << 20, Processes: 10}, true)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "104857600", "memory.swap.max": "0", "pids.max": "40", "memory.oom.group": "1"} {
		if b, err := os.ReadFile(filepath.Join(g.path, file)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", file, b, err)
		}
	}
	if g.outOfMemory() {
		t.Error("out of memory")
	}
	writeAll(t, g.path, map[string]string{"memory.events": "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n"})
	if !g.outOfMemory() {
		t.Error("the kernel's word was not heard")
	}
	g.kill()
	if b, _ := os.ReadFile(filepath.Join(g.path, "cgroup.kill")); string(b) != "1" {
		t.Errorf("kill: %q", b)
	}
}

// Where control groups are delegated the kernel keeps the limit of memory.
func TestGroupForReal(t *testing.T) {
	t.Parallel()
	s := box(t)
	if s.groups == nil {
		t.Skip("no control groups are delegated here")
	}
	if p := outcomes(t, s, s.Runner, []string{"memory-of-many"})["memory-of-many"]; p.Outcome != OutcomeContained {
		t.Errorf("%+v", p)
	}
	if left, _ := filepath.Glob(filepath.Join(s.groups.dir, "tori-*")); len(left) > 4 {
		t.Errorf("groups are left: %v", left)
	}
}

// A group that is ours alone, such as a scope of the user's systemd, is made
// room in by going one down; one that others live in is left alone.
func TestMoveIntoALeaf(t *testing.T) {
	t.Parallel()
	self := strconv.Itoa(os.Getpid())
	for name, c := range map[string]struct {
		procs string
		deny  bool // the controllers cannot be switched on even then
		want  bool
	}{
		"alone":       {self + "\n", false, true},
		"with others": {"1\n" + self + "\n", false, false},
		"refused":     {self + "\n", true, false},
	} {
		mount := t.TempDir()
		scope := filepath.Join(mount, "app.slice/run.scope")
		writeAll(t, scope, map[string]string{"cgroup.controllers": "memory pids\n", "cgroup.subtree_control": "", "cgroup.procs": c.procs})
		lives := c.procs != ""
		write := func(file, text string) error {
			switch filepath.Base(file) {
			case "cgroup.procs": // the kernel takes a process out of where it was
				lives = filepath.Dir(file) == scope
				return nil
			case "cgroup.subtree_control":
				if lives || c.deny {
					return unix.EBUSY
				}
			}
			return writeFile(file, text)
		}
		got := findCgroupsBy([]string{mount}, []byte("0::/app.slice/run.scope\n"), write)
		if (got != nil) != c.want || got != nil && got.dir != scope {
			t.Errorf("%s: %+v", name, got)
		}
		_, err := os.Stat(filepath.Join(scope, ownLeaf))
		if left := err == nil; left != c.want {
			t.Errorf("%s: a leaf: %v", name, left)
		}
		if !c.want && !lives {
			t.Errorf("%s: we are not back", name)
		}
	}
}

// What needs no controller is tried on the kernel itself, where cgroup v2 may be
// written: a process is born into its group, and the group's end is its own.
func TestGroupOfTheKernel(t *testing.T) {
	t.Parallel()
	for _, mount := range cgroupMounts() {
		var st unix.Statfs_t
		if unix.Statfs(mount, &st) != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		path, err := os.MkdirTemp(mount, "tori-test-")
		if err != nil {
			continue
		}
		dir, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		g := &group{path: path, dir: dir}
		defer g.remove()
		cmd := exec.Command("/bin/sh", "-c", "cat /proc/self/cgroup; setsid sleep 60 & exec sleep 60")
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := ""
		for r := bufio.NewReader(out); !strings.Contains(said, "0::"); {
			line, err := r.ReadString('\n')
			if said += line; err != nil {
				break
			}
		}
		if !strings.Contains(said, "/"+filepath.Base(path)+"\n") {
			t.Errorf("born elsewhere: %s", said)
		}
		g.kill()
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%v", err)
		}
		for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
			if g.remove(); time.Now().After(deadline) {
				t.Fatal("the group stays")
			}
			if _, err := os.Stat(path); err != nil {
				return
			}
		}
	}
	t.Skip("cgroup v2 cannot be written here")
}
