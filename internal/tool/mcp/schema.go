package mcp

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"toritsugi/internal/contextstore/jsonl"
)

// Bounds of a schema as it is offered.
const (
	maxSchema      = 32 << 10 // bytes
	maxSchemaDepth = 40
	maxSchemaText  = 1024 // bytes of one text in it
	maxBriefText   = 120  // where that is too long in all
	maxBriefEnum   = 50   // values that are told then
	maxExpansion   = 5000 // schemas after every reference was followed
)

// openSchema takes any arguments; the server checks them itself.
const openSchema = `{"type":"object"}`

// wrapped is the only argument of a tool whose schema is not that of an object.
const wrapped = "value"

// offeredSchema makes a stranger's schema fit to be offered and checked
// against: an object's, cleaned, bounded, and without references that lead out
// of it or back into themselves, which would make a check endless. One that
// is not an object's becomes that of the argument "value", and wrap is true. Of one
// that is too long, or cannot be checked against, as much is left as can be, and cut
// is true: it takes more than the server does.
func offeredSchema(raw any) (schema json.RawMessage, wrap, cut bool) {
	if _, ok := raw.(map[string]any); !ok {
		return json.RawMessage(openSchema), false, raw != nil && raw != true
	}
	var root map[string]any
	for _, c := range []cleaner{{text: maxSchemaText}, {text: maxBriefText, brief: true}} {
		root, _ = c.schema(raw, 0, true).(map[string]any)
		if c.failed || root == nil {
			return json.RawMessage(openSchema), false, true
		}
		root, wrap = ofObject(root)
		small := cutReferences(root)
		if out, err := jsonl.Marshal(root); err == nil && small && len(out) <= maxSchema && usable(out) {
			return out, wrap, c.brief || c.cut
		}
	}
	if out, err := jsonl.Marshal(outline(root)); err == nil && len(out) <= maxSchema && usable(out) {
		return out, wrap, true
	}
	return json.RawMessage(openSchema), wrap, true
}

// ofObject makes the schema of an object of one of anything.
func ofObject(root map[string]any) (of map[string]any, wrap bool) {
	switch kind, given := root["type"]; {
	case !given:
		root["type"] = "object"
	case kind != "object":
		inner := root
		root = map[string]any{"type": "object", "properties": map[string]any{wrapped: inner}, "required": []any{wrapped}}
		for _, k := range []string{"$defs", "definitions"} { // the references mean the root's
			if defs, ok := inner[k]; ok {
				root[k] = defs
				delete(inner, k)
			}
		}
		return root, true
	}
	return root, false
}

// outline is what a schema says of its own arguments, and nothing of their parts.
func outline(root map[string]any) map[string]any {
	args := map[string]any{}
	properties, _ := root["properties"].(map[string]any)
	for name, p := range properties {
		arg := map[string]any{}
		if p, ok := p.(map[string]any); ok {
			for _, k := range []string{"type", "description", "enum"} {
				if v, ok := p[k]; ok {
					arg[k] = v
				}
			}
		}
		args[name] = arg
	}
	out := map[string]any{"type": "object", "properties": args}
	if v, ok := root["required"]; ok {
		out["required"] = v
	}
	return out
}

// usable reports whether arguments can be checked against a schema.
func usable(schema []byte) bool {
	s := new(jsonschema.Schema)
	if json.Unmarshal(schema, s) != nil || s.Type != "object" {
		return false
	}
	_, err := s.Resolve(nil)
	return err == nil
}

// cleaner copies a schema.
type cleaner struct {
	text  int  // bytes of a text
	brief bool // leaves out what checks nothing, but descriptions
	// What came of it.
	failed, cut bool
}

// dropped are the keywords that no check here needs, and with which a schema
// could name itself or others.
var dropped = map[string]bool{
	"$id": true, "id": true, "$anchor": true, "$dynamicAnchor": true, "$dynamicRef": true, "$recursiveRef": true,
	"$recursiveAnchor": true, "$comment": true, "$vocabulary": true, "examples": true,
}

// ofNames are the keywords whose value maps names, and not keywords, to schemas.
var ofNames = map[string]bool{
	"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true,
}

// asData are the keywords whose value is no schema.
var asData = map[string]bool{"enum": true, "const": true, "required": true, "type": true, "dependentRequired": true, "default": true}

func (c *cleaner) schema(v any, depth int, keywords bool) any {
	if depth > maxSchemaDepth {
		c.cut = true
		return map[string]any{} // fits as a schema, and as data of no schema
	}
	switch v := v.(type) {
	case string:
		return plain(v, c.text)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = c.schema(e, depth+1, keywords)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			switch {
			case keywords && c.brief && (k == "title" || k == "default" || k == "enum" && length(e) > maxBriefEnum):
				continue
			case keywords && dropped[k], keywords && k == "$schema" && !knownDraft(e, depth):
				continue
			case keywords && k == "$ref":
				out[k] = e // is looked at later
			case keywords && k == "pattern" && !compiles(e):
				continue // other languages' expressions can do more
			case keywords && asData[k]:
				out[k] = c.schema(e, depth+1, false)
			case keywords && ofNames[k]:
				out[k] = c.named(e, depth+1, k == "patternProperties")
			default:
				if name := plain(k, maxName); name == k { // a name that cannot be shown cannot be used
					out[k] = c.schema(e, depth+1, keywords)
				}
			}
		}
		return out
	}
	return v
}

func length(v any) int {
	list, _ := v.([]any)
	return len(list)
}

func compiles(v any) bool {
	s, _ := v.(string)
	_, err := regexp.Compile(s)
	return err == nil
}

func (c *cleaner) named(v any, depth int, patterns bool) any {
	m, ok := v.(map[string]any)
	if !ok {
		c.failed = true
		return nil
	}
	out := make(map[string]any, len(m))
	for k, e := range m {
		if name := plain(k, maxName); name == k && (!patterns || compiles(k)) {
			out[k] = c.schema(e, depth+1, true)
		}
	}
	return out
}

// knownDraft reports whether $schema, which counts at the root only, names a
// draft by which arguments can be checked.
func knownDraft(v any, depth int) bool {
	s, _ := v.(string)
	return depth == 0 && (strings.HasPrefix(s, "http://json-schema.org/draft-07/schema") || s == "https://json-schema.org/draft/2020-12/schema")
}

// cutReferences empties every schema with a reference that leads nowhere, or
// to where it is being looked at already. It reports whether the schema, every
// reference written out, is small enough.
func cutReferences(root map[string]any) bool {
	f := follower{root: root, open: map[string]bool{}, size: map[string]int{}}
	return f.walk(root, false, 0) <= maxExpansion
}

type follower struct {
	root map[string]any
	open map[string]bool // targets that are being looked at
	size map[string]int  // schemas that a target stands for
}

// walk returns how many schemas v stands for. It goes through keys in order,
// so that of a circle always the same reference is cut.
func (f *follower) walk(v any, names bool, depth int) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += f.walk(e, false, depth+1)
		}
	case map[string]any:
		if ref, ok := v["$ref"]; ok && !names {
			size, ok := f.follow(ref, depth)
			if !ok {
				delete(v, "$ref")
			}
			n += size
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if names || !asData[k] {
				n += f.walk(v[k], !names && ofNames[k], depth+1)
			}
		}
	}
	return min(n, maxExpansion+1)
}

func (f *follower) follow(ref any, depth int) (size int, ok bool) {
	s, _ := ref.(string)
	if f.open[s] || depth > 8*maxSchemaDepth {
		return 0, false
	}
	size, known := f.size[s]
	if !known {
		target := f.at(s)
		if target == nil {
			return 0, false
		}
		f.open[s] = true
		size = f.walk(target, false, depth+1)
		delete(f.open, s)
		f.size[s] = size
	}
	return size, size <= maxExpansion
}

// at returns the definition that ref names; other places in a schema cannot be
// referred to, since they may hold the reference.
func (f *follower) at(ref string) map[string]any {
	for _, k := range []string{"$defs", "definitions"} {
		if name, ok := strings.CutPrefix(ref, "#/"+k+"/"); ok {
			defs, _ := f.root[k].(map[string]any)
			target, _ := defs[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)].(map[string]any)
			return target
		}
	}
	return nil
}
