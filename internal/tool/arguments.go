package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/loosejson"
	"toritsugi/internal/spelling"
)

// Arguments reads what a model wrote as the arguments of a tool. It is safe for
// concurrent use.
type Arguments struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	aliases  map[string]string
	readOnly bool
	prose    bool
	shape    string // the schema as a model reads it in an error, bounded
}

// Bounds of the texts in an error about arguments, in bytes, and how many
// mistakes one names.
const (
	maxShape    = 1500
	maxProblem  = 400
	maxMistakes = 20
)

// NewArguments reads the schema (Reads, else Schema), the aliases, ReadOnly and Prose of def. It fails on a
// schema that is not a valid JSON Schema of an object.
func NewArguments(def Definition) (*Arguments, error) {
	whole := def.Reads
	if whole == nil {
		whole = def.Schema
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(whole, s); err != nil {
		return nil, err
	}
	if s.Type != "object" {
		return nil, errors.New(`its type must be "object"`)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return &Arguments{s, resolved, def.Aliases, def.ReadOnly, def.Prose, clip(shapeOf(s, 0), maxShape)}, nil
}

// Read returns the arguments that raw means, which are valid: raw itself where it
// is, else what was plainly meant by it. notes are what was changed so that the
// model should know. problem names all that is wrong, and what is expected, where
// that cannot be told; it is "" else. Beside a problem args of prose are what is
// good of them, and notes what was changed for that.
func (a *Arguments) Read(raw string) (args json.RawMessage, notes []string, problem string) {
	return a.read(raw, nil)
}

// read is Read of arguments that stand beside others, which are fixed.
func (a *Arguments) read(raw string, fixed map[string]any) (args json.RawMessage, notes []string, problem string) {
	defer func() {
		if problem != "" {
			problem += "\nExpected: " + a.shape
		}
	}()
	// encoding/json would put U+FFFD in place of such bytes, and a file would get them.
	if !utf8.ValidString(raw) {
		return nil, nil, "they are not valid UTF-8."
	}
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	text := raw
	var plain any
	if err := json.Unmarshal([]byte(raw), &plain); err != nil {
		fixed, whole, ok := loosejson.Repair(raw)
		// Half of a text is as good as another for who looks, and not for who writes.
		if !ok || !whole && !a.readOnly {
			return nil, nil, notJSON(raw, err)
		}
		text = fixed
		if !a.readOnly {
			notes = append(notes, "the arguments were not valid JSON and were read as "+clip(fixed, maxProblem))
		}
		_ = json.Unmarshal([]byte(text), &plain) // what was repaired can be read
	}
	if _, ok := plain.(map[string]any); ok && !a.prose && len(fixed) == 0 && a.resolved.Validate(plain) == nil {
		return json.RawMessage(text), notes, ""
	}
	v := decode(text)
	m := meant{a: a, notes: notes}
	object, ok := m.unwrap(v).(map[string]any)
	if !ok {
		return nil, nil, fmt.Sprintf("they must be a JSON object, not %s.", shownKind(v))
	}
	object = m.object(a.schema, object, "")
	maps.Copy(object, fixed)
	args, err := jsonl.Marshal(object)
	if err == nil {
		err = validate(a.resolved, args)
	}
	if err != nil {
		wrong := a.mistakes(nil, a.schema, object, "")
		if len(wrong) == 0 {
			wrong = []string{said(err)}
		}
		if n := len(wrong) - maxMistakes; n > 0 {
			wrong = append(wrong[:maxMistakes], fmt.Sprintf("%d more", n))
		}
		if args = nil; a.prose {
			args, _ = jsonl.Marshal(a.fitting(a.schema, object)) // what was decoded can be encoded
		}
		return args, m.notes, strings.Join(wrong, "; ") + "."
	}
	return args, m.notes, ""
}

// fitting is a value without those of its parts that do not fit s; nil where it does
// not fit as a whole.
func (a *Arguments) fitting(s *jsonschema.Schema, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if o := branch(s, kindObject); o != nil && len(o.Properties) > 0 {
			for k, p := range o.Properties {
				if v[k] = a.fitting(p, v[k]); v[k] == nil {
					delete(v, k)
				}
			}
			return v
		}
	case []any:
		if l := branch(s, kindArray); l != nil && l.Items != nil {
			for i := range v {
				v[i] = a.fitting(l.Items, v[i])
			}
			return slices.DeleteFunc(v, func(e any) bool { return e == nil })
		}
	}
	if a.valid(s, v) != nil {
		return nil
	}
	return v
}

// validate checks JSON by a schema.
func validate(s *jsonschema.Resolved, raw json.RawMessage) error {
	var plain any // the library knows numbers only as such
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	return s.Validate(plain)
}

// decode is a JSON text with its numbers as they were written.
func decode(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&v) // it was read before
	return v
}

func notJSON(raw string, err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("they are not JSON (%v, at byte %d of %d, after %q).", err, syntax.Offset, len(raw), before(raw, syntax.Offset))
	}
	return fmt.Sprintf("they are not JSON (%v).", err)
}

// before returns the few characters of raw that end at offset.
func before(raw string, offset int64) string {
	end := min(int(offset), len(raw))
	return strings.ToValidUTF8(raw[max(0, end-30):end], "")
}

// mistakes adds to found all that is wrong with a value at a place.
func (a *Arguments) mistakes(found []string, s *jsonschema.Schema, v any, at string) []string {
	switch v := v.(type) {
	case map[string]any:
		if s := branch(s, kindObject); s != nil && len(s.Properties) > 0 {
			return a.objectMistakes(found, s, v, at)
		}
	case []any:
		if s := branch(s, kindArray); s != nil && s.Items != nil && len(v) > 0 && a.valid(&jsonschema.Schema{Type: s.Type, Types: s.Types, MinItems: s.MinItems, MaxItems: s.MaxItems}, v) == nil {
			for i, e := range v {
				found = a.mistakes(found, s.Items, e, fmt.Sprintf("%s[%d]", at, i))
			}
			return found
		}
	}
	err := a.valid(s, v)
	if err == nil {
		return found
	}
	value, jsonErr := jsonl.Marshal(v)
	kinds := kindsOf(s)
	if jsonErr == nil && (len(s.Enum) > 0 || s.Minimum != nil || s.Maximum != nil || len(kinds) > 0 && !slices.Contains(kinds, kindOf(v))) {
		return append(found, fmt.Sprintf("%s must be %s, not %s", at, shapeOf(s, 1), excerpted(string(value), 60)))
	}
	return append(found, at+": "+said(err))
}

// excerpted is the beginning of a value in JSON, at most limit bytes of it: no word is cut, and a
// text is closed behind its "…".
func excerpted(value string, limit int) string {
	if len(value) <= limit {
		return value
	}
	r := []rune(value)
	most := utf8.RuneCountInString(clip(value, limit)) - 1
	inWord := func(c rune) bool { return c < 0x2E80 && !unicode.IsSpace(c) } // those of Japanese may stand by themselves
	end := most
	for end > most/2 && inWord(r[end-1]) && inWord(r[end]) {
		end--
	}
	if end <= most/2 { // a word as long as that
		end = most
	}
	short := strings.TrimRight(string(r[:end]), ` .,…\`) + "…"
	if value[0] == '"' {
		short += `"`
	}
	return short
}

func (a *Arguments) objectMistakes(found []string, s *jsonschema.Schema, v map[string]any, at string) []string {
	for _, k := range s.Required {
		if _, given := v[k]; !given {
			found = append(found, fmt.Sprintf("%s is missing (%s)", within(at, k), shapeOf(s.Properties[k], 1)))
		}
	}
	for _, k := range sortedKeys(v) {
		if p := s.Properties[k]; p != nil {
			found = a.mistakes(found, p, v[k], within(at, k))
			continue
		}
		if !forbids(s.AdditionalProperties) {
			continue
		}
		hint := ""
		left := slices.DeleteFunc(sortedKeys(s.Properties), func(n string) bool { _, given := v[n]; return given })
		if n := spelling.Nearest(k, left); n != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", n)
		}
		found = append(found, fmt.Sprintf("there is no %s%s", within(at, clip(k, 60)), hint))
	}
	return found
}

// valid checks a value by a part of the schema; what cannot be checked by itself
// is valid.
func (a *Arguments) valid(s *jsonschema.Schema, v any) error {
	whole := s.CloneSchemas()
	if whole.Defs == nil && whole.Definitions == nil { // for references
		whole.Defs, whole.Definitions = a.schema.CloneSchemas().Defs, a.schema.CloneSchemas().Definitions
	}
	resolved, err := whole.Resolve(nil)
	if err != nil {
		return nil
	}
	raw, err := jsonl.Marshal(v)
	if err != nil {
		return err
	}
	return validate(resolved, raw)
}

// said is an error of the library as a model reads it: it writes numbers as
// fractions, "0/1 is less than 1.000000".
func said(err error) string {
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		_, rest, found := strings.Cut(text, ": ")
		if !found {
			break
		}
		text = rest
	}
	return clip(strings.NewReplacer("/1 is ", " is ", ".000000", "").Replace(text), maxProblem)
}

func within(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
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
	kinds := slices.Clone(kindsOf(s))
	for i, kind := range kinds {
		switch kind {
		case kindObject:
			kinds[i] = objectShape(s, depth)
		case kindArray:
			kinds[i] = "array of " + shapeOf(s.Items, depth+1)
		default:
			kinds[i] = kind + rangeShape(s)
		}
	}
	return cmp.Or(strings.Join(kinds, "|"), "any")
}

func objectShape(s *jsonschema.Schema, depth int) string {
	if len(s.Properties) == 0 {
		return "{}"
	}
	if depth > 2 {
		return kindObject
	}
	names := slices.Clone(s.Required)
	for _, n := range sortedKeys(s.Properties) {
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
