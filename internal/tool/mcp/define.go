package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what a server may say about its tools.
const (
	maxName        = 256  // bytes of a server's or tool's own name
	maxDescription = 4096 // bytes of a description as it is offered
	maxTools       = 512  // of one server
	maxPages       = 64   // of one listing
)

// Hints are what a server says about the effects of a tool (the protocol's
// "annotations"). Only those of a trusted server may decide anything.
type Hints struct {
	ReadOnly    bool `json:"read_only,omitempty"`
	Idempotent  bool `json:"idempotent,omitempty"`  // the same call again changes nothing more
	Destructive bool `json:"destructive,omitempty"` // may undo or overwrite; true where the server does not say
}

// definition is one tool of a server as it is offered and pinned.
type definition struct {
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Wrapped     bool            `json:"wrapped,omitempty"` // the arguments are in "value"
	Hints       Hints           `json:"hints"`
	// Hash is over all that the server said, also what is not offered; the
	// others are over its parts.
	Hash            string `json:"hash"`
	DescriptionHash string `json:"description_hash"`
	SchemaHash      string `json:"schema_hash"`
}

// define bounds and cleans what a server lists, hides in it what mask hides, and
// hashes it as it came.
func define(t *sdk.Tool, mask func(string) string) (definition, error) {
	d := definition{Hints: Hints{Destructive: true}}
	if a := t.Annotations; a != nil {
		d.Hints = Hints{ReadOnly: a.ReadOnlyHint, Idempotent: a.IdempotentHint, Destructive: a.DestructiveHint == nil || *a.DestructiveHint}
	}
	if d.Hints.ReadOnly { // the others mean nothing then
		d.Hints = Hints{ReadOnly: true, Idempotent: true}
	}
	schema, err := canonical(t.InputSchema)
	if err != nil {
		return d, fmt.Errorf("the schema of the tool %q: %w", line(t.Name, 80), err)
	}
	whole, err := canonical(map[string]any{"name": t.Name, "description": t.Description, "schema": schema, "hints": d.Hints})
	if err != nil {
		return d, fmt.Errorf("the tool %q: %w", line(t.Name, 80), err)
	}
	d.Hash, d.DescriptionHash, d.SchemaHash = hash(whole), hash([]byte(t.Description)), hash(schema)
	d.Description = mask(plain(mask(clip(t.Description, 8*maxDescription)), maxDescription))
	d.Schema, d.Wrapped = offeredSchema(t.InputSchema)
	if masked := json.RawMessage(mask(string(d.Schema))); json.Valid(masked) && usable(masked) {
		d.Schema = masked
	} else {
		d.Schema = json.RawMessage(openSchema)
	}
	return d, nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
