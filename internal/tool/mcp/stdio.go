package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what a server may send over its standard output, besides
// Options.MaxMessage.
const (
	maxNoise   = 8 << 20         // bytes of lines that are no messages, in the life of a connection
	maxAsked   = 32              // requests of a server that it has not read the answers to
	drainGrace = 1 * time.Second // for what a server said before it ended
)

// pipes carries a connection over the standard files of a process. It stands
// for the transports of the SDK because those end a connection at the first
// line of log that a server prints there, wait without end for a server that
// does not read, and queue notifications without bound.
type pipes struct {
	proc *Process
	max  int

	in     *bufio.Reader
	queue  chan outgoing
	closed chan struct{}
	once   sync.Once
	exited chan struct{} // closed when the process has ended
	exit   error         // how, once it has
	stderr tail
	ready  chan struct{} // closed when stderr ended

	batch     []json.RawMessage // read, not yet delivered
	noise     int
	broken    atomic.Bool // the server has ended the connection: it is over, or will be at once
	wrong     error       // what the server did wrong, if anything; set before broken
	asked     atomic.Int32
	announced atomic.Bool // a change of the tools was passed on, and not yet noted
}

type outgoing struct {
	data []byte
	done chan error // takes one without blocking
}

func newPipes(p *Process, maxMessage int) *pipes {
	c := &pipes{
		proc: p, max: maxMessage, in: bufio.NewReaderSize(p.Stdout, 64<<10),
		queue: make(chan outgoing), closed: make(chan struct{}), exited: make(chan struct{}), ready: make(chan struct{}),
	}
	go c.write()
	go func() {
		defer close(c.ready)
		if p.Stderr != nil {
			_, _ = io.Copy(&c.stderr, p.Stderr) // its end is the end of what there is to keep
		}
	}()
	go func() {
		c.exit = p.Wait()
		close(c.exited)
		// What it said last is read, unless somebody else holds the pipes open.
		if !within(drainGrace, c.closed) {
			c.breakOff(io.EOF)
		}
	}()
	return c
}

// Connect implements the SDK's Transport.
func (c *pipes) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID implements the SDK's Connection.
func (c *pipes) SessionID() string { return "" }

// Close closes both pipes; it does not wait for the process.
func (c *pipes) Close() error {
	c.once.Do(c.close)
	return nil
}

// end ends the process, and waits until nothing of it is left.
func (c *pipes) end(grace time.Duration) {
	shut(c.proc, c.exited, grace)
	_ = c.Close()
	if c.proc.Stderr != nil {
		within(drainGrace, c.ready)
		_ = c.proc.Stderr.Close()
	}
	<-c.ready
}

// abort makes everything that waits for the connection fail.
func (c *pipes) abort() { _ = c.Close() }

// diagnosis says how the process ended; "" where it has not. A process whose
// connection broke is given a moment to end, and its last words to arrive.
func (c *pipes) diagnosis() string {
	wait := time.Duration(0)
	if c.broken.Load() {
		wait = drainGrace
	}
	end := time.Now().Add(wait)
	if !within(wait, c.exited) {
		return ""
	}
	within(time.Until(end), c.ready)
	if c.exit != nil {
		return c.exit.Error()
	}
	return "exit status 0"
}

func (c *pipes) said() string { return c.stderr.String() }

func (c *pipes) dead() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (c *pipes) fault() error {
	switch {
	case !c.broken.Load():
		return nil
	case c.wrong == nil:
		return errEnded
	}
	return c.wrong
}

var errEnded = errors.New("it ended")

// Write queues a message and waits until the server took it, ctx ended or the
// connection is closed. A message that ctx overtook is still written whole:
// the next one must begin on a line of its own.
func (c *pipes) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	if _, answer := msg.(*jsonrpc.Response); answer {
		defer c.asked.Add(-1)
	}
	o := outgoing{data: append(data, '\n'), done: make(chan error, 1)}
	select {
	case c.queue <- o:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

func (c *pipes) write() {
	for {
		select {
		case o := <-c.queue:
			_, err := c.proc.Stdin.Write(o.data)
			if err != nil {
				c.breakOff(io.EOF) // it has ended, or does not read any more
			}
			o.done <- err
		case <-c.closed:
			return
		}
	}
}

// Read returns the next message that the SDK is to see. Where it fails the
// connection is over, and nothing waits for a write any more.
func (c *pipes) Read(context.Context) (jsonrpc.Message, error) {
	msg, err := c.read()
	if err != nil {
		c.breakOff(err)
	}
	return msg, err
}

// breakOff closes the connection because of the server.
func (c *pipes) breakOff(err error) {
	select {
	case <-c.closed: // we closed it before, and this is what came of it
		return
	default:
	}
	c.once.Do(func() {
		if !errors.Is(err, io.EOF) {
			c.wrong = err
		}
		c.broken.Store(true)
		c.close()
	})
}

func (c *pipes) close() {
	close(c.closed)
	_, _ = c.proc.Stdin.Close(), c.proc.Stdout.Close() // nothing is lost that was not lost before
}

// read returns the next answer, request, or note that the tools changed, of
// which it passes on one at a time. It passes over other notifications and lines
// that are no messages, and fails on messages that are too large or broken.
func (c *pipes) read() (jsonrpc.Message, error) {
	for {
		raw, err := c.next()
		if err != nil {
			return nil, err
		}
		msg, err := decode(raw)
		if err != nil {
			return nil, fmt.Errorf("it sent a message that is not valid: %w", err)
		}
		req, ok := msg.(*jsonrpc.Request)
		switch {
		case !ok:
			if answer, ok := msg.(*jsonrpc.Response); ok {
				answer.Result = readable(answer.Result)
			}
			return msg, nil
		case req.IsCall():
			if c.asked.Add(1) > maxAsked {
				return nil, fmt.Errorf("it sent %d requests without reading the answers", maxAsked)
			}
			return msg, nil
		case req.Method == "notifications/tools/list_changed":
			if c.announced.CompareAndSwap(false, true) {
				return msg, nil
			}
		}
	}
}

// decode turns whatever a decoder does with a stranger's bytes into an error.
func decode(raw []byte) (msg jsonrpc.Message, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return jsonrpc.DecodeMessage(raw)
}

// next returns the next JSON object that claims to be a message.
func (c *pipes) next() (json.RawMessage, error) {
	for {
		if len(c.batch) > 0 {
			raw := c.batch[0]
			c.batch = c.batch[1:]
			return raw, nil
		}
		l, err := c.line()
		if err == nil {
			err = fewValues(l)
		}
		if err != nil {
			return nil, err
		}
		switch l = bytes.TrimSpace(l); {
		case len(l) == 0:
		case l[0] == '[' && json.Unmarshal(l, &c.batch) == nil: // of protocol 2025-03-26
		case l[0] == '{' && claims(l):
			return l, nil
		default:
			c.noise += len(l)
			if c.noise > maxNoise {
				return nil, fmt.Errorf("it printed more than %d MiB on its standard output that are no messages", maxNoise>>20)
			}
			_, _ = fmt.Fprintf(&c.stderr, "(stdout) %s\n", l[:min(len(l), 512)]) // a tail takes everything
		}
	}
}

// claims reports whether a line is meant as a message: a log of JSON lines is
// not, a message that was cut is.
func claims(l []byte) bool {
	var m struct {
		Version json.RawMessage `json:"jsonrpc"`
	}
	return json.Unmarshal(l, &m) != nil || m.Version != nil
}

// line returns the next line, which is the caller's.
func (c *pipes) line() ([]byte, error) {
	var long []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if len(long)+len(part) > c.max {
			return nil, fmt.Errorf("it sent a message of more than %d bytes", c.max)
		}
		if err == nil && long == nil {
			return bytes.Clone(part), nil // the SDK keeps parts of it
		}
		long = append(long, part...)
		switch {
		case err == nil:
			return long, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(long) > 0 && errors.Is(err, io.EOF):
			return long, nil // it ended without a line end
		default:
			return nil, io.EOF // however it ended
		}
	}
}
