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
)

// process is one command on its way: what its kind of runner has to do
// besides os/exec. The hooks are set before the process starts or in started.
type process struct {
	files     []*os.File
	started   func(*os.Process) error // right after the start
	terminate func() error            // asks the whole tree to end
	end       func() error            // makes sure that the whole tree is gone; called before the last wait
	cleanup   []func()
}

func (p *process) after(f func()) { p.cleanup = append(p.cleanup, f) }

// run carries a command from start to end. It keeps its thread for as long as
// the child lives, since Pdeathsig is about the death of the thread that
// started it, and the Go runtime may end a thread at any time.
func run(ctx context.Context, c Command, prepare func(*process) (*exec.Cmd, error)) (Exit, error) {
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
	cmd, err := prepare(p)
	if err != nil {
		return Exit{}, err
	}
	out := &output{w: c.Output}
	cmd.Stdout, cmd.Stderr = out, out
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return Exit{}, fmt.Errorf("sandbox: start: %w", err)
	}
	_ = readyW.Close()
	err = p.started(cmd.Process)
	why, waitErr := p.wait(ctx, cmd, c.Timeout, err != nil)
	writeErr := out.close()
	exit := exitOf(cmd.ProcessState)
	exit.Duration, exit.TimedOut = time.Since(begin), why == outOfTime
	switch {
	case why == cancelled:
		return exit, ctx.Err()
	case err != nil:
		return exit, err
	case waitErr != nil:
		return exit, waitErr
	case why == byItself && !reached(ready):
		return exit, fmt.Errorf("sandbox: the command was not reached: %s", bytes.TrimSpace(out.head))
	case writeErr != nil:
		return exit, fmt.Errorf("sandbox: write output: %w", writeErr)
	}
	return exit, nil
}

// wait waits for the command and ends its tree: at once with abort, with
// SIGTERM and a grace period when ctx or the time is over, and in any case
// once the command itself has ended.
func (p *process) wait(ctx context.Context, cmd *exec.Cmd, timeout time.Duration, abort bool) (why reason, err error) {
	exited := make(chan error, 1)
	go func() { exited <- waitNoReap(cmd.Process.Pid) }()
	var expired <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
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
		}
	}
	if !over && !abort && p.terminate != nil && p.terminate() == nil {
		t := time.NewTimer(grace)
		select {
		case err = <-exited:
			over = true
		case <-t.C:
		}
		t.Stop()
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
	return why, err
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
	head []byte // the first maxComplaint bytes
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.head = append(o.head, b[:min(len(b), maxComplaint-len(o.head))]...)
	if o.w != nil && o.err == nil {
		_, o.err = o.w.Write(b)
	}
	return len(b), nil
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
