package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"toritsugi/internal/i18n"
)

func (p *parser) checks(n ast.Node, line int, where string, target reflect.Value) bool {
	return readItems(p, n, line, where, target, false, p.check, func(c *Check) string { return c.Name })
}

func (p *parser) servers(n ast.Node, line int, where string, target reflect.Value) bool {
	return readItems(p, n, line, where, target, true, p.server, func(s *MCPServer) string { return s.Name })
}

func (p *parser) projects(n ast.Node, line int, where string, target reflect.Value) bool {
	return readItems(p, n, line, where, target, false, p.project, func(t *ToolProject) string { return strings.ToLower(t.Project) })
}

// readItems reads a list of sections, which have names of their own.
func readItems[T any](p *parser, n ast.Node, line int, where string, target reflect.Value, expand bool,
	one func(items *schema, n ast.Node, line int, shown string) (T, bool), name func(*T) string) bool {
	if isNull(n) {
		return true
	}
	if where == "setup" {
		if word, ok := fromNode(kindString, n); ok && word.String() == AutoSetup {
			target.Set(reflect.ValueOf([]Check{{Name: AutoSetup, Run: AutoSetup}}))
			return true
		}
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		p.mismatch(line, where, "config.want.list", found(n, false, false), n)
		return false
	}
	items := itemSchema(reflect.TypeFor[T](), expand)
	all, names := make([]T, 0, len(seq.Values)), map[string]string{}
	for i, e := range seq.Values {
		at, shown := lineOf(e, line), fmt.Sprintf("%s[%d]", where, i)
		c, ok := one(items, e, at, shown)
		if !ok {
			continue
		}
		if first, taken := names[name(&c)]; taken {
			p.problem("config.check_name", p.line(at), shown, short(name(&c)), first)
		}
		names[name(&c)] = shown
		all = append(all, c)
	}
	target.Set(reflect.ValueOf(all))
	return true
}

// itemSchema is the shape of an item of a list; variables are replaced in it with expand.
func itemSchema(t reflect.Type, expand bool) *schema {
	items := schemaOf(t)
	for _, f := range items.fields {
		f.expand = f.expand && expand
	}
	return items
}

// item reads one item of a list as a section, and reports whether it is one.
func (p *parser) item(items *schema, n ast.Node, line int, shown string, target reflect.Value) bool {
	values, ok := pairs(n)
	if !ok {
		p.mismatch(line, shown, "config.want.section", found(n, false, true), n)
		return false
	}
	p.section(values, scope{schema: items, target: target, shown: shown, item: true})
	return true
}

// server reads one item of mcp_servers.
func (p *parser) server(items *schema, n ast.Node, line int, shown string) (MCPServer, bool) {
	var s MCPServer
	before := len(p.problems)
	if !p.item(items, n, line, shown, reflect.ValueOf(&s).Elem()) {
		return s, false
	}
	if len(p.problems) > before {
		return s, false
	}
	switch {
	case s.Name == "":
		p.problem("config.value", p.line(line), shown+".mcp_server_name", i18n.E("config.want.nonempty"), i18n.E("config.found.nothing"))
	case (len(s.Command) > 0) == (s.URL != ""):
		p.problem("config.mcp_how", p.line(line), shown, short(s.Name))
	}
	return s, len(p.problems) == before
}

// project reads one item of tools.projects.
func (p *parser) project(items *schema, n ast.Node, line int, shown string) (ToolProject, bool) {
	var t ToolProject
	before := len(p.problems)
	if !p.item(items, n, line, shown, reflect.ValueOf(&t).Elem()) {
		return t, false
	}
	if t.Project == "" && len(p.problems) == before {
		p.problem("config.value", p.line(line), shown+".project", i18n.E("config.want.project"), i18n.E("config.found.nothing"))
	}
	return t, len(p.problems) == before
}

// check reads one item of checks.
func (p *parser) check(items *schema, n ast.Node, line int, shown string) (Check, bool) {
	var c Check
	before := len(p.problems)
	if values, ok := pairs(n); ok {
		p.section(values, scope{schema: items, target: reflect.ValueOf(&c).Elem(), shown: shown, item: true})
		if c.JUnit != "" && strings.HasPrefix(shown, "setup[") && len(p.problems) == before {
			p.problem("config.setup_junit", p.line(line), shown)
		}
		if c.Run == "" && len(p.problems) == before {
			p.problem("config.value", p.line(line), shown+".run", i18n.E("config.want.nonempty"), i18n.E("config.found.nothing"))
		}
	} else if _, ok := fromNode(kindString, n); ok {
		if v, ok := p.scalar(items.byPath["run"], n, line, shown); ok {
			c.Run = v.String()
		}
	} else {
		want := "config.want.check"
		if strings.HasPrefix(shown, "setup[") {
			want = "config.want.setup"
		}
		p.mismatch(line, shown, want, found(n, false, true), n)
	}
	if c.Name == "" {
		c.Name = strings.TrimSpace(c.Run)
	}
	return c, len(p.problems) == before
}
