package openai

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/llm"
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

// TestRefusalAndCalls: calls beside a refusal are still calls.
func TestRefusalAndCalls(t *testing.T) {
	t.Parallel()
	got, e := understand("", event(`"refusal":"No."`, "")+calls(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`)+event("", stop), false)
	if e != nil || got.FinishReason != llm.FinishToolCalls {
		t.Errorf("%v, %+v", e, got)
	}
}
