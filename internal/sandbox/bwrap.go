package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tmpSize bounds /tmp and /dev/shm, which are memory, in bytes each.
const tmpSize = "2147483648"

// confined runs commands under bubblewrap.
type confined struct {
	box  *Sandbox
	spec Spec
	args []string // the mounts of the task, the same for every command
}

// Runner returns a Runner whose commands see only what spec gives them.
func (s *Sandbox) Runner(spec Spec) (Runner, error) {
	spec, err := spec.check()
	if err != nil {
		return nil, err
	}
	size := ""
	if slices.Contains(s.extra, "--size") {
		size = tmpSize
	}
	args := isolation()
	if slices.Contains(s.extra, "--disable-userns") {
		args = append(args, "--unshare-user", "--disable-userns")
	}
	args = append(args, systemMounts(size)...)
	args = append(args, "--dir", "/tmp/home")
	args = append(args, taskMounts(spec, s.tools)...)
	args = append(args, "--clearenv")
	for _, kv := range environment(spec, s.tools, "/tmp") {
		k, v, _ := strings.Cut(kv, "=")
		args = append(args, "--setenv", k, v)
	}
	return &confined{box: s, spec: spec, args: args}, nil
}

func (c *confined) Confined() bool { return true }

// isolation is what is taken away from every command.
func isolation() []string {
	return []string{
		"--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session",
		"--hostname", "sandbox",
	}
}

// systemMounts is the part of the machine that every program needs: its
// programs and libraries, and those files of /etc that hold no secret.
// /etc/ssl is not given whole: it may hold private keys.
func systemMounts(tmpSize string) []string {
	var args []string
	for _, p := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
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
	for _, p := range []string{
		"passwd", "group", "hosts", "nsswitch.conf", "protocols", "services", "localtime", "mime.types",
		"alternatives", "ca-certificates", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust/extracted",
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	} {
		args = append(args, "--ro-bind-try", "/etc/"+p, "/etc/"+p)
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
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
	for _, p := range append(tools.paths(), spec.ReadOnly...) {
		how[p] = "--ro-bind-try"
	}
	if spec.Cache != "" {
		how[spec.Cache] = "--bind"
	}
	how[spec.Workspace] = "--bind"
	if spec.GitDir != "" {
		how[spec.GitDir] = "--ro-bind"
	}
	paths := make([]string, 0, len(how))
	for p := range how {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	var args []string
	for _, p := range paths {
		args = append(args, how[p], p, p)
	}
	return args
}

// Run implements Runner.
func (c *confined) Run(ctx context.Context, command Command) (Exit, error) {
	if err := command.check(); err != nil {
		return Exit{}, err
	}
	dir, err := c.spec.dir(command)
	if err != nil {
		return Exit{}, err
	}
	return run(ctx, command, func(p *process) (*exec.Cmd, error) { return c.prepare(p, command, dir) })
}

// prepare builds the bwrap call. The variables travel in a descriptor and not
// in argv, where every user of the machine could read them; bwrap's own
// environment is empty because it is /proc/1/environ inside.
func (c *confined) prepare(p *process, command Command, dir string) (*exec.Cmd, error) {
	args := slices.Clone(c.args)
	gitFile, err := c.gitFile()
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
		args = append(args, "--ro-bind", "/proc/self/fd/"+n, filepath.Join(c.spec.Workspace, ".git"))
		before = "exec " + n + "<&-; "
	}
	info, infoW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.after(func() { _, _ = info.Close(), infoW.Close() })
	blockR, block, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.after(func() { _, _ = blockR.Close(), block.Close() })
	args = append(args, "--info-fd", add(infoW), "--block-fd", add(blockR), "--remount-ro", "/", "--chdir", dir)
	if c.spec.Hold != nil {
		args = append(args, "--sync-fd", add(c.spec.Hold))
	}
	opts, err := memfd([]byte(strings.Join(args, "\x00") + "\x00"))
	if err != nil {
		return nil, err
	}
	p.after(func() { _ = opts.Close() })
	cmd := exec.Command(c.box.bwrap, append([]string{"--args", add(opts), "--"},
		scriptArgs(c.spec, command.Script, before)...)...)
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

// gitFile opens the workspace's .git file, which is mounted over itself
// read-only: a command that redirects it would have the people who later run
// git in the tree execute its configuration. Only a plain file is taken, by
// descriptor, so that a link put there in the meantime is not followed.
func (c *confined) gitFile() (*os.File, error) {
	if c.spec.GitDir == "" {
		return nil, nil
	}
	f, err := os.OpenFile(filepath.Join(c.spec.Workspace, ".git"), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
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
	if _, err := f.Write(data); err == nil {
		_, err = f.Seek(0, 0)
		if err == nil {
			return f, nil
		}
	}
	_ = f.Close()
	return nil, errors.New("sandbox: write options")
}
