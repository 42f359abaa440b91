package anthropic

import (
	"net/http"
	"strings"

	"toritsugi/internal/llm"
)

// thinks reports whether the next call asks for thinking. With a budget the API
// refuses to go on with calls that the model made without having thought first,
// as where another model made them, or this one before it was told to think:
// such a round of calls is ended without.
// Source: "Extended thinking with tool use" of Anthropic's documentation.
func (v *conversation) thinks() bool {
	t := &v.tape
	inRound := len(v.open) > 0 || t.at == inUser && t.results
	return v.client.thinking != 0 && (v.client.thinking == Adaptive || t.thought || !inRound)
}

// refusesThoughts reports whether the API took offence at the thinking that it
// was given back: that of another account or server, or of a conversation whose
// earlier messages were shortened since, or any where none is asked for. It
// demands none back then. Source: "Preserved thinking" and "Troubleshooting
// thinking" of Anthropic's documentation.
func refusesThoughts(e *llm.Error) bool {
	if e.Status != http.StatusBadRequest {
		return false
	}
	words := strings.ToLower(e.Message)
	return strings.Contains(words, "thinking") &&
		(strings.Contains(words, "signature") || strings.Contains(words, "cannot contain") || strings.Contains(words, "cannot be modified"))
}
