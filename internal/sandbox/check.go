package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// checkAtOnce is how many commands of a check run at the same time.
const checkAtOnce = 8

// attempts are all that a check makes, in the order in which it tells of them.
func attempts() []attempt {
	return slices.Concat(fileAttempts(), processAttempts(), networkAttempts(), kernelAttempts(), limitAttempts())
}

// Check proves each wall by trying to break it, with a victim, a daemon's data
// and listeners of its own. Nothing outside its own directory is changed if the
// walls hold, and nothing of consequence if they do not. The error means that
// the attempts could not be made. only are the names of the attempts to make; none
// for all.
func (s *Sandbox) Check(ctx context.Context, only ...string) ([]Probe, error) {
	return check(ctx, s, s.Runner, only)
}

func check(ctx context.Context, box *Sandbox, runner func(Spec) (Runner, error), only []string) ([]Probe, error) {
	if !canHelp() {
		return nil, errNoHelper
	}
	s := &stage{ctx: ctx, box: box, make: runner}
	defer s.close()
	if err := s.build(); err != nil {
		return nil, fmt.Errorf("sandbox: prepare the check: %w", err)
	}
	all := attempts()
	if len(only) > 0 {
		all = slices.DeleteFunc(all, func(a attempt) bool { return !slices.Contains(only, a.name) })
	}
	probes := make([]Probe, len(all))
	for i, a := range all {
		probes[i] = Probe{Name: a.name, Wall: a.wall}
	}
	// Those inside follow one another, and so do what is seen of them from
	// outside; the others are commands of their own beside them.
	var wg sync.WaitGroup
	slots := make(chan struct{}, checkAtOnce)
	for i, a := range all {
		if a.outside == nil {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			probes[i].Outcome, probes[i].Detail = a.outside(s)
		})
	}
	err := s.inside(all, probes)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return probes, err
}

// inside makes the attempts that are made within: most of them in one process,
// those that may harm it in their own.
func (s *stage) inside(all []attempt, probes []Probe) error {
	var together []string
	for _, a := range all {
		if a.inside != nil && !a.alone {
			together = append(together, a.name)
		}
	}
	got, err := s.attempt(together...)
	if err != nil {
		return err
	}
	for i, a := range all {
		if a.inside == nil {
			continue
		}
		f, ok := got[a.name]
		if !ok {
			one, err := s.attempt(a.name)
			if err != nil {
				return err
			}
			if f, ok = one[a.name]; !ok {
				f = Probe{Outcome: OutcomeBlocked, Detail: "the attempt did not survive itself"}
			}
		}
		probes[i].Outcome, probes[i].Detail = f.Outcome, f.Detail
		if a.check != nil {
			a.check(s, &probes[i])
		}
	}
	return nil
}

// attempt makes these attempts in one process.
func (s *stage) attempt(names ...string) (map[string]Probe, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	args := append([]string{s.self, helperArg, "probe"}, names...)
	exit, err := s.runner.Run(s.ctx, Command{Args: args, Output: &out, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	got := parseFound(out.Bytes())
	if len(got) == 0 && exit.Code == 125 {
		return nil, fmt.Errorf("no attempt could be made: %s", lastLine(out.String()))
	}
	return got, nil
}

// stage is the world around the attempts.
type stage struct {
	ctx       context.Context
	box       *Sandbox
	make      func(Spec) (Runner, error)
	spec      Spec
	runner    Runner
	target    target
	root      string // of all of it
	self      string // this program, as commands see it
	gitFile   string
	datagrams atomic.Int64
	closers   []func()
	victim    struct {
		sync.Mutex
		in  *bufio.Writer
		out *bufio.Reader
	}
}

func (s *stage) later(f func()) { s.closers = append(s.closers, f) }

func (s *stage) close() {
	for _, f := range slices.Backward(s.closers) {
		f()
	}
}

// run runs scripts with these limits, until a limit ends one, and returns what they
// wrote, at most the last part.
func (s *stage) run(l Limits, timeout time.Duration, scripts ...string) (out string, exit Exit, err error) {
	spec := s.spec
	spec.Limits = l
	r, err := s.make(spec)
	if err != nil {
		return "", Exit{}, err
	}
	defer func() { _ = r.Close() }()
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	said := &tail{}
	for _, script := range scripts {
		if exit, err = r.Run(s.ctx, Command{Script: script, Output: said, Timeout: timeout}); err != nil || exit.Limit != "" {
			break
		}
	}
	return string(said.b), exit, err
}

// tail keeps the last part of what is written to it.
type tail struct{ b []byte }

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	const most = 64 << 10
	t.b = append(t.b, b[max(0, len(b)-most):]...)
	t.b = t.b[max(0, len(t.b)-most):]
	return len(b), nil
}

// build makes the stage.
func (s *stage) build() (err error) {
	if s.root, err = os.MkdirTemp("", "tori-check-"); err != nil {
		return err
	}
	s.later(func() { _ = os.RemoveAll(s.root) })
	if s.root, err = filepath.EvalSymlinks(s.root); err != nil {
		return err
	}
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	canary := "tori-canary-" + hex.EncodeToString(random[:16])
	sum := sha256.Sum256([]byte(canary))
	s.target = target{Data: filepath.Join(s.root, "data"), Workspace: filepath.Join(s.root, "workspace"), Given: filepath.Join(s.root, "given"), GitDir: filepath.Join(s.root, "git"),
		CanarySum: hex.EncodeToString(sum[:]), Daemon: os.Getpid(), ID: "tori-probe-" + hex.EncodeToString(random[16:])}
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		return err
	}
	s.target.Descriptors = int(min(most.Cur/2, 2*maxOpenFiles)) + 250
	if err := s.files(canary); err != nil {
		return err
	}
	s.home()
	if err := s.listen(); err != nil {
		return err
	}
	if err := s.haveVictim(canary); err != nil {
		return err
	}
	s.segment(canary)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s.self = self
	told, err := json.Marshal(s.target)
	if err != nil {
		return err
	}
	s.spec = Spec{Workspace: s.target.Workspace, GitDir: s.target.GitDir, ReadOnly: []string{self, s.target.Given}, Hide: []string{s.target.Data, s.target.Home},
		Env: map[string]string{probeVariable: string(told), "TORI_SELF": self}}
	if s.spec, err = s.spec.check(); err != nil {
		return err
	}
	if s.runner, err = s.make(s.spec); err == nil {
		s.later(func() { _ = s.runner.Close() })
	}
	return err
}

// files are what the attempts are after.
func (s *stage) files(canary string) error {
	t := &s.target
	for _, d := range []string{t.Data, t.Workspace, filepath.Join(t.GitDir, "hooks"), filepath.Join(t.GitDir, "info"), filepath.Join(t.GitDir, "objects")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	s.gitFile = "gitdir: " + t.GitDir + "\n"
	for path, text := range map[string]string{
		t.Given: "x", filepath.Join(t.Data, "canary"): canary, filepath.Join(t.Data, "mode"): "x", filepath.Join(t.Data, "removed"): "x",
		filepath.Join(t.Data, "moved"): canary, filepath.Join(t.Data, "tool"): "#!/bin/sh\nexit 0\n", filepath.Join(t.Workspace, ".git"): s.gitFile,
		filepath.Join(t.GitDir, "HEAD"): "ref: refs/heads/main\n", filepath.Join(t.GitDir, "config"): "[core]\n",
	} {
		mode := os.FileMode(0o600)
		if filepath.Base(path) == "tool" {
			mode = 0o700
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			return err
		}
	}
	tmp, err := os.CreateTemp("", "tori-check-")
	if err != nil {
		return err
	}
	t.Tmp = tmp.Name()
	s.later(func() { _ = os.Remove(t.Tmp) })
	if _, err = tmp.WriteString(canary); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(t.Data, "canary"), 0); err == nil {
		t.Handle, t.HandleKin = h.Bytes(), h.Type()
	}
	for _, d := range []string{"/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/xvda", "/dev/dm-0", "/dev/mmcblk0", "/dev/loop0"} {
		if _, err := os.Stat(d); err == nil {
			t.Disks = append(t.Disks, d)
		}
	}
	return tmp.Close()
}

// home lists what of the user's home is nobody else's business: all but what
// lies on the way to a directory that commands are given.
func (s *stage) home() {
	t := &s.target
	var err error
	if t.Home, err = os.UserHomeDir(); err != nil || t.Home == "/" || t.Home == "" {
		t.Home = "/root"
	}
	entries, err := os.ReadDir(t.Home)
	if err != nil {
		return
	}
	given := append(slices.Clone(s.box.tools.read), s.root)
	if exe, err := os.Executable(); err == nil {
		given = append(given, exe)
	}
	for _, e := range entries {
		p := filepath.Join(t.Home, e.Name())
		if !slices.ContainsFunc(given, func(g string) bool { return within(g, p) }) {
			t.HomeNames = append(t.HomeNames, e.Name())
		}
		if len(t.HomeNames) == 200 {
			return
		}
	}
}

// listen opens what the attempts try to reach.
func (s *stage) listen() error {
	t := &s.target
	accept := func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		if err != nil {
			return nil, err
		}
		s.later(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
		return l, nil
	}
	l, err := accept("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t.TCP = l.Addr().String()
	if l, err := accept("tcp6", "[::1]:0"); err == nil {
		t.TCP6 = l.Addr().String()
	}
	if _, err := accept("unix", filepath.Join(t.Data, "sock")); err != nil {
		return err
	}
	gram, err := net.ListenPacket("unixgram", filepath.Join(t.Data, "gram"))
	if err != nil {
		return err
	}
	s.drain(gram)
	t.Abstract = "@" + t.ID
	if _, err := accept("unix", t.Abstract); err != nil {
		return err
	}
	u, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t.UDP = u.LocalAddr().String()
	s.drain(u)
	if b, err := os.ReadFile("/etc/resolv.conf"); err == nil {
		t.DNS = nameserver(string(b))
	}
	if t.Agent = os.Getenv("SSH_AUTH_SOCK"); t.Agent == "" {
		t.Agent = filepath.Join(t.Data, "sock") // one that answers to nobody, but is there
	}
	for _, p := range []string{"/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
		"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/journal/socket", "/tmp/.X11-unix/X0", filepath.Join(t.Data, "sock")} {
		if _, err := os.Stat(p); err == nil {
			t.Sockets = append(t.Sockets, p)
		}
	}
	return nil
}

// drain counts the datagrams that arrive.
func (s *stage) drain(c net.PacketConn) {
	s.later(func() { _ = c.Close() })
	go func() {
		b := make([]byte, 2048)
		for {
			n, _, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if string(b[:n]) == s.target.ID {
				s.datagrams.Add(1)
			}
		}
	}()
}

// haveVictim starts a process of the daemon's.
func (s *stage) haveVictim(canary string) error {
	cmd := exec.Command(helperPath, helperArg, "victim", canary)
	cmd.Env = []string{"TORI_CANARY=" + canary}
	cmd.Dir = s.target.Data
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	s.later(func() { _ = in.Close(); _ = cmd.Wait() })
	s.victim.in, s.victim.out = bufio.NewWriter(in), bufio.NewReader(out)
	s.target.Victim = cmd.Process.Pid
	line, err := s.victim.out.ReadString('\n')
	if err != nil {
		return err
	}
	_, err = fmt.Sscan(line, &s.target.Address, &s.target.VictimFD)
	return err
}

// signals is how many signals have reached the victim.
func (s *stage) signals() (int, error) {
	s.victim.Lock()
	defer s.victim.Unlock()
	if _, err := s.victim.in.WriteString("?\n"); err != nil {
		return 0, err
	}
	if err := s.victim.in.Flush(); err != nil {
		return 0, err
	}
	line, err := s.victim.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// segment puts the canary into a System V segment, where there are any.
func (s *stage) segment(canary string) {
	var key [3]byte
	if _, err := rand.Read(key[:]); err != nil {
		return
	}
	k := 1 + int(key[0]) + int(key[1])<<8 + int(key[2])<<16
	id, err := unix.SysvShmGet(k, 4096, 0o600|unix.IPC_CREAT|unix.IPC_EXCL)
	if err != nil {
		return
	}
	s.later(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	b, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return
	}
	copy(b, canary)
	s.target.ShmKey = k
	_ = unix.SysvShmDetach(b)
}
