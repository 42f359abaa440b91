// Package confined starts the servers of tools that are programs in the sandbox, each with a
// home of its own, the files that it is installed as, and a way out to the hosts that its
// settings name and to no other.
package confined

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool/mcp"
)

// Server is a server of tools. One that is a program runs in the sandbox, where
// it reaches AllowHosts and nothing else.
type Server struct {
	mcp.Server
	AllowHosts []string
}

// PinsDir is where the definitions of servers' tools are pinned, below the
// base directory: what a server offers must not change between two runs unseen.
// The logins at servers lie there as well.
func PinsDir(base string) string { return filepath.Join(base, "mcp") }

// Options are what servers are started with. Everything stays the caller's.
type Options struct {
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

// Open starts servers; see mcp.Open. The caller closes the Manager.
func Open(ctx context.Context, o Options) (*mcp.Manager, error) {
	servers := make([]mcp.Server, len(o.Servers))
	for i, s := range o.Servers {
		servers[i] = s.Server
	}
	return mcp.Open(ctx, servers, mcp.Options{Dir: PinsDir(o.BaseDir), Homes: o.Homes, Mask: o.Mask, Learn: o.Learn, Elicit: o.Elicit, Logger: o.Log, Disk: o.Disk, Look: o.Look, Proxy: o.Proxy, Start: o.start})
}

// start starts a program as commands of the model are, with the environment and
// the home that it is given; its own cache lies there as well, since what other
// commands left in theirs may be a stranger's. It reads what it is installed as. One that has keys, a home that
// lasts or a way out does not start in the workspace: npx, python -m and their like
// would take what lies there, which a stranger or the model wrote, for the program,
// and give it all that. TORI_WORKSPACE tells where the
// workspace is. What ends ctx later does not end the program:
// whoever asked for it ends it.
func (o Options) start(ctx context.Context, c mcp.Command) (*mcp.Process, error) {
	i := slices.IndexFunc(o.Servers, func(s Server) bool { return s.Name == c.Server })
	if i < 0 {
		return nil, fmt.Errorf("there is no server %q", c.Server)
	}
	of := o.Servers[i]
	spec := o.Spec
	spec.Env, spec.Cache = serverEnv(of, c.Env), c.Home
	spec.Env["TORI_WORKSPACE"] = spec.Workspace
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
	cmd := sandbox.Command{Args: program.argv}
	if len(of.AllowHosts) > 0 || len(of.Env) > 0 || of.Home != "" {
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
func (o Options) runner(spec sandbox.Spec, of Server) (sandbox.Runner, error) {
	spec.Network = Online(o.Network, of.AllowHosts, "mcp_servers[].allow_hosts: "+of.Name, o.Log, o.Reader)
	runner, err := o.Shell(spec)
	if IsKey(err, "sandbox.no_allow_list") {
		return nil, i18n.E("agent.server_network", strings.Join(of.AllowHosts, ", "))
	}
	return runner, err
}

// Online is a way out that leads to hosts; each refusal is logged as it comes, with
// the setting that decides.
func Online(n sandbox.Network, hosts []string, setting string, log *slog.Logger, l i18n.Lang) sandbox.Network {
	n.AllowHosts = hosts
	n.Report = func(x sandbox.Refusal) {
		log.Warn(Refusal(l, x, setting))
	}
	return n
}

// Refusal tells what a command was refused, and the setting that decides.
func Refusal(l i18n.Lang, x sandbox.Refusal, setting string) string {
	return l.T("agent.refused_host", x.Address, l.Error(x.Reason), setting)
}

// IsKey reports an error that is told by the text of a key.
func IsKey(err error, key string) bool {
	var e *i18n.Error
	return errors.As(err, &e) && e.Key == key
}
