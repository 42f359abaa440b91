package openai

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// sent is the body of the first call of a conversation at an endpoint.
func sent(t *testing.T, base string, cfg Config, set llm.Settings, msgs ...llm.Message) string {
	t.Helper()
	cfg.Provider, cfg.Model, cfg.BaseURL = "p", "m", base
	v := testClient(t, cfg).Open(set).(*conversation)
	for _, m := range msgs {
		v.Append(m)
	}
	if v.broken != nil {
		t.Fatal(v.broken)
	}
	body := string(v.B) + string(v.tail(t.Context()))
	if !json.Valid([]byte(body)) {
		t.Fatalf("not JSON: %s", body)
	}
	return body
}

// TestRequestsByEndpoint: the same conversation in each dialect.
func TestRequestsByEndpoint(t *testing.T) {
	t.Parallel()
	const head = `{"model":"m","stream":true,"stream_options":{"include_usage":true}`
	half := 0.5
	msgs := []llm.Message{
		{Role: llm.RoleUser, Content: "See.", Images: []llm.Image{{MediaType: "image/png", Data: []byte{1, 2, 3, 4}}}},
		{Role: llm.RoleAssistant, Reasoning: "R", Opaque: "of another", ToolCalls: []llm.ToolCall{{ID: "a", Name: "f"}}},
		{Role: llm.RoleTool, ToolCallID: "a", Content: "1", Images: []llm.Image{{MediaType: "image/png"}}},
		{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "b", Name: "f"}}},
		{Role: llm.RoleTool, ToolCallID: "b", Content: "2"},
		{Role: llm.RoleAssistant, Reasoning: "R", Content: "Done."},
	}
	messages := func(r1, r2 string) string {
		return `,"messages":[{"role":"user","content":[{"type":"text","text":"See."},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQIDBA=="}}]},` +
			`{"role":"assistant","content":null` + r1 + `,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},` +
			`{"role":"assistant","content":null` + r2 + `,"tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"b","content":"2"},` +
			`{"role":"assistant","content":"Done."}]`
	}
	const told = `,"reasoning_content":"R"`
	for base, want := range map[string]string{
		"http://localhost:1234/v1":          head + `,"temperature":0.5` + messages(told, "") + `,"max_tokens":9}`,
		"https://API.openai.com/v1":         head + `,"temperature":0.5` + messages("", "") + `,"max_completion_tokens":9}`,
		"https://x.openai.azure.com/openai": head + `,"temperature":0.5` + messages("", "") + `,"max_completion_tokens":9}`,
		"https://api.groq.com/openai/v1":    head + `,"temperature":0.5` + messages("", "") + `,"max_tokens":9}`,
		"https://api.mistral.ai/v1": head + `,"temperature":0.5` +
			strings.NewReplacer(`"a"`, `"GR5IGR3G2"`, `"b"`, `"0ZkM0vRCp"`).Replace(messages("", "")) + `,"max_tokens":9}`,
		"https://notapi.openai.com.evil/v1/": head + `,"temperature":0.5` + messages(told, "") + `,"max_tokens":9}`,
		"https://api.deepseek.com":           head + `,"temperature":0.5` + messages(told, `,"reasoning_content":""`) + `,"max_tokens":9}`,
	} {
		got := sent(t, base, Config{MaxTokens: 9, Temperature: &half}, llm.Settings{}, msgs...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", base, diff)
		}
	}
}

// TestCallIDs: a call and its result have one id, of the form that the endpoint
// takes, whichever model they come from.
func TestCallIDs(t *testing.T) {
	t.Parallel()
	long := "call_" + strings.Repeat("thought", 20)
	ids := []string{"abcDEF123", "call_7", "toolu_01A09q90qw90lq917835lq9", "functions.bash:0", strings.Repeat("x", 40), strings.Repeat("x", 41), long, "日本語のID", "", "call_12ab"}
	for base, want := range map[string]struct {
		form string
		same int // of ids
	}{
		"https://api.openai.com/v1":             {`^.{1,40}$`, 7},
		"https://x.openai.azure.com/openai/v1":  {`^.{1,40}$`, 7},
		"https://api.mistral.ai/v1":             {`^[0-9A-Za-z]{9}$`, 1},
		"https://openrouter.ai/api/v1":          {``, len(ids)},
		"http://localhost:4000/v1":              {``, len(ids)},
		"https://api.deepseek.com":              {``, len(ids)},
		"https://api.groq.com/openai/v1":        {``, len(ids)},
		"https://api.mistral.ai.evil.example/v": {``, len(ids)},
	} {
		form, same, seen := regexp.MustCompile(want.form), 0, map[string]bool{}
		for _, id := range ids {
			body := sent(t, base, Config{}, llm.Settings{}, llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: id, Name: "f"}}}, llm.Message{Role: llm.RoleTool, ToolCallID: id})
			var b struct {
				Messages []struct {
					Calls []struct{ ID string } `json:"tool_calls"`
					Of    string                `json:"tool_call_id"`
				}
			}
			if err := json.Unmarshal([]byte(body), &b); err != nil {
				t.Fatal(err)
			}
			got := b.Messages[0].Calls[0].ID
			if got != b.Messages[1].Of || !form.MatchString(got) || seen[got] {
				t.Errorf("%s: %q is %q and %q, among %v", base, id, got, b.Messages[1].Of, seen)
			}
			if seen[got] = true; got == id {
				same++
			}
		}
		if same != want.same {
			t.Errorf("%s: %d ids of %d as they were, want %d: %v", base, same, len(ids), want.same, seen)
		}
	}
}

func TestTemperature(t *testing.T) {
	t.Parallel()
	for _, bad := range []float64{-0.1, 2.01, math.NaN(), math.Inf(1)} {
		_, err := New(Config{Provider: "p", Model: "m", BaseURL: "http://x", Temperature: &bad})
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != "openai.temperature" {
			t.Errorf("%v: %v", bad, err)
		}
	}
	for value, want := range map[float64]string{0: `"temperature":0,`, 2: `"temperature":2,`, 0.2: `"temperature":0.2,`, 1e-7: `"temperature":1e-07,`} {
		if got := sent(t, "http://x", Config{Temperature: &value}, llm.Settings{}, llm.Message{Role: "user"}); !strings.Contains(got, want) {
			t.Errorf("%v: %s", value, got)
		}
	}
}

func TestUsageOfOddServers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]*llm.Usage{
		`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":1}`: {PromptTokens: 5, CompletionTokens: 2, TotalTokens: 7, CachedTokens: 4},
		`"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":{}}`:               {PromptTokens: 5, CompletionTokens: 2, TotalTokens: 7},
		`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"completion_tokens_details":{"reasoning_tokens":2}}`:       {PromptTokens: 5, CompletionTokens: 2, TotalTokens: 7, ReasoningTokens: 2},
		`"usage":{"prompt_tokens":"5","completion_tokens":2.0,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":3.0}}`:        {PromptTokens: 5, CompletionTokens: 2, TotalTokens: 7, CachedTokens: 3},
		`"usage":{"prompt_tokens":-5,"completion_tokens":1e300,"total_tokens":[]}`:                                                    nil,
		`"usage":"none"`: nil, `"usage":[]`: nil, `"usage":null`: nil, `"usage":{}`: nil, `"usage":{"prompt_tokens":0,"completion_tokens":0}`: nil,
		`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"cached_tokens":5}`: {PromptTokens: 5, CompletionTokens: 2, TotalTokens: 7, CachedTokens: 5},
	} {
		got, e := understand("", `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],`+body+"}\n\n", false)
		if e != nil || !cmp.Equal(got.Usage, want) || got.Message.Content != "a" {
			t.Errorf("%s: %v, %+v", body, e, got)
		}
	}
	got, e := understand("", `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop","usage":{"prompt_tokens":5,"completion_tokens":2}}]}`+"\n\n", false)
	if e != nil || got.Usage == nil || got.Usage.TotalTokens != 7 {
		t.Errorf("in the choice: %v, %+v", e, got)
	}
}
