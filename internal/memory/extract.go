package memory

import (
	"fmt"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// The bounds of an extract: bytes of the latest summary, of one text and of all
// texts of the model; paths; messages that are looked at.
const (
	extractSummary  = 3000
	extractText     = 600
	extractTexts    = 5
	extractMessages = finalMessages
)

// Extract is what stands for a final summary where no model writes one: out of
// the record, the latest summary, which may be nil, the paths that calls have
// changed since, and what the model said last. What people said is not in it
// (inherit §8.1). except is a text that is told elsewhere. "" where no model has
// said anything.
func Extract(log *contextstore.MessageLog, latest *contextstore.Summary, except string) (string, error) {
	var b strings.Builder
	after := int64(0)
	if latest != nil {
		after = latest.EndSeq
		fmt.Fprintf(&b, "Summary of the messages up to %d, by a model:\n%s\n", after, quoted(middle(latest.Summary, extractSummary)))
	}
	var changed pinList
	var texts []string
	asked := false
	err := log.Tail(extractMessages, func(m contextstore.Message, _ []byte) bool {
		asked = asked || m.Role == llm.RoleUser || m.Role == llm.RoleTool || m.Seq > maxFront
		if m.Role != llm.RoleAssistant || m.Seq <= after || !asked { // before the request it says what was inherited
			return true
		}
		for _, c := range m.ToolCalls {
			changed.add(editedPath(c))
		}
		if s := strings.TrimSpace(unformed(m)); s != "" && s != strings.TrimSpace(except) {
			texts = append(texts[max(0, len(texts)+1-extractTexts):], middle(s, extractText))
		}
		return true
	})
	if len(changed.list) > 0 {
		fmt.Fprintf(&b, "Files that calls changed since: %s\n", strings.Join(changed.list, ", "))
	}
	if len(texts) > 0 {
		b.WriteString("What the model said last, word for word:\n")
	}
	for _, s := range texts {
		b.WriteString(quoted(s) + "\n")
	}
	return b.String(), err
}

// quoted is a text as a quotation.
func quoted(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n> ")
}
