package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroups is a place where groups of processes may be made (cgroup v2), whose
// limits the kernel keeps of all processes together. It has to be delegated to
// us with the controllers memory and pids; with systemd that is Delegate=yes
// and DelegateSubgroup=, since a group with limits below has no processes of
// its own. Nothing else is asked of the machine: without it the watcher counts.
type cgroups struct{ dir string }

// findCgroups looks for that place: our own group, or the one above it. mounts
// are where cgroup v2 may be mounted, own is /proc/self/cgroup.
func findCgroups(mounts []string, own []byte) *cgroups {
	path := ""
	for line := range bytes.Lines(own) {
		if rest, ok := bytes.CutPrefix(line, []byte("0::")); ok {
			path = strings.TrimSuffix(string(rest), "\n")
		}
	}
	if path == "" {
		return nil
	}
	for _, m := range mounts {
		for _, p := range []string{path, filepath.Dir(path)} {
			c := &cgroups{dir: filepath.Join(m, p)}
			if c.usable() {
				return c
			}
		}
	}
	return nil
}

// cgroupMounts are where cgroup v2 is, alone or beside v1.
func cgroupMounts() []string { return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} }

// usable proves by a trial that groups with limits can be made.
func (c *cgroups) usable() bool {
	has := func(file string) bool {
		b, err := os.ReadFile(filepath.Join(c.dir, file))
		words := strings.Fields(string(b))
		return err == nil && slices.Contains(words, "memory") && slices.Contains(words, "pids")
	}
	if !has("cgroup.controllers") {
		return false
	}
	if !has("cgroup.subtree_control") &&
		os.WriteFile(filepath.Join(c.dir, "cgroup.subtree_control"), []byte("+memory +pids"), 0o600) != nil {
		return false // processes live there, or it is not ours
	}
	g, err := c.group(Limits{Memory: 64 << 20, Processes: 8})
	if err != nil {
		return false
	}
	g.remove()
	return true
}

// group is the group of one command.
type group struct {
	path string
	dir  *os.File
}

// group makes one with these limits. A process counts four times over, since
// threads are counted.
func (c *cgroups) group(l Limits) (*group, error) {
	path, err := os.MkdirTemp(c.dir, "tori-")
	if err != nil {
		return nil, fmt.Errorf("sandbox: make a control group: %w", err)
	}
	g := &group{path: path}
	limits := map[string]string{"pids.max": strconv.Itoa(4 * l.Processes)}
	if l.Memory > 0 {
		limits["memory.max"], limits["memory.swap.max"] = strconv.FormatInt(l.Memory, 10), "0"
		limits["memory.oom.group"] = "1"
	}
	for file, value := range limits {
		err := os.WriteFile(filepath.Join(path, file), []byte(value), 0o600)
		if err != nil && (file != "memory.swap.max" || !errors.Is(err, os.ErrNotExist)) { // a machine without swap
			g.remove()
			return nil, fmt.Errorf("sandbox: limit a control group: %w", err)
		}
	}
	if g.dir, err = os.Open(path); err != nil {
		g.remove()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return g, nil
}

// kill ends all processes of the group, those that hid from everybody else
// included (Linux 5.14).
func (g *group) kill() { _ = os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0o600) }

// outOfMemory reports whether the kernel ended a process of the group for want
// of memory.
func (g *group) outOfMemory() bool {
	b, err := os.ReadFile(filepath.Join(g.path, "memory.events"))
	n, ok := field(b, "oom_kill ")
	return err == nil && ok && n > 0
}

// remove takes the group away once it is empty. The files in it are the
// kernel's and go with it.
func (g *group) remove() {
	if g.dir != nil {
		_ = g.dir.Close()
	}
	g.kill()
	_ = os.Remove(g.path)
}
