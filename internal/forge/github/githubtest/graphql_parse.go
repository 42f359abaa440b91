package githubtest

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// operation is a GraphQL document with one operation of one field.
type operation struct {
	kind  string // "query", "mutation"
	field selection
}

// selection is a field with what is wanted of it.
type selection struct {
	alias, name string
	args        string // as written, without the brackets
	of          []selection
	on          string // of "... on Type { }", which has no name
}

func (f selection) key() string {
	if f.alias != "" {
		return f.alias
	}
	return f.name
}

var tokens = regexp.MustCompile(`(?s)#[^\n]*|"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|\.\.\.|[{}():,!$\[\]=@|&]|-?\d+(?:\.\d+)?|[^\s]`)

// reader walks over the tokens of a document.
type reader struct{ left []string }

func (r *reader) peek() string {
	if len(r.left) == 0 {
		return ""
	}
	return r.left[0]
}

func (r *reader) next() string {
	t := r.peek()
	if t != "" {
		r.left = r.left[1:]
	}
	return t
}

// parseGraphQL reads as much of the language as operations with one field need.
func parseGraphQL(text string) (operation, error) {
	r := &reader{}
	for _, t := range tokens.FindAllString(text, -1) {
		if t[0] != '#' && t != "," {
			r.left = append(r.left, t)
		}
	}
	op := operation{kind: "query"}
	if t := r.peek(); t == "query" || t == "mutation" {
		op.kind = r.next()
		for r.peek() != "{" && r.peek() != "" { // a name and the variables
			if r.peek() == "(" {
				if _, err := r.brackets(); err != nil {
					return op, err
				}
				continue
			}
			r.next()
		}
	}
	all, err := r.selections(0)
	switch {
	case err != nil:
		return op, err
	case len(r.left) > 0:
		return op, fmt.Errorf("unexpected %q after the operation", r.peek())
	case len(all) != 1 || all[0].on != "":
		return op, errors.New("expected one field")
	}
	op.field = all[0]
	return op, nil
}

// brackets takes "( ... )" and returns what is within.
func (r *reader) brackets() (string, error) {
	var out []string
	for depth := 0; ; {
		t := r.next()
		switch t {
		case "":
			return "", errors.New("a bracket is not closed")
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 {
			return strings.Join(out[1:], " "), nil
		}
		out = append(out, t)
	}
}

func (r *reader) selections(depth int) ([]selection, error) {
	if t := r.next(); t != "{" || depth > 20 {
		return nil, fmt.Errorf("unexpected %q where fields were expected", t)
	}
	var out []selection
	for r.peek() != "}" {
		f := selection{name: r.next()}
		if f.name == "..." && r.peek() == "on" {
			r.next()
			f.name, f.on = "", r.next()
			var err error
			if f.of, err = r.selections(depth + 1); err != nil {
				return nil, err
			}
			out = append(out, f)
			continue
		}
		if f.name == "" || !regexp.MustCompile(`^\w+$`).MatchString(f.name) {
			return nil, fmt.Errorf("unexpected %q where a field was expected", f.name)
		}
		if r.peek() == ":" {
			r.next()
			f.alias, f.name = f.name, r.next()
		}
		var err error
		if r.peek() == "(" {
			if f.args, err = r.brackets(); err != nil {
				return nil, err
			}
		}
		if r.peek() == "{" {
			if f.of, err = r.selections(depth + 1); err != nil {
				return nil, err
			}
		}
		out = append(out, f)
	}
	r.next()
	if len(out) == 0 {
		return nil, errors.New("a selection is empty")
	}
	return out, nil
}

// node is an object of a type, whose fields may be selected.
type node interface {
	kind() string
	fields() object
}

// render takes the selected fields from have; bad says which one there is not.
func (f selection) render(kind string, have object) (out object, bad string) {
	out = object{}
	for _, want := range f.of {
		if want.on != "" {
			if want.on != kind {
				continue
			}
			some, bad := want.render(kind, have)
			if bad != "" {
				return nil, bad
			}
			maps.Copy(out, some)
			continue
		}
		v, known := have[want.name]
		if !known {
			return nil, fmt.Sprintf("Field '%s' doesn't exist on type '%s'", want.name, kind)
		}
		if v, bad = want.value(v); bad != "" {
			return nil, bad
		}
		out[want.key()] = v
	}
	return out, ""
}

// value is a field's value with what is selected of it.
func (f selection) value(v any) (any, string) {
	switch v := v.(type) {
	case node:
		if len(f.of) == 0 {
			return nil, fmt.Sprintf("Field must have selections (field '%s' returns %s but has no selections)", f.name, v.kind())
		}
		return f.render(v.kind(), v.fields())
	case connection:
		if !strings.Contains(f.args, "first :") && !strings.Contains(f.args, "last :") {
			return nil, fmt.Sprintf("You must provide a `first` or `last` value to properly paginate the `%s` connection.", f.name)
		}
		return f.render(v.of, object{"totalCount": len(v.nodes), "nodes": v.nodes})
	case []node:
		all := []any{}
		for _, n := range v {
			o, bad := f.value(n)
			if bad != "" {
				return nil, bad
			}
			all = append(all, o)
		}
		return all, ""
	}
	return v, ""
}
