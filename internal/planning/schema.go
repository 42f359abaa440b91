package planning

import (
	"embed"
	"encoding/json"
	"fmt"
	"sync"
)

// AnswerKind is a kind of answer that the model gives as JSON.
type AnswerKind string

// The kinds of answers.
const (
	KindPlan         AnswerKind = "plan"
	KindSubtask      AnswerKind = "subtask_result"
	KindReflection   AnswerKind = "reflection"
	KindRevision     AnswerKind = "revision"
	KindVerification AnswerKind = "verification"
	KindReplan       AnswerKind = "replan_decision"
	KindCompletion   AnswerKind = "completion"
)

// AnswerKinds lists all kinds, in the order in which a run meets them.
func AnswerKinds() []AnswerKind {
	return []AnswerKind{KindPlan, KindSubtask, KindReflection, KindRevision, KindReplan, KindVerification, KindCompletion}
}

// schemaFiles are the JSON Schemas of the kinds (draft 2020-12), each complete
// in itself. They ask for what nothing can be done without, and allow fields
// that they do not know.
//
//go:embed schema/*.json
var schemaFiles embed.FS

// Schema returns the JSON Schema of a kind, as it is shipped. It is nil for
// what is no kind. The caller owns it.
func Schema(kind AnswerKind) json.RawMessage {
	data, err := schemaFiles.ReadFile("schema/" + string(kind) + ".json")
	if err != nil {
		return nil
	}
	return data
}

// shape is a JSON Schema, with those keywords that the schemas of answers use:
// a library that knows them all costs every start of the program milliseconds.
type shape struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	Properties map[string]*shape `json:"properties"`
	Items      *shape            `json:"items"`
	Enum       []string          `json:"enum"`
	Const      string            `json:"const"`
	Minimum    *float64          `json:"minimum"`
	Maximum    float64           `json:"maximum"` // 0 for none
	MinItems   int               `json:"minItems"`
	MinLength  int               `json:"minLength"`
	Required   []string          `json:"required"`
	Defs       map[string]*shape `json:"$defs"`

	name string // of the definition or the part that it is, or idList; "" for others
}

// contracts reads all schemas once. An error is one of the build.
var contracts = sync.OnceValues(func() (map[AnswerKind]*shape, error) {
	all := map[AnswerKind]*shape{}
	for _, kind := range AnswerKinds() {
		c, err := readContract(kind)
		if err != nil {
			return nil, fmt.Errorf("read the schema of %s: %w", kind, err)
		}
		all[kind] = c
	}
	return all, nil
})

func readContract(kind AnswerKind) (*shape, error) {
	root := new(shape)
	if err := json.Unmarshal(Schema(kind), root); err != nil {
		return nil, err
	}
	for name, def := range root.Defs {
		def.name = name
	}
	root.name = string(kind)
	root.link(root.Defs)
	return root, nil
}

// link puts the definitions in the place of the references to them. None of
// them refers to itself.
func (s *shape) link(defs map[string]*shape) {
	for key, p := range s.Properties {
		p = p.resolve(defs)
		s.Properties[key] = p
		switch {
		case key == "dependencies" || key == "execution_order" || key == "required_tools" || key == "tasks_completed" || key == "tasks_failed":
			p.name = idList
		case p.name == "" && p.Type == "object":
			p.name = key
		}
	}
	if s.Items != nil {
		s.Items = s.Items.resolve(defs)
	}
}

func (s *shape) resolve(defs map[string]*shape) *shape {
	if s.Ref != "" {
		s = defs[s.Ref[len("#/$defs/"):]]
	}
	s.link(defs)
	return s
}
