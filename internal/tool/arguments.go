package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// arguments checks what a model wrote against the schema of a tool.
type arguments struct {
	compact    json.RawMessage
	resolved   *jsonschema.Resolved
	properties map[string]*jsonschema.Schema
	shape      string // the schema as a model reads it in an error, bounded
}

// Bounds of the texts in an error about arguments, in bytes.
const (
	maxShape   = 1500
	maxProblem = 600
)

func newArguments(schema json.RawMessage) (*arguments, error) {
	var buf bytes.Buffer
	if err := json.Compact(&buf, schema); err != nil {
		return nil, err
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(buf.Bytes(), s); err != nil {
		return nil, err
	}
	if s.Type != "object" {
		return nil, errors.New(`its type must be "object"`)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return &arguments{compact: buf.Bytes(), resolved: resolved, properties: s.Properties, shape: clip(shapeOf(s, 0), maxShape)}, nil
}

// check returns what is wrong with raw, or "".
func (a *arguments) check(raw string) string {
	// encoding/json would put U+FFFD in place of such bytes, and a file would get them.
	if !utf8.ValidString(raw) {
		return "they are not valid UTF-8."
	}
	var v any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Sprintf("they are not JSON (%v, at byte %d of %d, after %q).", err, syntax.Offset, len(raw), before(raw, syntax.Offset))
		}
		return fmt.Sprintf("they are not JSON (%v).", err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprintf("they must be a JSON object, not %s.", kindOf(v))
	}
	if err := a.resolved.Validate(object); err != nil {
		// The library writes numbers as fractions: "0/1 is less than 1.000000".
		text := strings.NewReplacer("validating root: ", "", "validating /properties/", "", "/1 is ", " is ", ".000000", "").Replace(err.Error())
		return clip(text, maxProblem) + "." + a.hint(object)
	}
	return ""
}

// hint names the property that was probably meant by one that is not known.
func (a *arguments) hint(object map[string]any) string {
	known := slices.Sorted(maps.Keys(a.properties))
	for _, k := range slices.Sorted(maps.Keys(object)) {
		if a.properties[k] != nil {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(known), func(n string) bool { _, given := object[n]; return given })
		if n := nearest(k, left); n != "" {
			return fmt.Sprintf(" Did you mean %q by %q?", n, clip(k, 60))
		}
	}
	return ""
}

// before returns the few characters of raw that end at offset.
func before(raw string, offset int64) string {
	end := min(int(offset), len(raw))
	return strings.ToValidUTF8(raw[max(0, end-30):end], "")
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	}
	return "an array"
}

// shapeOf renders s shorter than its JSON: {"path": string, "limit"?: integer 1..10}.
func shapeOf(s *jsonschema.Schema, depth int) string {
	if s == nil {
		return "any"
	}
	if len(s.Enum) > 0 {
		words := make([]string, 0, len(s.Enum))
		for _, v := range s.Enum {
			b, err := json.Marshal(v)
			if err != nil {
				continue
			}
			words = append(words, string(b))
		}
		return strings.Join(words, "|")
	}
	switch kind := strings.Join(append(slices.Clone(s.Types), s.Type), ""); kind {
	case "object":
		return objectShape(s, depth)
	case "array":
		return "array of " + shapeOf(s.Items, depth+1)
	case "":
		return "any"
	default:
		if s.Type == "" {
			kind = strings.Join(s.Types, "|")
		}
		return kind + rangeShape(s)
	}
}

func objectShape(s *jsonschema.Schema, depth int) string {
	if len(s.Properties) == 0 {
		return "{}"
	}
	if depth > 2 {
		return "object"
	}
	names := slices.Clone(s.Required)
	for _, n := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	fields := make([]string, len(names))
	for i, n := range names {
		mark := "?"
		if slices.Contains(s.Required, n) {
			mark = ""
		}
		fields[i] = fmt.Sprintf("%q%s: %s", n, mark, shapeOf(s.Properties[n], depth+1))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func rangeShape(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(" %g..%g", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf(" >= %g", *s.Minimum)
	case s.Maximum != nil:
		return fmt.Sprintf(" <= %g", *s.Maximum)
	}
	return ""
}
