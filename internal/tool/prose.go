package tool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// mainOf is the property of an object that a text in its place stands for: the one that
// the schema names by the keyword "main". A reader of prose (Definition.Prose) knows it.
func mainOf(s *jsonschema.Schema) string {
	name, _ := s.Extra["main"].(string)
	return name
}

// shaped is a value in the form that s has, where it has another one: a text for an
// object is its main property, a list for an object its only list, a map or lines for
// a list are its entries, and an object or a list for a text is told in words.
func (m *meant) shaped(s *jsonschema.Schema, v any) any {
	if kinds := kindsOf(s); len(kinds) == 0 || slices.Contains(kinds, kindOf(v)) {
		return v
	}
	list, object := branch(s, kindArray), branch(s, kindObject)
	switch v := v.(type) {
	case string:
		_, isList := parsed(v, kindArray)
		_, isObject := parsed(v, kindObject)
		switch {
		case isList || isObject || strings.TrimSpace(v) == "":
		case object != nil && mainOf(object) != "":
			return map[string]any{mainOf(object): v}
		case list != nil:
			var all []any
			for line := range strings.Lines(v) {
				if line = strings.TrimSpace(strings.TrimLeft(line, " \t-*•")); line != "" {
					all = append(all, line)
				}
			}
			return all
		}
	case []any:
		switch {
		case object != nil:
			if name := only(object, kindArray, ""); name != "" && (len(v) != 1 || !m.knows(object, v[0])) {
				return map[string]any{name: v}
			}
		case branch(s, kindString) != nil:
			return flat(v)
		}
	case map[string]any:
		switch {
		case list != nil && list.Items != nil:
			return m.entries(list.Items, v)
		case branch(s, kindString) != nil:
			return flat(v)
		}
	}
	return v
}

// entries are those of a list, given as a map, or as the only one.
func (m *meant) entries(items *jsonschema.Schema, v map[string]any) (all []any) {
	object := branch(items, kindObject)
	if object != nil && m.knows(object, v) {
		return []any{v}
	}
	for _, k := range sortedKeys(v) {
		if object == nil {
			all = append(all, k+": "+flat(v[k]))
			continue
		}
		all = append(all, entryOf(object, k, v[k]))
	}
	return all
}

// entryOf is what stands in a map of objects under a key: that is its main property, or
// its id where the value is that one.
func entryOf(s *jsonschema.Schema, key string, v any) any {
	name := mainOf(s)
	if inner, ok := v.(map[string]any); ok {
		if inner = maps.Clone(inner); inner[name] != nil {
			name = "id"
		}
		if s.Properties[name] != nil && inner[name] == nil {
			inner[name] = key
		}
		return inner
	}
	if other := only(s, kindOf(v), name); other != "" {
		return map[string]any{name: key, other: v}
	}
	if s.Properties["id"] != nil {
		return map[string]any{"id": key, name: v}
	}
	if _, text := v.(string); !text { // true, or a number: it says less than its name
		return map[string]any{name: key}
	}
	return map[string]any{name: v}
}

// only is the only property of a kind beside another one, "" for none or several.
func only(s *jsonschema.Schema, kind, beside string) (found string) {
	for name, p := range s.Properties {
		if name == beside || !slices.Contains(kindsOf(p), kind) {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

// knows reports whether a value is an object with a property of s.
func (m *meant) knows(s *jsonschema.Schema, v any) bool {
	object, _ := v.(map[string]any)
	for k := range object {
		if m.property(s, k) != "" {
			return true
		}
	}
	return false
}

// gathered is an object whose parts stand side by side, with those that belong to one
// of its objects in there.
func (m *meant) gathered(s *jsonschema.Schema, v map[string]any) map[string]any {
	v = maps.Clone(v)
	for _, k := range sortedKeys(v) {
		if m.property(s, k) != "" {
			continue
		}
		home, name, homes := "", "", 0
		for p, of := range s.Properties {
			if o := branch(of, kindObject); o != nil && m.property(o, k) != "" {
				home, name = p, m.property(o, k)
				homes++
			}
		}
		if homes != 1 {
			continue
		}
		inner := map[string]any{}
		if v[home] != nil {
			given, ok := m.shaped(s.Properties[home], v[home]).(map[string]any)
			if !ok {
				continue
			}
			inner = maps.Clone(given)
		}
		if inner[name] == nil {
			inner[name] = v[k]
			delete(v, k)
		}
		v[home] = inner
	}
	return v
}

// flat is a value of JSON in words.
func flat(v any) string {
	var all []string
	switch v := v.(type) {
	case nil:
	case []any:
		for _, e := range v {
			all = append(all, flat(e))
		}
	case map[string]any:
		if len(v) == 1 {
			for _, e := range v {
				return flat(e)
			}
		}
		for _, k := range sortedKeys(v) {
			all = append(all, strings.ReplaceAll(k, "_", " ")+": "+flat(v[k]))
		}
	default:
		return fmt.Sprint(v)
	}
	return strings.Join(all, "; ")
}
