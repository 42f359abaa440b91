package githubtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// descriptionFile is where scripts/setup.sh puts GitHub's description, below the
// root of the module.
const descriptionFile = "internal/forge/github/githubtest/testdata/npm/node_modules/@octokit/openapi/generated/api.github.com.json"

// description is GitHub's OpenAPI description of itself. It has 13 MB and is
// read once in a process; of its schemas those are compiled that are used.
type description struct {
	paths      map[string]json.RawMessage
	components map[string]map[string]json.RawMessage

	mu         sync.Mutex
	compiler   *jsonschema.Compiler
	inline     map[string]any // schemas of operations, by address
	operations map[string]*operationDoc
}

// operationDoc is what the description says of one operation.
type operationDoc struct {
	parameters map[string]parameter // by "in name"
	body       *jsonschema.Schema   // nil where none is taken
	bodyNames  map[string]bool      // the properties that it may have; nil for any
	required   bool                 // the body is
	answers    map[string]answerDoc // by status
}

type parameter struct {
	kind     string // type of the value
	schema   *jsonschema.Schema
	required bool
}

type answerDoc struct {
	schema *jsonschema.Schema // nil for none
	event  bool               // a list of events: each has a schema of its own
}

var (
	readOnce = sync.OnceValues(readDescription)
	tellOnce sync.Once
)

// loaded is the description, nil where it is not installed: that is told once.
func loaded(t T) *description {
	t.Helper()
	d, err := readOnce()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		tellOnce.Do(func() {
			t.Logf("githubtest: GitHub's description is not installed (scripts/setup.sh): nothing is validated")
		})
		return nil
	case err != nil:
		t.Fatalf("githubtest: %v", err)
	}
	return d
}

// installed finds the description from any package of the module.
func installed() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			path := filepath.Join(dir, descriptionFile)
			_, err := os.Stat(path)
			return path, err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fs.ErrNotExist
		}
		dir = up
	}
}

func readDescription() (*description, error) {
	path, err := installed()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths      map[string]json.RawMessage
		Components map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	d := &description{paths: doc.Paths, components: doc.Components, compiler: jsonschema.NewCompiler(), inline: map[string]any{}, operations: map[string]*operationDoc{}}
	d.compiler.AssertFormat()
	d.compiler.UseLoader(d)
	return d, nil
}

// scheme is the beginning of the addresses under which schemas refer to each other.
const scheme = "github:///"

// Load is the schema at an address, in the words of JSON Schema.
func (d *description) Load(url string) (any, error) {
	if v, is := d.inline[url]; is {
		return v, nil
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(url, scheme+"components/"), "/")
	raw, is := d.components[kind][name]
	if !is {
		return nil, fmt.Errorf("the description has no %s %s", kind, name)
	}
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if o, is := v.(object); is {
		amend(name, o)
	}
	return translate(v), nil
}

func decode(b []byte) (any, error) { return jsonschema.UnmarshalJSON(bytes.NewReader(b)) }

// amend mends what the description says too narrowly of what the server is
// known to answer, itself or in the description's own words.
func amend(name string, schema object) {
	switch name {
	case "pull-request", "pull-request-simple":
		properties := schema["properties"].(object)
		// Of a fork that was deleted there is no repository.
		head := properties["head"].(object)["properties"].(object)
		head["repo"] = object{"$ref": head["repo"].(object)["$ref"], "nullable": true}
		// A label without a description has null there, as the label's own schema says.
		label := properties["labels"].(object)["items"].(object)["properties"].(object)
		label["description"].(object)["nullable"] = true
	case "pull-request-review-comment":
		// A remark on a line that is no more has null.
		properties := schema["properties"].(object)
		properties["line"].(object)["nullable"], properties["position"].(object)["nullable"] = true, true
	}
}

// amendAnswer does the same for an answer: of this list the account is described
// as a user that is an enterprise too, which of one installation it is not.
func amendAnswer(operation string, schema any) any {
	if operation == "GET /app/installations" {
		return object{"type": "array", "items": object{"$ref": "#/components/schemas/installation"}}
	}
	return schema
}

// keywords are those that OpenAPI 3.0 shares with JSON Schema.
var keywords = map[string]bool{"type": true, "required": true, "enum": true, "format": true, "pattern": true, "minLength": true, "maxLength": true,
	"minimum": true, "maximum": true, "minItems": true, "maxItems": true, "uniqueItems": true, "minProperties": true, "maxProperties": true}

// translate turns a schema of OpenAPI 3.0 into JSON Schema: other places, other
// words for null.
func translate(v any) any {
	in, is := v.(object)
	if !is {
		return v // true and false
	}
	out := object{}
	if ref, is := in["$ref"].(string); is {
		out["$ref"] = strings.Replace(ref, "#/", scheme, 1)
	} else {
		for k, v := range in {
			switch {
			case k == "format" && v == "uri-template": // the validator knows none of its operators (RFC 6570)
			case keywords[k]:
				out[k] = v
			case k == "items" || k == "additionalProperties" || k == "not":
				out[k] = translate(v)
			case k == "properties":
				properties := object{}
				for name, p := range v.(object) {
					properties[name] = translate(p)
				}
				out[k] = properties
			case k == "allOf" || k == "anyOf" || k == "oneOf":
				var all []any
				for _, s := range v.([]any) {
					all = append(all, translate(s))
				}
				out[k] = all
			}
		}
	}
	if in["nullable"] == true {
		return object{"anyOf": []any{object{"type": "null"}, out}}
	}
	return out
}

// compile compiles a schema of an operation.
func (d *description) compile(where string, schema any) (*jsonschema.Schema, error) {
	at := scheme + "inline/" + fmt.Sprint(len(d.inline))
	d.inline[at] = translate(schema)
	s, err := d.compiler.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("compile the schema of %s: %w", where, err)
	}
	return s, nil
}

// resolve follows a reference to a parameter or an answer.
func (d *description) resolve(v any) (object, error) {
	o, is := v.(object)
	if !is {
		return nil, fmt.Errorf("%T instead of an object", v)
	}
	ref, is := o["$ref"].(string)
	if !is {
		return o, nil
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
	raw, is := d.components[kind][name]
	if !is {
		return nil, fmt.Errorf("the description has no %s", ref)
	}
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	return d.resolve(v)
}

// operation is what the description says of a pattern, nil where it is silent.
func (d *description) operation(pattern string) (*operationDoc, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if op, known := d.operations[pattern]; known {
		return op, nil
	}
	op, err := d.readOperation(pattern)
	if err != nil {
		return nil, fmt.Errorf("the description of %s: %w", pattern, err)
	}
	d.operations[pattern] = op
	return op, nil
}

func (d *description) readOperation(pattern string) (*operationDoc, error) {
	method, path, _ := strings.Cut(pattern, " ")
	raw, is := d.paths[path]
	if !is {
		return nil, nil
	}
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	item, _ := v.(object)
	doc, is := item[strings.ToLower(method)].(object)
	if !is {
		return nil, nil
	}
	op := &operationDoc{parameters: map[string]parameter{}, answers: map[string]answerDoc{}}
	if err := d.readParameters(op, doc["parameters"], item["parameters"]); err != nil {
		return nil, err
	}
	if err := d.readBody(op, pattern, doc["requestBody"]); err != nil {
		return nil, err
	}
	answers, _ := doc["responses"].(object)
	for status, v := range answers {
		o, err := d.resolve(v)
		if err != nil {
			return nil, err
		}
		a := answerDoc{}
		if schema := jsonContent(o); schema != nil {
			a.event = isEvents(schema)
			if a.schema, err = d.compile(pattern, amendAnswer(pattern, schema)); err != nil {
				return nil, err
			}
		}
		op.answers[status] = a
	}
	return op, nil
}

func (d *description) readParameters(op *operationDoc, lists ...any) error {
	for _, list := range lists {
		all, _ := list.([]any)
		for _, v := range all {
			o, err := d.resolve(v)
			if err != nil {
				return err
			}
			name, _ := o["name"].(string)
			in, _ := o["in"].(string)
			schema, _ := o["schema"].(object)
			p := parameter{required: o["required"] == true}
			p.kind, _ = schema["type"].(string)
			if p.schema, err = d.compile("parameter "+name, schema); err != nil {
				return err
			}
			op.parameters[in+" "+name] = p
		}
	}
	return nil
}

func (d *description) readBody(op *operationDoc, pattern string, v any) error {
	if v == nil {
		return nil
	}
	o, err := d.resolve(v)
	if err != nil {
		return err
	}
	schema := jsonContent(o)
	op.required = o["required"] == true
	op.bodyNames = propertyNames(schema)
	op.body, err = d.compile(pattern, schema)
	return err
}

// jsonContent is the schema of what is sent as JSON, nil for none.
func jsonContent(o object) any {
	content, _ := o["content"].(object)
	media, _ := content["application/json"].(object)
	return media["schema"]
}

// propertyNames are the properties of a schema that says what an object may
// have; nil where it is not as simple as that.
func propertyNames(schema any) map[string]bool {
	o, _ := schema.(object)
	properties, is := o["properties"].(object)
	if !is {
		return nil
	}
	out := map[string]bool{}
	for name := range properties {
		out[name] = true
	}
	return out
}

// Events are described as "any of" many; which of them is known by their names.
var eventSchemas = map[string]string{
	"labeled": "labeled-issue-event", "unlabeled": "unlabeled-issue-event", "assigned": "assigned-issue-event", "unassigned": "unassigned-issue-event",
	"renamed": "renamed-issue-event", "locked": "locked-issue-event", "review_requested": "review-requested-issue-event",
}

func isEvents(schema any) bool {
	o, _ := schema.(object)
	items, _ := o["items"].(object)
	ref, _ := items["$ref"].(string)
	return strings.HasSuffix(ref, "/issue-event-for-issue")
}

// event is the schema of one event; what the table does not have is described
// as a change of state, which is all of an event but its own fields.
func (d *description) event(name string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.compiler.Compile(scheme + "components/schemas/" + cmp.Or(eventSchemas[name], "state-change-issue-event"))
}

// basicError is the schema of errors that an operation does not describe.
func (d *description) basicError() (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.compiler.Compile(scheme + "components/schemas/basic-error")
}
