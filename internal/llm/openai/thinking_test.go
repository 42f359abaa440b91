package openai

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

var thoughtTexts = []struct{ in, thoughts, text string }{
	{"<think>Hm.</think>Yes.", "Hm.", "Yes."},
	{"\n <think>\nHm.\n</think>\n\nYes.\n", "\nHm.\n", "Yes.\n"},
	{"<think></think>Yes.", "", "Yes."},
	{"<think>cut off", "cut off", ""},
	{"<think>cut off </thin", "cut off </thin", ""},
	{"<think>a </b> <</think>x", "a </b> <", "x"},
	{"<think>Hm.</think>  ", "Hm.", ""},
	{"<think>a</think>b<think>c</think>", "a", "b<think>c</think>"},
	{"<thin", "", "<thin"},
	{"<thinking>x", "", "<thinking>x"},
	{" \n", "", " \n"},
	{"  plain", "", "  plain"},
	{"say <think>", "", "say <think>"},
	{"", "", ""},
}

// TestThoughtsInTheText: however a text is cut into pieces, its thoughts are
// found, and what is streamed is the text that remains.
func TestThoughtsInTheText(t *testing.T) {
	t.Parallel()
	for _, c := range thoughtTexts {
		rapid.Check(t, func(r *rapid.T) {
			var body, streamed strings.Builder
			for rest := c.in; rest != ""; {
				n := rapid.IntRange(1, len(rest)).Draw(r, "piece")
				fmt.Fprintf(&body, "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", rest[:n])
				rest = rest[n:]
			}
			cl := &client{maxEvent: 4096, maxAnswer: 8192}
			a := &answer{maxSize: 8192, onText: func(s string) { streamed.WriteString(s) }}
			if e, err := cl.read(r.Context(), a, "", strings.NewReader(body.String()+event("", stop))); e != nil || err != nil {
				r.Fatal(e, err)
			}
			reply, e := a.reply(0)
			if e != nil || reply.Message.Reasoning != c.thoughts || reply.Message.Content != c.text || streamed.String() != c.text {
				r.Fatalf("%q: %v, thoughts %q, text %q, streamed %q", c.in, e, reply.Message.Reasoning, reply.Message.Content, streamed.String())
			}
		})
	}
}

func TestBlankPiecesAreLookedAtOnce(t *testing.T) { // not parallel: it measures
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var th thinking
	for range 100_000 {
		th.split(" ")
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 16<<20 {
		t.Errorf("%d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

func TestReasoningByAnyName(t *testing.T) {
	t.Parallel()
	for delta, want := range map[string]string{
		`"reasoning_content":"a"`: "a", `"reasoning":"a"`: "a", `"reasoning":"a","reasoning_content":"a"`: "a",
		`"reasoning":null,"reasoning_content":null`: "", `"reasoning":{"a":1}`: `{"a":1}`,
	} {
		got, e := understand("", event(delta, "")+event(`"content":"x"`, stop), false)
		if e != nil || got.Message.Reasoning != want || got.Message.Content != "x" {
			t.Errorf("%s: %v, %+v", delta, e, got)
		}
	}
}

// FuzzReadPlain: what the short way understands, the long way understands alike.
func FuzzReadPlain(f *testing.F) {
	for _, s := range []string{
		`{"id":"c","object":"chat.completion.chunk","created":17,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}`,
		` { "choices" : [ { "delta" : { "role" : "assistant" , "content" : "a\n\u00e9\ud83e\udd8a" } } ] } `,
		`{"choices":[{"delta":{"content":"a"}},{}]}`, `{"choices":[{"delta":{"content":"\ud83e"}}]}`, `{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`,
		`{"choices":[{"delta":{"content":"a","content":"b"}}]}`, `{"choices":[{"delta":{"content":"a"}}],"usage":{}}`, `{"choices":[{"delta":{"content":"a"}}]}x`,
		`{"choices":[{"index":1,"delta":{"content":"a"}}]}`, `{"a":01,"choices":[{"delta":{"content":"a"}}]}`, "{\"choices\":[{\"delta\":{\"content\":\"\xff\\\"\"}}]}",
		`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0,"total_tokens":9,"cached_tokens":3,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":null}}`,
		`{"choices":[],"usage":{"prompt_tokens":1,"total_tokens":99999999999}}`, `{"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":7,"cost":0.1}}`, `{"choices":[],"usage":{"prompt_tokens":00}}`,
		`{"choices":[{"delta":{"content":null,"role":"assistant"}}]}`, `{"choices":[{"finish_reason":"stop"}],"model":"m"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		defer disktest.Bounded(t, len(data))()
		p, ok := readPlain([]byte(data))
		if !ok {
			return
		}
		var c chunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			if strings.Contains(err.Error(), "cannot unmarshal") {
				return // a field that is of no account here has another type
			}
			t.Fatalf("%q is no JSON: %v", data, err)
		}
		if len(c.Choices) > 1 {
			t.Fatalf("%q has %d choices", data, len(c.Choices))
		}
		c.Choices = append(c.Choices, choice{}) // none is as much as one that says nothing
		ch := &c.Choices[0]
		d := &ch.Delta
		if d.Refusal+d.Reasoning+d.Thoughts != "" || d.ToolCalls != nil || d.FunctionCall != nil || ch.Message != nil || ch.Usage != nil || ch.Index != 0 || wire.Told(c.Error) || wire.Told(ch.Error) {
			t.Fatalf("%q: %+v", data, c)
		}
		if strings.Count(strings.ToLower(data), "content") > 1 || strings.Count(strings.ToLower(data), "model") > 1 || strings.Count(strings.ToLower(data), "finish_reason") > 1 {
			return // of a key that is there twice, or in other letters, either value will do
		}
		if strings.Count(strings.ToLower(data), "tokens") == strings.Count(data, "tokens") && !twice(data) && !cmp.Equal(p.usage.report(), c.Usage.report()) {
			t.Fatalf("%q: usage %+v, quick %+v", data, c.Usage, p.usage)
		}
		if d.Content != string(p.text) || ch.FinishReason != string(p.finish) || c.Model != string(p.model) {
			t.Fatalf("%q: %q %q %q, but it is %+v", data, p.text, p.finish, p.model, c)
		}
	})
}

// twice reports whether a name of a count, or that of the usage, may be there
// more than once in one object, or in other letters.
func twice(data string) bool {
	if strings.Count(strings.ToLower(data), "usage") > 1 || strings.Count(strings.ToLower(data), "cached_tokens") > 2 {
		return true
	}
	for _, name := range []string{"prompt_tokens\"", "completion_tokens\"", "total_tokens\"", "cache_hit_tokens\"", "reasoning_tokens\"", "_details\""} {
		if strings.Count(strings.ToLower(data), name) > 1+strings.Count(name, "details") {
			return true
		}
	}
	return false
}

// TestReadPlainTakesTheCommonEvents: a short way that nobody takes is none.
func TestReadPlainTakesTheCommonEvents(t *testing.T) {
	t.Parallel()
	for i, line := range strings.Split(strings.TrimSpace(stream(1)), "\n\n") {
		p, ok := readPlain([]byte(strings.TrimPrefix(line, "data: ")))
		want := i < 4 // then comes the end
		if ok != want || ok && (string(p.text) != []string{"", " some", "", ""}[i] || string(p.finish) != []string{"", "", "stop", ""}[i] || string(p.model) != "gpt-4o-2024-08-06") {
			t.Errorf("event %d: %+v, %v", i, p, ok)
		}
		if u := p.usage.report(); (u != nil) != (i == 3) || u != nil && *u != (llm.Usage{PromptTokens: 9, CompletionTokens: 7, TotalTokens: 16}) {
			t.Errorf("event %d: usage %+v", i, u)
		}
	}
}

// TestRefusalAndCalls: calls beside a refusal are still calls.
func TestRefusalAndCalls(t *testing.T) {
	t.Parallel()
	got, e := understand("", event(`"refusal":"No."`, "")+calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`)+event("", stop), false)
	if e != nil || got.FinishReason != llm.FinishToolCalls {
		t.Errorf("%v, %+v", e, got)
	}
}
