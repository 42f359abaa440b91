package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// mount is one entry of the tree that a command sees.
type mount struct {
	How  string `json:"how"`
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	Must bool   `json:"must,omitempty"` // From has to be there
}

// Ways to mount.
const (
	mountRead   = "read"   // From read-only, with what is mounted below
	mountFile   = "file"   // From read-only if it is a plain file, not by way of a link
	mountWrite  = "write"  // From as it is
	mountDevice = "device" // a device file
	mountDev    = "dev"    // a directory of device files, see withDevices
	mountEmpty  = "empty"  // an empty directory that stays empty
	mountTmp    = "tmp"    // a file system in memory
	mountDir    = "dir"    // a directory in one
	mountLink   = "link"   // a symbolic link to From
	mountProc   = "proc"
	mountPts    = "pts"
)

// Tree is the name that models give the workspace. Where HasTree, commands find it
// there as well, unless the workspace or something else of the task lies below it.
const Tree = "/workspace"

// HasTree reports whether walls of a kind make a file system of their own.
func HasTree(kind string) bool { return kind == KindBwrap || kind == KindNamespaces }

// mounts is the tree that the commands of a Runner see.
func (s *Sandbox) mounts(spec Spec) []mount {
	all := s.systemMounts()
	if spec.Network.hosts != "" && !s.without["mounts"] {
		all = append(all, mount{How: mountRead, From: spec.Network.hosts, To: "/etc/hosts", Must: true})
	}
	all = append(all, s.taskMounts(spec)...)
	if HasTree(s.kind) && !s.without["mounts"] && !slices.ContainsFunc(all, func(m mount) bool { return within(m.To, Tree) }) {
		all = append(all, mount{How: mountLink, From: spec.Workspace, To: Tree})
	}
	return all
}

// systemMounts is the part of the machine that every program needs: its
// programs and libraries, and those files of /etc that hold no secret.
// /etc/ssl is not given whole: it may hold private keys.
func (s *Sandbox) systemMounts() []mount {
	if s.without["mounts"] {
		return []mount{{How: mountWrite, From: "/", To: "/", Must: true}}
	}
	var all []mount
	for _, p := range systemDirs() {
		if to, err := os.Readlink(p); err == nil { // merged /usr
			all = append(all, mount{How: mountLink, From: to, To: p})
		} else if _, err := os.Lstat(p); err == nil {
			all = append(all, mount{How: mountRead, From: p, To: p, Must: true})
		}
	}
	for _, p := range systemFiles() {
		all = append(all, mount{How: mountRead, From: p, To: p})
	}
	all = append(all, mount{How: mountProc, To: "/proc"}, mount{How: mountDev, To: "/dev"})
	for _, dir := range memoryDirs() {
		all = append(all, mount{How: mountTmp, To: dir})
	}
	return append(all, mount{How: mountDir, To: emptyDir}, mount{How: mountDir, To: "/tmp/home"})
}

// taskMounts are the task's paths, to be laid over the system. They are sorted
// so that a path inside another comes after it and decides for itself.
func (s *Sandbox) taskMounts(spec Spec) []mount {
	how := map[string]mount{}
	for _, p := range hidden(spec, s.tools) {
		how[p] = mount{How: mountEmpty}
		if st, err := os.Stat(p); err == nil && !st.IsDir() {
			how[p] = mount{How: mountRead, From: os.DevNull} // nothing to be read
		}
	}
	for _, p := range slices.Concat(s.tools.read, spec.ReadOnly) {
		if !seenAnyway(p, spec.Hide) {
			how[p] = mount{How: mountRead, From: p}
		}
	}
	for _, p := range spec.writable() {
		how[p] = mount{How: mountWrite, From: p, Must: true}
	}
	if spec.GitDir != "" {
		how[spec.GitDir] = mount{How: mountRead, From: spec.GitDir, Must: true}
	}
	var all []mount
	for _, p := range slices.Sorted(maps.Keys(how)) {
		m := how[p]
		m.To = p
		all = append(all, m)
	}
	return all
}

// withDevices is a tree whose device files are named one by one.
func withDevices(all []mount) []mount {
	i := slices.IndexFunc(all, func(m mount) bool { return m.How == mountDev })
	if i < 0 {
		return all
	}
	var dev []mount
	for _, name := range devices() {
		dev = append(dev, mount{How: mountDevice, From: "/dev/" + name, To: "/dev/" + name})
	}
	for _, l := range [][2]string{{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}} {
		dev = append(dev, mount{How: mountLink, From: l[0], To: "/dev/" + l[1]})
	}
	return slices.Replace(all, i, i+1, append(dev, mount{How: mountPts, To: "/dev/pts"})...)
}

// buildRoot makes the tree and turns the process into it. The process has its
// own mount namespace and is root in its own user namespace, or is root.
//
// Sources are opened before the first mount is made, so that none is covered;
// each is a copy of its own that is attached only when it is as it should be.
func buildRoot(mounts []mount, tmpBytes, tmpFiles int64) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	sources := make([]int, len(mounts))
	for i, m := range mounts {
		fd, err := cloneMount(m)
		if err != nil {
			return err
		}
		sources[i] = fd
	}
	const base = "/tmp"
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	size := "size=" + strconv.FormatInt(tmpBytes, 10) + ",nr_inodes=" + strconv.FormatInt(tmpFiles, 10)
	var sealed []string
	for i, m := range mounts {
		if err := attach(base+m.To, m, sources[i], size); err != nil {
			return fmt.Errorf("mount %s: %w", m.To, err)
		}
		if m.How == mountEmpty {
			sealed = append(sealed, m.To)
		}
	}
	// The old root comes to lie upon the new one and is taken away.
	if err := unix.Chdir(base); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	for _, p := range append(sealed, "/") {
		if err := unix.MountSetattr(unix.AT_FDCWD, p, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s read-only: %w", p, err)
		}
	}
	return nil
}

// cloneMount is a detached copy of what m mounts, or -1 where it mounts nothing
// of the machine's.
func cloneMount(m mount) (int, error) {
	flags := uint64(unix.MOUNT_ATTR_NOSUID)
	switch m.How {
	case mountRead, mountFile:
		flags |= unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV
	case mountWrite:
		flags |= unix.MOUNT_ATTR_NODEV
	case mountDevice:
		flags |= unix.MOUNT_ATTR_RDONLY // of its mode, not of what is written to it
	default:
		return -1, nil
	}
	how := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE)
	if m.How == mountFile {
		how |= unix.AT_SYMLINK_NOFOLLOW
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.From, how)
	if errors.Is(err, os.ErrNotExist) && !m.Must {
		return -1, nil
	}
	var st unix.Stat_t
	if m.How == mountFile && err == nil && unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		return -1, unix.Close(fd)
	}
	if err == nil {
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: flags})
	}
	if err != nil {
		return -1, fmt.Errorf("take %s: %w", m.From, err)
	}
	return fd, nil
}

// attach puts one mount into its place.
func attach(to string, m mount, fd int, size string) error {
	switch m.How {
	case mountLink:
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.Symlink(m.From, to)
	case mountEmpty, mountTmp, mountDir, mountProc, mountPts:
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
	default:
		if fd < 0 {
			return nil
		}
		if err := place(to, fd); err != nil {
			return err
		}
	}
	switch m.How {
	case mountDir:
		return nil
	case mountEmpty:
		return unix.Mount("tmpfs", to, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4k")
	case mountTmp:
		return unix.Mount("tmpfs", to, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,"+size)
	case mountProc:
		return unix.Mount("proc", to, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	case mountPts:
		return unix.Mount("devpts", to, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.MoveMount(fd, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// place makes the file or directory that fd is mounted on, unless it is there.
func place(to string, fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(to, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		if _, e := os.Lstat(to); e == nil {
			return nil
		}
		return err
	}
	return f.Close()
}

// loopbackUp starts the only interface of a new network namespace.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}
