package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"toritsugi/internal/loosejson"
	"toritsugi/internal/routing"
	"toritsugi/internal/tool"
)

// shape is a schema with what reads by it.
type shape struct {
	schema *jsonschema.Schema
	args   *tool.Arguments
	shown  []byte   // to models: without what is for the reader alone
	most   int      // bytes that are read
	whole  []string // properties of which nothing is left out
}

func newShape(raw []byte, most int, aliases map[string]string, whole ...string) (*shape, error) {
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, err
	}
	args, err := tool.NewArguments(tool.Definition{Schema: raw, Aliases: aliases, Prose: true, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, err
	}
	shown, err := json.Marshal(forModels(plain))
	return &shape{s, args, shown, most, whole}, err
}

// forModels takes out of a schema which property a text stands for (tool.Definition.Prose), and
// what the program sets itself (readOnly).
func forModels(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, text := v["main"].(string); text {
			delete(v, "main")
		}
		for k := range v {
			if p, ok := v[k].(map[string]any); ok && p["readOnly"] == true {
				delete(v, k)
				continue
			}
			v[k] = forModels(v[k])
		}
	case []any:
		for i := range v {
			v[i] = forModels(v[i])
		}
	}
	return v
}

var coder = sync.OnceValues(func() (*shape, error) {
	raw, err := schemas.ReadFile("schemas/coder_output.json")
	if err != nil {
		return nil, err
	}
	return newShape(raw, maxProposal, patchNames, "patch", "files", "commands")
})

// outputs are the shapes of answers by the worker's name, made when they are first needed.
var outputs = func() map[string]func() (*shape, error) {
	all := map[string]func() (*shape, error){}
	for _, name := range []string{"plan", "analyze", "ops", "research"} {
		all[name] = sync.OnceValues(func() (*shape, error) { return outputShape(name) })
	}
	return all
}()

func outputOf(route routing.Route) (*shape, error) {
	made := outputs[strings.ToLower(string(route))]
	if made == nil {
		return nil, fmt.Errorf("no worker answers on route %s", route)
	}
	return made()
}

// unfit is the shape of an answer that names another route.
var unfit = sync.OnceValues(func() (*shape, error) {
	return workerShape(func(whole map[string]any) { whole["required"] = []string{"fit", "suggested_route"} })
})

// outputShape is the schema of WorkerOutput with that of a worker's result in it.
func outputShape(name string) (*shape, error) {
	raw, err := schemas.ReadFile("schemas/" + name + ".json")
	if err != nil {
		return nil, err
	}
	return workerShape(func(whole map[string]any) {
		whole["properties"].(map[string]any)["result"] = json.RawMessage(raw) //nolint:forcetypeassert // the file is ours
	})
}

// workerShape is the schema of WorkerOutput with something put in its place.
func workerShape(put func(whole map[string]any)) (*shape, error) {
	raw, err := schemas.ReadFile("schemas/worker_output.json")
	if err != nil {
		return nil, err
	}
	var whole map[string]any
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	delete(whole, "$schema")
	put(whole)
	raw, err = json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	return newShape(raw, MaxAnswer, nil)
}

// read finds the object of the schema in a text and decodes it into v. notes are what was not
// known in it.
func (c *shape) read(text string, v any) (notes []string, err error) {
	if len(text) > c.most {
		return nil, &AnswerError{fmt.Sprintf("it is %d bytes long, the most is %d.", len(text), c.most)}
	}
	found := Objects(strings.ToValidUTF8(text, "\uFFFD"))
	if len(found) == 0 {
		return nil, &AnswerError{"it holds no JSON object."}
	}
	valid := slices.DeleteFunc(slices.Clone(found), func(s string) bool { return !json.Valid([]byte(s)) })
	if len(valid) == 0 {
		fixed, whole, ok := loosejson.Repair(found[0])
		switch {
		case !ok:
			return nil, &AnswerError{"it is not valid JSON."}
		case !whole && len(c.whole) > 0: // half a patch may only delete
			return nil, &AnswerError{"it ends in the middle of its JSON."}
		}
		valid = []string{fixed}
	}
	problem := ""
	for _, s := range valid {
		var plain any
		if err := json.Unmarshal([]byte(s), &plain); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(c.cut(c.schema, plain))
		if err != nil {
			return nil, err
		}
		args, notes, wrong := c.args.Read(string(raw))
		if wrong != "" && c.fits(raw, &args) {
			wrong = ""
		}
		if wrong == "" {
			return notes, json.Unmarshal(args, v)
		}
		if problem = wrong; c.like(plain) {
			break
		}
	}
	return nil, &AnswerError{problem}
}

// fits takes what of an answer cannot be read out of what was read of it, and reports whether
// the rest is an answer: it has what is required, and all of what must be whole.
func (c *shape) fits(raw []byte, args *json.RawMessage) bool {
	var given, good map[string]any
	if json.Unmarshal(raw, &given) != nil || json.Unmarshal(*args, &good) != nil {
		return false
	}
	if !required(c.schema, good) {
		return false
	}
	for _, k := range c.whole {
		was, list := given[k].([]any)
		is, _ := good[k].([]any)
		if list && len(is) != len(was) || given[k] != nil && good[k] == nil {
			return false
		}
	}
	left, err := json.Marshal(good)
	if err != nil {
		return false
	}
	read, _, wrong := c.args.Read(string(left))
	*args = read
	return wrong == ""
}

// required takes entries of lists and properties out of a value that lack what their schema
// requires, and reports whether the value itself has it.
func required(s *jsonschema.Schema, v any) bool {
	object, ok := v.(map[string]any)
	if !ok {
		return true
	}
	for k, p := range s.Properties {
		e, there := object[k]
		list, ok := e.([]any)
		if ok = ok && p.Items != nil && len(list) > 0; ok {
			list = slices.DeleteFunc(list, func(e any) bool { return !required(p.Items, e) })
			object[k] = list
		}
		if there && !required(p, e) || ok && len(list) == 0 {
			delete(object, k)
		}
	}
	return !slices.ContainsFunc(s.Required, func(k string) bool { return object[k] == nil })
}

// like reports whether an object is meant to be one of the schema: it has most of what
// is required.
func (c *shape) like(v any) bool {
	object, _ := v.(map[string]any)
	n := 0
	for _, k := range c.schema.Required {
		if _, ok := object[k]; ok {
			n++
		}
	}
	return 2*n >= len(c.schema.Required)
}

// cut shortens each list of v to what the schema allows.
func (c *shape) cut(s *jsonschema.Schema, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, p := range s.Properties {
			if e, ok := v[k]; ok {
				v[k] = c.cut(p, e)
			}
		}
	case []any:
		if s.MaxItems != nil && len(v) > *s.MaxItems {
			v = v[:*s.MaxItems]
		}
		if s.Items != nil {
			for i := range v {
				v[i] = c.cut(s.Items, v[i])
			}
		}
		return v
	}
	return v
}
