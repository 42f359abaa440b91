package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/config"
	"toritsugi/internal/delivery"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
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

// ServersDir is where the definitions of servers' tools are pinned, below the
// base directory: what a server offers must not change between two runs unseen.
// The logins at servers lie there as well.
func ServersDir(base string) string { return filepath.Join(base, "mcp") }

// homesDir holds the homes of the servers of one run, below the directory of
// its workspace, but for those that a server's state names: they outlast a restart, and go with the workspace. No command of
// the model sees them, and no other run what a stranger had put there.
const homesDir = "servers"

// ServerOptions are what servers are started with. Everything stays the caller's.
type ServerOptions struct {
	Servers []Server
	BaseDir string       // where their tools are pinned
	Homes   string       // directory that gets their homes
	Spec    sandbox.Spec // as for commands; its variables and its cache are not for servers
	Shell   func(sandbox.Spec) (sandbox.Runner, error)
	Network sandbox.Network                       // the way out of servers that have AllowHosts
	Proxy   func(*http.Request) (*url.URL, error) // of requests to servers at an address; nil for none
	Reader  i18n.Lang
	Mask    func(string) string // see mcp.Options
	Learn   func(...string)     // likewise
	Elicit  func(context.Context, mcp.Elicitation) (string, error)
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
	return mcp.Open(ctx, servers, mcp.Options{Dir: ServersDir(o.BaseDir), Homes: o.Homes, Mask: o.Mask, Learn: o.Learn, Elicit: o.Elicit, Logger: o.Log, Disk: o.Disk, Look: o.Look, Proxy: o.Proxy, Start: o.start})
}

// start starts a program as commands of the model are, with the environment and
// the home that it is given; its own cache lies there as well, since what other
// commands left in theirs may be a stranger's. It reads what it is installed as. One that reaches the network does
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
	path, given := of.Env["PATH"]
	if !given {
		path = os.Getenv("PATH")
	}
	program := findProgram(c.Argv, path)
	if program.dir != "" && !given {
		spec.Env["PATH"] = program.dir + ":" + sandbox.SystemPath
	}
	spec.ReadOnly = slices.Concat(spec.ReadOnly, program.own)
	if ours, err := filepath.Abs(o.BaseDir); err == nil && len(program.own) > 0 {
		spec.Hide = append(slices.Clone(spec.Hide), ours) // which its own directory may hold
	}
	runner, err := o.runner(spec, of)
	if err != nil {
		return nil, err
	}
	cmd := sandbox.Command{Args: program.argv, Dir: c.Dir}
	if len(of.AllowHosts) > 0 {
		if c.Dir != "" {
			return nil, i18n.E("agent.server_dir", of.Name, c.Dir)
		}
		cmd.Args = append([]string{"/bin/sh", "-c", `cd "$HOME" 2>/dev/null || cd /; exec "$@"`, "sh"}, program.argv...)
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
		if ctx.Err() != nil { // which ended it while it began
			err = context.Cause(ctx)
		}
		return nil, err
	}
	stop := func() error { p.Kill(); return nil }
	return &mcp.Process{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Terminate: stop, Kill: stop,
		Wait: func() error {
			defer end()
			exit, err := p.Wait()
			_ = runner.Close() // nothing of it is left
			if err == nil && exit.Code != 0 {
				err = fmt.Errorf("exit status %d%s", exit.Code, program.hint(exit.Code))
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

// runner makes a runner that reaches the hosts of a server, and nothing where there
// are none.
func (o ServerOptions) runner(spec sandbox.Spec, of Server) (sandbox.Runner, error) {
	spec.Network = online(o.Network, of.AllowHosts, "mcp_servers[].allow_hosts: "+of.Name, o.Log, o.Reader)
	runner, err := o.Shell(spec)
	if isKey(err, "sandbox.no_allow_list") {
		return nil, i18n.E("agent.server_network", strings.Join(of.AllowHosts, ", "))
	}
	return runner, err
}

// online is a way out that leads to hosts; each refusal is logged as it comes, with
// the setting that decides.
func online(n sandbox.Network, hosts []string, setting string, log *slog.Logger, l i18n.Lang) sandbox.Network {
	n.AllowHosts = hosts
	n.Report = func(x sandbox.Refusal) {
		log.Warn(refusal(l, x, setting))
	}
	return n
}

// refusal tells what a command was refused, and the setting that decides.
func refusal(l i18n.Lang, x sandbox.Refusal, setting string) string {
	return l.T("agent.refused_host", x.Address, l.Error(x.Reason), setting)
}

// withServers returns our own tools and those of the servers. A server that
// does not come up is no error: its tools say so when they are called. Where the
// definitions of these take more than budget tokens they are deferred.
func (r *run) withServers(ctx context.Context, limits tool.Limits, budget int, own []tool.Tool) ([]tool.Tool, error) {
	all := slices.Clone(own)
	if len(r.Tools.Servers) > 0 {
		var elicit func(context.Context, mcp.Elicitation) (string, error)
		if r.Dialogue.Asking != nil {
			elicit = r.talk.Elicit
		}
		var err error
		r.env.servers, err = OpenServers(ctx, ServerOptions{Elicit: elicit, Servers: r.Tools.Servers, BaseDir: r.Store.BaseDir, Homes: filepath.Join(r.Store.WorkspaceDir(r.ledger.UUID()), homesDir),
			Spec: r.env.spec, Shell: r.env.beside.noting(r.Sandbox.Shell), Network: r.env.network, Proxy: r.Sandbox.Proxy, Reader: r.Reader, Mask: r.Store.Redact, Learn: r.Masking.Learn, Log: r.log, Disk: r.Store.FS})
		if err != nil {
			return nil, err
		}
		for _, s := range r.env.servers.Status() {
			if s.Reason != "" {
				r.log.Warn(r.Reader.T("agent.server_down", s.Server, s.Reason), "stderr", s.Stderr)
			}
		}
		r.env.withheld = r.env.servers.Drift()
		for _, d := range r.env.withheld {
			r.log.Warn(r.Reader.T("agent.server_drift", d.Server, d.Tool, strings.Join(d.What, ", ")))
		}
		all = append(all, r.env.servers.Tools()...)
	}
	r.warnOfRules(all)
	if len(r.Tools.Servers) == 0 {
		return all, nil
	}
	var core []string
	for _, t := range own {
		core = append(core, t.Definition().Name)
	}
	all, err := mcp.Defer(limits, budget, core, all, r.Tools.Access...)
	return append(all, r.env.servers.Withheld()...), err
}

// withheldTold tells the model which tools are there and not for it; "" for none.
func (r *run) withheldTold() string {
	var b strings.Builder
	for i, d := range r.env.withheld {
		if i == delivery.MaxListed {
			fmt.Fprintf(&b, "- and %d more\n", len(r.env.withheld)-i)
			break
		}
		fmt.Fprintf(&b, "- %s (tori mcp accept %s %[1]s)\n", mcp.Name(d.Server, d.Tool), d.Server)
	}
	if b.Len() == 0 {
		return ""
	}
	return "These tools of MCP servers are withheld: they are not what a person accepted. Do without them, and say so where the work needs one; the command beside it shows a person the change and accepts it.\n" + b.String()
}

// withheldNotice is what people read of the same.
func (r *run) withheldNotice(l i18n.Lang) string {
	if len(r.env.withheld) == 0 {
		return ""
	}
	var all []string
	for _, d := range r.env.withheld {
		all = append(all, progress.Span("tori mcp accept "+d.Server+" "+mcp.Name(d.Server, d.Tool)))
	}
	return "\n" + l.T("agent.comment_withheld") + "\n" + delivery.List(l, all)
}

// warnOfRules names the rules about tools that no tool fits. Those about our
// own tools were looked at with the settings.
func (r *run) warnOfRules(all []tool.Tool) {
	known := config.ToolNames()
	for _, t := range all {
		known = append(known, t.Definition().Name)
	}
	for _, a := range r.Tools.Access {
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
	rules := slices.Clone(r.Tools.Access)
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
	if r.env.servers != nil {
		r.env.servers.Suspend()
	}
}

// serversRestarted tells the model what it cannot know.
const serversRestarted = "\nThe MCP servers were ended before the checks and are started anew: what they kept in memory only is gone.\n"

// wake starts the servers again for a model that goes on, and returns what it is
// told of that.
func (r *run) wake(ctx context.Context) string {
	if r.env.servers == nil {
		return ""
	}
	r.env.servers.Resume(ctx)
	return serversRestarted
}
