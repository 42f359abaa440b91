package agent

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// Server is a server of tools. One that is a program runs in the sandbox, where
// it reaches AllowHosts and nothing else.
type Server struct {
	mcp.Server
	AllowHosts []string
}

// toolBudget is how many tokens the definitions of all tools may take in each
// request before those of servers are only found when they are asked for.
const toolBudget = 12_000

// serversDir is where the definitions of servers' tools are pinned, below the
// base directory: what a server offers must not change between two runs unseen.
const serversDir = "mcp"

// withServers returns our own tools and those of the servers. A server that
// does not come up is no error: its tools say so when they are called. Where the
// definitions take more than budget tokens those of servers are deferred.
func (r *run) withServers(ctx context.Context, limits tool.Limits, budget int, own []tool.Tool) ([]tool.Tool, error) {
	if len(r.Servers) == 0 {
		return own, nil
	}
	servers := make([]mcp.Server, len(r.Servers))
	for i, s := range r.Servers {
		servers[i] = s.Server
	}
	var err error
	r.tools, err = mcp.Open(ctx, servers, mcp.Options{Dir: filepath.Join(r.Store.BaseDir, serversDir), Logger: r.log, Disk: r.Store.FS,
		Start: func(_ context.Context, c mcp.Command) (*mcp.Process, error) { return r.startServer(ctx, c) }})
	if err != nil {
		return nil, err
	}
	for _, s := range r.tools.Status() {
		if s.Reason != "" {
			r.log.Warn(r.Reader.T("agent.server_down", s.Server, s.Reason), "stderr", s.Stderr)
		}
	}
	for _, d := range r.tools.Drift() {
		r.log.Warn(r.Reader.T("agent.server_drift", d.Server, d.Tool, strings.Join(d.What, ", "), filepath.Join(r.Store.BaseDir, serversDir, "pins.json")))
	}
	var core []string
	for _, t := range own {
		core = append(core, t.Definition().Name)
	}
	return mcp.Defer(limits, budget, core, append(slices.Clone(own), r.tools.Tools()...))
}

// startServer starts a program as commands of the model are, with the
// environment that its settings name; it ends with the run. One that reaches the
// network does not start in the workspace: npx, python -m and their like would
// take what lies there, which a stranger or the model wrote, for the program,
// and give it the server's keys and the way out.
func (r *run) startServer(ctx context.Context, c mcp.Command) (*mcp.Process, error) {
	spec, hosts := r.spec, []string(nil)
	for _, s := range r.Servers {
		if s.Name == c.Server {
			spec.Env, hosts = maps.Clone(s.Env), s.AllowHosts
		}
	}
	runner, err := r.runner(spec, hosts)
	if err != nil {
		return nil, err
	}
	if len(hosts) > 0 {
		c.Argv = append([]string{"/bin/sh", "-c", `cd "$HOME" 2>/dev/null || cd /; exec "$@"`, "sh"}, c.Argv...)
	}
	p, err := runner.Start(ctx, sandbox.Command{Args: c.Argv})
	if err != nil {
		return nil, err
	}
	end := func() error { p.Kill(); return nil }
	return &mcp.Process{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Terminate: end, Kill: end,
		Wait: func() error {
			exit, err := p.Wait()
			if err == nil && exit.Code != 0 {
				err = fmt.Errorf("exit status %d", exit.Code)
			}
			return err
		}}, nil
}

// runner makes a runner that reaches hosts, and nothing where there are none.
func (r *run) runner(spec sandbox.Spec, hosts []string) (sandbox.Runner, error) {
	switch {
	case len(hosts) == 0:
		return r.Shell(spec)
	case r.Online == nil:
		return nil, i18n.E("agent.server_network", strings.Join(hosts, ", "))
	}
	return r.Online(spec, hosts)
}
