package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/contextstore/jsonl"
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
	Kind        offerKind       `json:"kind,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Wrapped     bool            `json:"wrapped,omitempty"` // the arguments are in "value"
	Hints       Hints           `json:"hints"`
	// The hashes are over what the server said, also what is not offered: over the
	// name and both of the others, which tell what changed. What a server says of
	// effects, and which draft of JSON Schema it names, are no part of them.
	Hash            string `json:"hash"`
	DescriptionHash string `json:"description_hash"`
	SchemaHash      string `json:"schema_hash"`
	wholeHash       string // of the schema with its $schema, as older pins have it
}

// is reports whether a listed tool is what was pinned as d.
func (d definition) is(listed definition) bool {
	return d.Kind == listed.Kind && d.DescriptionHash == listed.DescriptionHash && d.sameSchema(listed)
}

func (d definition) sameSchema(listed definition) bool {
	return d.SchemaHash == listed.SchemaHash || d.SchemaHash == listed.wholeHash
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
	whole, err := jsonl.Marshal(t.InputSchema)
	if err != nil {
		return d, fmt.Errorf("the schema of the tool %q: %w", line(t.Name, 80), err)
	}
	schema := whole
	if root, ok := t.InputSchema.(map[string]any); ok && root["$schema"] != nil {
		root = maps.Clone(root)
		delete(root, "$schema")
		schema, _ = jsonl.Marshal(root) // a part of what could be written
	}
	all, err := jsonl.Marshal(map[string]any{"name": t.Name, "description": t.Description, "schema": schema})
	if err != nil {
		return d, fmt.Errorf("the tool %q: %w", line(t.Name, 80), err)
	}
	d.Hash, d.DescriptionHash, d.SchemaHash, d.wholeHash = hash(all), hash([]byte(t.Description)), hash(schema), hash(whole)
	d.Description = mask(plain(mask(clip(t.Description, 8*maxDescription)), maxDescription))
	var cut bool
	d.Schema, d.Wrapped, cut = offeredSchema(t.InputSchema)
	if masked := json.RawMessage(mask(string(d.Schema))); json.Valid(masked) && usable(masked) {
		d.Schema = masked
	} else {
		d.Schema, cut = json.RawMessage(openSchema), true
	}
	if cut {
		d.Description = strings.TrimSpace(d.Description + fmt.Sprintf("\n(The schema of its arguments, of %d bytes, is cut here; the server checks all of them.)", len(whole)))
	}
	return d, nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}
