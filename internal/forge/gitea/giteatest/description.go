package giteatest

import (
	"bytes"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// published is what Gitea publishes of its API, as far as it is called; it says where it
// comes from.
//
//go:embed testdata/api.json
var published []byte

// description holds requests and answers against what Gitea publishes.
type description struct {
	Paths map[string]map[string]operation

	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

type operation struct {
	Parameters []struct {
		Name, In, Type string
		Required       bool
		Enum           []string
	}
	Body      json.RawMessage
	Responses map[string]json.RawMessage
}

const apiFile = "api.json"

var described = sync.OnceValues(func() (*description, error) {
	d := &description{compiler: jsonschema.NewCompiler()}
	if err := json.Unmarshal(published, d); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(published))
	if err != nil {
		return nil, err
	}
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource(apiFile, doc)
})

// find is the operation of a pattern: "GET /repos/{owner}/{repo}".
func (d *description) find(pattern string) (o operation, at string, known bool) {
	method, path, _ := strings.Cut(pattern, " ")
	o, known = d.Paths[path][strings.ToLower(method)]
	return o, apiFile + "#/paths/" + url.PathEscape(strings.ReplaceAll(path, "/", "~1")) + "/" + strings.ToLower(method), known
}

// request returns what is against the description in a request, "" for nothing.
func (d *description) request(pattern string, r *http.Request, body []byte) string {
	o, at, known := d.find(pattern)
	if !known {
		return "there is no such operation"
	}
	query := r.URL.Query()
	for _, p := range o.Parameters {
		if p.In != "query" {
			continue
		}
		for _, v := range query[p.Name] {
			if len(p.Enum) > 0 && !slices.Contains(p.Enum, v) {
				return p.Name + " may not be " + v
			}
			if p.Type == "integer" && strings.Trim(v, "0123456789") != "" || p.Type == "boolean" && v != "true" && v != "false" {
				return p.Name + " is no " + p.Type
			}
		}
		query.Del(p.Name)
	}
	for name := range query {
		return "there is no parameter " + name
	}
	switch {
	case o.Body == nil && len(body) > 0:
		return "it takes no body"
	case o.Body == nil || len(body) == 0 && r.Method == http.MethodPut:
		return ""
	}
	return d.against(at+"/body", body)
}

// answer returns what is against the description in an answer, "" for nothing.
func (d *description) answer(pattern string, status int, body []byte) string {
	o, at, _ := d.find(pattern)
	s := fmt.Sprint(status)
	schema, known := o.Responses[s]
	switch {
	case !known && status >= 300: // what can happen everywhere is described nowhere
		return ""
	case !known:
		return "it does not answer " + s
	case status >= 300:
		return ""
	case string(schema) == "null":
		if len(body) > 0 {
			return s + " has no body"
		}
		return ""
	}
	return d.against(at+"/responses/"+s, body)
}

// Against returns what is against the description in an exchange with another server, "" for
// nothing.
func Against(r *http.Request, body []byte, status int, answer []byte) string {
	d, err := described()
	if err != nil {
		return err.Error()
	}
	op, known := find(r)
	if !known {
		return "there is no such operation"
	}
	if wrong := d.request(op.pattern, r, body); wrong != "" {
		return "the request: " + wrong
	}
	if wrong := d.answer(op.pattern, status, answer); wrong != "" {
		return "the answer: " + wrong
	}
	return ""
}

func (d *description) against(at string, body []byte) string {
	d.mu.Lock()
	schema, err := d.compiler.Compile(at)
	d.mu.Unlock()
	if err != nil {
		return err.Error()
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
