package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/tool"
)

// remote is a tool of a server as it is offered to a model.
type remote struct {
	server *server
	remote string // its name in the server's words
	name   string
	def    definition
}

var _ tool.Tool = (*remote)(nil)

// Tools returns the tools, sorted by name, to be put into a registry. They are
// those of Open, whatever the servers have changed since, so that a running
// conversation's tools stay as they are.
func (m *Manager) Tools() []tool.Tool {
	var out []tool.Tool
	for _, t := range m.tools {
		out = append(out, t)
	}
	return out
}

// freeze makes what is listed, and as it was pinned, the tools that Tools returns.
func (m *Manager) freeze() {
	var all []*remote
	for _, s := range m.servers {
		pinned, _ := m.pins.of(s.conf.Name)
		live, listed := s.listing()
		if !listed {
			live = pinned // it is not up; its tools say so when they are called
		}
		for name, d := range live {
			if p, known := pinned[name]; known && p.is(d) && s.allows(name) {
				all = append(all, &remote{server: s, remote: name, name: Name(s.conf.Name, name), def: d})
			}
		}
	}
	slices.SortFunc(all, func(a, b *remote) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		// Two marks that are equal: somebody tried for long. One is enough.
		return strings.Compare(a.server.conf.Name+"\x00"+a.remote, b.server.conf.Name+"\x00"+b.remote)
	})
	m.tools = slices.CompactFunc(all, func(a, b *remote) bool { return a.name == b.name })
}

// Definition implements tool.Tool. A tool whose name could not be kept tells it in
// its description.
func (t *remote) Definition() tool.Definition {
	about := t.def.Description
	if of := t.server.conf.Name; t.name != of+"__"+t.remote {
		about = strings.TrimSpace(fmt.Sprintf("%s (%s): %s", t.remote, of, about))
	}
	return tool.Definition{
		Name: t.name, Description: about, Schema: t.def.Schema,
		ReadOnly: t.def.Hints.ReadOnly && t.server.conf.TrustHints,
	}
}

// Call implements tool.Tool. It blocks for at most the server's Timeout and
// returns at once where ctx ends; the server is told.
func (t *remote) Call(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	s := t.server
	if t.def.Kind == instructions {
		return tool.Text(t.def.Description), nil
	}
	cctx, cancel := context.WithTimeout(ctx, s.conf.Timeout)
	defer cancel()
	l, problem := s.up(cctx)
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if problem != "" {
		return tool.Failf("The MCP server %s is not available: %s. Do without it, or try again later.", s.conf.Name, problem), nil
	}
	if problem := t.stands(); problem != "" {
		return tool.Failf("%s", problem), nil
	}
	res, note, err := s.whilePending(cctx, t.name, func() (tool.Result, error) { return t.ask(cctx, l, args) })
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if errors.As(err, new(*tool.WaitError)) {
		return tool.Result{}, err
	}
	if err != nil {
		res = s.failed(cctx, l, err)
	}
	res.Text += note
	return res, nil
}

// ask has the server do what a call is for.
func (t *remote) ask(ctx context.Context, l *connection, args json.RawMessage) (tool.Result, error) {
	s := t.server
	if t.def.Kind == resources {
		return s.readResource(ctx, l, args)
	}
	if t.def.Wrapped {
		var w map[string]json.RawMessage
		if err := json.Unmarshal(args, &w); err != nil {
			return tool.Failf("The arguments of %s cannot be read: %v.", t.name, err), nil
		}
		args = w[wrapped]
	}
	params := &sdk.CallToolParams{Name: t.remote, Arguments: args}
	res, err := l.session.CallTool(ctx, params)
	if err != nil {
		return tool.Result{}, err
	}
	return render(res), nil
}

// stands says why the tool cannot be called though its server is up.
func (t *remote) stands() string {
	live, _ := t.server.listing()
	switch d, ok := live[t.remote]; {
	case !ok:
		return fmt.Sprintf("The MCP server %s no longer has this tool. Do without it.", t.server.conf.Name)
	case !t.def.is(d):
		return fmt.Sprintf("The MCP server %s has changed this tool since this conversation began, and it is withheld. %s", t.server.conf.Name, acceptable(t.server.conf.Name, t.name))
	}
	return ""
}

// up returns the connection, or why there is none. It waits while one is being
// made, and for the first attempt after a server died; a stopped server is
// asked to be started, for later calls.
func (s *server) up(ctx context.Context) (*connection, string) {
	for {
		s.mu.Lock()
		state, l, reason, failures, turned := s.state, s.connection, s.reason, s.failures, s.turned
		s.mu.Unlock()
		switch {
		case state == Ready && !l.dying():
			return l, ""
		case state == Stopped:
			select {
			case s.wake <- struct{}{}:
			default:
			}
			return nil, reason
		case state == Closed, state == Suspended, state == Waiting && failures > 1, state == Starting && failures > 1:
			return nil, reason
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return nil, "it is not ready yet"
		}
	}
}

// notSent is the code of the SDK's own error for a request that HTTP did not
// carry to the server.
const notSent = -32005

// failed says to the model why there is no result.
func (s *server) failed(ctx context.Context, l *connection, err error) tool.Result {
	const unknown = "Whether the call had any effect is not known; look before you repeat it."
	var refusal *jsonrpc.Error
	var login *loginError
	switch {
	case errors.As(err, &login):
		return tool.Failf("The MCP server %s did not do it: %s. Do without it.", s.conf.Name, login)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return tool.Failf("The MCP server %s did not answer within %s, and the call was cancelled. %s", s.conf.Name, s.conf.Timeout, unknown)
	case errors.As(err, &refusal) && refusal.Code != notSent:
		return tool.Failf("The MCP server %s refused the call: %s (code %d).", s.conf.Name, plain(s.hide(refusal.Message), maxReason), refusal.Code)
	}
	if l.over(ctx) {
		return tool.Failf("The MCP server %s ended during the call: %s. %s", s.conf.Name, s.explain(l.why(), l.transport), unknown)
	}
	return tool.Failf("The call of the MCP server %s failed: %s. %s", s.conf.Name, s.explain(err, l.transport), unknown)
}
