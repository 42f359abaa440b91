package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/config"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/confined"
	"toritsugi/internal/tool/mcp"
)

// homesDir holds the homes of the servers of one run, below the directory of
// its workspace, but for those that a server's state names: they outlast a restart, and go with the workspace. No command of
// the model sees them, and no other run what a stranger had put there.
const homesDir = "servers"

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
		r.env.servers, err = confined.Open(ctx, confined.Options{Elicit: elicit, Servers: r.Tools.Servers, BaseDir: r.Store.BaseDir, Homes: filepath.Join(r.Store.WorkspaceDir(r.ledger.UUID()), homesDir),
			Spec: r.env.spec, Shell: r.env.side.recording(r.Sandbox.Shell), Network: r.env.network, Proxy: r.Sandbox.Proxy, Reader: r.Reader, Mask: r.Store.Redact, Learn: r.Masking.Learn, Log: r.log, Disk: r.Store.FS})
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
	if len(r.env.withheld) == 0 {
		return ""
	}
	var all []string
	for _, d := range r.env.withheld {
		all = append(all, fmt.Sprintf("%s (tori mcp accept %s %[1]s)", mcp.Name(d.Server, d.Tool), d.Server))
	}
	return "These tools of MCP servers are withheld: they are not what a person accepted. Do without them, and say so where the work needs one; the command beside it shows a person the change and accepts it.\n" + delivery.List(i18n.English, all)
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
			if len(rules[i].Allow) > 0 && (d.Name == mcp.FindName || d.Name == mcp.CallName || d.Name == submitName || planning.IsTool(d.Name)) {
				rules[i].Allow = append(slices.Clip(rules[i].Allow), d.Name)
			}
		}
	}
	return all.Restrict(rules...)
}

// stopServers ends the servers, which could change the tree under the commit and the
// checks.
func (r *run) stopServers() {
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
