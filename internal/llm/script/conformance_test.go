package script

import (
	"encoding/json"
	"testing"

	"toritsugi/internal/llm/llmtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	llmtest.Conformance(t, func(t *testing.T, _ llmtest.Options, answers ...llmtest.Answer) llmtest.Rig {
		var lines []byte
		for _, a := range answers {
			l := line{Role: "assistant", Content: a.Text}
			for _, c := range a.Calls {
				l.ToolCalls = append(l.ToolCalls, call(c))
			}
			b, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(append(lines, b...), '\n')
		}
		c, err := Parse("answers.jsonl", lines)
		if err != nil {
			t.Fatal(err)
		}
		return llmtest.Rig{Client: c}
	})
}
