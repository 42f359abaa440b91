package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/spelling"
	"toritsugi/internal/tool/confined"
	"toritsugi/internal/tool/mcp"
	"toritsugi/internal/workspace"
)

// MCPOptions are what tori mcp is asked for.
type MCPOptions struct {
	Config, BaseDir  string
	Repo             string // whose files the servers see, as a run's do; "" for none
	Server           string // the only one that is started; "" for all
	AllowUnsandboxed bool
}

// MCP are the servers of tools of the settings, for a person who looks at what
// they offer. Nothing is pinned but what is accepted.
type MCP struct {
	*mcp.Manager
	system *system
	dir    string // of the time being
}

// OpenMCP starts the servers in a workspace that is thrown away by Close. It
// fails on a server that is not in the settings; one that does not come up is
// told by Status.
func OpenMCP(ctx context.Context, env Env, o MCPOptions) (m *MCP, err error) {
	m, err = settled(env, o)
	if err != nil {
		return nil, err
	}
	s := m.system
	all, err := chosen(servers(s.cfg), o.Server)
	if err != nil {
		return nil, &ConfigError{err}
	}
	if m.dir, err = os.MkdirTemp("", "tori-mcp-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(m.dir)
		}
	}()
	opts := confined.Options{Servers: all, BaseDir: s.house(), Homes: filepath.Join(m.dir, "servers"), Mask: s.redact.String, Learn: s.redact.Learn, Log: s.log, Disk: s.fs, Look: true, Proxy: requestProxy(env.Getenv)}
	if slices.ContainsFunc(all, func(a confined.Server) bool { return a.URL == "" }) {
		if opts.Shell, err = s.shell(ctx); err != nil {
			return nil, &ConfigError{err}
		}
		opts.Network, opts.Reader = s.network(), env.Lang
		if opts.Network.CAFile, err = sandbox.Certificates(filepath.Join(m.dir, "certificates.pem"), s.cfg.Sandbox.CAFile); err != nil {
			return nil, &ConfigError{err}
		}
		if opts.Spec, err = m.spec(ctx, o.Repo, opts.Shell); err != nil {
			return nil, &ConfigError{err}
		}
	}
	m.Manager, err = confined.Open(ctx, opts)
	return m, err
}

// settled is an MCP by the settings, without servers.
func settled(env Env, o MCPOptions) (m *MCP, err error) {
	s := &system{env: env, fs: &disk.FS{}, opt: RunOptions{Config: o.Config, BaseDir: o.BaseDir, AllowUnsandboxed: o.AllowUnsandboxed, Quiet: true}}
	if err := s.settle(); err != nil {
		return nil, err
	}
	m = &MCP{system: s}
	if s.opt.BaseDir, err = s.base(); err != nil {
		return nil, &ConfigError{err}
	}
	return m, nil
}

// LoginMCP has a person log in at the server of o, and returns how many tools it
// lists; see mcp.Login. Of l it sets what the settings say.
func LoginMCP(ctx context.Context, env Env, o MCPOptions, l mcp.LoginOptions) (tools int, err error) {
	m, err := settled(env, o)
	if err != nil {
		return 0, err
	}
	all, err := chosen(servers(m.system.cfg), o.Server)
	if err != nil {
		return 0, &ConfigError{err}
	}
	l.Dir, l.Learn, l.Disk, l.Lang, l.Proxy = confined.PinsDir(m.system.house()), m.system.redact.Learn, m.system.fs, env.Lang, requestProxy(env.Getenv)
	if tools, err = mcp.Login(ctx, all[0].Server, l); err == nil {
		m.system.audit("login_server", "", o.Server)
	}
	return tools, err
}

// LogoutMCP removes the login at the server of o, which need not be in the
// settings any more, and reports whether there was one.
func LogoutMCP(env Env, o MCPOptions) (bool, error) {
	m, err := settled(env, o)
	if err != nil {
		return false, err
	}
	was, err := mcp.Logout(m.system.fs, confined.PinsDir(m.system.house()), o.Server)
	if was {
		m.system.audit("logout_server", "", o.Server)
	}
	return was, err
}

// chosen is the one server of that name, or all.
func chosen(all []confined.Server, name string) ([]confined.Server, error) {
	if name == "" {
		return all, nil
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	i := slices.Index(names, name)
	switch {
	case i >= 0:
		return all[i : i+1], nil
	case len(all) == 0:
		return nil, i18n.E("mcpverbs.no_servers", name)
	}
	return nil, i18n.E("mcpverbs.no_server", name, Nearest(name, names), strings.Join(names, ", "))
}

// Nearest is the one of names that is most like a name.
func Nearest(name string, names []string) string {
	name = name[:min(len(name), 100)]
	return slices.MinFunc(names, func(a, b string) int {
		return spelling.Distance(name, a[:min(len(a), 300)]) - spelling.Distance(name, b[:min(len(b), 300)])
	})
}

// spec is what the servers see: a clone of a repository, or nothing.
func (m *MCP) spec(ctx context.Context, repo string, shell func(sandbox.Spec) (sandbox.Runner, error)) (sandbox.Spec, error) {
	cfg := m.system.cfg.Sandbox
	spec := sandbox.Spec{Workspace: filepath.Join(m.dir, "tree"), Scratch: filepath.Join(m.dir, "scratch"), ReadOnly: slices.Clone(cfg.ReadOnlyPaths), MemoryMB: cfg.MemoryMB}
	if cfg.CAFile != "" {
		spec.ReadOnly = append(spec.ReadOnly, filepath.Join(m.dir, "certificates.pem"))
	}
	if repo == "" {
		return spec, os.Mkdir(spec.Workspace, 0o700)
	}
	src, err := workspace.Inspect(ctx, repo, workspace.InspectOptions{NoStatus: true})
	if err != nil {
		return spec, err
	}
	ws, err := workspace.Create(ctx, workspace.CreateOptions{Box: workspace.Box{Shell: shell, MemoryMB: cfg.MemoryMB}, Source: src, Dir: filepath.Join(m.dir, "clone"), Branch: "tori/mcp"})
	if err != nil {
		return spec, err
	}
	spec.Workspace, spec.GitDir = ws.Tree(), ws.GitDir()
	return spec, ws.Close()
}

// Accept pins what a person has agreed to, and puts on record who did.
func (m *MCP) Accept(drift ...mcp.Drift) error {
	if err := m.Manager.Accept(drift...); err != nil {
		return err
	}
	for _, d := range drift {
		m.system.audit("accept_tool", "", d.Server+"/"+d.Tool+" "+d.New)
	}
	return nil
}

// Close ends the servers and removes what they left.
func (m *MCP) Close() {
	m.Manager.Close()
	if err := os.RemoveAll(m.dir); err != nil {
		m.system.log.Warn("Not removed: " + err.Error())
	}
}
