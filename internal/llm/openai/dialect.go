package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// dialect is where endpoints that speak the same format differ in what they
// refuse.
type dialect struct {
	maxTokens string // the name of the output limit
	reasoning reasoningRule
	ids       idRule
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
		d.reasoning = reasoningAlways
	}
	return d
}
