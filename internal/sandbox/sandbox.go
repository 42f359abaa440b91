// Package sandbox runs commands that nobody vouches for: no network, nothing of the daemon's
// environment or home, only the workspace and caches to write to. What a command leaves
// running ends with it. Unconfined is the stated absence of a sandbox.
package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"toritsugi/internal/i18n"
)

// Spec is what all commands of one task share. Every path is absolute and is
// seen by the command at the same place.
//
// A Cache is an open channel between the commands that share it (whoever
// writes a build cache decides what later builds contain), so it is shared
// only among those that may trust one another.
type Spec struct {
	Workspace string            // writable, must exist
	GitDir    string            // read-only, "" for none
	Cache     string            // writable build caches; created; "" for caches that end with each command
	Writable  []string          // more writable paths, which must exist
	ReadOnly  []string          // more read-only paths, in which sockets answer and files can be locked; one that does not exist is left out
	Env       map[string]string // more variables; they win over ours
	Scratch   string            // HOME and TMPDIR of unconfined commands lie in it; "" for ones that end with each command
	MemoryMB  int               // memory of each process in MiB, and of all together unless Limits say otherwise; 0 for no limit
	Limits    Limits
	Usage     *SharedUsage // with whom Limits are shared; nil for the Runner's own commands
	// Hide are paths that are not to be seen even where they lie inside one
	// that is given: the daemon's data, a home. The workspace, the cache, the
	// git directory, Writable and ReadOnly are given inside them nonetheless.
	Hide    []string
	Network Network
	// Hold, if set, stays open until the last process of a command is gone,
	// and is not usable by a confined command: the lock of a task that must
	// not be taken over while its children live (PROTOCOL "Claim" 4).
	Hold *os.File
}

// Command is one script for bash, or for sh where there is no bash.
type Command struct {
	Script  string        // at most 128 KiB less one byte (Linux MAX_ARG_STRLEN), without NUL
	Args    []string      // instead of Script: a program and its arguments, found on PATH of the command's environment
	Dir     string        // inside the workspace, absolute or relative to it; "" is its root
	Input   string        // all that it reads on stdin, which nobody sees in the list of processes; not with Start, which makes a pipe
	Timeout time.Duration // 0 for none besides ctx
	Output  io.Writer     // stdout and stderr as they come, one Write at a time; nil discards, or with Start makes pipes
}

// Exit is how a command ended.
type Exit struct {
	Code     int           // 0 to 255; 128+n where signal n ended it, as shells say
	TimedOut bool          // Timeout passed and the command was ended for it
	Signal   string        // e.g. "SIGKILL" where Code stands for a signal
	Limit    string        // which limit ended it: "cpu", "memory", "processes", "disk", "space", "machine", "files", "file_size" or "output"; "" for none
	Bound    string        // how much that limit allows, e.g. "2 GiB"; "" for none
	Duration time.Duration // wall time
}

// Runner runs commands of one task. It is safe for concurrent use.
type Runner interface {
	// Run blocks until c and everything it started are gone. A command that
	// fails, times out or passes a limit is an Exit, not an error. The error is
	// ctx's where ctx ended first, *DirError for a bad Dir, and otherwise means
	// that the command could not be run or Output could not be written.
	Run(ctx context.Context, c Command) (Exit, error)
	// Start runs c beside its caller, until it ends, ctx ends, c.Timeout passes
	// or Process.Kill. It returns once c has begun; errors are as Run's.
	Start(ctx context.Context, c Command) (*Process, error)
	// Confined reports whether there is a wall around the commands.
	Confined() bool
	// Suspend stops all that runs in it (SIGSTOP) until resume is called. It is a
	// courtesy and no wall: where each command has walls of its own (KindLandlock,
	// KindContainer, KindNone) nothing stops, and a process can be sent SIGCONT by
	// a timer that it set before. Who looks at the workspace meanwhile must expect
	// that it changes.
	Suspend(ctx context.Context) (resume func(), err error)
	// Close ends what still runs and waits for it. A closed Runner runs nothing.
	Close() error
	// Kind is what the wall is made of, one of the Kind constants.
	Kind() string
}

// What a wall is made of, best first.
const (
	KindBwrap      = "bwrap"      // bubblewrap: namespaces, and a seccomp filter
	KindNamespaces = "namespaces" // the same made by our own helper, and Landlock where the kernel has it
	KindLandlock   = "landlock"   // Landlock and a seccomp filter, where namespaces may not be made
	KindContainer  = "container"  // a rootless podman or docker
	KindNone       = "none"       // no wall
)

// DirError is a Command.Dir that is outside the workspace or not a directory in it.
type DirError struct{ Dir string }

func (e *DirError) Error() string {
	return fmt.Sprintf("%q is not a directory inside the workspace", e.Dir)
}

// maxScript is Linux's MAX_ARG_STRLEN: one argument of execve, NUL included.
const maxScript = 128 << 10

// Sandbox is a kind of wall that was seen to work on this machine.
type Sandbox struct {
	kind    string
	bwrap   string
	engine  engine
	extra   []string // options of bubblewrap that older versions or kernels lack
	abi     int      // Landlock's version, 0 for none
	tools   toolchain
	groups  *cgroups        // nil where no control groups may be made
	without map[string]bool // walls left out, by tests that prove what they are for
}

// Options choose a kind of sandbox.
type Options struct {
	Prefer string // the only kind to take; "" for the best one that works
	Engine string // podman or docker, or the path of one, to be used where no other kind works; "" for none
}

// kinds are all there are, in the order in which they are tried.
func allKinds() []string { return []string{KindBwrap, KindNamespaces, KindLandlock, KindContainer} }

// Check says what is wrong with o itself, on whatever machine: an i18n error of
// a kind that there is not, or that needs an engine.
func (o Options) Check() error {
	switch {
	case o.Prefer != "" && !slices.Contains(allKinds(), o.Prefer):
		return i18n.E("sandbox.unknown_kind", o.Prefer)
	case o.Prefer == KindContainer && o.Engine == "":
		return i18n.E("sandbox.needs_engine")
	}
	return nil
}

// Kind is what the wall is made of.
func (s *Sandbox) Kind() string { return s.kind }

// Watched are the limits that the kernel does not keep here: a watcher looks
// after them from outside, up to a fifth of a second late.
func (s *Sandbox) Watched() []string {
	all := []string{limitCPU, limitDisk, limitFiles}
	if s.groups == nil {
		all = append(all, limitMemory, limitProcesses)
	}
	return all
}

// Detect is Choose without options.
func Detect(ctx context.Context) (*Sandbox, error) { return Choose(ctx, Options{}) }

// Choose proves by trial runs which kind of sandbox can confine a command here
// and returns the best, or the preferred one. The error tells the user why none
// can and what to do: a caller asks or refuses then, and never runs bare unsaid.
func Choose(ctx context.Context, o Options) (*Sandbox, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	var why []error
	for _, kind := range allKinds() {
		if o.Prefer != kind && (o.Prefer != "" || kind == KindContainer && o.Engine == "") {
			continue
		}
		s, err := detectKind(ctx, kind, o.Engine)
		if err == nil {
			s.tools = findToolchain(ctx)
			if own, err := os.ReadFile("/proc/self/cgroup"); err == nil && kind != KindContainer {
				s.groups = findCgroups(cgroupMounts(), own)
			}
			return s, ctx.Err()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if o.Prefer != "" {
			return nil, err
		}
		why = append(why, err)
	}
	return nil, i18n.E("sandbox.no_kind", why)
}

// detectKind is the sandbox of a kind. Where ctx has ended its error says nothing.
func detectKind(ctx context.Context, kind, engine string) (*Sandbox, error) {
	switch kind {
	case KindBwrap:
		path, err := exec.LookPath("bwrap")
		if err != nil {
			return nil, i18n.E("sandbox.missing")
		}
		return detectAt(ctx, path)
	case KindContainer:
		return detectEngine(ctx, engine)
	}
	return detectHelper(ctx, kind)
}

func detectAt(ctx context.Context, path string) (*Sandbox, error) {
	s := &Sandbox{kind: KindBwrap, bwrap: path}
	if err := s.tryBwrap(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, i18n.E("sandbox.broken", path, err)
	}
	// Each is worth having and none is needed: bubblewrap 0.6 (Ubuntu 22.04)
	// has neither, and a kernel may refuse the first.
	wanted := [][]string{{"--size", "1048576", "--tmpfs", "/tmp"}}
	if nativeArch == 0 {
		// A nested user namespace is most of the kernel's attack surface. Our
		// filter refuses them at less cost.
		wanted = append(wanted, []string{"--unshare-user", "--disable-userns"})
	}
	for _, opts := range wanted {
		if s.tryBwrap(ctx, opts...) == nil {
			s.extra = append(s.extra, opts[:2]...)
		}
	}
	return s.proved(s.tryHelper(ctx))
}

// proved is what comes of a trial run.
func (s *Sandbox) proved(err error) (*Sandbox, error) {
	if err != nil {
		return nil, i18n.E("sandbox.no_helper", s.kind, err)
	}
	return s, nil
}

// tryBwrap runs true under the options that every init gets.
func (s *Sandbox) tryBwrap(ctx context.Context, opts ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	args := append(append(s.isolation(), s.bwrapMounts(s.systemMounts(), 1<<20)...), opts...)
	cmd := exec.CommandContext(ctx, s.bwrap, append(args, "--", "/bin/sh", "-c", ":")...)
	cmd.Env = []string{"PATH=" + SystemPath, "LANG=C.UTF-8"}
	cmd.Dir = "/"
	// Ctrl-C in the terminal must not kill one half of bubblewrap, whose other
	// half would keep the pipe.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if text := strings.TrimSpace(string(bytes.ToValidUTF8(out, []byte("?")))); text != "" {
		return errors.New(strings.TrimPrefix(text, "bwrap: "))
	}
	return err
}

// check validates s and returns it with clean paths and its cache made.
func (s Spec) check() (Spec, error) {
	if s.MemoryMB < 0 {
		return s, fmt.Errorf("sandbox: memory limit of %d MiB", s.MemoryMB)
	}
	var err error
	if s.Limits, err = s.Limits.check(s.MemoryMB); err != nil {
		return s, err
	}
	if s.Usage == nil {
		s.Usage = &SharedUsage{}
	}
	if err := s.Network.check(); err != nil {
		return s, err
	}
	s.Network.refused = &refusals{report: s.Network.Report}
	paths := []*string{&s.Workspace, &s.GitDir, &s.Cache}
	s.Writable, s.ReadOnly, s.Hide = slices.Clone(s.Writable), slices.Clone(s.ReadOnly), slices.Clone(s.Hide)
	if store := s.Network.javaStore(); store != "" {
		s.ReadOnly = append(s.ReadOnly, store)
	}
	for i := range s.Writable {
		paths = append(paths, &s.Writable[i])
	}
	for i := range s.ReadOnly {
		paths = append(paths, &s.ReadOnly[i])
	}
	for i := range s.Hide {
		paths = append(paths, &s.Hide[i])
	}
	for i, p := range paths {
		if *p == "" && (i == 1 || i == 2) {
			continue
		}
		if !filepath.IsAbs(*p) || strings.ContainsRune(*p, 0) {
			return s, fmt.Errorf("sandbox: path %q is not absolute", *p)
		}
		if *p = filepath.Clean(*p); *p == "/" {
			return s, errors.New("sandbox: the whole file system cannot be given to a command")
		}
	}
	if st, err := os.Stat(s.Workspace); err != nil || !st.IsDir() {
		return s, fmt.Errorf("sandbox: workspace %s is not a directory", s.Workspace)
	}
	for k, v := range s.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			return s, fmt.Errorf("sandbox: %q is not a variable", k)
		}
	}
	if s.Cache != "" {
		if err := os.MkdirAll(s.Cache, 0o700); err != nil {
			return s, fmt.Errorf("sandbox: make cache: %w", err)
		}
	}
	return s, nil
}

// writable are all paths that a command may write to.
func (s Spec) writable() []string {
	all := append([]string{s.Workspace}, s.Writable...)
	if s.Cache != "" {
		all = append(all, s.Cache)
	}
	return all
}

// dir resolves c.Dir against the workspace. Symbolic links are followed, so
// that the unconfined runner stays inside as well.
func (s Spec) dir(c Command) (string, error) {
	dir := c.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.Workspace, dir)
	}
	if dir == s.Workspace { // the usual one needs no look at each part of its path
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			return dir, nil
		}
	}
	root, err := filepath.EvalSymlinks(s.Workspace)
	if err != nil {
		return "", fmt.Errorf("sandbox: workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || (real != root && !strings.HasPrefix(real, root+"/")) {
		return "", &DirError{c.Dir}
	}
	if st, err := os.Stat(real); err != nil || !st.IsDir() {
		return "", &DirError{c.Dir}
	}
	return filepath.Join(s.Workspace, strings.TrimPrefix(real, root)), nil
}

func (c Command) check() error {
	for _, a := range c.Args {
		if len(a) >= maxScript || strings.ContainsRune(a, 0) {
			return fmt.Errorf("sandbox: argument %.40q is too long or contains a NUL byte", a)
		}
	}
	if c.Args != nil && (c.Script != "" || len(c.Args) == 0) {
		return errors.New("sandbox: a command is a script or a program with arguments, not both")
	}
	if len(c.Script) >= maxScript {
		return fmt.Errorf("sandbox: script of %d bytes is longer than %d", len(c.Script), maxScript-1)
	}
	if strings.ContainsRune(c.Script, 0) {
		return errors.New("sandbox: script contains a NUL byte")
	}
	return nil
}
