package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// legacy is the newest version of the protocol that is agreed on by a
// handshake. Some servers never answer what newer clients ask first.
const legacy = "2025-11-25"

// transport is what a connection runs over.
type transport interface {
	sdk.Transport
	end(grace time.Duration) // ends it and waits until nothing of it is left
	abort()                  // makes everything that waits for it fail
	diagnosis() string       // how it ended, where it knows
	said() string            // the end of what it said besides the protocol
	fault() error            // why the connection is over, where the server ended it
	dead() bool              // the connection is over, or will be at once, whoever ended it
}

// connection is one to a server.
type connection struct {
	session   *sdk.ClientSession
	transport transport
	done      chan struct{} // closed when the connection is over
	err       error         // why, once it is; nil where the other side just went
	changed   chan struct{} // holds one note that the tools changed
}

// errNoAnswer is why a greeting failed that was not answered at all.
var errNoAnswer = errors.New("it did not answer the handshake")

// dial starts and greets a server, as older clients do or as newer ones. ctx
// bounds the greeting, to wait.
func (s *server) dial(ctx context.Context, older bool, wait time.Duration) (*connection, error) {
	c, err := s.openTransport(ctx)
	if err != nil {
		return nil, err
	}
	l := &connection{transport: c, done: make(chan struct{}), changed: make(chan struct{}, 1)}
	can := &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // no roots, no sampling
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: s.m.opts.Elicit == nil},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			if p, ok := c.(*pipes); ok {
				p.announced.Store(false)
			}
			select {
			case l.changed <- struct{}{}:
			default:
			}
		},
	}
	if s.m.opts.Elicit != nil {
		can.ElicitationHandler = s.elicit
		can.Capabilities.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
	}
	client := sdk.NewClient(implementation, can)
	opts := &sdk.ClientSessionOptions{}
	if older {
		opts.ProtocolVersion = legacy
	}
	// The SDK does not watch ctx everywhere; what it waits for can be made to fail.
	watched := context.AfterFunc(ctx, c.abort)
	l.session, err = connect(ctx, client, c, opts)
	if !watched() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		if f := c.fault(); f != nil {
			err = f
		}
		c.abort()
		if l.session != nil {
			_ = l.session.Close() // it failed already
		}
		c.end(s.m.opts.Grace)
		s.keep(c)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, noAnswerError{s.explain(fmt.Errorf("%w within %s", errNoAnswer, wait), c)}
		}
		if login := (*loginError)(nil); errors.As(err, &login) {
			return nil, login
		}
		return nil, s.explain(fmt.Errorf("the handshake failed: %w", err), c)
	}
	go func() {
		l.err = l.session.Wait()
		close(l.done)
	}()
	return l, nil
}

// noAnswerError is an explained errNoAnswer.
type noAnswerError struct{ error }

func (noAnswerError) Is(target error) bool { return target == errNoAnswer }

// connect turns whatever the SDK does with a stranger's bytes into an error.
func connect(ctx context.Context, client *sdk.Client, t sdk.Transport, opts *sdk.ClientSessionOptions) (cs *sdk.ClientSession, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it sent what cannot be read: %v", v)
		}
	}()
	return client.Connect(ctx, t, opts)
}

// openTransport starts what the connection to the server runs over.
func (s *server) openTransport(ctx context.Context) (transport, error) {
	o := s.m.opts
	if s.conf.URL != "" {
		return newWeb(s.conf, s.bearer, o.HTTP, o.MaxMessage, o.Handshake), nil
	}
	home, err := s.m.home(s.conf)
	if err != nil {
		return nil, err
	}
	p, err := o.Start(ctx, Command{Server: s.conf.Name, Argv: s.conf.Command, Env: environment(s.conf, home), Home: home})
	if err != nil {
		return nil, fmt.Errorf("it could not be started: %s", s.hide(err.Error()))
	}
	return newPipes(p, o.MaxMessage), nil
}

// close ends the connection, and waits until nothing of it is left.
func (l *connection) close(grace time.Duration) {
	l.transport.end(grace)
	l.transport.abort()
	_ = l.session.Close() // waits for what runs, all of which fails now
	<-l.done
}

// over reports whether the connection is over, or waits until it is where it
// is known to end.
func (l *connection) over(ctx context.Context) bool {
	if l.transport.dead() {
		select {
		case <-l.done:
		case <-ctx.Done():
		}
	}
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// dying reports whether nothing more comes of the connection.
func (l *connection) dying() bool {
	select {
	case <-l.done:
		return true
	default:
		return l.transport.dead()
	}
}

// why says why a connection is over.
func (l *connection) why() error {
	switch f := l.transport.fault(); {
	case f != nil:
		return f
	case l.err != nil:
		return fmt.Errorf("the connection broke: %w", l.err)
	}
	return errEnded
}

// tools lists what the server offers, each with what mask hides hidden. Those
// that cannot be offered are left out, and returned with the reason.
func (l *connection) tools(ctx context.Context, mask func(string) string) (all map[string]definition, leftOut []string, err error) {
	all = map[string]definition{}
	cursors := map[string]bool{}
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := list(ctx, l.session, params)
		if refusal := (*jsonrpc.Error)(nil); errors.As(err, &refusal) && refusal.Code == jsonrpc.CodeMethodNotFound {
			return all, nil, nil // it has resources or prompts only
		}
		if err != nil {
			return nil, nil, fmt.Errorf("it did not list its tools: %w", err)
		}
		for _, t := range page.Tools {
			if problem := unfit(t); problem != "" {
				leftOut = append(leftOut, problem)
				continue
			}
			if _, twice := all[t.Name]; twice {
				// The first one counts, as its order is the server's own.
				leftOut = append(leftOut, strconv.Quote(t.Name)+": another one has this name")
				continue
			}
			if len(all) == maxTools || len(leftOut) > maxTools {
				return nil, nil, fmt.Errorf("it lists more than %d tools", maxTools)
			}
			d, err := define(t, mask)
			if err != nil {
				return nil, nil, err
			}
			all[t.Name] = d
		}
		if page.NextCursor == "" {
			return all, leftOut, nil
		}
		if cursors[page.NextCursor] {
			return nil, nil, errors.New("its list of tools never ends: it repeats a page")
		}
		cursors[page.NextCursor] = true
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, nil, fmt.Errorf("its list of tools has more than %d pages", maxPages)
}

// unfit says why a tool cannot be offered, "" where it can.
func unfit(t *sdk.Tool) string {
	switch {
	case t == nil:
		return "an empty entry"
	case t.Name == "":
		return "a tool without a name: " + strconv.Quote(line(t.Description, 80))
	case len(t.Name) > maxName:
		return fmt.Sprintf("%q: its name is longer than %d bytes", line(t.Name, 80), maxName)
	case t.Name == instructionsName:
		return t.Name + ": what the server says of itself has this name"
	case line(t.Name, maxName) != t.Name:
		return strconv.QuoteToASCII(clip(t.Name, 200)) + ": its name has characters that cannot be shown"
	case t.Meta[taskOnly] == true:
		return strconv.Quote(t.Name) + ": it can only be called as a task, which is not supported"
	}
	return ""
}

func list(ctx context.Context, cs *sdk.ClientSession, params *sdk.ListToolsParams) (page *sdk.ListToolsResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it sent what cannot be read: %v", v)
		}
	}()
	page, err = cs.ListTools(ctx, params)
	if err == nil && page == nil {
		err = errors.New("its answer is empty")
	}
	return page, err
}
