package sandbox

import (
	"os"
	"path/filepath"
	"testing"
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
	c := &cgroups{dir: t.TempDir()}
	g, err := c.group(Limits{Memory: 100 << 20, Processes: 10})
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
