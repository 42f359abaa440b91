package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"mvdan.cc/sh/v3/syntax"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/loosejson"
)

// meant turns arguments that do not fit the schema of a tool into those that were
// meant by them, where the schema leaves no choice. What it cannot tell it leaves
// as it is, for the check that follows.
type meant struct {
	a     *Arguments
	notes []string
}

// The types of JSON Schema.
const (
	kindNull    = "null"
	kindBoolean = "boolean"
	kindNumber  = "number"
	kindInteger = "integer"
	kindString  = "string"
	kindArray   = "array"
	kindObject  = "object"
)

// wrappers are the names by which models put the arguments into an object of
// their own.
var wrappers = [...]string{"arguments", "args", "parameters", "params", "input", "kwargs", "tool_input"}

// unwrap takes arguments out of a text that holds them, a list of one, and an
// object around them.
func (m *meant) unwrap(v any) any {
	switch v := v.(type) {
	case nil:
		return map[string]any{}
	case string:
		if inner, ok := parsed(v, kindObject); ok {
			return m.unwrap(inner)
		}
	case []any:
		if len(v) == 1 {
			if inner, ok := v[0].(map[string]any); ok {
				return m.unwrap(inner)
			}
		}
	case map[string]any:
		for k := range v {
			if m.property(m.a.schema, k) != "" {
				return v
			}
		}
		for _, w := range wrappers {
			switch inner := v[w].(type) {
			case map[string]any:
				return m.unwrap(inner)
			case string:
				if object, ok := parsed(inner, kindObject); ok {
					return m.unwrap(object)
				}
			}
		}
	}
	return v
}

// parsed is a text that holds JSON of a kind, in a fence or not.
func parsed(s, kind string) (v any, ok bool) {
	s, _ = Unfenced("", strings.TrimSpace(s))
	if s = strings.TrimSpace(s); !strings.HasPrefix(s, map[string]string{kindObject: "{", kindArray: "["}[kind]) {
		return nil, false
	}
	fixed, whole, ok := loosejson.Repair(s)
	if !ok || !whole {
		return nil, false
	}
	v = decode(fixed)
	return v, kindOf(v) == kind
}

// property is the name of the property that is meant by a name, "" for none.
func (m *meant) property(s *jsonschema.Schema, name string) string {
	if s.Properties[name] != nil {
		return name
	}
	if n := m.a.aliases[name]; s.Properties[n] != nil {
		return n
	}
	found := ""
	for n := range s.Properties {
		if folded(n) == folded(name) {
			if found != "" {
				return ""
			}
			found = n
		}
	}
	return found
}

// folded is a name as startLine, start-line and Start_Line have it in common.
func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// object is an object as s has it.
func (m *meant) object(s *jsonschema.Schema, v map[string]any, at string) map[string]any {
	out := make(map[string]any, len(v))
	if m.a.prose {
		v = m.gathered(s, v)
	}
	for _, k := range sortedKeys(v) {
		name := m.property(s, k)
		_, given := v[name]
		_, taken := out[name]
		switch {
		case name == k:
			out[k] = v[k]
		case name != "" && !given && !taken:
			out[name] = v[k]
		case forbids(s.AdditionalProperties) && m.drops(k, name, v[k]):
			if m.a.aliases[k] != saysNothing {
				m.notes = append(m.notes, within(at, clip(k, 60))+" is not known and was ignored")
			}
		default:
			out[k] = v[k]
		}
	}
	for _, k := range sortedKeys(out) {
		p := s.Properties[k]
		if p == nil {
			continue
		}
		optional := !slices.Contains(s.Required, k)
		x := m.value(p, out[k], within(at, k))
		if text, ok := x.(string); optional && (x == nil || ok && strings.TrimSpace(text) == "") && m.a.valid(p, x) != nil {
			delete(out, k)
			continue
		}
		if x = m.inRange(p, x, optional, within(at, k)); x == nil && out[k] != nil {
			delete(out, k)
			continue
		}
		out[k] = x
	}
	return out
}

// saysNothing is what an alias stands for that says nothing to the tool, as a reason
// for the call.
const saysNothing = "-"

// drops reports whether a property that is not known can be left out: where it
// says nothing to the tool, says nothing at all, or where nothing is changed.
func (m *meant) drops(k, name string, v any) bool {
	return m.a.readOnly && name == "" || m.a.aliases[k] == saysNothing || v == nil
}

// value is a value as s has it.
func (m *meant) value(s *jsonschema.Schema, v any, at string) any {
	if m.a.prose {
		v = m.shaped(s, v)
	}
	v = m.toKind(s, v)
	switch v := v.(type) {
	case map[string]any:
		if o := branch(s, kindObject); o != nil && len(o.Properties) > 0 {
			return m.object(o, v, at)
		}
	case []any:
		if l := branch(s, kindArray); l != nil && l.Items != nil {
			out := make([]any, len(v))
			for i := range v {
				out[i] = m.value(l.Items, v[i], fmt.Sprintf("%s[%d]", at, i))
			}
			return out
		}
	case string:
		return oneOf(s.Enum, v)
	}
	return v
}

// oneOf is the word of a list that differs from s in its case and joints only.
func oneOf(list []any, s string) any {
	var found any = s
	n := 0
	for _, e := range list {
		if word, ok := e.(string); ok && folded(word) == folded(strings.TrimSpace(s)) {
			found = word
			n++
		}
	}
	if n != 1 {
		return s
	}
	return found
}

// labelled is a number behind a word that says of what, as in "line 36", "L36", "#12". What
// stands behind a number may be its unit, which would change it.
var labelled = lazyregexp.New(`^(?:\pL+[ ]?#?|#)(\d+)$`)

// toKind turns v into a type that s takes.
func (m *meant) toKind(s *jsonschema.Schema, v any) any {
	kinds := kindsOf(s)
	takes := func(kind string) bool { return slices.Contains(kinds, kind) }
	kind := kindOf(v)
	if len(kinds) == 0 || takes(kind) || kind == kindNull || kind == kindNumber && takes(kindInteger) {
		return v
	}
	switch v := v.(type) {
	case string:
		for _, k := range []string{kindObject, kindArray} {
			if inner, ok := parsed(v, k); ok && takes(k) {
				return inner
			}
		}
		text := strings.TrimSpace(v)
		if takes(kindNumber) || takes(kindInteger) {
			if m := labelled().FindStringSubmatch(text); m != nil {
				text = m[1]
			}
			if _, ok := new(big.Rat).SetString(text); ok && len(text) < 40 && json.Valid([]byte(text)) {
				return json.Number(text)
			}
		}
		text = strings.NewReplacer("yes", "true", "no", "false").Replace(strings.ToLower(text))
		if b, err := strconv.ParseBool(text); err == nil && len(text) > 1 && takes(kindBoolean) {
			return b
		}
	case json.Number:
		if takes(kindString) {
			return v.String()
		}
		if takes(kindBoolean) && (v == "0" || v == "1") {
			return v == "1"
		}
	case bool:
		if takes(kindString) {
			return strconv.FormatBool(v)
		}
	case []any:
		if len(v) == 1 && !takes(kindArray) {
			if one := m.toKind(s, v[0]); takes(kindOf(one)) {
				return one
			}
		}
		if s.Comment == argv {
			return commandLine(v)
		}
		return v
	}
	if list := branch(s, kindArray); list != nil && v != "" {
		if one := m.toKind(list.Items, v); len(kindsOf(list.Items)) == 0 || slices.Contains(kindsOf(list.Items), kindOf(one)) {
			return []any{one}
		}
	}
	return v
}

// argv is the $comment of a command line that may come as a list of its words, as in
// ["bash", "-c", "npm test"].
const argv = "argv"

// commandLine is a list of words as a shell takes them, or the list where it holds anything else.
func commandLine(list []any) any {
	words := make([]string, len(list))
	for i, v := range list {
		word, ok := v.(string)
		if !ok {
			return list
		}
		quoted, err := syntax.Quote(word, syntax.LangBash)
		if err != nil {
			return list
		}
		words[i] = quoted
	}
	return strings.Join(words, " ")
}

// inRange brings a number between the bounds of s, or leaves an optional one out
// that is below: 0 and -1 are how models say that they want none.
func (m *meant) inRange(s *jsonschema.Schema, v any, optional bool, at string) any {
	number, ok := v.(json.Number)
	if !ok {
		return v
	}
	f, err := number.Float64()
	switch {
	case err != nil:
	case s.Minimum != nil && f < *s.Minimum && optional:
		m.notes = append(m.notes, fmt.Sprintf("%s %s was too small and was taken as not given", at, number))
		return nil
	case s.Minimum != nil && f < *s.Minimum:
		return m.clamped(at, number, "small", *s.Minimum)
	case s.Maximum != nil && f > *s.Maximum:
		return m.clamped(at, number, "large", *s.Maximum)
	}
	return v
}

func (m *meant) clamped(at string, was json.Number, too string, now float64) json.Number {
	n := json.Number(strconv.FormatFloat(now, 'f', -1, 64))
	m.notes = append(m.notes, fmt.Sprintf("%s %s was too %s; %s was used", at, was, too, n))
	return n
}

// kindsOf are the types that s takes; none where it does not say so by itself.
func kindsOf(s *jsonschema.Schema) (kinds []string) {
	if s == nil {
		return nil
	}
	if s.Type != "" {
		return []string{s.Type}
	}
	if s.Types != nil {
		return s.Types
	}
	for _, b := range slices.Concat(s.AnyOf, s.OneOf) {
		of := kindsOf(b)
		if of == nil {
			return nil
		}
		kinds = append(kinds, of...)
	}
	return kinds
}

// branch is the part of s that describes values of a kind, nil where there is none
// or where it is one of several.
func branch(s *jsonschema.Schema, kind string) (found *jsonschema.Schema) {
	switch {
	case s == nil:
		return nil
	case s.Type == kind, slices.Contains(s.Types, kind):
		return s
	}
	for _, b := range slices.Concat(s.AnyOf, s.OneOf) {
		if one := branch(b, kind); one != nil {
			if found != nil {
				return nil
			}
			found = one
		}
	}
	return found
}

// forbids reports the schema false, which nothing fits.
func forbids(s *jsonschema.Schema) bool { return s != nil && s.Not != nil }

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return kindNull
	case bool:
		return kindBoolean
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok && r.IsInt() {
			return kindInteger
		}
		return kindNumber
	case string:
		return kindString
	case []any:
		return kindArray
	}
	return kindObject
}

// shownKind is a kind with its article.
func shownKind(v any) string {
	switch k := kindOf(v); k {
	case kindNull:
		return k
	case kindArray, kindInteger, kindObject:
		return "an " + k
	default:
		return "a " + k
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
