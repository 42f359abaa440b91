package cli

import (
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// A run with Anthropic's Messages API, interrupted and resumed: what the
// provider wants back goes back as it was.
func TestRunWithAnthropic(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch r.Turn() {
		case 0:
			return llmtest.Answer{Text: "I write it.", Calls: []llm.ToolCall{{ID: "toolu_1", Name: "shell", Arguments: `{"command":"echo x > new.txt; touch began; sleep 60"}`}}}
		case 1:
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "toolu_2", Name: "shell", Arguments: `{"command":"echo y >> new.txt"}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h := newHouse(t, server.URL, "")
	h.config = h.write("config.yaml", fmt.Sprintf("language: en\nchecks: []\nllm:\n  provider: anthropic\n  max_retries: 0\n  anthropic: {base_url: %q, model: claude-sonnet-4.5, api_key: key-for-a-test}\n", server.URL))
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	_ = p.Process.Kill()
	_ = p.Wait()
	p = h.start(append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
	if code := p.code(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	llmtest.CheckPrefix(t, server.Requests())
	v := h.only()
	if v.Metadata.Config.Provider != "anthropic" || v.Metadata.Config.ContextLength != 200000 {
		t.Errorf("%+v", v.Metadata.Config)
	}
	var calls int
	err := v.Tail(contextstore.Messages, -1, func(b []byte) error { calls += strings.Count(string(b), `"tool_call_id":"toolu_`); return nil })
	if err != nil || calls != 2 {
		t.Errorf("%d results: %v", calls, err)
	}
}
