package planning

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files and the list of schemas anew")

// definitions are the Go types of what the schemas define.
func definitions() map[string]any {
	return map[string]any{
		"goal": Goal{}, "scope": Scope{}, "ambiguity": Ambiguity{}, "assumption": Assumption{}, "gap": Gap{}, "task_decomposition": Decomposition{},
		"subtask": Subtask{}, "revised_subtask": Subtask{}, "action_plan": ActionPlan{}, "action": Action{}, "previous": Previous{}, "judgement": Judgement{},
		"change": Change{}, "revision": PlanRevision{}, "criterion": Criterion{}, "placeholders": PlaceholderReport{}, "replan": Replan{}, "summary": CompletionSummary{},
		"plan": Plan{}, "subtask_result": SubtaskResult{}, "reflection": Reflection{}, "verification": Verification{}, "replan_decision": ReplanDecision{}, "completion": Completion{},
	}
}

// TestSchemasAndTypes holds each definition of each schema and its Go type
// together: the same fields, of the same types.
func TestSchemasAndTypes(t *testing.T) {
	t.Parallel()
	all, err := contracts()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for kind, c := range all {
		var walk func(path string, s *shape, typ reflect.Type)
		walk = func(path string, s *shape, typ reflect.Type) {
			if typ.Kind() == reflect.Pointer {
				typ = typ.Elem()
			}
			want := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number", reflect.Int: "integer", reflect.Slice: "array", reflect.Struct: "object"}[typ.Kind()]
			if typ == reflect.TypeFor[json.RawMessage]() {
				want = ""
			}
			if s.Type != want && (s.Const == "" || want != "string") {
				t.Errorf("%s: %s has the type %q, and %v wants %q", kind, path, s.Type, typ, want)
				return
			}
			switch s.Type {
			case "array":
				walk(path+"[]", s.Items, typ.Elem())
			case "object":
				if got := reflect.TypeOf(definitions()[s.name]); got != typ {
					t.Errorf("%s: %s is a %q, and the field a %v", kind, path, s.name, typ)
				}
				seen[s.name] = true
				fields := map[string]reflect.Type{}
				for i := range typ.NumField() {
					name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
					fields[name] = typ.Field(i).Type
				}
				for name, p := range s.Properties {
					if fields[name] == nil {
						t.Errorf("%s: %s.%s has no field in %v", kind, path, name, typ)
						continue
					}
					walk(path+"."+name, p, fields[name])
				}
				for name := range fields {
					if s.Properties[name] == nil {
						t.Errorf("%s: %s lacks the field %q of %v", kind, path, name, typ)
					}
				}
			}
		}
		walk("$", c, reflect.TypeOf(definitions()[string(kind)]))
	}
	for name := range definitions() {
		if !seen[name] {
			t.Errorf("no schema defines %q", name)
		}
	}
}

// TestSchemasAgree: a definition that stands in several schemas is the same, and
// everything has a description.
func TestSchemasAgree(t *testing.T) {
	t.Parallel()
	defs := map[string]string{}
	for _, kind := range AnswerKinds() {
		var doc map[string]any
		if err := json.Unmarshal(Schema(kind), &doc); err != nil {
			t.Fatal(err)
		}
		if doc["$schema"] != "https://json-schema.org/draft/2020-12/schema" || doc["title"] == nil {
			t.Errorf("%s says neither its draft nor its title", kind)
		}
		parts, _ := doc["$defs"].(map[string]any)
		for name, def := range parts {
			text, _ := json.Marshal(def)
			if old, ok := defs[name]; ok && old != string(text) {
				t.Errorf("%s defines %q in another way than others", kind, name)
			}
			defs[name] = string(text)
		}
		var described func(path string, v any)
		described = func(path string, v any) {
			o, _ := v.(map[string]any)
			if o["description"] == nil && o["$ref"] == nil {
				t.Errorf("%s: %s has no description", kind, path)
			}
			for keyword := range o {
				if !slices.Contains([]string{"$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "items", "enum", "const", "minimum", "maximum", "minItems", "minLength"}, keyword) {
					t.Errorf("%s: %s uses %q, which nothing checks", kind, path, keyword)
				}
			}
			props, _ := o["properties"].(map[string]any)
			for name, p := range props {
				described(path+"."+name, p)
			}
		}
		described("$", doc)
		for name, def := range parts {
			described(name, def)
		}
	}
	if Schema("none") != nil {
		t.Error("there is a schema of what is no kind")
	}
}

// strict reads the schemas with all that JSON Schema has.
func strict(t testing.TB) map[AnswerKind]*jsonschema.Schema {
	t.Helper()
	all := map[AnswerKind]*jsonschema.Schema{}
	for _, kind := range AnswerKinds() {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema(kind)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(string(kind), doc); err != nil {
			t.Fatal(err)
		}
		if all[kind], err = c.Compile(string(kind)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestCheckIsStrict: our check of an answer finds something wrong exactly where
// a full implementation of JSON Schema does.
func TestCheckIsStrict(t *testing.T) {
	t.Parallel()
	full := strict(t)
	all, err := contracts()
	if err != nil {
		t.Fatal(err)
	}
	value := rapid.Custom(func(t *rapid.T) any {
		return rapid.SampledFrom([]any{nil, true, "", "done", "x", 0.0, 0.5, 1.0, 3, -1, 7, 101.0, []any{}, []any{"a"}, []any{1.5}, map[string]any{}}).Draw(t, "value")
	})
	var draw func(t *rapid.T, s *shape, depth int) any
	draw = func(t *rapid.T, s *shape, depth int) any {
		if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
			return value.Draw(t, "any")
		}
		switch {
		case s.Const != "":
			return s.Const
		case len(s.Enum) > 0:
			return rapid.SampledFrom(s.Enum).Draw(t, "word")
		}
		switch s.Type {
		case "object":
			m := map[string]any{}
			for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
				if rapid.IntRange(0, 2).Draw(t, name) > 0 {
					m[name] = draw(t, s.Properties[name], depth+1)
				}
			}
			return m
		case "array":
			list := []any{}
			for range rapid.IntRange(0, 2).Draw(t, "items") {
				list = append(list, draw(t, s.Items, depth+1))
			}
			return list
		case "string":
			return rapid.SampledFrom([]string{"", "a", "日本"}).Draw(t, "text")
		case "boolean":
			return true
		case "integer":
			return rapid.IntRange(0, 6).Draw(t, "n")
		case "number":
			return rapid.SampledFrom([]float64{0, 0.5, 1, 80}).Draw(t, "f")
		}
		return value.Draw(t, "any")
	}
	good := 0
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(AnswerKinds()).Draw(t, "kind")
		v := draw(t, all[kind], 0)
		got, want := all[kind].violations(v), full[kind].Validate(v)
		if (len(got) > 0) != (want != nil) {
			t.Fatalf("%v of %#v; JSON Schema says %v", got, v, want)
		}
		if want == nil {
			good++
		}
	})
	if good == 0 {
		t.Error("nothing was right")
	}
}

// TestSchemasAreListed keeps the list in the documentation.
func TestSchemasAreListed(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../docs/planning.md", "<!-- schemas -->\n", "<!-- /schemas -->"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the list", file)
	}
	want := listSchemas(t)
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s lists other schemas than there are: run go test ./internal/planning -update", file)
	}
}

// node is a part of a schema as it is documented.
type node struct {
	Ref         string           `json:"$ref"`
	Title       string           `json:"title"`
	Type        string           `json:"type"`
	Description string           `json:"description"`
	Const       string           `json:"const"`
	Enum        []string         `json:"enum"`
	Required    []string         `json:"required"`
	Properties  map[string]*node `json:"properties"`
	Items       *node            `json:"items"`
	Defs        map[string]*node `json:"$defs"`
}

// listSchemas writes what each schema asks for.
func listSchemas(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, kind := range AnswerKinds() {
		var doc node
		if err := json.Unmarshal(Schema(kind), &doc); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "\n### %s: [`%s.json`](../internal/planning/schema/%[2]s.json)\n\n%s\n\n| field | what it is |\n|---|---|\n", doc.Title, kind, doc.Description)
		listFields(&b, doc.Defs, "", &doc)
	}
	b.WriteString("\n")
	return b.String()
}

// listFields writes a row for each field, and below it those within it.
func listFields(b *strings.Builder, defs map[string]*node, path string, of *node) {
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		p := of.Properties[name]
		words, place, form := p.Description, path+name, p.Type
		if p.Type == "array" {
			p, place = p.Items, place+"[]"
			form = "list"
		}
		if p.Ref != "" {
			p = defs[strings.TrimPrefix(p.Ref, "#/$defs/")]
			if words == "" {
				words = p.Description
			}
		}
		switch {
		case p.Const != "":
			form = "`" + p.Const + "`"
		case len(p.Enum) > 0:
			form = "`" + strings.Join(p.Enum, "`, `") + "`"
		case form == "list" && p.Type != "object":
			form = "list of " + p.Type + "s"
		case form == "":
			form = cmp.Or(p.Type, "any")
		}
		if slices.Contains(of.Required, name) {
			form += ", **required**"
		}
		fmt.Fprintf(b, "| `%s` | %s (%s) |\n", path+name, words, form)
		if p.Type == "object" {
			listFields(b, defs, place+".", p)
		}
	}
}
