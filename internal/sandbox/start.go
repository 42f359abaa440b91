package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Process is a command that runs beside its caller: a server that is spoken to
// through its pipes, a job in the background. It is confined as by Run, and
// what it leaves running ends with it.
type Process struct {
	Stdin io.WriteCloser // the caller closes it; never nil
	// Stdout and Stderr end when the last process of the command is gone. They
	// must be read, or the command stands still once a pipe is full. Both are
	// nil where Command.Output takes what comes.
	Stdout, Stderr io.ReadCloser

	cancel context.CancelCauseFunc
	done   chan struct{}
	exit   Exit
	err    error
}

// errKilled is why a process that Kill ended has ended.
var errKilled = errors.New("killed")

// Wait blocks until the command and everything it started are gone. The error
// is as Run's. It may be called any number of times, from anywhere.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Kill ends the command: SIGTERM to all of it, and SIGKILL after a grace period
// of two seconds. It does not wait. Wait then returns how the command ended
// and no error.
func (p *Process) Kill() { p.cancel(errKilled) }

// pipes are the child's ends.
type pipes struct {
	once                  sync.Once
	stdin, stdout, stderr *os.File
}

func (p *pipes) close() {
	p.once.Do(func() {
		for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
			if f != nil {
				_ = f.Close()
			}
		}
	})
}

// start runs j beside the caller and returns once its command was reached.
func start(ctx context.Context, j job) (*Process, error) {
	p := &Process{done: make(chan struct{})}
	ends := &pipes{}
	fail := func(err error) (*Process, error) {
		ends.close()
		for _, c := range []io.Closer{p.Stdin, p.Stdout, p.Stderr} {
			if c != nil {
				_ = c.Close()
			}
		}
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fail(fmt.Errorf("sandbox: %w", err))
	}
	ends.stdin, p.Stdin = r, w
	if j.Output == nil {
		for _, end := range []struct {
			child  **os.File
			parent *io.ReadCloser
		}{{&ends.stdout, &p.Stdout}, {&ends.stderr, &p.Stderr}} {
			if r, w, err = os.Pipe(); err != nil {
				return fail(fmt.Errorf("sandbox: %w", err))
			}
			*end.child, *end.parent = w, r
		}
	}
	reached := make(chan struct{}, 1)
	j.pipes, j.reached = ends, reached
	ctx, p.cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(p.done)
		p.exit, p.err = run(ctx, j)
		ends.close()
		if errors.Is(p.err, context.Canceled) && errors.Is(context.Cause(ctx), errKilled) {
			p.err = nil
		}
		if j.after != nil {
			if err := j.after(); p.err == nil {
				p.err = err
			}
		}
		p.cancel(nil)
	}()
	select {
	case <-reached:
		return p, nil
	case <-p.done:
	}
	if len(reached) > 0 { // a short one
		return p, nil
	}
	err = p.err
	if err == nil {
		// What kept it from being reached stands on stderr.
		var head []byte
		if p.Stderr != nil {
			head = make([]byte, maxComplaint)
			n, _ := io.ReadFull(p.Stderr, head)
			head = head[:n]
		}
		err = fmt.Errorf("sandbox: the command was not reached: %s", bytes.TrimSpace(head))
	}
	return fail(err)
}
