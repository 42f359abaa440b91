package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	yamlparser "github.com/goccy/go-yaml/parser"

	"toritsugi/internal/document"
	"toritsugi/internal/i18n"
	"toritsugi/internal/spelling"
)

// file reads the values of the file.
func (p *parser) file(data []byte) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > maxFile {
		p.problem("config.too_large", p.name, maxFile>>10)
		return
	}
	if !utf8.Valid(data) {
		p.problem("config.encoding", p.name, invalidLine(data))
		return
	}
	// The parser's line numbers are wrong after a carriage return.
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	file, err := document.Parse(data, yamlparser.AllowDuplicateMapKey())
	if at := new(document.Error); errors.As(err, &at) {
		p.problem("config.syntax", p.name, at.Line, at.Why)
		return
	}
	first := true
	for _, doc := range file.Docs {
		if doc == nil || isNull(doc.Body) {
			continue
		}
		if _, ok := doc.Body.(*ast.CommentGroupNode); ok {
			continue
		}
		if _, ok := doc.Body.(*ast.DirectiveNode); ok {
			continue
		}
		if !first {
			p.problem("config.documents", p.name, lineOf(doc.Body, 1))
			return
		}
		first = false
		values, ok := pairs(doc.Body)
		if !ok {
			p.problem("config.top", p.name, lineOf(doc.Body, 1), found(doc.Body, false, false))
			continue
		}
		p.section(values, scope{schema: p.schema, target: p.target})
	}
}

// invalidLine returns the first line that is not UTF-8, or 0.
func invalidLine(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if !utf8.Valid(line) {
			return n
		}
	}
	return 0
}

// scope is where the keys of a mapping belong.
type scope struct {
	schema  *schema
	target  reflect.Value
	section string // path within schema
	shown   string // path before the schema's own, e.g. checks[0]
	item    bool   // of a list: origins are not kept by key
}

// section reads the keys of one mapping.
func (p *parser) section(values []*ast.MappingValueNode, sc scope) {
	seen := map[string]int{}
	for _, kv := range values {
		line := lineOf(kv.Key, 1)
		where := sc.show(join(sc.section, clean(keyText(kv.Key))))
		name, ok := p.key(kv, line, where, seen)
		if !ok {
			continue
		}
		path := join(sc.section, name)
		if strings.Contains(name, ".") {
			// Paths are dotted, keys never are.
			p.unknown(line, where, name, sc)
			continue
		}
		if _, ok := sc.schema.sections[path]; ok {
			sub, ok := pairs(kv.Value)
			if !ok && !isNull(kv.Value) {
				p.mismatch(line, where, "config.want.section", found(kv.Value, false, false), kv.Value)
				continue
			}
			next := sc
			next.section = path
			p.section(sub, next)
			continue
		}
		f, ok := sc.schema.byPath[path]
		if !ok {
			p.unknown(line, where, name, sc)
			continue
		}
		if p.field(f, kv.Value, line, where, sc) && !sc.item {
			p.config.meta.origins[path] = origin{line: line}
		}
	}
}

func (sc scope) show(path string) string {
	if sc.shown == "" {
		return path
	}
	return join(sc.shown, path)
}

// key returns the name of a pair, and false where there is a problem with it.
func (p *parser) key(kv *ast.MappingValueNode, line int, where string, seen map[string]int) (string, bool) {
	key, ok := kv.Key.(*ast.StringNode)
	if !ok {
		if special(kv.Key) || kv.Key.IsMergeKey() {
			p.problem("config.anchor", p.line(line), where)
		} else {
			p.problem("config.key_type", p.line(line), where, clean(keyText(kv.Key)))
		}
		return "", false
	}
	if first, ok := seen[key.Value]; ok {
		p.problem("config.duplicate", p.line(line), where, first)
		return "", false
	}
	seen[key.Value] = line
	return key.Value, true
}

// unknown reports a key that is not known, with the nearest that is.
func (p *parser) unknown(line int, where, name string, sc scope) {
	if strings.Contains(name, ".") {
		if spelling.Nearest(where, p.allPaths()) != "" {
			p.unknownProblem("config.dotted", p.line(line), where)
			return
		}
	}
	// Often the key is right and stands on the wrong level.
	best := ""
	for _, path := range p.allPaths() {
		if (path == name || strings.HasSuffix(path, "."+name)) && (best == "" || len(path) < len(best)) {
			best = path
		}
	}
	if best != "" {
		p.unknownProblem("config.unknown_near", p.line(line), where, best)
		return
	}
	siblings := sc.schema.children[sc.section]
	if near := spelling.Nearest(name, siblings); near != "" {
		p.unknownProblem("config.unknown_near", p.line(line), where, sc.show(join(sc.section, near)))
		return
	}
	p.unknownProblem("config.unknown", p.line(line), where, strings.Join(siblings, ", "))
}

func (p *parser) allPaths() []string {
	var all []string
	for _, f := range p.schema.fields {
		all = append(all, f.path)
	}
	for s := range p.schema.sections {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// mismatch reports a value of the wrong type.
func (p *parser) mismatch(line int, where, want string, is error, n ast.Node) {
	if special(n) {
		p.problem("config.anchor", p.line(lineOf(n, line)), where)
		return
	}
	p.problem("config.value", p.line(lineOf(n, line)), where, i18n.E(want), is)
}

// field sets one setting from its node and reports whether it could.
func (p *parser) field(f *field, n ast.Node, line int, where string, sc scope) bool {
	target := sc.target.FieldByIndex(f.index)
	switch f.kind {
	case kindList:
		return p.list(f, n, line, where, target)
	case kindMap:
		return p.mapping(f, n, line, where, target)
	case kindChecks:
		return readItems(p, n, line, where, target, false, p.check, func(c *Check) string { return c.Name })
	case kindServers:
		return readItems(p, n, line, where, target, true, p.server, func(s *MCPServer) string { return s.Name })
	case kindProjects:
		return readItems(p, n, line, where, target, false, p.project, func(t *ToolProject) string { return strings.ToLower(t.Project) })
	case kindRepositories:
		return readItems(p, n, line, where, target, false, p.chatRepository, func(r *ChatRepository) string { return r.Name })
	case kindRetention:
		return readItems(p, n, line, where, target, false, p.retentionRule, func(r *RetentionRule) string { return r.name() })
	}
	v, ok := p.scalar(f, n, line, where)
	if ok {
		target.Set(v)
	}
	return ok
}

// scalar reads one value of the field's type and checks its limits.
func (p *parser) scalar(f *field, n ast.Node, line int, where string) (reflect.Value, bool) {
	none := reflect.Value{}
	v, ok := fromNode(f.kind, n)
	if b, is := n.(*ast.BoolNode); is && slices.Contains(f.rules.enum, "true") {
		v, ok = reflect.ValueOf(strconv.FormatBool(b.Value)), true
	}
	if n, is := n.(*ast.IntegerNode); is && f.rules.named == "keepalive" {
		v, ok = reflect.ValueOf(fmt.Sprint(n.Value)), true
	}
	if !ok {
		p.mismatch(line, where, wants(f.kind), found(n, f.secret, f.kind == kindString || f.kind == kindList || f.kind == kindMap), n)
		return none, false
	}
	shown := found(n, f.secret || hasLogin(v), false)
	if v.Kind() == reflect.String && f.expand {
		text, unset, ok := expand(v.String(), p.getenv)
		if !ok {
			p.problem("config.expand_syntax", p.line(lineOf(n, line)), where, shown)
			return none, false
		}
		for _, name := range unset {
			p.warn("config.warn.unset", p.line(lineOf(n, line)), where, name)
		}
		v = reflect.ValueOf(text)
	}
	if want := f.rules.value(v); want != nil {
		p.problem("config.value", p.line(lineOf(n, line)), where, want, shown)
		return none, false
	}
	return v, true
}

// value returns what was expected where v breaks the rules, else nil.
func (r rules) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		return r.text(v.String())
	case reflect.Int:
		return r.number(float64(v.Int()))
	case reflect.Float64:
		return r.number(v.Float())
	}
	return nil
}

func (p *parser) list(f *field, n ast.Node, line int, where string, target reflect.Value) bool {
	if isNull(n) {
		return true
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		p.mismatch(line, where, "config.want.list", found(n, false, false), n)
		return false
	}
	all := make([]string, 0, len(seq.Values))
	for i, e := range seq.Values {
		if v, ok := p.scalar(f, e, lineOf(e, line), fmt.Sprintf("%s[%d]", where, i)); ok {
			all = append(all, v.String())
		}
	}
	target.Set(reflect.ValueOf(all))
	return true
}

func (p *parser) mapping(f *field, n ast.Node, line int, where string, target reflect.Value) bool {
	if isNull(n) {
		return true
	}
	values, ok := pairs(n)
	if !ok {
		p.mismatch(line, where, "config.want.map", found(n, false, false), n)
		return false
	}
	// The rules of a map are those of its names; its values are any text.
	free := *f
	free.rules = rules{}
	all, seen := map[string]string{}, map[string]int{}
	for _, kv := range values {
		at := lineOf(kv.Key, line)
		sub := join(where, clean(keyText(kv.Key)))
		name, ok := p.key(kv, at, sub, seen)
		if !ok {
			continue
		}
		if want := f.rules.text(name); want != nil {
			p.problem("config.value", p.line(at), sub, want, i18n.E("config.found.string", short(name)))
			continue
		}
		free.secret = secretName(name)
		if v, ok := p.scalar(&free, kv.Value, at, sub); ok {
			all[name] = v.String()
		}
	}
	target.Set(reflect.ValueOf(all))
	return true
}

// fromNode returns the node's value as the kind, strictly: "20" is no number
// and true is no text.
func fromNode(k kind, n ast.Node) (reflect.Value, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return reflect.ValueOf(n.Value), k == kindString || k == kindList || k == kindMap
	case *ast.LiteralNode:
		if n.Value == nil {
			return reflect.Value{}, false
		}
		return reflect.ValueOf(n.Value.Value), k == kindString || k == kindList || k == kindMap
	case *ast.BoolNode:
		return reflect.ValueOf(n.Value), k == kindBool
	case *ast.IntegerNode:
		var i int
		switch v := n.Value.(type) {
		case int64:
			i = int(v)
		case uint64:
			if v > math.MaxInt {
				return reflect.Value{}, false
			}
			i = int(v)
		default:
			return reflect.Value{}, false
		}
		if k == kindFloat {
			return reflect.ValueOf(float64(i)), true
		}
		return reflect.ValueOf(i), k == kindInt
	case *ast.FloatNode:
		return reflect.ValueOf(n.Value), k == kindFloat && !math.IsInf(n.Value, 0) && !math.IsNaN(n.Value)
	}
	return reflect.Value{}, false
}

func wants(k kind) string {
	return [...]string{"config.want.string", "config.want.int", "config.want.float", "config.want.bool", "config.want.string", "config.want.string", "config.want.list", "config.want.list", "config.want.list"}[k]
}

// found describes a node for an error. hide is for values that are never
// shown; text says that text was expected.
func found(n ast.Node, hide, text bool) error {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return i18n.E("config.found.nothing")
	case *ast.SequenceNode:
		return i18n.E("config.found.list")
	case *ast.MappingNode, *ast.MappingValueNode:
		return i18n.E("config.found.map")
	case *ast.StringNode:
		if hide {
			return i18n.E("config.found.secret")
		}
		return i18n.E("config.found.string", short(n.Value))
	case *ast.LiteralNode:
		if hide || n.Value == nil {
			return i18n.E("config.found.secret")
		}
		return i18n.E("config.found.string", short(n.Value.Value))
	}
	if hide {
		return i18n.E("config.found.secret")
	}
	value := ""
	if tk := n.GetToken(); tk != nil {
		value = clean(tk.Value)
	}
	if text {
		return i18n.E("config.found.bare", value)
	}
	return i18n.E("config.found.value", value)
}

// pairs returns the pairs of a mapping, and whether n is one.
func pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func isNull(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return n == nil || null
}

// special reports whether n is YAML that a configuration does without.
func special(n ast.Node) bool {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return true
	}
	return false
}

func keyText(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	if tk := k.GetToken(); tk != nil {
		return tk.Value
	}
	return "?"
}

// lineOf returns the line of a node, or other where the parser gives none.
func lineOf(n ast.Node, other int) int {
	if n == nil {
		return other
	}
	if tk := n.GetToken(); tk != nil && tk.Position != nil && tk.Position.Line > 0 {
		return tk.Position.Line
	}
	return other
}

// short quotes a text for an error, cut to a length that fits a line.
func short(s string) string {
	const limit = 60
	if r := []rune(s); len(r) > limit {
		return strconv.Quote(string(r[:limit])) + "…"
	}
	return strconv.Quote(s)
}

// clean keeps a name or a bare value on one line.
func clean(s string) string {
	if q := short(s); q != `"`+s+`"` {
		return q
	}
	return s
}
