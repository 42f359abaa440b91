package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
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
		err = helperRun(args[3:])
	case "listen":
		err = listenInside(args[3:])
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
	Kind     string          `json:"kind"`
	ABI      int             `json:"abi"`
	Grants   []landGrant     `json:"grants"`
	Mounts   []mount         `json:"mounts"`
	TmpBytes int64           `json:"tmp_bytes"`
	TmpFiles int64           `json:"tmp_files"`
	Writable []string        `json:"writable"` // where modes and times may be changed, for KindLandlock
	Args     []string        `json:"args"`
	Env      []string        `json:"env"`
	Dir      string          `json:"dir"`
	Proxy    int             `json:"proxy"` // where to send the listening socket, 0 for nowhere
	Without  map[string]bool `json:"without,omitempty"`
}

// Descriptors of the helper; 0 to 2 are the command's.
const (
	fdReady  = 3 // the command's gate
	fdOrders = 4
	fdLeash  = 5 // ends when the daemon does, or wants the command's end
	fdFirst  = 6 // what orders name
)

// helperRun walls itself in, runs the command, waits for it and ends all that
// it left behind. Its exit code is the command's, 128+n for a signal.
func helperRun([]string) error {
	raw, err := io.ReadAll(os.NewFile(fdOrders, "orders"))
	if err != nil {
		return err
	}
	var o orders
	if err := json.Unmarshal(raw, &o); err != nil {
		return err
	}
	closeOnExec()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGCHLD)
	if o.Kind == KindNamespaces {
		if err := o.enter(); err != nil {
			return err
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper: %w", err)
	}
	child, err := o.spawn()
	if err != nil {
		return err
	}
	_ = unix.Close(fdReady)
	leash := make(chan struct{})
	go func() {
		_, _ = os.NewFile(fdLeash, "leash").Read(make([]byte, 1))
		close(leash)
	}()
	code := o.supervise(child, signals, leash)
	os.Exit(code)
	return nil
}

// enter makes the namespaces' inside: file system, network, name.
func (o *orders) enter() error {
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
	if o.Proxy != 0 {
		if err := sendListener(o.Proxy); err != nil {
			return fmt.Errorf("listen for the proxy: %w", err)
		}
		_ = unix.Close(o.Proxy)
	}
	if o.Without["mounts"] {
		return nil
	}
	return buildRoot(o.Mounts, o.TmpBytes, o.TmpFiles)
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
func (o *orders) spawn() (int, error) {
	runtime.LockOSThread() // the first thread is the process to others, and stays outside
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("hide the helper: %w", err)
	}
	type result struct {
		pid, listener int
		err           error
	}
	born := make(chan result)
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
		select {}
	}()
	r := <-born
	if r.err != nil {
		return 0, r.err
	}
	if r.listener > 0 {
		go o.judge(r.listener)
	}
	return r.pid, nil
}

// wall restricts the calling thread. The descriptor is that of the calls that
// the other threads decide about, 0 for none.
func (o *orders) wall() (listener int, err error) {
	if err := o.giveUp(); err != nil {
		return 0, err
	}
	if o.ABI > 0 && !o.Without["landlock"] {
		if err := landlock(o.ABI, o.Grants, o.Kind == KindNamespaces); err != nil {
			return 0, err
		}
	}
	if o.Without["calls"] {
		return 0, nil
	}
	rules := commonRules()
	flags := 0
	if o.Kind == KindNamespaces {
		rules = append(rules, networkRules()...)
	} else {
		rules = append(aloneRules(o.ABI, os.Getpid(), unix.Gettid(), os.Getuid(), os.Getgid()), rules...)
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	raw, err := filter(rules)
	if err != nil {
		return 0, err
	}
	return setFilter(raw, flags)
}

// setFilter sets a filter on the calling thread.
func setFilter(raw []bpf.RawInstruction, flags int) (int, error) {
	code := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uintptr(flags), uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	if e != 0 {
		return 0, fmt.Errorf("set the seccomp filter: %w", e)
	}
	return int(fd), nil
}

// supervise waits for the command, passes SIGTERM on to its group, and in the
// end sees to it that nothing of it is left. In a process namespace the kernel
// does that when the helper, its first process, goes.
func (o *orders) supervise(child int, signals <-chan os.Signal, leash <-chan struct{}) int {
	alone := o.Kind != KindNamespaces || o.Without["processes"]
	for {
		select {
		case s := <-signals:
			if s == unix.SIGTERM {
				_ = unix.Kill(-child, unix.SIGTERM)
				continue
			}
		case <-leash:
			if alone {
				endAll(os.Getpid())
			}
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
			if alone {
				endAll(os.Getpid())
			}
			if st.Signaled() {
				return 128 + int(st.Signal())
			}
			return st.ExitStatus()
		}
	}
}

// endAll kills everything below the reaper until there is nothing. What is
// killed leaves its children to the reaper, so that they are found next time.
func endAll(reaper int) {
	w := &watcher{proc: "/proc", root: reaper}
	for {
		for _, p := range w.tree() {
			if p.pid != reaper {
				_ = unix.Kill(p.pid, unix.SIGKILL)
			}
		}
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
