package turn

import (
	"encoding/json"
	"strings"
)

// said is the beginning of an answer's text, for whoever watches the log.
func said(text string) []any {
	if text = Words(text); strings.TrimSpace(text) == "" {
		return nil
	}
	return []any{"said", firstLine(text)}
}

// Words is what a text says to people: of one that is an object for programs the
// comment, or else the summary, in it.
func Words(text string) string {
	text = strings.TrimSpace(text)
	object := strings.IndexByte(text, '{')
	if before := strings.TrimSpace(text[:max(object, 0)]); object < 0 || before != "" && !strings.HasPrefix(before, "```") {
		return text
	}
	found := ""
	for d := json.NewDecoder(strings.NewReader(text[object:])); ; {
		var o struct {
			Comment string
			Summary json.RawMessage
		}
		if d.Decode(&o) != nil {
			return found
		}
		if o.Comment == "" && json.Unmarshal(o.Summary, &o.Comment) != nil {
			continue // a summary in parts is for programs, too
		}
		if o.Comment != "" {
			found = o.Comment
		}
	}
}

func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > maxSaid || more {
		return string(r[:min(len(r), maxSaid)]) + "…"
	}
	return line
}

const maxSaid = 100 // characters of a text that a log record shows

// brief is the argument that tells most of a call, for whoever watches the log.
func brief(arguments string) []any {
	var args map[string]any
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return nil
	}
	for _, k := range []string{"command", "path", "pattern"} {
		if s, ok := args[k].(string); ok && strings.TrimSpace(s) != "" {
			return []any{k, firstLine(s)}
		}
	}
	return nil
}
