package githubtest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Violation is something that GitHub's description does not allow.
type Violation struct {
	Operation string // "GET /repos/{owner}/{repo}/issues"
	Where     string // "body", "query", "path", "answer 200"
	Path      string // in the document, as a JSON pointer; the parameter's name
	Value     string // what stands there, as JSON, in short
	Text      string // what is wrong with it
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s: %s: %s, got %s", v.Operation, v.Where, v.Path, v.Text, v.Value)
}

func (s *Server) violated(v Violation) {
	if s.o.OnViolation != nil {
		s.o.OnViolation(v)
		return
	}
	s.t.Errorf("githubtest: not as GitHub describes it: %s", v)
}

// described is what the description says of an operation; nil for nothing.
func (s *Server) described(pattern string) *operationDoc {
	if s.ops == nil {
		return nil
	}
	op, err := s.ops.operation(pattern)
	if err != nil {
		s.t.Errorf("githubtest: %v", err)
		return nil
	}
	if op == nil && pattern != graphqlPattern {
		s.t.Errorf("githubtest: GitHub describes no %s", pattern)
	}
	return op
}

// validateRequest holds the client to the description.
func (s *Server) validateRequest(c *call) {
	pattern := c.path.pattern
	op := s.described(pattern)
	if op == nil {
		return
	}
	for name, values := range c.r.URL.Query() {
		p, known := op.parameters["query "+name]
		if !known {
			s.violated(Violation{pattern, "query", name, short(values), "the operation has no such parameter"})
			continue
		}
		for _, v := range values {
			s.against(p.schema, p.value(v), Violation{Operation: pattern, Where: "query", Path: name})
		}
	}
	for name, p := range op.parameters {
		in, name, _ := strings.Cut(name, " ")
		if in == "query" && p.required && !c.r.URL.Query().Has(name) {
			s.violated(Violation{pattern, "query", name, "nothing", "the parameter is required"})
		}
		if in == "path" {
			s.against(p.schema, p.value(c.r.PathValue(name)), Violation{Operation: pattern, Where: "path", Path: name})
		}
	}
	s.validateBody(c, op)
}

func (s *Server) validateBody(c *call, op *operationDoc) {
	v := Violation{Operation: c.path.pattern, Where: "body"}
	// The usual client of apps sends null where it has nothing to send, and is served.
	if none := strings.TrimSpace(string(c.body)); none == "" || none == "null" && !op.required {
		if op.required {
			v.Value, v.Text = "nothing", "the body is required"
			s.violated(v)
		}
		return
	}
	if op.body == nil {
		v.Value, v.Text = short(string(c.body)), "the operation takes no body"
		s.violated(v)
		return
	}
	body, err := decode(c.body)
	if err != nil {
		v.Value, v.Text = short(string(c.body)), "no JSON: "+err.Error()
		s.violated(v)
		return
	}
	s.against(op.body, body, v)
	o, _ := body.(object)
	for name, value := range o {
		if op.bodyNames != nil && !op.bodyNames[name] {
			v.Path, v.Value, v.Text = "/"+name, short(value), "the operation has no such field"
			s.violated(v)
		}
	}
}

// value is a parameter as what it stands for.
func (p parameter) value(text string) any {
	switch p.kind {
	case "integer", "number":
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return json.Number(text)
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	return text
}

// validateAnswer holds this server to the description.
func (s *Server) validateAnswer(pattern string, o *reply) {
	op := s.described(pattern)
	if op == nil {
		return
	}
	v := Violation{Operation: pattern, Where: "answer " + strconv.Itoa(o.status)}
	doc, known := op.answers[strconv.Itoa(o.status)]
	schema := doc.schema
	switch {
	case schema == nil && (o.status >= http.StatusBadRequest || o.location != ""):
		var err error // any operation may be refused or sent on; the description tells of few of these
		if schema, err = s.ops.basicError(); err != nil {
			s.t.Errorf("githubtest: %v", err)
			return
		}
	case !known:
		v.Text, v.Value = "the operation has no such answer", short(string(o.data))
		s.violated(v)
		return
	case schema == nil:
		if len(o.data) > 0 {
			v.Text, v.Value = "the answer has no body", short(string(o.data))
			s.violated(v)
		}
		return
	}
	if s.seen.before(v.Operation+v.Where, o.data) {
		return
	}
	body, err := decode(o.data)
	if err != nil {
		v.Text, v.Value = "no JSON: "+err.Error(), short(string(o.data))
		s.violated(v)
		return
	}
	s.against(schema, body, v)
	if doc.event {
		s.validateEvents(body, v)
	}
}

// answers remembers which answers were looked at: clients that poll get the
// same ones again and again.
type answers struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]bool
}

func (a *answers) before(what string, data []byte) bool {
	sum := sha256.Sum256(append([]byte(what+"\x00"), data...))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all[sum] {
		return true
	}
	if a.all == nil || len(a.all) > 10000 {
		a.all = map[[sha256.Size]byte]bool{}
	}
	a.all[sum] = true
	return false
}

func (s *Server) validateEvents(body any, v Violation) {
	all, _ := body.([]any)
	for n, e := range all {
		o, _ := e.(object)
		name, _ := o["event"].(string)
		schema, err := s.ops.event(name)
		if err != nil {
			s.t.Errorf("githubtest: %v", err)
			return
		}
		at := v
		at.Path = "/" + strconv.Itoa(n)
		s.against(schema, e, at)
	}
}

// against reports the worst that a schema finds in a value; at tells where it
// stands, and has the path to it.
func (s *Server) against(schema *jsonschema.Schema, value any, at Violation) {
	err := schema.Validate(value)
	var bad *jsonschema.ValidationError
	if err == nil || !errors.As(err, &bad) {
		return
	}
	for _, leaf := range worst(bad) {
		v := at
		for _, step := range leaf.InstanceLocation {
			v.Path += "/" + step
		}
		v.Value = short(find(value, leaf.InstanceLocation))
		v.Text = leaf.BasicOutput().Error.String()
		s.violated(v)
	}
}

// worst are at most three of the causes: of alternatives those of the one that
// came the furthest, for that is the one that was meant.
func worst(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	var leaves []*jsonschema.ValidationError
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			leaves = append(leaves, e)
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(e)
	slices.SortStableFunc(leaves, func(a, b *jsonschema.ValidationError) int {
		return len(b.InstanceLocation) - len(a.InstanceLocation)
	})
	deepest := len(leaves[0].InstanceLocation)
	return slices.DeleteFunc(leaves[:min(3, len(leaves))], func(l *jsonschema.ValidationError) bool { return len(l.InstanceLocation) < deepest })
}

func find(v any, path []string) any {
	for _, step := range path {
		switch in := v.(type) {
		case object:
			v = in[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(in) {
				return nil
			}
			v = in[n]
		}
	}
	return v
}

func short(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > 200 {
		return string(b[:200]) + "…"
	}
	return string(b)
}
