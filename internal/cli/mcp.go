package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
	"toritsugi/internal/redact"
	"toritsugi/internal/tool/mcp"
)

type mcpCmd struct {
	List   mcpListCmd   `cmd:"" default:"withargs" help:"${mcp_list_help}"`
	Accept mcpAcceptCmd `cmd:"" help:"${mcp_accept_help}"`
}

// serversFlags say where servers of tools are started, and what is known of them.
type serversFlags struct {
	Repo             string `placeholder:"PATH" help:"${mcp_repo_help}"`
	AllowUnsandboxed bool   `help:"${allow_unsandboxed_help}"`
	place            `embed:""`
}

type mcpListCmd struct {
	serversFlags `embed:""`
	JSON         bool `name:"json" help:"${json_help}"`
}

// Run lists the servers and their tools: which are pinned, which differ.
func (l mcpListCmd) Run(c *console) error {
	return l.with(c, "", func(m *app.MCP) error {
		return ops.Servers(c.out, m.Status(), m.States(), l.options(c, l.JSON))
	})
}

type mcpAcceptCmd struct {
	Server       string `arg:"" placeholder:"SERVER" help:"${mcp_server_help}"`
	Tool         string `arg:"" optional:"" placeholder:"TOOL" help:"${mcp_tool_help}"`
	DryRun       bool   `help:"${mcp_dry_run_help}"`
	serversFlags `embed:""`
}

// Run shows how tools differ from what is pinned, and pins what they are now.
func (a mcpAcceptCmd) Run(c *console) error {
	return a.with(c, a.Server, func(m *app.MCP) error {
		s := m.Status()[0]
		if s.State != mcp.Ready {
			return i18n.E("mcpverbs.down", s.Server, c.sanitizer().String(s.Reason))
		}
		changed, err := a.changed(m.States())
		if err != nil {
			return usage(err)
		}
		for _, d := range changed {
			if err := ops.ToolChange(c.out, d, a.options(c, false)); err != nil {
				return err
			}
		}
		switch {
		case len(changed) == 0:
			c.say("mcpverbs.nothing", a.Server)
			return nil
		case a.DryRun:
			c.say("mcpverbs.dry", len(changed))
			return nil
		}
		if err := m.Accept(changed...); err != nil {
			return err
		}
		c.say("mcpverbs.accepted", len(changed), a.Server)
		return nil
	})
}

// changed are the tools that are asked for and differ from what is pinned.
func (a mcpAcceptCmd) changed(tools []mcp.ToolState) ([]mcp.Drift, error) {
	var all []mcp.Drift
	var names []string
	found := false
	for _, t := range tools {
		names = append(names, t.Tool)
		asked := a.Tool == t.Tool || a.Tool == t.Name
		found = found || asked
		switch {
		case asked && t.State == mcp.Gone:
			return nil, i18n.E("mcpverbs.gone", a.Server, t.Tool)
		case t.State != mcp.Drifted && t.State != mcp.New:
		case asked || a.Tool == "" && !t.Excluded:
			all = append(all, t.Drift)
		}
	}
	switch {
	case a.Tool == "" || found:
		return all, nil
	case len(names) == 0:
		return nil, i18n.E("mcpverbs.no_tools", a.Server, a.Tool)
	}
	slices.Sort(names)
	more := ""
	if len(names) > 20 {
		names, more = names[:20], ", …"
	}
	return nil, i18n.E("mcpverbs.no_tool", a.Server, a.Tool, app.Nearest(a.Tool, names), strings.Join(names, ", ")+more)
}

func (f serversFlags) options(c *console, json bool) ops.ServersOptions {
	return ops.ServersOptions{JSON: json, Lang: c.lang, Mask: c.sanitizer().String}
}

// with starts the servers for fn. Ctrl-C ends it.
func (f serversFlags) with(c *console, server string, fn func(*app.MCP) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := app.Env{Getenv: c.getenv, Environ: os.Environ(), Log: c.err, Lang: c.lang, Now: time.Now,
		Sanitizer: func(z *redact.Sanitizer) { c.redact = z },
		Notice:    func(key string, args ...any) { _, _ = fmt.Fprintln(c.err, c.lang.T(key, args...)) }}
	m, err := app.OpenMCP(ctx, env, app.MCPOptions{Config: f.Config, BaseDir: f.BaseDir, Repo: f.Repo, Server: server, AllowUnsandboxed: f.AllowUnsandboxed})
	var bad *app.ConfigError
	switch {
	case errors.As(err, &bad):
		return usage(bad.Err)
	case ctx.Err() != nil && err != nil:
		return &exitError{code: exitStopped}
	case err != nil:
		return err
	}
	defer m.Close()
	return fn(m)
}
