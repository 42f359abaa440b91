package models

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// asText is a call as a model writes it that takes no tools.
const asText = "I look.\n\n```json\n" + `{"comment": "to see", "call_tool": [{"tool": "look", "args": {"at": "README.md"}}]}` + "\n```"

// loop works with one tool until the model is done, as an agent does, and
// returns the calls of it and the last text.
func loop(t *testing.T, c llm.Client) (calls []string, last string) {
	t.Helper()
	v := c.Open(llm.Settings{Tools: []llm.Tool{{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object"}`)}}})
	held := []llm.Message{{Role: llm.RoleSystem, Content: "You look."}, {Role: llm.RoleUser, Content: "go"}}
	fill := func() error {
		for _, m := range held {
			v.Append(m)
		}
		return nil
	}
	if r, ok := v.(llm.Refillable); ok {
		r.OnMove(fill)
	}
	_ = fill()
	for range 5 {
		reply, err := v.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		news := []llm.Message{reply.Message}
		for _, call := range reply.Message.ToolCalls {
			calls = append(calls, call.Name+call.Arguments)
			news = append(news, llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: "seen"})
		}
		if len(news) == 1 {
			return calls, reply.Message.Content
		}
		for _, m := range news {
			v.Append(m)
		}
		held = append(held, news...)
	}
	t.Fatal("no end")
	return nil, ""
}

// writes answers in text, and takes tools where refuse is "".
func writes(refuse string) llmtest.Handler {
	return func(r *llmtest.Request) llmtest.Answer {
		switch {
		case len(r.Tools) > 0 && refuse != "":
			return llmtest.Answer{Status: 400, ErrorText: refuse}
		case r.Turn() > 0:
			return llmtest.Answer{Text: "Done."}
		case len(r.Tools) > 0:
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "call_1", Name: "look", Arguments: `{"at":"README.md"}`}}}
		}
		return llmtest.Answer{Text: asText}
	}
}

// However tools reach a model, whoever works with it sees the same.
func TestTextTools(t *testing.T) {
	t.Parallel()
	completion := llmtest.OllamaModel{Name: "m", Capabilities: []string{"completion"}}
	tools := llmtest.OllamaModel{Name: "m", Capabilities: []string{"completion", "tools"}}
	for _, c := range []struct {
		name, setting, refuse string
		model                 *llmtest.OllamaModel // nil is the chat format
		text                  bool                 // tools are told in text, in the end
		refused               int                  // requests that offered tools in vain
		logged                string
	}{
		{name: "chat format, false", setting: "function_calling: false", text: true},
		{name: "chat format, auto", setting: "function_calling: auto"},
		{name: "chat format, refused", refuse: "m does not support tools", text: true, refused: 1, logged: "openai/m takes no tools; they are told and called in text from now on"},
		{name: "Ollama, false", setting: "function_calling: false", model: &tools, text: true},
		{name: "Ollama, with tools", model: &tools},
		{name: "Ollama, without", model: &completion, text: true},
		{name: "Ollama, too old to say", model: &llmtest.OllamaModel{Name: "m"}, text: true}, // its template knows no tools
		{name: "Ollama, refused", model: &tools, refuse: "registry.ollama.ai/library/m does not support tools", text: true, refused: 1, logged: "ollama/m takes no tools"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var requests func() []llmtest.Request
			text := "llm: {max_retries: 0, " + c.setting
			if c.setting != "" {
				text += ", "
			}
			if c.model != nil {
				o := llmtest.NewOllama(t, writes(c.refuse), *c.model)
				text += fmt.Sprintf("provider: ollama, ollama: {endpoint: %q, model: m}}", o.URL)
				requests = o.Requests
			} else {
				s := llmtest.NewServer(t, writes(c.refuse))
				text += fmt.Sprintf("provider: openai, openai: {base_url: %q, model: m}}", s.URL)
				requests = s.Requests
			}
			h := openHouse(t, text, nil)
			client := h.client(t, Use{})
			for range 2 { // what was learnt holds for the next conversation
				calls, last := loop(t, client)
				if strings.Join(calls, ",") != `look{"at":"README.md"}` && strings.Join(calls, ",") != `look{"at": "README.md"}` || last != "Done." {
					t.Errorf("%q, then %q", calls, last)
				}
			}
			all := requests()
			if len(all) != 4+c.refused {
				t.Errorf("%d requests", len(all))
			}
			for _, r := range all[min(c.refused, len(all)):] {
				if told := strings.Contains(*r.Messages[0].Content, "## look"); told != c.text || (len(r.Tools) == 0) != c.text {
					t.Errorf("request %d offers %q and tells of tools: %v", r.Number, r.Tools, told)
				}
			}
			llmtest.CheckPrefix(t, all[c.refused:c.refused+2])
			if got := h.log.with("takes no tools"); len(got) != min(len(c.logged), 1) || len(got) > 0 && !strings.Contains(got[0], c.logged) {
				t.Errorf("logged %q", got)
			}
		})
	}
}
