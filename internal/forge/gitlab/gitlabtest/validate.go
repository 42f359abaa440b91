package gitlabtest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed testdata/api.json
var extract []byte

// description is GitLab's description of the operations that are called; see the comment
// in testdata/api.json.
type description struct {
	mu         sync.Mutex
	compiler   *jsonschema.Compiler
	operations map[string]*operation
	seen       map[string]bool
}

type operation struct {
	Query   map[string]any
	Body    any
	Answers map[string]any
}

const home = "https://gitlab.invalid/api.json"

var load = sync.OnceValues(func() (*description, error) {
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(extract))
	if err != nil {
		return nil, err
	}
	d := &description{compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(home, whole); err != nil {
		return nil, err
	}
	var doc struct{ Operations map[string]*operation }
	if err := json.Unmarshal(extract, &doc); err != nil {
		return nil, err
	}
	d.operations = doc.Operations
	return d, nil
})

func described(t T) *description {
	d, err := load()
	if err != nil {
		t.Fatalf("gitlabtest: read the description: %v", err)
	}
	return d
}

func (s *Server) violated(pattern, where string, err error) {
	text := pattern + ": " + where + ": " + err.Error()
	if s.o.OnViolation != nil {
		s.o.OnViolation(text)
		return
	}
	s.t.Errorf("gitlabtest: not as GitLab describes it: %s", text)
}

// violation is a sentence about what is wrong.
type violation string

func (v violation) Error() string { return string(v) }

// asked holds a client to the description.
func (d *description) asked(s *Server, pattern string, r *http.Request, raw []byte) {
	op := d.operations[pattern]
	if op == nil {
		s.violated(pattern, "operation", violation("it is not described"))
		return
	}
	for name, values := range r.URL.Query() {
		if _, known := op.Query[name]; !known {
			s.violated(pattern, "query", violation("no such parameter: "+name))
			continue
		}
		for _, v := range values {
			d.against(s, pattern, "query/"+name, v)
		}
	}
	switch {
	case op.Body == nil && len(raw) > 0:
		s.violated(pattern, "body", violation("the operation takes none"))
	case op.Body != nil:
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			s.violated(pattern, "body", err)
			return
		}
		d.against(s, pattern, "body", v)
	}
}

// answered holds this server to the description; the same answer is looked at once.
func (d *description) answered(s *Server, pattern string, status int, data []byte) {
	op := d.operations[pattern]
	if op == nil {
		return
	}
	code := strconv.Itoa(status)
	if _, known := op.Answers[code]; !known {
		s.violated(pattern, "answer", violation("no such status: "+code))
		return
	}
	if len(data) == 0 || strings.HasSuffix(pattern, "/trace") {
		return
	}
	key := pattern + "\x00" + string(data)
	d.mu.Lock()
	if len(d.seen) > 10_000 {
		d.seen = map[string]bool{}
	}
	before := d.seen[key]
	d.seen[key] = true
	d.mu.Unlock()
	if before {
		return
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		s.violated(pattern, "answer", err)
		return
	}
	d.against(s, pattern, "answers/"+code, v)
}

func (d *description) against(s *Server, pattern, where string, v any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", " ", "%20").Replace(pattern)
	schema, err := d.compiler.Compile(home + "#/operations/" + at + "/" + where)
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		s.violated(pattern, where, err)
	}
}
