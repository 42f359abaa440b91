package routing

import (
	_ "embed" // the schemas
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"toritsugi/internal/i18n"
)

//go:embed schemas/input_message.json
var inputMessage []byte

// Contract checks a document by a JSON Schema (route §4): the one validator of what
// packages and models hand each other in a chat. It is safe for concurrent use.
type Contract struct {
	name     string
	resolved *jsonschema.Resolved
}

// NewContract reads a schema; name names what it is of in errors.
func NewContract(name string, schema []byte) (*Contract, error) {
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(schema, s); err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", name, err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve the schema of %s: %w", name, err)
	}
	return &Contract{name, r}, nil
}

// Check says what is wrong with a document of JSON, nil where it keeps to the contract.
// The error is an *i18n.Error.
func (c *Contract) Check(doc []byte) error {
	var v any
	err := json.Unmarshal(doc, &v)
	if err == nil {
		err = c.resolved.Validate(v)
	}
	if err != nil {
		return i18n.E("routing.contract", c.name, err)
	}
	return nil
}

// InputMessage is the contract of a channel.Message.
var InputMessage = sync.OnceValue(func() *Contract {
	c, err := NewContract("InputMessage", inputMessage)
	if err != nil {
		panic(err) // a test reads it
	}
	return c
})
