package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The init is the first process of a sandbox of namespaces. It lives as long as
// the socket to the daemon, and starts each command in a process namespace
// below its own. Commands see neither it nor one another: what it holds, the
// lock of the task among it, is out of their reach.

// Messages to the init, each with descriptors.
const (
	sayRun     = 'r' // the order, stdin, stdout, stderr, what to keep open meanwhile if anything, and where to tell of it
	saySuspend = 's' // where to answer
	sayResume  = 'c' // where to answer
)

// Answers of the init, on the socket that came with the message.
const (
	saidStarted = 's' // with a descriptor of the command's first process
	saidExit    = 'x' // and the exit code as one byte
	saidRefused = 'e' // and why
	saidDone    = 'd'
)

// order is one command, as the init gets it.
type order struct {
	Args   []string  `json:"args"`
	Env    []string  `json:"env"`
	Dir    string    `json:"dir"`
	Limits []rlimits `json:"limits"`
}

// rlimits is one setrlimit(2).
type rlimits struct {
	What int    `json:"what"`
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

// suspendTime is how long processes may take to stand still. One that is busy in
// the kernel cannot go on when it comes back.
const suspendTime = time.Second

// oomScore makes the kernel choose a command and not the daemon when memory is
// short.
const oomScore = "500"

// initRun is the life of an init.
func initRun() error {
	o, err := readOrders()
	if err != nil {
		return err
	}
	closeOnExec()
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0) // not any more once it is hidden
	if o.Kind == KindNamespaces {
		err = o.enter()
	} else {
		err = o.listen()
	}
	if err != nil {
		return err
	}
	if err := Hide(); err != nil {
		return err
	}
	o.tighten()
	in := &inside{orders: o, ruleset: -1}
	if in.null, err = unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil && !o.Without["mounts"] {
		return fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	if err := in.prepare(); err != nil {
		return err
	}
	// The command's file systems in memory, and who is first here.
	var own []int
	for _, dir := range memoryDirs() {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", dir, err)
		}
		own = append(own, fd)
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	if err := unix.Sendmsg(fdControl, []byte{saidStarted}, unix.UnixRights(append([]int{self}, own...)...), nil, 0); err != nil {
		return fmt.Errorf("tell the daemon: %w", err)
	}
	buf, oob := make([]byte, 16), make([]byte, unix.CmsgSpace(8*4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(fdControl, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return nil // the daemon is gone, or wants the end
		}
		fds, err := rights(oob[:oobn])
		if err != nil || len(fds) == 0 {
			continue
		}
		go in.serve(buf[0], fds)
	}
}

// tighten has the kernel keep what it can for these namespaces alone, where it
// lets us: a machine has few processes and watches to give.
func (o *orders) tighten() {
	if o.Without["processes"] || o.Without["users"] || o.Without["mounts"] {
		return
	}
	most := map[string]int{}
	if users, err := os.ReadFile("/proc/self/uid_map"); err == nil && !bytes.HasSuffix(users, []byte(" 4294967295\n")) { // not the machine's
		most["user/max_inotify_instances"] = maxInotify
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil && atLeast(unix.ByteSliceToString(u.Release[:]), 6, 14) { // before, it is the machine's
		most["kernel/pid_max"] = o.Threads
	}
	for file, n := range most {
		_ = os.WriteFile("/proc/sys/"+file, []byte(strconv.Itoa(n)), 0)
	}
}

// atLeast reports whether a release of the kernel is this one or a later one.
func atLeast(release string, major, minor int) bool {
	var a, b int
	_, err := fmt.Sscanf(release, "%d.%d", &a, &b)
	return err == nil && (a > major || a == major && b >= minor)
}

// rights are the descriptors that came with a message.
func rights(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	for _, m := range messages {
		if got, e := unix.ParseUnixRights(&m); e == nil {
			fds = append(fds, got...)
		}
	}
	return fds, err
}

// inside is what an init knows for all commands.
type inside struct {
	*orders
	ruleset   int // Landlock's, -1 for none
	filter    []unix.SockFilter
	cover     []cover
	devices   []string     // each a mount of the machine's
	null      int          // /dev/null as commands see it
	suspended sync.RWMutex // held for writing from Suspend to resume
}

// cover is one mount over a fresh /proc.
type cover struct{ from, to string }

// prepare makes once what every command needs.
func (in *inside) prepare() error {
	if in.nested() && !in.Without["mounts"] {
		for _, name := range devices() {
			if _, err := os.Lstat("/dev/" + name); err == nil {
				in.devices = append(in.devices, "/dev/"+name)
			}
		}
		// What the kernel shows of the machine, to its root above all, is not for
		// commands, whatever files of the kind it comes to have.
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, e := range entries {
			_, err := strconv.Atoi(e.Name())
			switch {
			case err == nil || e.Type()&os.ModeSymlink != 0 || slices.Contains(procFiles(), e.Name()):
			case e.IsDir():
				in.cover = append(in.cover, cover{emptyDir, "/proc/" + e.Name()})
			default:
				in.cover = append(in.cover, cover{"/dev/null", "/proc/" + e.Name()})
			}
		}
	}
	var err error
	if in.ABI > 0 && in.Kind == KindNamespaces && !in.Without["landlock"] {
		if in.ruleset, err = landRuleset(in.ABI, in.Grants, true); err != nil {
			return err
		}
	}
	if in.Without["calls"] {
		return nil
	}
	raw, err := filter(append(commonRules(), networkRules()...))
	if errors.Is(err, errNoFilter) && in.Kind == KindBwrap {
		return nil
	}
	in.filter = sockFilter(raw)
	return err
}

// nested reports whether a command has a process namespace of its own.
func (in *inside) nested() bool { return !in.Without["processes"] }

// serve answers one message. The last descriptor is where to.
func (in *inside) serve(what byte, fds []int) {
	line := fds[len(fds)-1]
	fds = fds[:len(fds)-1]
	defer func() {
		closeAll(fds)
		_ = unix.Close(line)
	}()
	say := func(text []byte, fds ...int) {
		var oob []byte
		if len(fds) > 0 {
			oob = unix.UnixRights(fds...)
		}
		_ = unix.Sendmsg(line, text, oob, nil, unix.MSG_NOSIGNAL)
	}
	refuse := func(err error) { say(append([]byte{saidRefused}, err.Error()...)) }
	switch what {
	case saySuspend, sayResume:
		signal := unix.SIGSTOP
		if what == sayResume {
			signal = unix.SIGCONT
		}
		if os.Getpid() != 1 { // all there is would be the machine
			refuse(errors.New("not alone"))
			return
		}
		if what == saySuspend {
			in.suspended.Lock() // nothing begins meanwhile
		}
		err := unix.Kill(-1, signal)
		refused := err != nil && !errors.Is(err, unix.ESRCH)
		if what == sayResume || refused {
			in.suspended.Unlock()
		}
		if refused {
			refuse(err)
			return
		}
		if what == saySuspend {
			waitStopped()
		}
		say([]byte{saidDone})
	case sayRun:
		if len(fds) < 4 {
			refuse(errors.New("a command without its descriptors"))
			return
		}
		in.suspended.RLock()
		pid, pidfd, err := in.run(fds[0], [3]int{fds[1], fds[2], fds[3]})
		in.suspended.RUnlock()
		if e := (notStarted{}); errors.As(err, &e) {
			say([]byte{saidExit, e.code()})
			return
		}
		if err != nil {
			refuse(err)
			return
		}
		closeAll(fds[:4]) // who reads its output waits for the last end
		fds = fds[4:]
		say([]byte{saidStarted}, pidfd)
		_ = unix.Close(pidfd)
		st := waitFor(pid)
		closeAll(fds) // the hold, before anybody is told
		fds = nil
		say([]byte{saidExit, byte(codeOf(st))})
	}
}

// waitStopped waits until all processes here have stopped, or are busy in the kernel
// for longer than suspendTime.
func waitStopped() {
	w := &watcher{proc: "/proc"}
	for begin := time.Now(); time.Since(begin) < suspendTime; time.Sleep(100 * time.Microsecond) {
		awake := false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, e := range entries {
			if pid, err := strconv.Atoi(e.Name()); err == nil && pid != 1 {
				p, ok := w.stat(pid)
				awake = awake || ok && (p.state == 'R' || p.state == 'S' || p.state == 'D')
			}
		}
		if !awake {
			return
		}
	}
}

// run starts a command.
func (in *inside) run(from int, stdio [3]int) (pid, pidfd int, err error) {
	var c order
	if err := readSealed(from, &c); err != nil {
		return 0, 0, err
	}
	path, err := lookPath(c.Args[0], c.Dir, c.Env)
	if err != nil {
		return 0, 0, refused(stdio[2], c.Args[0], err)
	}
	var st unix.Stat_t
	if in.null >= 0 && unix.Fstat(stdio[0], &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR {
		stdio[0] = in.null // what the daemon has open can be given another mode
	}
	l := &launch{}
	if err := l.program(path, c.Args, c.Env); err != nil {
		return 0, 0, err
	}
	in.walls(l, c, stdio)
	flags := uintptr(0)
	if in.nested() {
		flags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	}
	pid, pidfd, err = l.start(flags)
	if e := (execError{}); errors.As(err, &e) {
		return 0, 0, refused(stdio[2], c.Args[0], e)
	}
	return pid, pidfd, err
}

// refused tells of a program that cannot be executed where the command's own
// errors go, as a shell does.
func refused(stderr int, name string, err error) error {
	_, _ = unix.Write(stderr, []byte(name+": "+err.Error()+"\n"))
	var e execError
	return notStarted{errors.Is(err, os.ErrNotExist) || errors.As(err, &e) && errors.Is(e.errno, os.ErrNotExist)}
}

// notStarted is a program that is missing, or is none.
type notStarted struct{ missing bool }

func (e notStarted) Error() string { return "not started" }

// code is what shells end with then.
func (e notStarted) code() byte {
	if e.missing {
		return 127
	}
	return 126
}

// walls is the list of calls between fork and exec.
func (in *inside) walls(l *launch, c order, stdio [3]int) {
	for sig := uintptr(1); sig <= 64; sig++ {
		l.try(unix.SYS_RT_SIGACTION, sig, hold(l, new([4]uint64)), 0, sigsetSize)
	}
	if !in.Without["session"] {
		l.add(unix.SYS_SETSID)
	}
	if in.nested() {
		// Not before: the init of an ordinary user's bubblewrap does not own its mounts.
		l.add(unix.SYS_MOUNT, 0, l.text("/"), 0, unix.MS_REC|unix.MS_PRIVATE)
		// Read-only: what is written there changes the machine, or whom the kernel
		// ends first when memory is short.
		proc, flags := l.text("proc"), uintptr(unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)
		if !in.Without["mounts"] {
			flags |= unix.MS_RDONLY
		}
		l.add(unix.SYS_MOUNT, proc, l.text("/proc"), proc, flags)
		for _, path := range in.devices { // they can be written to all the same, and their modes not be changed
			l.add(unix.SYS_MOUNT, 0, l.text(path), 0, unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NOEXEC)
		}
		for _, m := range in.cover { // with mounts that are read-only themselves
			l.add(unix.SYS_MOUNT, l.text(m.from), l.text(m.to), 0, unix.MS_BIND)
		}
	}
	l.add(unix.SYS_CHDIR, l.text(c.Dir))
	for _, r := range c.Limits {
		l.try(unix.SYS_PRLIMIT64, 0, uintptr(r.What), hold(l, &unix.Rlimit{Cur: r.Soft, Max: r.Hard}), 0)
	}
	if !in.Without["rights"] {
		for right := uintptr(0); right <= unix.CAP_LAST_CAP; right++ {
			l.try(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, right)
		}
		l.try(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL)
		l.add(unix.SYS_CAPSET, hold(l, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}), hold(l, new([2]unix.CapUserData)))
		l.add(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	}
	if in.ruleset >= 0 {
		l.add(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(in.ruleset), 0)
	}
	for i, fd := range stdio {
		l.add(unix.SYS_DUP3, uintptr(fd), uintptr(i), 0)
	}
	if len(in.filter) > 0 {
		program := &unix.SockFprog{Len: uint16(len(in.filter)), Filter: &in.filter[0]}
		l.add(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, hold(l, program))
	}
}

// sockFilter is a filter as the kernel reads it.
func sockFilter(raw []bpf.RawInstruction) []unix.SockFilter {
	code := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	return code
}

// lookPath finds a program as a shell does in dir, on the PATH of env.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil // the exec tells
	}
	path := SystemPath
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		p := filepath.Join(d, name)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", os.ErrNotExist
}

// readOrders reads what the daemon tells a helper at its start.
func readOrders() (*orders, error) {
	o := &orders{}
	return o, readSealed(fdOrders, o)
}

// readSealed decodes what memfd holds.
func readSealed(fd int, v any) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	raw := make([]byte, st.Size)
	for n := 0; n < len(raw); {
		m, err := unix.Pread(fd, raw[n:], int64(n))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || m == 0 {
			return fmt.Errorf("read orders: %w", errors.Join(err, errors.New("cut")))
		}
		n += m
	}
	return json.Unmarshal(raw, v)
}
