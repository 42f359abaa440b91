package memory

import (
	"encoding/json"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// unformed is the text of a message as a summary is made of it: in place of the
// form that the run itself hands its model what it asks for, and of an answer in
// such a form the sentences that stand in it.
func unformed(m contextstore.Message) string {
	switch {
	case m.Role == llm.RoleUser && m.Kind != "":
		return "(the run asks for: " + m.Kind + ")"
	case m.Role == llm.RoleAssistant:
		return sentences(m.Content)
	}
	result, _ := m.Result()
	return result
}

// sentences are the texts of a JSON object that a model answered, one a line; an
// answer that is none is what it is.
func sentences(s string) string {
	bare := strings.TrimSpace(s)
	if fenced, ok := strings.CutPrefix(bare, "```"); ok {
		_, bare, _ = strings.Cut(fenced, "\n")
		bare = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(bare), "```"))
	}
	if !strings.HasPrefix(bare, "{") || !json.Valid([]byte(bare)) {
		return s
	}
	d := json.NewDecoder(strings.NewReader(bare))
	var all []string
	for {
		t, err := d.Token()
		if err != nil {
			return strings.Join(all, "\n")
		}
		if text, ok := t.(string); ok && strings.ContainsAny(strings.TrimSpace(text), " 、。") { // else it is a key or a word of the form
			all = append(all, strings.TrimSpace(text))
		}
	}
}
