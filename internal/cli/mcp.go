package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
	"toritsugi/internal/tool/mcp"
)

type mcpCmd struct {
	List   mcpListCmd   `cmd:"" default:"withargs" help:"${mcp_list_help}"`
	Accept mcpAcceptCmd `cmd:"" help:"${mcp_accept_help}"`
	Prompt mcpPromptCmd `cmd:"" help:"${mcp_prompt_help}"`
	Login  mcpLoginCmd  `cmd:"" help:"${mcp_login_help}"`
	Logout mcpLogoutCmd `cmd:"" help:"${mcp_logout_help}"`
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

// Run lists the servers and their tools: which are pinned, which differ. It fails
// where a server is not ready.
func (l mcpListCmd) Run(c *console) error {
	return l.with(c, "", func(_ context.Context, m *app.MCP) error {
		all := m.Status()
		if err := ops.Servers(c.out, all, m.States(), l.options(c, l.JSON)); err != nil {
			return err
		}
		var down []string
		for _, s := range all {
			if s.State != mcp.Ready {
				down = append(down, s.Server)
			}
		}
		if len(down) > 0 {
			return i18n.E("mcpverbs.some_down", strings.Join(down, ", "))
		}
		return nil
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
	return a.with(c, a.Server, func(_ context.Context, m *app.MCP) error {
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

type mcpPromptCmd struct {
	Server       string            `arg:"" placeholder:"SERVER" help:"${mcp_server_help}"`
	Prompt       string            `arg:"" optional:"" placeholder:"PROMPT" help:"${mcp_prompt_name_help}"`
	Arguments    map[string]string `arg:"" optional:"" placeholder:"NAME=VALUE" help:"${mcp_prompt_args_help}"`
	serversFlags `embed:""`
}

// Run lists the prompts of a server, or prints one, filled in.
func (p mcpPromptCmd) Run(c *console) error {
	return p.with(c, p.Server, func(ctx context.Context, m *app.MCP) error {
		if p.Prompt != "" {
			text, err := m.Prompt(ctx, p.Server, p.Prompt, p.Arguments)
			if err == nil {
				_, err = fmt.Fprintln(c.out, c.sanitizer().String(text))
			}
			return err
		}
		all, err := m.Prompts(ctx, p.Server)
		if err == nil && len(all) == 0 {
			c.say("mcpverbs.no_prompts", p.Server)
		}
		for _, q := range all {
			_, _ = fmt.Fprintln(c.out, c.sanitizer().String(q.String()))
		}
		return err
	})
}

func (f serversFlags) options(c *console, json bool) ops.ServersOptions {
	return ops.ServersOptions{JSON: json, Lang: c.lang, Mask: c.sanitizer().String}
}

// with starts the servers for fn. Ctrl-C ends it.
func (f serversFlags) with(c *console, server string, fn func(context.Context, *app.MCP) error) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		m, err := app.OpenMCP(ctx, env, app.MCPOptions{Config: f.Config, BaseDir: f.BaseDir, Repo: f.Repo, Server: server, AllowUnsandboxed: f.AllowUnsandboxed})
		if err != nil {
			return err
		}
		defer m.Close()
		return fn(ctx, m)
	})
}

type mcpLoginCmd struct {
	Server    string   `arg:"" placeholder:"SERVER" help:"${mcp_server_help}"`
	Scope     []string `sep:"none" placeholder:"SCOPE" help:"${mcp_scope_help}"`
	NoBrowser bool     `help:"${mcp_browser_help}"`
	place     `embed:""`
}

// maxLogin is how long a person has to log in.
const maxLogin = 15 * time.Minute

// Run has the person log in at a server. Ctrl-C ends it.
func (l mcpLoginCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error { return l.login(ctx, c, env) })
}

func (l mcpLoginCmd) login(ctx context.Context, c *console, env app.Env) error {
	timed, cancel := context.WithTimeoutCause(ctx, maxLogin, i18n.E("mcpverbs.login_late", maxLogin))
	defer cancel()
	var scopes []string
	for _, s := range l.Scope {
		scopes = append(scopes, strings.Fields(s)...)
	}
	pasted := make(chan string)
	tools, err := app.LoginMCP(timed, env, app.MCPOptions{Config: l.Config, BaseDir: l.BaseDir, Server: l.Server}, mcp.LoginOptions{
		Scopes: scopes, Pasted: pasted,
		Strange: func() { c.say("mcpverbs.strange") },
		Show: func(address string) {
			c.say("mcpverbs.open", address)
			if l.NoBrowser || !browse(c.getenv, address) {
				c.say("mcpverbs.paste")
			}
			go lines(timed, os.Stdin, pasted)
		},
	})
	if err == nil {
		c.say("mcpverbs.logged_in", l.Server, tools)
	}
	return err
}

// lines sends the lines of r, which are short, until ctx ends. It closes to at
// their end.
func lines(ctx context.Context, r io.Reader, to chan<- string) {
	defer close(to)
	for in := bufio.NewScanner(r); in.Scan(); {
		select {
		case to <- in.Text():
		case <-ctx.Done():
			return
		}
	}
}

// browse opens an address in the browser of whoever sits at this machine; false
// where there is none.
func browse(getenv func(string) string, address string) bool {
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "":
		return false
	}
	cmd := exec.Command(name, address) //nolint:noctx // it outlives the login
	if cmd.Start() != nil {
		return false
	}
	go func() { _ = cmd.Wait() }()
	return true
}

type mcpLogoutCmd struct {
	Server string `arg:"" placeholder:"SERVER" help:"${mcp_server_help}"`
	place  `embed:""`
}

// Run removes the login at a server.
func (l mcpLogoutCmd) Run(c *console) error {
	return c.untilInterrupted(func(_ context.Context, env app.Env) error {
		was, err := app.LogoutMCP(env, app.MCPOptions{Config: l.Config, BaseDir: l.BaseDir, Server: l.Server})
		if err == nil && !was {
			err = i18n.E("mcpverbs.no_login", l.Server)
		}
		if err == nil {
			c.say("mcpverbs.logged_out", l.Server)
		}
		return err
	})
}
