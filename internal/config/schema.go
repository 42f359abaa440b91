package config

import (
	"reflect"
	"strings"
)

// kind is the type of a setting.
type kind int

const (
	kindString kind = iota
	kindInt
	kindFloat
	kindBool
	kindList
	kindMap
	kindChecks
	kindServers
	kindProjects
	kindRepositories
	kindRetention
)

func (k kind) scalar() bool { return k <= kindBool }

// field is one setting as the tags of Config describe it.
type field struct {
	path   string
	index  []int // for reflect.Value.FieldByIndex
	kind   kind
	def    string
	seed   string // the seeds' own variable
	secret bool
	expand bool
	rules  rules
	doc    string
}

// env is the variable of our own that sets the field.
func (f *field) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.path, ".", "_"))
}

func (f *field) envNames() []string {
	switch {
	case !f.kind.scalar():
		return nil
	case f.seed != "":
		return []string{f.env(), f.seed}
	}
	return []string{f.env()}
}

func (f *field) defaultYAML() string {
	switch {
	case f.kind == kindMap:
		return "{}"
	case f.kind == kindList && f.def != "":
		return "[" + strings.Join(f.defaultList(), ", ") + "]"
	case !f.kind.scalar():
		return "[]"
	case f.kind == kindString:
		return quote(f.def)
	}
	return f.def
}

// defaultList is the default of a list, whose items stand between bars.
func (f *field) defaultList() []string { return strings.Split(f.def, "|") }

// schema is the shape of Config.
type schema struct {
	fields   []*field
	byPath   map[string]*field
	sections map[string]string   // path -> documentation
	children map[string][]string // section -> names in it, in order; "" is the file
}

func newSchema() *schema { return schemaOf(reflect.TypeFor[Config]()) }

// schemaOf is the shape of a struct with such tags.
func schemaOf(t reflect.Type) *schema {
	s := emptySchema()
	s.walk(t, "", nil, "", nil)
	return s
}

func emptySchema() *schema {
	return &schema{byPath: map[string]*field{}, sections: map[string]string{}, children: map[string][]string{}}
}

// walk walks a struct whose keys stand in section with prefix before their
// names. set are defaults over those of the tags. A struct without a name of its
// own, and with a tag set or prefix, has its keys there as well.
func (s *schema) walk(t reflect.Type, section string, index []int, prefix string, set map[string]string) {
	for i := range t.NumField() {
		sf := t.Field(i)
		at := append(append([]int(nil), index...), i)
		own := assignments(sf.Tag.Get("set"))
		name := sf.Tag.Get("yaml")
		if flat := sf.Tag.Get("prefix"); name == "" && (flat != "" || sf.Anonymous) {
			s.walk(sf.Type, section, at, flat, own)
			continue
		}
		if name == "" {
			continue
		}
		def, doc := sf.Tag.Get("default"), sf.Tag.Get("doc")
		if d, ok := set[name]; ok {
			def = d
		}
		if prefix != "" {
			name, doc = prefix+"_"+name, strings.ReplaceAll(doc, "{role}", prefix)
		}
		s.children[section] = append(s.children[section], name)
		path := join(section, name)
		if sf.Type.Kind() == reflect.Struct {
			s.sections[path] = doc
			s.walk(sf.Type, path, at, "", own)
			continue
		}
		f := &field{
			path: path, index: at, kind: kindOf(sf.Type), def: def, seed: sf.Tag.Get("env"),
			secret: sf.Tag.Get("secret") == "true", expand: sf.Tag.Get("expand") != "no",
			rules: parseRules(sf.Tag.Get("check"), sf.Tag.Get("warn")), doc: doc,
		}
		s.fields = append(s.fields, f)
		s.byPath[path] = f
	}
}

// assignments reads "name=value,name=value".
func assignments(text string) map[string]string {
	all := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if name, value, ok := strings.Cut(part, "="); ok {
			all[name] = value
		}
	}
	return all
}

func kindOf(t reflect.Type) kind {
	switch t.Kind() {
	case reflect.Int:
		return kindInt
	case reflect.Float64:
		return kindFloat
	case reflect.Bool:
		return kindBool
	case reflect.Map:
		return kindMap
	case reflect.Slice:
		switch t.Elem() {
		case reflect.TypeFor[Check]():
			return kindChecks
		case reflect.TypeFor[MCPServer]():
			return kindServers
		case reflect.TypeFor[ToolProject]():
			return kindProjects
		case reflect.TypeFor[ChatRepository]():
			return kindRepositories
		case reflect.TypeFor[RetentionRule]():
			return kindRetention
		}
		return kindList
	}
	return kindString
}

func join(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}
