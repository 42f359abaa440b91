package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// helperArg is the first argument of this program when it is the helper of a
// sandbox and nothing else.
const helperArg = "__tori-sandbox"

// helping says that this program calls Helper, so that running it again gives
// a helper and not, say, all of its tests once more.
var helping atomic.Bool

var errNoHelper = errors.New("this program does not act as the helper of a sandbox")

func canHelp() bool { return helping.Load() }

// Helper makes the program able to be the helper of its own sandboxes. It is
// the first thing that main, or TestMain, does: called as a helper, the program
// does that work and does not return. args are os.Args.
func Helper(args []string) {
	helping.Store(true)
	if len(args) < 3 || args[1] != helperArg {
		return
	}
	var err error
	switch args[2] {
	case "run":
		err = helperRun()
	case "init":
		err = initRun()
	case "probe":
		err = probeInside(args[3:], os.Stdout)
	case "victim":
		err = victim(os.Stdin, os.Stdout)
	default:
		err = fmt.Errorf("unknown work %q", args[2])
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "sandbox helper:", err)
		os.Exit(125)
	}
	os.Exit(0)
}

// orders are what the daemon tells the helper, in a descriptor.
type orders struct {
	Kind     string           `json:"kind"`
	ABI      int              `json:"abi"`
	Grants   []landGrant      `json:"grants"`
	Mounts   []mount          `json:"mounts"`
	TmpBytes int64            `json:"tmp_bytes"`
	TmpFiles int64            `json:"tmp_files"`
	Threads  int              `json:"threads"`  // of all commands together
	Writable []string         `json:"writable"` // where modes and times may be changed, for KindLandlock
	Args     []string         `json:"args"`
	Env      []string         `json:"env"`
	Dir      string           `json:"dir"`
	User     *[2]int          `json:"user,omitempty"` // uid and gid of who we are, to be the same in a namespace of users
	Proxy    int              `json:"proxy"`          // where to send the listening sockets, 0 for nowhere
	Listen   []netip.AddrPort `json:"listen"`
	Without  map[string]bool  `json:"without,omitempty"`
}

// Descriptors of the helper; 0 to 2 are the command's.
const (
	fdReady   = 3 // the command's gate
	fdControl = 3 // of an init: where commands come from
	fdOrders  = 4
	fdLeash   = 5 // ends when the daemon does, or wants the command's end
)

// helperRun, of KindLandlock, walls itself in, runs the command, waits for it
// and ends all that it left behind. Its exit code is the command's, 128+n for a
// signal.
func helperRun() error {
	o, err := readOrders()
	if err != nil {
		return err
	}
	closeOnExec()
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0) // the command cannot
	_ = unix.Setrlimit(unix.RLIMIT_SIGPENDING, &unix.Rlimit{Cur: maxPending, Max: maxPending})
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGCHLD)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper: %w", err)
	}
	child, kill, err := o.spawn()
	if err != nil {
		return err
	}
	_ = unix.Close(fdReady)
	leash := make(chan struct{})
	go func() {
		_, _ = os.NewFile(fdLeash, "leash").Read(make([]byte, 1))
		close(leash)
	}()
	code := supervise(child, kill, signals, leash)
	os.Exit(code)
	return nil
}

// enter makes the namespaces' inside: users, file system, network, name.
func (o *orders) enter() error {
	if o.User != nil {
		if err := mapUser(o.User[0], o.User[1]); err != nil {
			return err
		}
	}
	if !o.Without["network"] {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("start the loopback: %w", err)
		}
	}
	if !o.Without["names"] {
		if err := unix.Sethostname([]byte("sandbox")); err != nil {
			return fmt.Errorf("set the host name: %w", err)
		}
	}
	if err := o.listen(); err != nil {
		return err
	}
	if o.Without["mounts"] {
		return nil
	}
	return buildRoot(o.Mounts, o.TmpBytes, o.TmpFiles)
}

// listen listens for the proxy, where there is one.
func (o *orders) listen() error {
	if o.Proxy == 0 {
		return nil
	}
	for _, at := range o.Listen {
		if err := sendListener(o.Proxy, at); err != nil {
			return fmt.Errorf("listen for the proxy: %w", err)
		}
	}
	return unix.Close(o.Proxy)
}

// mapUser makes whoever began a namespace of users the same in it. The daemon
// cannot: it is hidden, and what it forks is until it runs another program.
func mapUser(uid, gid int) error {
	for _, f := range [][2]string{{"setgroups", "deny"}, {"uid_map", fmt.Sprintf("%[1]d %[1]d 1", uid)}, {"gid_map", fmt.Sprintf("%[1]d %[1]d 1", gid)}} {
		if err := os.WriteFile("/proc/self/"+f[0], []byte(f[1]), 0); err != nil {
			return fmt.Errorf("stay who we are: %w", err)
		}
	}
	return nil
}

// Hide puts the memory, the environment and the descriptors of this process out
// of the reach of other processes of the same user, and of core dumps. A program
// that it starts is not hidden by that.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process (PR_SET_DUMPABLE): %w", err)
	}
	return nil
}

// giveUp takes all rights from the calling thread and what it starts, for good.
// What is in the bounding set does not matter any more without new privileges.
func (o *orders) giveUp() error {
	if o.Without["rights"] {
		return nil
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// spawn starts the command from a thread of its own, on which alone the walls
// stand: the other threads wait and look after it. The thread stays, since the
// command ends with it. The helper's memory is out of the command's reach, or
// the command could take a thread without walls.
//
// kill ends all that lives behind the walls, as far as the kernel can tell.
func (o *orders) spawn() (child int, kill func(), err error) {
	runtime.LockOSThread() // the first thread is the process to others, and stays outside
	if err := Hide(); err != nil {
		return 0, nil, err
	}
	type result struct {
		pid, listener int
		err           error
	}
	born, strike, struck := make(chan result), make(chan bool), make(chan error)
	scoped := o.ABI >= 6 && !o.Without["landlock"]
	daemon := os.Getppid()
	go func() {
		runtime.LockOSThread()
		listener, err := o.wall()
		if err != nil {
			born <- result{err: err}
			return
		}
		pid, err := syscall.ForkExec(o.Args[0], o.Args, &syscall.ProcAttr{Dir: o.Dir, Env: o.Env, Files: []uintptr{0, 1, 2, fdReady},
			Sys: &syscall.SysProcAttr{Setsid: !o.Without["session"], Pdeathsig: syscall.SIGKILL}})
		born <- result{pid, listener, err}
		for range strike {
			// All, to a thread whose signals Landlock keeps in: nothing else dies,
			// and no fork outruns it, for the kernel makes no process meanwhile.
			if err := unix.Kill(daemon, 0); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ESRCH) {
				struck <- errors.New("signals are not kept in")
				continue
			}
			struck <- unix.Kill(-1, unix.SIGKILL)
		}
	}()
	r := <-born
	if r.err != nil {
		return 0, nil, r.err
	}
	if r.listener > 0 {
		go o.judge(r.listener)
	}
	kill = func() { killBelow(os.Getpid()) }
	if scoped {
		kill = func() {
			if strike <- true; <-struck != nil {
				killBelow(os.Getpid())
			}
		}
	}
	return r.pid, kill, nil
}

// wall restricts the calling thread. The descriptor is that of the calls that
// the other threads decide about, 0 for none.
func (o *orders) wall() (listener int, err error) {
	if err := o.giveUp(); err != nil {
		return 0, err
	}
	if o.ABI > 0 && !o.Without["landlock"] {
		set, err := landRuleset(o.ABI, o.Grants, false)
		if err != nil {
			return 0, err
		}
		_, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0)
		if _ = unix.Close(set); e != 0 {
			return 0, fmt.Errorf("landlock: restrict: %w", e)
		}
	}
	if o.Without["calls"] {
		return 0, nil
	}
	raw, err := filter(append(aloneRules(o.ABI, os.Getpid(), unix.Gettid(), os.Getuid(), os.Getgid()), commonRules()...))
	if err != nil {
		return 0, err
	}
	code := sockFilter(raw)
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	if e != 0 {
		return 0, fmt.Errorf("set the seccomp filter: %w", e)
	}
	return int(fd), nil
}

// supervise waits for the command, passes SIGTERM on to its group, and in the
// end sees to it that nothing of it is left.
func supervise(child int, kill func(), signals <-chan os.Signal, leash <-chan struct{}) int {
	for {
		select {
		case s := <-signals:
			if s == unix.SIGTERM {
				_ = unix.Kill(-child, unix.SIGTERM)
				continue
			}
		case <-leash:
			endAll(kill)
			return 128 + int(unix.SIGKILL)
		}
		for {
			var st unix.WaitStatus
			pid, err := unix.Wait4(-1, &st, unix.WNOHANG, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if pid <= 0 {
				break
			}
			if pid != child {
				continue
			}
			endAll(kill)
			return codeOf(st)
		}
	}
}

// killBelow kills what it finds below a reaper: processes that fork and end all
// the time are not found (decisions/031).
func killBelow(reaper int) {
	w := &watcher{proc: "/proc", root: reaper}
	for _, p := range w.tree() {
		if p.pid != reaper {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
	}
}

// endAll kills until there is nothing. What is killed leaves its children to this
// process, the reaper, so that they are waited for here.
func endAll(kill func()) {
	for {
		kill()
		for {
			var st unix.WaitStatus
			pid, err := unix.Wait4(-1, &st, unix.WNOHANG, nil)
			if errors.Is(err, unix.ECHILD) {
				return
			}
			if pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		time.Sleep(time.Millisecond) // one that does not die at once is busy in the kernel
	}
}
