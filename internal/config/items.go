package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"toritsugi/internal/i18n"
)

// readItems reads a list of sections, which have names of their own. lacks complains of what an item
// lacks whose keys are all right.
func readItems[T any](p *parser, n ast.Node, line int, where string, target reflect.Value, expand bool,
	lacks func(item *T, line int, shown string), name func(*T) string) bool {
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
		var c T
		before := len(p.problems)
		if p.item(items, e, at, shown, reflect.ValueOf(&c).Elem()); len(p.problems) == before {
			lacks(&c, at, shown)
		}
		if len(p.problems) > before {
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

// item reads one item of a list as a section; of checks and setup it may be the command alone.
func (p *parser) item(items *schema, n ast.Node, line int, shown string, target reflect.Value) {
	values, section := pairs(n)
	command, commands := items.byPath["run"]
	_, text := fromNode(kindString, n)
	switch {
	case section:
		p.section(values, scope{schema: items, target: target, shown: shown, item: true})
	case commands && text:
		if v, ok := p.scalar(command, n, line, shown); ok {
			target.FieldByIndex(command.index).Set(v)
		}
	case isSetup(shown):
		p.mismatch(line, shown, "config.want.setup", found(n, false, true), n)
	case commands:
		p.mismatch(line, shown, "config.want.check", found(n, false, true), n)
	default:
		p.mismatch(line, shown, "config.want.section", found(n, false, true), n)
	}
}

// server complains of what an item of mcp_servers lacks.
func (p *parser) server(s *MCPServer, line int, shown string) {
	switch {
	case s.Name == "":
		p.problem("config.value", p.line(line), shown+".mcp_server_name", i18n.E("config.want.nonempty"), i18n.E("config.found.nothing"))
	case (len(s.Command) > 0) == (s.URL != ""):
		p.problem("config.mcp_how", p.line(line), shown, short(s.Name))
	}
}

// project complains of what an item of tools.projects lacks.
func (p *parser) project(t *ToolProject, line int, shown string) {
	if t.Project == "" {
		p.problem("config.value", p.line(line), shown+".project", i18n.E("config.want.project"), i18n.E("config.found.nothing"))
	}
}

// check complains of what an item of checks or setup lacks; one without a name has that of its command.
func (p *parser) check(c *Check, line int, shown string) {
	switch {
	case c.JUnit != "" && isSetup(shown):
		p.problem("config.setup_junit", p.line(line), shown)
	case c.Run == "":
		p.problem("config.value", p.line(line), shown+".run", i18n.E("config.want.nonempty"), i18n.E("config.found.nothing"))
	}
	c.Name = cmp.Or(c.Name, strings.TrimSpace(c.Run))
}

// isSetup reports whether an item is one of setup.
func isSetup(shown string) bool { return strings.HasPrefix(shown, "setup[") }
