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

// process is one command on its way: what its kind of runner has to do
// besides os/exec. The hooks are set before the process starts or in started.
type process struct {
	files     []*os.File
	started   func(*os.Process) error // right after the start
	terminate func() error            // asks the whole tree to end
	end       func() error            // makes sure that the whole tree is gone; called before the last wait
	watch     int                     // the process above all of the command's, once started; 0 for the child
	tmp       string                  // see watcher
	reached   func() bool             // asked at the end where the gate cannot use its descriptor; nil elsewhere
	group     *group                  // of all processes of the command, nil for none
	cleanup   []func()
}

func (p *process) after(f func()) { p.cleanup = append(p.cleanup, f) }

// job is a command with what its Runner adds to it.
type job struct {
	Command
	limits  Limits
	disks   []string // what the command may write to
	prepare func(*process) (*exec.Cmd, error)
	groups  *cgroups        // where its control group is made, nil for none
	pipes   *pipes          // the child's ends of a long-running command, nil otherwise
	reached chan<- struct{} // told once the command was reached, nil if nobody asks
	after   func() error    // called when all is over, nil for nothing
}

// run carries a command from start to end. It keeps its thread for as long as
// the child lives, since Pdeathsig is about the death of the thread that
// started it, and the Go runtime may end a thread at any time.
func run(ctx context.Context, j job) (Exit, error) {
	if err := ctx.Err(); err != nil {
		return Exit{}, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	closeOnExec()

	p := &process{}
	defer func() {
		for _, f := range p.cleanup {
			f()
		}
	}()
	ready, readyW, err := os.Pipe()
	if err != nil {
		return Exit{}, fmt.Errorf("sandbox: %w", err)
	}
	p.after(func() { _, _ = ready.Close(), readyW.Close() })
	p.files = []*os.File{readyW}
	cmd, err := j.prepare(p)
	if err != nil {
		return Exit{}, err
	}
	if j.groups != nil {
		if p.group, err = j.groups.group(j.limits); err != nil {
			return Exit{}, err
		}
		p.after(p.group.remove)
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(p.group.dir.Fd())
	}
	out := &output{w: j.Output, left: j.limits.Output, full: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if j.pipes != nil {
		j.pipes.attach(cmd, out)
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return Exit{}, fmt.Errorf("sandbox: start: %w", err)
	}
	_ = readyW.Close()
	begun := func() bool {
		if p.reached != nil {
			return p.reached()
		}
		return reached(ready)
	}
	if j.pipes != nil {
		j.pipes.close()
	}
	err = p.started(cmd.Process)
	if j.reached != nil && err == nil {
		// The gate's byte, or the end of the pipe: neither is long in coming.
		if p.reached != nil || begun() {
			j.reached <- struct{}{}
		}
	}
	why, limit, waitErr := p.wait(ctx, cmd, j, out, err != nil)
	writeErr := out.close()
	exit := exitOf(cmd.ProcessState)
	if p.group != nil && limit == "" && p.group.outOfMemory() {
		limit = limitMemory
	}
	exit.Duration, exit.TimedOut, exit.Limit = time.Since(begin), why == outOfTime, limit
	switch {
	case why == cancelled:
		return exit, ctx.Err()
	case err != nil:
		return exit, err
	case waitErr != nil:
		return exit, waitErr
	case why == byItself && j.reached == nil && !begun():
		return exit, fmt.Errorf("sandbox: the command was not reached: %s", bytes.TrimSpace(out.head))
	case writeErr != nil:
		return exit, fmt.Errorf("sandbox: write output: %w", writeErr)
	}
	return exit, nil
}

// wait waits for the command and ends its tree: at once with abort or past a
// limit, with SIGTERM and a grace period when ctx or the time is over, and in
// any case once the command itself has ended.
func (p *process) wait(ctx context.Context, cmd *exec.Cmd, j job, out *output, abort bool) (why reason, limit string, err error) {
	exited := make(chan error, 1)
	go func() { exited <- waitNoReap(cmd.Process.Pid) }()
	passed, stop := p.watcher(cmd.Process.Pid, j)
	defer stop()
	var expired <-chan time.Time
	if j.Timeout > 0 {
		t := time.NewTimer(j.Timeout)
		defer t.Stop()
		expired = t.C
	}
	over := false
	if !abort {
		select {
		case err = <-exited:
			over = true
		case <-expired:
			why = outOfTime
		case <-ctx.Done():
			why = cancelled
		case limit = <-passed:
			why = overLimit
		case <-out.full:
			why, limit = overLimit, limitOutput
		}
	}
	if !over && !abort && why != overLimit && p.terminate != nil && p.terminate() == nil {
		t := time.NewTimer(grace)
		select {
		case err = <-exited:
			over = true
		case <-t.C:
		}
		t.Stop()
	}
	if p.group != nil {
		p.group.kill()
	}
	if p.end != nil {
		err = errors.Join(err, p.end())
	}
	if !over {
		// A dead init ends bwrap, which then reports the status; without one
		// to kill, bwrap itself has to go.
		t := time.NewTimer(grace)
		select {
		case e := <-exited:
			err = errors.Join(err, e)
		case <-t.C:
			err = errors.Join(err, cmd.Process.Kill())
		}
		t.Stop()
	}
	// The exit status is read from ProcessState; what remains is ErrWaitDelay
	// of a pipe that someone outside our reach keeps open.
	cmd.WaitDelay = grace
	_ = cmd.Wait()
	return why, limit, err
}

// watcher starts to watch the command's processes. stop ends that and waits.
func (p *process) watcher(child int, j job) (passed <-chan string, stop func()) {
	root := p.watch
	if root == 0 {
		root = child
	}
	w := newWatcher(root, j.limits, j.disks)
	w.tmp = p.tmp
	found := make(chan string, 1)
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if limit := w.run(end); limit != "" {
			found <- limit
		}
	}()
	return found, func() { close(end); <-done }
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

// exitOf reads a status; bwrap and shells report a signal n as 128+n.
func exitOf(st *os.ProcessState) Exit {
	e := Exit{Code: st.ExitCode()}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Code = 128 + int(ws.Signal())
	}
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

// output passes on what a command writes. A writer that fails does not block
// the command: the rest is discarded and the failure is reported at the end.
type output struct {
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
	const cloexec = 4 // CLOSE_RANGE_CLOEXEC, Linux 5.11
	if unix.CloseRange(3, ^uint(0)>>1, cloexec) == nil {
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
