package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// grace is between SIGTERM and SIGKILL, and how long output may still
	// come from a pipe whose command has ended.
	grace = 2 * time.Second
	// killWait is how long SIGKILL may take; more is a process stuck in the kernel.
	killWait = 10 * time.Second
	// maxComplaint is how much is kept of what a failing sandbox says, in bytes.
	maxComplaint = 2 << 10
)

// reason says what ended a command.
type reason int

const (
	byItself reason = iota
	outOfTime
	cancelled
	overLimit
)

// process is one command on its way: what its kind of runner has to do. The
// hooks are set before the process starts or by its start.
type process struct {
	files     []*os.File              // of a program: its descriptors from 3 on
	started   func(*os.Process) error // of a program: right after the start
	terminate func() error            // asks the whole tree to end
	end       func() error            // makes sure that the whole tree is gone; called before the last wait
	watch     int                     // the process above all of the command's, once started
	inst      *instance               // in which it runs, nil where it has walls of its own
	begun     func() bool             // whether the command was reached; nil where it was once started
	starved   func() bool             // whether the kernel ended one of its processes for want of memory; may be nil
	group     *group                  // of all processes of the command, nil for none
	cleanup   []func()
}

// child is how a command is started and waited for.
type child interface {
	start(stdin, stdout, stderr *os.File) error
	await() error // blocks until it has ended
	exit() Exit   // how, after await; only Code and Signal
	kill() error  // ends what await waits for, at once
}

func (p *process) after(f func()) { p.cleanup = append(p.cleanup, f) }

// job is a command with what its Runner adds to it.
type job struct {
	Command
	limits   Limits
	together *SharedUsage
	disks    []string // what the command may write to
	prepare  func(*process) (child, error)
	pipes    *pipes          // the child's ends of a long-running command, nil otherwise
	reached  chan<- struct{} // told once the command was reached, nil if nobody asks
	after    func() error    // called each time that the watcher looks, and when all is over; nil for nothing
}

// run carries a command from start to end.
func run(ctx context.Context, j job) (Exit, error) {
	if err := ctx.Err(); err != nil {
		return Exit{}, err
	}
	p := &process{}
	defer func() {
		for _, f := range slices.Backward(p.cleanup) {
			f()
		}
	}()
	c, err := j.prepare(p)
	if err != nil {
		return Exit{}, err
	}
	out := &output{w: j.Output, left: j.limits.Output, full: make(chan struct{})}
	var from *os.File // where what it writes arrives, nil where it is not for out
	var stdin, stdout, stderr *os.File
	if j.pipes != nil {
		stdin, stdout, stderr = j.pipes.stdin, j.pipes.stdout, j.pipes.stderr
	}
	if stdout == nil {
		if from, stdout, err = pipe(unix.O_NONBLOCK); err != nil {
			return Exit{}, err
		}
		p.after(func() { _, _ = from.Close(), stdout.Close() })
		stderr = stdout
	}
	if stdin == nil {
		if stdin, err = input(j.Input); err != nil {
			return Exit{}, err
		}
		p.after(func() { _ = stdin.Close() })
	}
	begin := time.Now()
	if err := c.start(stdin, stdout, stderr); err != nil {
		return Exit{}, fmt.Errorf("sandbox: start: %w", err)
	}
	if from != nil {
		_ = stdout.Close()
		out.follow(from)
	}
	if j.pipes != nil {
		j.pipes.close()
	}
	if j.reached != nil {
		stop := func() bool { return true }
		if p.begun != nil { // nobody watches yet, and an engine may hang
			stop = context.AfterFunc(ctx, func() { _ = c.kill() })
		}
		if p.begun == nil || p.begun() {
			j.reached <- struct{}{}
		}
		stop()
	}
	why, limit, waitErr := p.wait(ctx, c, j, out)
	writeErr := out.close()
	exit := c.exit()
	if p.starved != nil && limit == "" && p.starved() {
		limit = limitMemory
	}
	if limit == "" && why == byItself {
		limit = j.limits.bySignal(exit.Signal)
	}
	exit.Duration, exit.TimedOut, exit.Limit, exit.Bound = time.Since(begin), why == outOfTime, limit, j.limits.bound(limit)
	switch {
	case why == cancelled:
		return exit, ctx.Err()
	case waitErr != nil:
		return exit, waitErr
	case why == byItself && ctx.Err() != nil && p.begun != nil && !p.begun():
		return exit, ctx.Err() // what it was ended with came before it
	case why == byItself && j.reached == nil && p.begun != nil && !p.begun():
		return exit, fmt.Errorf("sandbox: the command was not reached: %s", bytes.TrimSpace(out.head))
	case writeErr != nil:
		return exit, fmt.Errorf("sandbox: write output: %w", writeErr)
	}
	return exit, nil
}

// input is what a command reads that has no pipe.
func input(text string) (*os.File, error) {
	if text == "" {
		return devNull()
	}
	return memfd([]byte(text))
}

// wait waits for the command and ends its tree: at once past a limit, with
// SIGTERM and a grace period when ctx or the time is over, and in any case once
// the command itself has ended.
func (p *process) wait(ctx context.Context, c child, j job, out *output) (why reason, limit string, err error) {
	s := p.supervise(ctx, c, j, out)
	err = c.await()
	if s.over() { // by itself
		if p.group != nil {
			p.group.kill()
		}
		if p.end != nil {
			err = errors.Join(err, p.end())
		}
	} else {
		<-s.done
		err = errors.Join(err, s.err)
	}
	out.finish()
	return s.why, s.limit, err
}

// program is a command that is a child of this process.
type program struct {
	*exec.Cmd
	p      *process
	groups *cgroups // where its control group is made, nil for none
	limits Limits
}

// start starts the program. The goroutine keeps its thread until exit, since
// Pdeathsig is about the death of the thread that started it, and the Go
// runtime may end a thread at any time.
func (c *program) start(stdin, stdout, stderr *os.File) (err error) {
	closeOnExec()
	c.Stdin, c.Stdout, c.Stderr = stdin, stdout, stderr
	if c.groups != nil {
		if c.p.group, err = c.groups.group(c.limits, true); err != nil {
			return err
		}
		c.p.after(c.p.group.remove)
		c.p.starved = c.p.group.outOfMemory
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(c.p.group.dir.Fd())
	}
	runtime.LockOSThread()
	if err := c.Start(); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	c.p.watch = c.Process.Pid
	_ = c.p.files[0].Close() // our end of the gate
	if err := c.p.started(c.Process); err != nil {
		_ = c.Process.Kill()
		_ = c.exit()
		return err
	}
	return nil
}

// await implements child: on the thread of start.
func (c *program) await() error { return waitNoReap(c.Process.Pid) }

func (c *program) exit() Exit {
	_ = c.Wait() // the status is read from ProcessState
	runtime.UnlockOSThread()
	st, _ := c.ProcessState.Sys().(syscall.WaitStatus)
	return exitCode(codeOf(unix.WaitStatus(st)))
}

func (c *program) kill() error { return c.Process.Kill() }

// gate makes the pipe by which the outer shell of a program says that it was
// reached, which is the first of its descriptors.
func (p *process) gate() error {
	ready, readyW, err := pipe(0)
	if err != nil {
		return err
	}
	p.gateOf(ready, readyW)
	return nil
}

// namedGate is a gate in the file system, for an engine that passes no
// descriptors on. It holds the writing end itself, so that the gate ends with it;
// what a command writes to it later is bounded as in every pipe.
func (p *process) namedGate(path string) error {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	ready, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	readyW, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return errors.Join(fmt.Errorf("sandbox: %w", err), ready.Close())
	}
	p.gateOf(ready, readyW)
	return nil
}

func (p *process) gateOf(ready, readyW *os.File) {
	p.after(func() { _, _ = ready.Close(), readyW.Close() })
	p.files = []*os.File{readyW}
	p.begun = sync.OnceValue(func() bool { return reached(ready) })
}

// waitNoReap blocks until the child has ended and leaves it to be reaped, so
// that its process group cannot be another's while it is killed.
func waitNoReap(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// waitFor waits for a child of this process to end.
func waitFor(pid int) (st unix.WaitStatus) {
	for {
		if _, err := unix.Wait4(pid, &st, 0, nil); !errors.Is(err, unix.EINTR) {
			return st
		}
	}
}

// codeOf is what shells report of a status: of a signal n, 128+n.
func codeOf(st unix.WaitStatus) int {
	if st.Signaled() {
		return 128 + int(st.Signal())
	}
	return st.ExitStatus()
}

// exitCode reads what shells report.
func exitCode(code int) Exit {
	e := Exit{Code: code}
	if e.Code > 128 && e.Code < 128+65 {
		e.Signal = unix.SignalName(syscall.Signal(e.Code - 128))
	}
	return e
}

// reached reports whether the gate of scriptArgs ran.
func reached(ready *os.File) bool {
	n, _ := ready.Read(make([]byte, 1))
	return n == 1
}

// pipe makes a pipe whose ends are closed in every child that is not given
// them. flags are of the end that is read: with O_NONBLOCK a read waits without
// a thread and ends with Close.
func pipe(flags int) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("sandbox: pipe: %w", err)
	}
	if flags&unix.O_NONBLOCK != 0 {
		if err := unix.SetNonblock(fds[0], true); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("sandbox: pipe: %w", err), unix.Close(fds[0]), unix.Close(fds[1]))
		}
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// devNull is what a command reads that is given nothing. The os package would
// try first whether the poller takes it.
func devNull() (*os.File, error) {
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("sandbox: open %s: %w", os.DevNull, err)
	}
	return os.NewFile(uintptr(fd), os.DevNull), nil
}

// output passes on what a command writes. A writer that fails does not block
// the command: the rest is discarded and the failure is reported at the end.
type output struct {
	from *os.File      // see follow
	done chan struct{} // closed when from has ended

	mu   sync.Mutex
	w    io.Writer
	err  error
	head []byte        // the first maxComplaint bytes
	left int64         // bytes that may still come
	full chan struct{} // closed when there were more
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(b)
	o.head = append(o.head, b[:min(len(b), maxComplaint-len(o.head))]...)
	if o.left < int64(len(b)) {
		if o.left >= 0 {
			close(o.full)
		}
		b = b[:max(0, o.left)]
		o.left = -1
	} else {
		o.left -= int64(len(b))
	}
	if o.w != nil && o.err == nil && len(b) > 0 {
		_, o.err = o.w.Write(b)
	}
	return n, nil
}

// buffers are what outputs are read into: most commands say little, and one
// buffer after the other would be most of what a step leaves to be collected.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// follow passes on what arrives at from until that ends. finish must be called
// then.
func (o *output) follow(from *os.File) {
	o.from, o.done = from, make(chan struct{})
	go func() {
		defer close(o.done)
		buf, _ := buffers.Get().(*[32 << 10]byte)
		defer buffers.Put(buf)
		for {
			n, err := from.Read(buf[:])
			if n > 0 {
				_, _ = o.Write(buf[:n]) // never fails
			}
			if err != nil {
				return // the end, or closed by finish
			}
		}
	}()
}

// finish waits for the end of what is followed, for as long as grace: someone
// outside our reach may keep the pipe open.
func (o *output) finish() {
	if o.from == nil {
		return
	}
	select {
	case <-o.done:
	case <-time.After(grace):
	}
	_ = o.from.Close()
	<-o.done
}

// close ends the passing on, so that nothing reaches the writer after Run, and
// returns the writer's failure.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
	return o.err
}

// closeOnExec marks every descriptor of this process, for those that came from
// whoever started the daemon are open in each child otherwise. Go opens all of
// its own that way.
func closeOnExec() {
	if unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) == nil { // Linux 5.11
		return
	}
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range dir {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 2 {
			unix.CloseOnExec(n)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
