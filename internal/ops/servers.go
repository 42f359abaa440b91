package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"toritsugi/internal/i18n"
	"toritsugi/internal/tool/mcp"
)

// ServersOptions choose how servers of tools are shown.
type ServersOptions struct {
	JSON bool // one object per server and per tool
	Lang i18n.Lang
	Mask func(string) string // of what a server says
}

// Servers prints the servers and how their tools stand against what is pinned.
func Servers(w io.Writer, servers []mcp.Status, tools []mcp.ToolState, o ServersOptions) error {
	p := &printer{w: w}
	for _, s := range servers {
		if o.JSON {
			p.json(map[string]any{"type": "server", "server": s.Server, "state": s.State, "reason": o.Mask(s.Reason), "program": o.Mask(s.Program), "protocol": s.Protocol})
		} else {
			o.server(p, s)
		}
		for _, t := range tools {
			switch {
			case t.Server != s.Server:
			case o.JSON:
				p.json(o.tool(t))
			default:
				o.line(p, t)
			}
		}
	}
	if len(servers) == 0 && !o.JSON {
		p.printf("%s\n", o.Lang.T("mcpverbs.none"))
	}
	return p.err
}

func (o ServersOptions) server(p *printer, s mcp.Status) {
	if s.State != mcp.Ready {
		p.printf("%s: %s\n", clean(s.Server), o.Lang.T("mcpverbs.not_ready", clean(o.Mask(s.Reason))))
		return
	}
	p.printf("%s: %s\n", clean(s.Server), o.Lang.T("mcpverbs.ready", clean(o.Mask(s.Program)), s.Protocol))
}

func (o ServersOptions) line(p *printer, t mcp.ToolState) {
	what := ""
	if t.State == mcp.Drifted {
		what = " (" + strings.Join(t.Drift.What, ", ") + ")"
	}
	if t.Excluded {
		what += " " + o.Lang.T("mcpverbs.excluded")
	}
	p.printf("  %-8s %s  %s%s\n", t.State, clean(t.Tool), t.Name, what)
}

func (o ServersOptions) tool(t mcp.ToolState) map[string]any {
	m := map[string]any{"type": "tool", "server": t.Server, "tool": t.Tool, "name": t.Name, "state": t.State, "excluded": t.Excluded}
	if t.State == mcp.Drifted || t.State == mcp.New {
		m["changed"], m["old_hash"], m["new_hash"] = t.Drift.What, t.Drift.Old, t.Drift.New
		m["is"] = o.shown(t.Drift.Is)
	}
	if t.State == mcp.Drifted {
		m["was"] = o.shown(t.Drift.Was)
	}
	return m
}

func (o ServersOptions) shown(s mcp.Shown) map[string]any {
	var schema any
	if masked := o.Mask(string(s.Schema)); json.Valid([]byte(masked)) {
		schema = json.RawMessage(masked)
	} else if masked != "" {
		schema = masked
	}
	return map[string]any{"description": o.Mask(s.Description), "schema": schema, "hints": s.Hints}
}

// ToolChange prints how a tool differs from what is pinned, as a person reads it.
func ToolChange(w io.Writer, d mcp.Drift, o ServersOptions) error {
	p := &printer{w: w}
	p.printf("%s\n", o.Lang.T("mcpverbs.change", clean(d.Server), clean(d.Tool), strings.Join(d.What, ", ")))
	for _, part := range []struct{ name, was, is string }{
		{"description", d.Was.Description, d.Is.Description},
		{"schema", pretty(d.Was.Schema), pretty(d.Is.Schema)},
		{"hints", hints(d.Was), hints(d.Is)},
	} {
		diff, err := udiff.ToUnified("pinned "+part.name, "offered "+part.name, ended(part.was), udiff.Lines(ended(part.was), ended(part.is)), 3)
		if err != nil {
			return fmt.Errorf("compare the tool %s: %w", d.Tool, err)
		}
		for line := range strings.Lines(diff) {
			p.printf("  %s\n", o.Mask(strings.TrimSuffix(line, "\n")))
		}
	}
	return p.err
}

// hints are a definition's, as lines; none of a tool that is not pinned.
func hints(s mcp.Shown) string {
	if s.Schema == nil {
		return ""
	}
	return fmt.Sprintf("read only: %t\nidempotent: %t\ndestructive: %t", s.Hints.ReadOnly, s.Hints.Idempotent, s.Hints.Destructive)
}

// ended is a text whose last line ends.
func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

func pretty(schema json.RawMessage) string {
	var b bytes.Buffer
	if len(schema) == 0 || json.Indent(&b, schema, "", "  ") != nil {
		return string(schema)
	}
	return b.String()
}
