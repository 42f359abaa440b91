package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// dialect is where endpoints that speak the same format differ in what they
// refuse.
type dialect struct {
	maxTokens  string // the name of the output limit
	reasoning  reasoningRule
	ids        idRule
	jsonObject bool // knows no json_schema: the schema is told in words
}

// idRule says which ids of calls an endpoint accepts. A conversation that
// another model began brings others, and each request with one is refused.
type idRule int

const (
	// idAny is for all that are lenient, or that may want an id of their own
	// back as it was, whatever its length.
	idAny idRule = iota
	// idShort: OpenAI takes 1 to 40 characters.
	idShort
	// idNine: Mistral takes 9 letters and digits.
	idNine
)

// callID is an id as the endpoint takes it: as it is, or a name that follows
// from it.
func (d dialect) callID(id string) string {
	if d.ids == idAny || d.ids == idShort && id != "" && len(id) <= 40 ||
		d.ids == idNine && len(id) == 9 && strings.Trim(id, letters) == "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	if d.ids == idShort {
		return "call_" + hex.EncodeToString(sum[:16])
	}
	nine := make([]byte, 9)
	for i := range nine {
		nine[i] = letters[int(sum[i])%len(letters)]
	}
	return string(nine)
}

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// reasoningRule says when an assistant message carries reasoning_content.
type reasoningRule int

const (
	// reasoningGiven returns it beside tool calls if it came; vendors that
	// never sent any never get the field.
	reasoningGiven reasoningRule = iota
	// reasoningNever is for vendors that refuse unknown fields; a conversation
	// that another model began may bring some.
	reasoningNever
	// reasoningAlways returns it beside tool calls even if it is empty: a
	// DeepSeek model that thinks answers 400 where the field is missing.
	reasoningAlways
)

// dialectOf knows an endpoint by its host; model servers of one's own are
// lenient.
func dialectOf(host string) dialect {
	d := dialect{maxTokens: "max_tokens"}
	switch host = strings.ToLower(host); {
	case host == "api.openai.com", strings.HasSuffix(host, ".openai.azure.com"):
		// The newer models refuse max_tokens; the other vendors know no other name.
		d.maxTokens, d.reasoning, d.ids = "max_completion_tokens", reasoningNever, idShort
	case host == "api.mistral.ai":
		d.reasoning, d.ids = reasoningNever, idNine
	case slices.Contains([]string{"api.groq.com", "api.cerebras.ai"}, host):
		d.reasoning = reasoningNever
	case host == "api.deepseek.com":
		d.reasoning, d.jsonObject = reasoningAlways, true
	}
	return d
}

// schemaWords tells a model the schema of its answers where the endpoint
// cannot; DeepSeek also demands that the word JSON is there.
const schemaWords = "Answer with one JSON object and nothing around it. It must match this JSON Schema: "

// appendFormat appends the response_format of answers that match schema.
// Source: ResponseFormatJsonSchema of OpenAI's API description.
func (d dialect) appendFormat(b []byte, schema json.RawMessage) []byte {
	if d.jsonObject {
		return append(b, `,"response_format":{"type":"json_object"}`...)
	}
	b = append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":`...)
	if isStrict(schema, 0) {
		b = append(b, `true`...)
	} else {
		b = append(b, `false`...) // strict, it would be refused
	}
	b = append(b, `,"schema":`...)
	return append(append(b, schema...), `}}`...)
}

// isStrict reports whether a schema is of the part of JSON Schema that strict
// mode takes: each object names all its properties as required and allows no
// others. Source: OpenAI, "Structured outputs", supported schemas.
func isStrict(raw json.RawMessage, depth int) bool {
	if raw = bytes.TrimSpace(raw); depth > 32 || len(raw) == 0 || raw[0] != '{' {
		return false
	}
	var s struct {
		Type                 json.RawMessage            `json:"type"`
		Properties           map[string]json.RawMessage `json:"properties"`
		Required             []string                   `json:"required"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
		Items                json.RawMessage            `json:"items"`
		AnyOf                []json.RawMessage          `json:"anyOf"`
		Defs                 map[string]json.RawMessage `json:"$defs"`
		AllOf, OneOf, Not    json.RawMessage
	}
	if json.Unmarshal(raw, &s) != nil || s.AllOf != nil || s.OneOf != nil || s.Not != nil {
		return false
	}
	if bytes.Contains(s.Type, []byte(`"object"`)) || s.Properties != nil {
		if string(s.AdditionalProperties) != "false" || len(s.Required) < len(s.Properties) {
			return false
		}
		for name := range s.Properties {
			if !slices.Contains(s.Required, name) {
				return false
			}
		}
	}
	parts := s.AnyOf
	if s.Items != nil {
		parts = append(parts, s.Items)
	}
	for _, m := range []map[string]json.RawMessage{s.Properties, s.Defs} {
		for _, part := range m {
			parts = append(parts, part)
		}
	}
	return !slices.ContainsFunc(parts, func(part json.RawMessage) bool { return !isStrict(part, depth+1) })
}
