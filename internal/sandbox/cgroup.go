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
	"time"

	"golang.org/x/sys/unix"
)

// cgroups is a place where groups of processes may be made (cgroup v2), whose
// limits the kernel keeps of all processes together. It has to be delegated to
// us with the controllers memory and pids: with systemd by Delegate=yes, for a
// service or by systemd-run --user --scope. Nothing else is asked of the
// machine: without it rlimits and the watcher keep the limits. Version 1 is not
// used: its controllers have a tree each, none of which a process can be born
// into, and systemd has given it up.
type cgroups struct {
	dir   string
	write func(file, text string) error
}

// ownLeaf is the group below ours that we move into ourselves: a group with
// limits below it has no processes of its own.
const ownLeaf = "tori-daemon"

// findCgroups looks for that place: our own group, or the one above it. mounts
// are where cgroup v2 may be mounted, own is /proc/self/cgroup.
func findCgroups(mounts []string, own []byte) *cgroups {
	return findCgroupsBy(mounts, own, func(file, text string) error { return os.WriteFile(file, []byte(text), 0o600) })
}

func findCgroupsBy(mounts []string, own []byte, write func(file, text string) error) *cgroups {
	path := ""
	for line := range bytes.Lines(own) {
		if rest, ok := bytes.CutPrefix(line, []byte("0::")); ok {
			path = strings.TrimSuffix(string(rest), "\n")
		}
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path { // /.. is above what we see
		return nil
	}
	for _, m := range mounts {
		for _, p := range []string{path, filepath.Dir(path)} {
			c := &cgroups{filepath.Join(m, p), write}
			if c.usable() {
				return c
			}
		}
	}
	for _, m := range mounts {
		c := &cgroups{filepath.Join(m, path), write}
		if c.moveIn() && c.usable() {
			return c
		}
	}
	return nil
}

// moveIn makes room in a group that is ours and holds nobody but us, by going
// one down; what cannot be done is undone.
func (c *cgroups) moveIn() bool {
	procs, err := os.ReadFile(filepath.Join(c.dir, "cgroup.procs"))
	self := strconv.Itoa(os.Getpid())
	if err != nil || strings.TrimSpace(string(procs)) != self || !c.controllers("cgroup.controllers") {
		return false
	}
	leaf := filepath.Join(c.dir, ownLeaf)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return false
	}
	if c.write(filepath.Join(leaf, "cgroup.procs"), self) == nil {
		if c.write(filepath.Join(c.dir, "cgroup.subtree_control"), "+memory +pids") == nil {
			return true
		}
		_ = c.write(filepath.Join(c.dir, "cgroup.procs"), self)
	}
	_ = os.Remove(leaf)
	return false
}

// controllers reports whether a file names both that we need.
func (c *cgroups) controllers(file string) bool {
	b, err := os.ReadFile(filepath.Join(c.dir, file))
	words := strings.Fields(string(b))
	return err == nil && slices.Contains(words, "memory") && slices.Contains(words, "pids")
}

// cgroupMounts are where cgroup v2 is, alone or beside v1.
func cgroupMounts() []string { return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} }

// usable proves by a trial that groups with limits can be made.
func (c *cgroups) usable() bool {
	if !c.controllers("cgroup.controllers") {
		return false
	}
	if !c.controllers("cgroup.subtree_control") && c.write(filepath.Join(c.dir, "cgroup.subtree_control"), "+memory +pids") != nil {
		return false // processes live there, or it is not ours
	}
	g, err := c.group(Limits{Memory: 64 << 20, Processes: 8}, true)
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
// threads are counted. With together, all of its processes end when memory is
// short.
func (c *cgroups) group(l Limits, together bool) (*group, error) {
	path, err := os.MkdirTemp(c.dir, "tori-")
	if err != nil {
		return nil, fmt.Errorf("sandbox: make a control group: %w", err)
	}
	g := &group{path: path}
	limits := map[string]string{"pids.max": strconv.Itoa(threadsPerProcess * l.Processes)}
	if l.Memory > 0 {
		limits["memory.max"], limits["memory.swap.max"] = strconv.FormatInt(l.Memory, 10), "0"
		if together {
			limits["memory.oom.group"] = "1"
		}
	}
	for file, value := range limits {
		err := c.write(filepath.Join(path, file), value)
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
func (g *group) outOfMemory() bool { return g.starved() > 0 }

// starved counts the processes that the kernel ended for want of memory.
func (g *group) starved() int64 {
	b, _ := os.ReadFile(filepath.Join(g.path, "memory.events"))
	n, _ := field(b, "oom_kill ")
	return n
}

// remove takes the group away once it is empty. The files in it are the
// kernel's and go with it.
func (g *group) remove() {
	if g.dir != nil {
		_ = g.dir.Close()
	}
	g.kill()
	for range 100 { // what is killed takes a moment to be gone
		if !errors.Is(os.Remove(g.path), unix.EBUSY) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
