package sandbox

import (
	"bytes"
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

	"toritsugi/internal/i18n"
)

// helperPath is this program, also after its file was replaced.
const helperPath = "/proc/self/exe"

// detectHelper proves by a trial run that our own helper can confine a command.
func detectHelper(ctx context.Context, kind string) (*Sandbox, error) {
	s := &Sandbox{kind: kind, abi: landlockABI()}
	var err error
	switch {
	case !canHelp():
		err = errNoHelper
	case nativeArch == 0:
		err = errNoFilter
	case kind == KindLandlock && s.abi == 0:
		err = errors.New("the kernel has no Landlock (5.13 and later have, where it is not switched off)")
	default:
		err = s.tryHelper(ctx)
	}
	return s.proved(err)
}

func (s *Sandbox) tryHelper(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "tori-try-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r, err := s.Runner(Spec{Workspace: dir})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	var out bytes.Buffer
	exit, err := r.Run(ctx, Command{Script: ":", Output: &out, Timeout: 10 * time.Second})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the trial ended with %d", exit.Code)
	}
	if text := strings.TrimSpace(string(bytes.ToValidUTF8(out.Bytes(), []byte("?")))); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// reexec prepares a command of KindLandlock behind our helper.
func (s *Sandbox) reexec(p *process, spec Spec, c Command, dir string) (child, error) {
	if err := p.gate(); err != nil {
		return nil, err
	}
	o := orders{Kind: s.kind, ABI: s.abi, Dir: dir, Without: s.without, Args: scriptArgs(spec, c, "", running())}
	if err := s.grants(&o, p, spec); err != nil {
		return nil, err
	}
	leashR, leash, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	p.after(func() { _, _ = leashR.Close(), leash.Close() })
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	given, err := memfd(raw)
	if err != nil {
		return nil, err
	}
	p.after(func() { _ = given.Close() })
	p.files = append(p.files, given, leashR)
	if spec.Hold != nil {
		p.files = append(p.files, spec.Hold) // nothing but open, in the helper only
	}
	// No namespace ends with the helper: it lives on to end the rest when the
	// daemon dies. The leash tells it.
	cmd := exec.Command(helperPath, helperArg, "run")
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.ExtraFiles = p.files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.started = func(child *os.Process) error { return p.follow(child.Pid, leash) }
	return &program{Cmd: cmd, p: p, groups: s.groups, limits: spec.Limits}, nil
}

// follow sets how the helper is told to end: SIGTERM for the command, and the
// end of the leash for all: it kills what is left and goes.
func (p *process) follow(pid int, leash *os.File) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("sandbox: watch the helper: %w", err)
	}
	p.after(func() { _ = unix.Close(fd) })
	p.terminate = func() error {
		if gone(fd, 0) {
			return os.ErrProcessDone
		}
		return unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
	}
	p.end = func() error {
		_ = leash.Close()
		if !gone(fd, killWait) {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			if !gone(fd, grace) {
				return fmt.Errorf("sandbox: processes of the command are still alive %s after SIGKILL", killWait)
			}
		}
		return nil
	}
	return nil
}

// cloneInto has the init begin in namespaces of its own, with the rights that
// it needs to furnish them. The user is who they were.
func (s *Sandbox) cloneInto() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	for wall, flag := range map[string]uintptr{
		"users": unix.CLONE_NEWUSER, "processes": unix.CLONE_NEWPID, "network": unix.CLONE_NEWNET, "ipc": unix.CLONE_NEWIPC,
		"names": unix.CLONE_NEWUTS, "groups": unix.CLONE_NEWCGROUP,
	} {
		if !s.without[wall] {
			attr.Cloneflags |= flag
		}
	}
	if s.without["users"] {
		return attr
	}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
	return attr
}

// namespaces fills in the orders of KindNamespaces.
func (s *Sandbox) namespaces(o *orders, spec Spec) {
	if !s.without["users"] {
		o.User = &[2]int{os.Getuid(), os.Getgid()}
	}
	o.Mounts = withDevices(s.mounts(spec))
	o.Grants = []landGrant{{Path: "/"}}
	for _, path := range append(spec.writable(), "/tmp", "/dev") {
		o.Grants = append(o.Grants, landGrant{Path: path, Write: true})
	}
	if git := filepath.Join(spec.Workspace, ".git"); spec.GitDir != "" {
		o.Mounts = append(o.Mounts, mount{How: mountFile, From: git, To: git})
	}
}

// temporary makes a directory for one command, in the one that Spec names for
// such, which is made as well: the caller removes it.
func temporary(spec Spec, prefix string) (string, error) {
	if spec.Scratch != "" {
		if err := os.MkdirAll(spec.Scratch, 0o700); err != nil {
			return "", fmt.Errorf("sandbox: %w", err)
		}
	}
	tmp, err := os.MkdirTemp(spec.Scratch, prefix)
	if err != nil {
		return "", fmt.Errorf("sandbox: %w", err)
	}
	return tmp, nil
}

// grants fills in the orders of KindLandlock. There is no /tmp of its own: the
// command's temporary files go to a directory that is made for it, and what
// insists on /tmp fails.
func (s *Sandbox) grants(o *orders, p *process, spec Spec) error {
	tmp, err := temporary(spec, "tori-cmd-")
	if err != nil {
		return err
	}
	p.after(func() { _ = os.RemoveAll(tmp) })
	if err := os.Mkdir(filepath.Join(tmp, "home"), 0o700); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	o.Env = environment(spec, s.tools, tmp)
	var read []string
	read = append(read, systemDirs()...)
	read = append(read, systemFiles()...)
	for _, f := range procFiles() {
		read = append(read, "/proc/"+f)
	}
	read = append(read, "/sys/devices/system/cpu")
	read = append(read, s.tools.read...)
	read = append(read, spec.ReadOnly...)
	write := append(spec.writable(), tmp)
	for _, w := range write {
		if real, err := filepath.EvalSymlinks(w); err == nil {
			o.Writable = append(o.Writable, real)
		}
	}
	if spec.GitDir != "" {
		if within(spec.GitDir, spec.Workspace) {
			return i18n.E("sandbox.git_inside", spec.GitDir, spec.Workspace)
		}
		read = append(read, spec.GitDir)
	}
	for _, path := range read {
		all, err := except(path, spec.Hide)
		if err != nil {
			return err
		}
		for _, g := range all {
			o.Grants = append(o.Grants, landGrant{Path: g, Must: g == spec.GitDir})
		}
	}
	for _, path := range write {
		if i := slices.IndexFunc(spec.Hide, func(h string) bool { return within(h, path) && h != path }); i >= 0 {
			return i18n.E("sandbox.hide_inside", spec.Hide[i], path)
		}
		o.Grants = append(o.Grants, landGrant{Path: path, Write: true, Must: true})
	}
	for _, d := range devices() {
		o.Grants = append(o.Grants, landGrant{Path: "/dev/" + d, Write: true})
	}
	return nil
}

// maxSiblings bounds how many entries are granted one by one around a hidden
// path.
const maxSiblings = 4096

// except is what of path may be granted so that the hidden paths are not:
// Landlock only adds, so the neighbours of what is hidden are named one by one.
func except(path string, hide []string) ([]string, error) {
	if slices.Contains(hide, path) {
		return nil, nil
	}
	if !slices.ContainsFunc(hide, func(h string) bool { return within(h, path) }) {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, nil // nothing that could be seen
	}
	if len(entries) > maxSiblings {
		return nil, i18n.E("sandbox.hide_inside", path, path)
	}
	var all []string
	for _, e := range entries {
		below, err := except(filepath.Join(path, e.Name()), hide)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// running are the threads of the machine, of which the user's are some; -1 where
// that cannot be learned.
func running() int {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return -1
	}
	return int(info.Procs)
}
