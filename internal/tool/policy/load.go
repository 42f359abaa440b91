package policy

import (
	"cmp"
	_ "embed" // the default rules
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"toritsugi/internal/document"
	"toritsugi/internal/i18n"
)

// The bounds of a file of rules.
const (
	maxFile     = 1 << 20 // bytes
	maxRules    = 1000
	maxExamples = 100 // of one rule
)

// defaultJSON are the rules of default.yaml, which takes a hundred times as long
// to read.
//
//go:embed default.json
var defaultJSON []byte

// Default returns the rules that hold where none are given: builds, tests and
// work on the workspace's files are allowed, what is never needed is forbidden,
// and the rest asks. They are those of default.yaml, known to be sound: to try
// their examples costs more than all else at a start.
func Default() []Rule {
	var rules []Rule
	if err := json.Unmarshal(defaultJSON, &rules); err != nil {
		panic(fmt.Sprintf("default.json: %v", err)) // a test reads it
	}
	for i := range rules {
		rules[i].sound = true
	}
	return rules
}

// Parse reads a file of rules: a YAML list; name is what errors call the file.
// It fails with an *i18n.Error that says where and what to do. The examples
// are checked by New.
func Parse(name string, data []byte) ([]Rule, error) {
	switch {
	case len(data) > maxFile:
		return nil, i18n.E("policy.too_large", name, maxFile>>10)
	case !utf8.Valid(data):
		return nil, i18n.E("policy.syntax", name, 1, i18n.E("policy.not_utf8"))
	}
	file, err := document.Parse(data)
	if at := new(document.Error); errors.As(err, &at) {
		return nil, i18n.E("policy.syntax", name, at.Line, at.Why)
	}
	var rules []Rule
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.NullType {
			continue
		}
		list, ok := doc.Body.(*ast.SequenceNode)
		if !ok {
			return nil, i18n.E("policy.syntax", name, document.Line(doc.Body), i18n.E("policy.not_list"))
		}
		for _, node := range list.Values {
			if len(rules) == maxRules {
				return nil, i18n.E("policy.too_many", name, maxRules)
			}
			r, err := parseRule(name, node)
			if err != nil {
				return nil, err
			}
			rules = append(rules, r)
		}
	}
	return rules, nil
}

func parseRule(name string, node ast.Node) (Rule, error) {
	var y struct {
		Rule     `yaml:",inline"`
		Decision string `yaml:"decision"`
		Reason   any    `yaml:"reason"`
	}
	if node == nil || node.Type() == ast.NullType {
		return Rule{}, i18n.E("policy.syntax", name, 1, i18n.E("policy.empty_rule"))
	}
	at := document.Line(node)
	if err := yaml.NodeToValue(node, &y, yaml.Strict()); err != nil {
		why := document.Explain(err)
		return Rule{}, i18n.E("policy.syntax", name, max(at, why.Line), oneLine(fmt.Sprint(why.Why), maxText))
	}
	r := y.Rule
	r.File, r.Line = name, at
	d := slices.Index(decisions, y.Decision)
	if d < 0 {
		return r, r.wrong("decision", y.Decision, strings.Join(decisions, ", "))
	}
	r.Decision = Decision(d)
	switch v := y.Reason.(type) {
	case string:
		r.Reason = Reason{v, v}
	case map[string]any:
		r.Reason.English, _ = v["en"].(string)
		r.Reason.Japanese, _ = v["ja"].(string)
	}
	r.Reason.Japanese = cmp.Or(r.Reason.Japanese, r.Reason.English)
	return r, nil
}

// wrong is the error of a field of r.
func (r *Rule) wrong(field, value, expected string) error {
	return i18n.E("policy.field", r.File, r.Line, r.Name, field, oneLine(value, maxText), expected)
}

// opaques are the kinds that a rule may name.
var opaques = []string{"any", string(OpaqueName), string(OpaqueScript), string(OpaqueInput), string(OpaqueAlias), string(OpaqueLooks), string(OpaqueSyntax), string(OpaqueTooMuch)}

// check validates r and runs its examples.
func (r *Rule) check() error {
	switch {
	case r.Name == "" || r.Name == RuleNone || r.Name == RuleShell || len(r.Name) > 100 || strings.ContainsFunc(r.Name, func(c rune) bool { return c <= ' ' || c > '~' }):
		return r.wrong("name", r.Name, "a-z 0-9 -")
	case r.Decision < Allow || r.Decision > Forbid:
		return r.wrong("decision", "", strings.Join(decisions, ", "))
	case strings.TrimSpace(r.Reason.English) == "":
		return r.wrong("reason", r.Reason.English, "en, ja")
	case len(r.Match) == 0:
		return r.wrong("match", "", "1 … 100")
	case len(r.NotMatch) == 0:
		return r.wrong("not_match", "", "1 … 100")
	case len(r.Match)+len(r.NotMatch) > maxExamples:
		return r.wrong("match", "", "1 … 100")
	case r.empty():
		return r.wrong("programs", "", "programs, paths, writes, env, opaque, …")
	}
	for _, f := range []struct {
		name string
		list []Class
	}{{"program_from", r.From}, {"paths", r.Paths}, {"only_paths", r.OnlyPaths}, {"writes", r.Writes}, {"reads", r.Reads}} {
		for _, c := range f.list {
			if !slices.Contains(classes, c) {
				return r.wrong(f.name, string(c), classNames())
			}
		}
	}
	for _, o := range r.Opaque {
		if !slices.Contains(opaques, o) {
			return r.wrong("opaque", o, strings.Join(opaques, ", "))
		}
	}
	for _, f := range slices.Concat(r.Flags, r.NoFlags) {
		if len(f) < 2 || f[0] != '-' {
			return r.wrong("flags", f, "-x, --xyz")
		}
	}
	for _, a := range slices.Concat(r.Args, r.NoArgs) {
		if a == "" {
			return r.wrong("args", a, "a*b?")
		}
	}
	for _, p := range r.Programs {
		if p == "" || strings.Contains(p, "/") && (!path.IsAbs(p) || path.Clean(p) != p) {
			return r.wrong("programs", p, "name, /absolute/path")
		}
	}
	return r.examples()
}

func (r *Rule) empty() bool {
	return len(r.Programs)+len(r.From)+len(r.Words)+len(r.Flags)+len(r.Args)+len(r.Paths)+len(r.Writes)+len(r.Reads)+len(r.Env)+len(r.Config)+len(r.CodeFrom)+len(r.Opaque) == 0
}

func classNames() string {
	names := make([]string, len(classes))
	for i, c := range classes {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

// examplePlace is where the examples of rules would run.
var examplePlace = Place{Workspace: "/srv/project", Home: "/home/user"}

// examples checks that the rule does with its examples what they say.
func (r *Rule) examples() error {
	place := examplePlace.clean()
	best := func(script string) truth {
		t := no
		all := Commands(script, place)
		for i := range all {
			t = max(t, r.fits(&all[i], place))
		}
		return t
	}
	for _, e := range r.Match {
		if best(e) != yes {
			return i18n.E("policy.match", r.File, r.Line, r.Name, oneLine(e, maxText))
		}
	}
	for _, e := range r.NotMatch {
		if t := best(e); t == yes || t == maybe && r.Decision > Allow {
			return i18n.E("policy.not_match", r.File, r.Line, r.Name, oneLine(e, maxText))
		}
	}
	return nil
}
