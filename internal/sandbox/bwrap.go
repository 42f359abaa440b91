package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
)

// insideHelper is where our program stands in a bubblewrap sandbox.
const insideHelper = "/run/tori-helper"

// Runner returns a Runner whose commands see only what spec gives them. It
// fails where this kind of sandbox cannot keep what spec asks for.
func (s *Sandbox) Runner(spec Spec) (Runner, error) {
	spec, err := spec.check()
	if err != nil {
		return nil, err
	}
	r := &runner{kind: s.kind, spec: given(spec)}
	if spec.Network.open() && s.kind != KindBwrap && s.kind != KindNamespaces {
		return nil, i18n.E("sandbox.no_allow_list", s.kind)
	}
	switch s.kind {
	case KindBwrap, KindNamespaces:
		if !canHelp() {
			return nil, errNoHelper
		}
		r.instances = &instances{groups: s.groups, limits: spec.Limits, together: spec.Usage, open: func(x *instance) (*exec.Cmd, error) { return s.openInstance(x, spec) }}
		r.prepare = s.inInstance(r.instances)
		runtime.AddCleanup(r, func(b *instances) { go func() { _ = b.close() }() }, r.instances) // for who does not close it
	case KindContainer:
		r.prepare = s.contain
	default:
		r.prepare = s.reexec
		if r.after, err = keepGitFile(spec); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// inInstance prepares a command for the init of an instance.
func (s *Sandbox) inInstance(b *instances) func(*process, Spec, Command, string) (child, error) {
	return func(p *process, spec Spec, c Command, dir string) (child, error) {
		x, err := b.get()
		if err != nil {
			return nil, err
		}
		args := c.Args
		if args == nil {
			args = []string{shell(), "-c", c.Script}
		}
		others := 0
		if s.without["users"] {
			others = -1
		}
		return &remoteChild{p: p, inst: x, hold: spec.Hold, order: order{Args: args, Env: environment(spec, s.tools, "/tmp"), Dir: dir,
			Limits: spec.Limits.kernel(spec.MemoryMB, others)}}, nil
	}
}

// openInstance prepares the init of an instance.
func (s *Sandbox) openInstance(x *instance, spec Spec) (*exec.Cmd, error) {
	o := orders{Kind: s.kind, ABI: s.abi, TmpBytes: spec.tmpBytes(), TmpFiles: spec.Limits.NewFiles, Threads: max(301, threadsPerProcess*spec.Limits.Processes+100), Without: s.without}
	fds := []*os.File{nil, nil} // the control socket, and the orders, which come last
	add := func(f *os.File) int {
		fds = append(fds, f)
		return 2 + len(fds)
	}
	if spec.Network.open() {
		out, err := spec.Network.outlet()
		if err != nil {
			return nil, err
		}
		x.cleanup = append(x.cleanup, out.stop)
		o.Proxy, o.Listen = add(out.there), out.listen
		if out.hosts != "" {
			dir, err := temporary(spec, "tori-hosts-")
			if err != nil {
				return nil, err
			}
			x.cleanup = append(x.cleanup, func() { _ = os.RemoveAll(dir) })
			theirs, _ := os.ReadFile("/etc/hosts") // there may be none
			spec.Network.hosts = filepath.Join(dir, "hosts")
			if err := os.WriteFile(spec.Network.hosts, append([]byte(out.hosts), theirs...), 0o600); err != nil {
				return nil, fmt.Errorf("sandbox: %w", err)
			}
		}
	}
	var cmd *exec.Cmd
	if s.kind == KindBwrap {
		args := s.bwrapArgs(spec)
		self, err := os.Open(helperPath)
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		x.opened = append(x.opened, self)
		var st unix.Stat_t
		if err := unix.Fstat(int(self.Fd()), &st); err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		args = append(args, "--dir", filepath.Dir(insideHelper))
		if fd := itoa(add(self)); st.Nlink > 0 {
			args = append(args, "--ro-bind", "/proc/self/fd/"+fd, insideHelper)
		} else { // an update replaced this program's file: what has no name cannot be mounted, and is copied
			args = append(args, "--perms", "0555", "--ro-bind-data", fd, insideHelper)
		}
		gitFile, err := openGitFile(spec)
		if err != nil {
			return nil, err
		}
		if gitFile != nil {
			x.opened = append(x.opened, gitFile)
			args = append(args, "--ro-bind", "/proc/self/fd/"+itoa(add(gitFile)), filepath.Join(spec.Workspace, ".git"))
		}
		if !s.without["mounts"] {
			args = append(args, "--remount-ro", "/")
		}
		cmd = exec.Command(s.bwrap, append(args, "--", insideHelper, helperArg, "init")...)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	} else {
		s.namespaces(&o, spec)
		cmd = exec.Command(helperPath, helperArg, "init")
		cmd.SysProcAttr = s.cloneInto()
	}
	// A group of its own: Ctrl-C in the terminal is for the daemon to act on.
	cmd.SysProcAttr.Setpgid = true
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if fds[fdOrders-3], err = memfd(raw); err != nil {
		return nil, err
	}
	x.opened = append(x.opened, fds[fdOrders-3])
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.ExtraFiles = fds
	return cmd, nil
}

// bwrapArgs is what the init and the commands see. What it may do itself the
// init takes from the commands.
func (s *Sandbox) bwrapArgs(spec Spec) []string {
	args := s.isolation()
	if slices.Contains(s.extra, "--disable-userns") && !s.without["users"] {
		args = append(args, "--unshare-user", "--disable-userns")
	}
	if spec.Network.open() {
		args = append(args, "--cap-add", "CAP_NET_ADMIN", "--cap-add", "CAP_NET_BIND_SERVICE")
	}
	return append(append(args, s.bwrapMounts(s.mounts(spec), spec.tmpBytes())...), "--clearenv")
}

// isolation is what is taken away from every command.
func (s *Sandbox) isolation() []string {
	var args []string
	for _, w := range [][]string{
		{"users", "--unshare-user-try"}, {"ipc", "--unshare-ipc"}, {"processes", "--unshare-pid", "--as-pid-1"}, {"network", "--unshare-net"},
		{"names", "--unshare-uts", "--hostname", "sandbox"}, {"groups", "--unshare-cgroup-try"},
		{"rights", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP", "--cap-add", "CAP_SYS_RESOURCE"},
	} {
		if !s.without[w[0]] {
			args = append(args, w[1:]...)
		}
	}
	return args
}

// bwrapMounts are bubblewrap's options for a tree.
func (s *Sandbox) bwrapMounts(all []mount, tmpSize int64) []string {
	var args, sealed []string
	for _, m := range all {
		switch m.How {
		case mountLink:
			args = append(args, "--symlink", m.From, m.To)
		case mountProc:
			args = append(args, "--proc", m.To)
		case mountDev:
			args, sealed = append(args, "--dev", m.To), append(sealed, "--remount-ro", m.To)
		case mountDir:
			args = append(args, "--dir", m.To)
		case mountTmp:
			if slices.Contains(s.extra, "--size") {
				args = append(args, "--size", itoa(int(tmpSize)))
			}
			args = append(args, "--tmpfs", m.To)
		case mountEmpty:
			args, sealed = append(args, "--tmpfs", m.To), append(sealed, "--remount-ro", m.To)
		default:
			how := map[string]string{mountRead: "--ro-bind", mountWrite: "--bind"}[m.How]
			if !m.Must {
				how += "-try"
			}
			args = append(args, how, m.From, m.To)
		}
	}
	return append(args, sealed...)
}

// hidden are the paths of Spec.Hide that would be seen: those inside something
// that is given.
func hidden(spec Spec, tools toolchain) []string {
	shown := slices.Concat(tools.read, spec.ReadOnly, systemDirs(), spec.writable())
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

// memfd is an anonymous file with this content, positioned at its start. It is
// sealed: whoever has it could make it as large as the machine's memory.
func memfd(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("sandbox: memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "sandbox")
	_, err = f.WriteAt(data, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: memfd: %w", err), f.Close())
	}
	return f, nil
}
