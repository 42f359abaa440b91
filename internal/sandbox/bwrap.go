package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
)

// tmpSize bounds /tmp and /dev/shm, which are memory, in bytes each, where no
// limit of memory does.
const tmpSize = "2147483648"

// confined runs commands under bubblewrap.
type confined struct {
	box  *Sandbox
	args []string // the mounts of the task, the same for every command
}

// Runner returns a Runner whose commands see only what spec gives them. It
// fails where this kind of sandbox cannot keep what spec asks for.
func (s *Sandbox) Runner(spec Spec) (Runner, error) {
	spec, err := spec.check()
	if err != nil {
		return nil, err
	}
	r := &runner{kind: s.kind, spec: given(spec), groups: s.groups}
	if spec.Network.open() && s.kind != KindBwrap && s.kind != KindNamespaces {
		return nil, i18n.E("sandbox.no_allow_list", s.kind)
	}
	switch s.kind {
	case KindBwrap:
		c := &confined{box: s, args: s.bwrapArgs(spec)}
		r.prepare = c.prepare
	case KindContainer:
		r.prepare = s.contain
	default:
		r.prepare = s.reexec
		if s.kind == KindLandlock {
			keep, err := keepGitFile(spec)
			if err != nil {
				return nil, err
			}
			r.after = keep
		}
	}
	return r, nil
}

// bwrapArgs is what all commands of a task have in common.
func (s *Sandbox) bwrapArgs(spec Spec) []string {
	size := ""
	if slices.Contains(s.extra, "--size") {
		size = itoa(int(spec.tmpBytes()))
	}
	args := s.isolation()
	if slices.Contains(s.extra, "--disable-userns") && !s.without["users"] {
		args = append(args, "--unshare-user", "--disable-userns")
	}
	args = append(args, s.systemMounts(size)...)
	args = append(args, "--dir", "/tmp/home")
	args = append(args, taskMounts(spec, s.tools)...)
	args = append(args, "--clearenv")
	for _, kv := range environment(spec, s.tools, "/tmp") {
		k, v, _ := strings.Cut(kv, "=")
		args = append(args, "--setenv", k, v)
	}
	return args
}

// isolation is what is taken away from every command.
func (s *Sandbox) isolation() []string {
	var args []string
	for _, w := range [][]string{
		{"users", "--unshare-user-try"}, {"ipc", "--unshare-ipc"}, {"processes", "--unshare-pid"}, {"network", "--unshare-net"},
		{"names", "--unshare-uts", "--hostname", "sandbox"}, {"groups", "--unshare-cgroup-try"}, {"rights", "--cap-drop", "ALL"},
		{"session", "--new-session"},
	} {
		if !s.without[w[0]] {
			args = append(args, w[1:]...)
		}
	}
	return append(args, "--die-with-parent")
}

// systemMounts is the part of the machine that every program needs: its
// programs and libraries, and those files of /etc that hold no secret.
// /etc/ssl is not given whole: it may hold private keys.
func (s *Sandbox) systemMounts(tmpSize string) []string {
	if s.without["mounts"] {
		return []string{"--bind", "/", "/"}
	}
	var args []string
	for _, p := range systemDirs() {
		st, err := os.Lstat(p)
		if err != nil {
			continue
		}
		if st.Mode()&os.ModeSymlink != 0 { // merged /usr
			if to, err := os.Readlink(p); err == nil {
				args = append(args, "--symlink", to, p)
			}
			continue
		}
		args = append(args, "--ro-bind", p, p)
	}
	for _, p := range systemFiles() {
		if !small(p) {
			args = append(args, "--ro-bind-try", p, p)
		}
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	// A root that is the machine's own may write these, in its user namespace as
	// well; bubblewrap covers them for others only. Others may not anyway.
	if os.Getuid() == 0 {
		for _, p := range writableProc() {
			args = append(args, "--ro-bind-try", p, p)
		}
	}
	for _, p := range maskedProc() {
		if _, err := os.Lstat(p); err == nil {
			args = append(args, "--ro-bind", "/dev/null", p)
		}
	}
	for _, p := range []string{"/dev/shm", "/tmp"} {
		if tmpSize != "" {
			args = append(args, "--size", tmpSize)
		}
		args = append(args, "--tmpfs", p)
	}
	return append(args, "--remount-ro", "/dev")
}

// taskMounts lays the task's paths over the system. They are sorted so that a
// path inside another comes after it and decides for itself.
func taskMounts(spec Spec, tools toolchain) []string {
	how := map[string]string{}
	for _, p := range hidden(spec, tools) {
		how[p] = "--tmpfs"
		if st, err := os.Stat(p); err == nil && !st.IsDir() {
			how[p] = "" // nothing to be read
		}
	}
	for _, p := range append(tools.paths(), spec.ReadOnly...) {
		if !seenAnyway(p, spec.Hide) {
			how[p] = "--ro-bind-try"
		}
	}
	if spec.Cache != "" {
		how[spec.Cache] = "--bind"
	}
	how[spec.Workspace] = "--bind"
	if spec.GitDir != "" {
		how[spec.GitDir] = "--ro-bind"
	}
	var args, sealed []string
	for _, p := range slices.Sorted(maps.Keys(how)) {
		switch how[p] {
		case "":
			args = append(args, "--ro-bind", "/dev/null", p)
		case "--tmpfs":
			args = append(args, "--tmpfs", p)
			sealed = append(sealed, "--remount-ro", p)
		default:
			args = append(args, how[p], p, p)
		}
	}
	return append(args, sealed...)
}

// hidden are the paths of Spec.Hide that would be seen: those inside something
// that is given.
func hidden(spec Spec, tools toolchain) []string {
	shown := append(append(tools.paths(), spec.ReadOnly...), systemDirs()...)
	shown = append(shown, spec.Workspace)
	if spec.Cache != "" {
		shown = append(shown, spec.Cache)
	}
	var all []string
	for _, h := range spec.Hide {
		if _, err := os.Lstat(h); err != nil {
			continue
		}
		if slices.ContainsFunc(shown, func(p string) bool { return within(h, p) && h != p }) {
			all = append(all, h)
		}
	}
	return all
}

// within reports whether path is dir or lies in it; both are clean.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// prepare builds the bwrap call. The variables travel in a descriptor and not
// in argv, where every user of the machine could read them; bwrap's own
// environment is empty because it is /proc/1/environ inside.
func (c *confined) prepare(p *process, spec Spec, command Command, dir string) (*exec.Cmd, error) {
	args := slices.Clone(c.args)
	gitFile, err := openGitFile(spec)
	if err != nil {
		return nil, err
	}
	before := ""
	fds := p.files // 3 is the gate's, the rest as numbered here
	add := func(f *os.File) string {
		fds = append(fds, f)
		return itoa(2 + len(fds))
	}
	if gitFile != nil {
		p.after(func() { _ = gitFile.Close() })
		n := add(gitFile)
		args = append(args, "--ro-bind", "/proc/self/fd/"+n, filepath.Join(spec.Workspace, ".git"))
		before = "exec " + n + "<&-; "
	}
	if !c.box.without["mounts"] {
		for _, path := range systemFiles() {
			if !small(path) {
				continue
			}
			f, err := os.Open(path)
			if err != nil {
				continue // not there, or not ours to read
			}
			p.after(func() { _ = f.Close() })
			args = append(args, "--file", add(f), path)
		}
	}
	run := scriptArgs(spec, command, before, !c.box.without["users"])
	if spec.Network.open() {
		more, inside, err := spec.Network.serve(p, add)
		if err != nil {
			return nil, err
		}
		args, run = append(args, more...), append(inside, run...)
	}
	info, infoW, err := pipe(0)
	if err != nil {
		return nil, err
	}
	p.after(func() { _, _ = info.Close(), infoW.Close() })
	blockR, block, err := pipe(0)
	if err != nil {
		return nil, err
	}
	p.after(func() { _, _ = blockR.Close(), block.Close() })
	args = append(args, "--info-fd", add(infoW), "--block-fd", add(blockR), "--chdir", dir)
	if !c.box.without["mounts"] {
		args = append(args, "--remount-ro", "/")
	}
	if spec.Hold != nil {
		args = append(args, "--sync-fd", add(spec.Hold))
	}
	if len(c.box.filter) > 0 && !c.box.without["calls"] {
		f, err := memfd(c.box.filter)
		if err != nil {
			return nil, err
		}
		p.after(func() { _ = f.Close() })
		args = append(args, "--seccomp", add(f))
	}
	opts, err := memfd([]byte(strings.Join(args, "\x00") + "\x00"))
	if err != nil {
		return nil, err
	}
	p.after(func() { _ = opts.Close() })
	cmd := exec.Command(c.box.bwrap, append([]string{"--args", add(opts), "--"}, run...)...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.ExtraFiles = fds
	// A group of its own: Ctrl-C in the terminal is for the daemon to act on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p.started = func(*os.Process) error {
		_, _ = infoW.Close(), blockR.Close()
		err := p.findInit(info)
		_ = block.Close() // lets the command begin
		return err
	}
	return cmd, nil
}

// openGitFile opens the workspace's .git file, which is mounted over itself
// read-only: a command that redirects it would have the people who later run
// git in the tree execute its configuration. Only a plain file is taken, by
// descriptor, so that a link put there in the meantime is not followed.
func openGitFile(spec Spec) (*os.File, error) {
	if spec.GitDir == "" {
		return nil, nil
	}
	f, err := os.OpenFile(filepath.Join(spec.Workspace, ".git"), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ELOOP) {
			return nil, nil
		}
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		_ = f.Close()
		return nil, nil
	}
	return f, nil
}

// findInit learns the process that is pid 1 inside, before the command
// begins: when it is gone, so is everything in the sandbox. bwrap that says
// nothing has failed, and its exit tells.
func (p *process) findInit(info *os.File) error {
	var v struct {
		Pid int `json:"child-pid"`
	}
	if json.NewDecoder(info).Decode(&v) != nil || v.Pid <= 0 {
		return nil
	}
	fd, err := unix.PidfdOpen(v.Pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sandbox: watch the sandbox's init: %w", err)
	}
	p.after(func() { _ = unix.Close(fd) })
	p.watch, p.tmp = v.Pid, fmt.Sprintf("/proc/%d/root/tmp", v.Pid)
	// The init is the leader of the command's session. It does not die of
	// SIGTERM itself, being a namespace's init without a handler.
	p.terminate = func() error {
		if gone(fd, 0) {
			return os.ErrProcessDone
		}
		return unix.Kill(-v.Pid, unix.SIGTERM)
	}
	p.end = func() error {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		if !gone(fd, killWait) {
			return fmt.Errorf("sandbox: processes of the command are still alive %s after SIGKILL", killWait)
		}
		return nil
	}
	return nil
}

// gone waits until the process of a pidfd, and with it its namespace, has ended.
func gone(pidfd int, wait time.Duration) bool {
	deadline := time.Now().Add(wait)
	for {
		left := max(0, time.Until(deadline))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if err == nil || !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}

// memfd is an anonymous file with this content, positioned at its start.
func memfd(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("sandbox: memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "sandbox")
	if _, err := f.WriteAt(data, 0); err == nil {
		return f, nil
	}
	_ = f.Close()
	return nil, errors.New("sandbox: write options")
}
