package agent

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/config"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
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

// homesDir holds the homes of the servers of one run, below the directory of
// its workspace: they outlast a restart, and go with the workspace. No command of
// the model sees them, and no other run what a stranger had put there.
const homesDir = "servers"

// ServerOptions are what servers are started with. Everything stays the caller's.
type ServerOptions struct {
	Servers []Server
	BaseDir string       // where their tools are pinned
	Homes   string       // directory that gets their homes
	Spec    sandbox.Spec // as for commands; its variables and its cache are not for servers
	Shell   func(sandbox.Spec) (sandbox.Runner, error)
	Online  func(spec sandbox.Spec, hosts []string) (sandbox.Runner, error) // nil where that cannot be had
	Mask    func(string) string                                             // see mcp.Options
	Log     *slog.Logger
	Disk    *disk.FS
	Look    bool // pin nothing: a person only looks; see mcp.Options
}

// OpenServers starts servers; see mcp.Open. The caller closes the Manager.
func OpenServers(ctx context.Context, o ServerOptions) (*mcp.Manager, error) {
	servers := make([]mcp.Server, len(o.Servers))
	for i, s := range o.Servers {
		servers[i] = s.Server
	}
	return mcp.Open(ctx, servers, mcp.Options{Dir: filepath.Join(o.BaseDir, serversDir), Homes: o.Homes, Mask: o.Mask, Logger: o.Log, Disk: o.Disk, Look: o.Look, Start: o.start})
}

// start starts a program as commands of the model are, with the environment and
// the home that it is given; its own cache lies there as well, since what other
// commands left in theirs may be a stranger's. One that reaches the network does
// not start in the workspace: npx, python -m and their like would take what lies
// there, which a stranger or the model wrote, for the program, and give it the
// server's keys and the way out. What ends ctx later does not end the program:
// whoever asked for it ends it.
func (o ServerOptions) start(ctx context.Context, c mcp.Command) (*mcp.Process, error) {
	i := slices.IndexFunc(o.Servers, func(s Server) bool { return s.Name == c.Server })
	if i < 0 {
		return nil, fmt.Errorf("there is no server %q", c.Server)
	}
	of := o.Servers[i]
	spec := o.Spec
	spec.Env, spec.Cache = serverEnv(of, c.Env), c.Home
	runner, err := o.runner(spec, of.AllowHosts)
	if err != nil {
		return nil, err
	}
	cmd := sandbox.Command{Args: c.Argv, Dir: c.Dir}
	if len(of.AllowHosts) > 0 {
		if c.Dir != "" {
			return nil, i18n.E("agent.server_dir", of.Name, c.Dir)
		}
		cmd.Args = append([]string{"/bin/sh", "-c", `cd "$HOME" 2>/dev/null || cd /; exec "$@"`, "sh"}, c.Argv...)
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	began := context.AfterFunc(ctx, end)
	p, err := runner.Start(life, cmd)
	if !began() && err == nil {
		p.Kill()
		_, err = p.Wait()
		if err == nil {
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		end()
		_ = runner.Close()
		return nil, err
	}
	stop := func() error { p.Kill(); return nil }
	return &mcp.Process{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Terminate: stop, Kill: stop,
		Wait: func() error {
			defer end()
			exit, err := p.Wait()
			_ = runner.Close() // nothing of it is left
			if err == nil && exit.Code != 0 {
				err = fmt.Errorf("exit status %d", exit.Code)
			}
			return err
		}}, nil
}

// serverEnv is the environment of a server: what it is given, where programs
// are found in a sandbox being the sandbox's to say unless its settings do.
func serverEnv(of Server, given []string) map[string]string {
	env := map[string]string{}
	for _, kv := range given {
		k, v, _ := strings.Cut(kv, "=")
		if _, own := of.Env[k]; own || k != "PATH" {
			env[k] = v
		}
	}
	return env
}

// runner makes a runner that reaches hosts, and nothing where there are none.
func (o ServerOptions) runner(spec sandbox.Spec, hosts []string) (sandbox.Runner, error) {
	switch {
	case len(hosts) == 0:
		return o.Shell(spec)
	case o.Online == nil:
		return nil, i18n.E("agent.server_network", strings.Join(hosts, ", "))
	}
	runner, err := o.Online(spec, hosts)
	if isKey(err, "sandbox.no_allow_list") {
		return nil, i18n.E("agent.server_network", strings.Join(hosts, ", "))
	}
	return runner, err
}

// withServers returns our own tools and those of the servers. A server that
// does not come up is no error: its tools say so when they are called. Where the
// definitions take more than budget tokens those of servers are deferred.
func (r *run) withServers(ctx context.Context, limits tool.Limits, budget int, own []tool.Tool) ([]tool.Tool, error) {
	all := slices.Clone(own)
	if len(r.Servers) > 0 {
		var err error
		r.tools, err = OpenServers(ctx, ServerOptions{Servers: r.Servers, BaseDir: r.Store.BaseDir, Homes: filepath.Join(r.Store.WorkspaceDir(r.ledger.UUID()), homesDir),
			Spec: r.base, Shell: r.beside.noting(r.Shell), Online: r.onlineBeside(), Mask: r.Store.Redact, Log: r.log, Disk: r.Store.FS})
		if err != nil {
			return nil, err
		}
		for _, s := range r.tools.Status() {
			if s.Reason != "" {
				r.log.Warn(r.Reader.T("agent.server_down", s.Server, s.Reason), "stderr", s.Stderr)
			}
		}
		for _, d := range r.tools.Drift() {
			r.log.Warn(r.Reader.T("agent.server_drift", d.Server, d.Tool, strings.Join(d.What, ", ")))
		}
		all = append(all, r.tools.Tools()...)
	}
	r.warnOfRules(all)
	if len(r.Servers) == 0 {
		return all, nil
	}
	var core []string
	for _, t := range own {
		core = append(core, t.Definition().Name)
	}
	return mcp.Defer(limits, budget, core, all, r.Access...)
}

// onlineBeside is Online, whose sandboxes are noted; nil where there is none.
func (r *run) onlineBeside() func(sandbox.Spec, []string) (sandbox.Runner, error) {
	if r.Online == nil {
		return nil
	}
	return func(spec sandbox.Spec, hosts []string) (sandbox.Runner, error) {
		return r.beside.noting(func(s sandbox.Spec) (sandbox.Runner, error) { return r.Online(s, hosts) })(spec)
	}
}

// warnOfRules names the rules about tools that no tool fits. Those about our
// own tools were looked at with the settings.
func (r *run) warnOfRules(all []tool.Tool) {
	known := config.ToolNames()
	for _, t := range all {
		known = append(known, t.Definition().Name)
	}
	for _, a := range r.Access {
		for _, p := range slices.Concat(a.Allow, a.Deny) {
			if !slices.ContainsFunc(known, func(name string) bool { return tool.Matches(p, name) }) {
				r.log.Warn(r.Reader.T("agent.tool_rule", a.Of, p))
			}
		}
	}
}

// restricted returns the registry without what the rules keep away. The tools
// that lead to deferred ones are not for rules that allow: the deferred ones are.
// Nor are those by which the model plans: they do nothing.
func (r *run) restricted(all *tool.Registry) (*tool.Registry, error) {
	rules := slices.Clone(r.Access)
	for i := range rules {
		for _, d := range all.Definitions() {
			if len(rules[i].Allow) > 0 && (d.Name == mcp.FindName || d.Name == mcp.CallName || planning.IsTool(d.Name)) {
				rules[i].Allow = append(slices.Clip(rules[i].Allow), d.Name)
			}
		}
	}
	return all.Restrict(rules...)
}

// rest ends the servers, which could change the tree under the commit and the
// checks.
func (r *run) rest() {
	if r.tools != nil {
		r.tools.Suspend()
	}
}

// serversRestarted tells the model what it cannot know.
const serversRestarted = "\nThe MCP servers were ended before the checks and are started anew: what they kept in memory only is gone.\n"

// wake starts the servers again for a model that goes on, and returns what it is
// told of that.
func (r *run) wake(ctx context.Context) string {
	if r.tools == nil {
		return ""
	}
	r.tools.Resume(ctx)
	return serversRestarted
}
