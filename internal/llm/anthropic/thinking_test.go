package anthropic

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

func thoughtful(m llm.Message, opaque string) llm.Message {
	m.Opaque = opaque
	return m
}

// TestThinkingIsLeftOut: a budget of thinking is asked for except within a
// round of calls that began without any.
func TestThinkingIsLeftOut(t *testing.T) {
	t.Parallel()
	go1, note := say(llm.RoleUser, "go"), say(llm.RoleUser, "note")
	bare, other := asks("", "x"), asks("", "y")
	began := thoughtful(bare, "["+thought("T")+"]")
	inside := thoughtful(asks("a", "y"), `[{"type":"text","bytes":1},`+thought("T")+`,{"type":"tool_use"}]`)
	for _, c := range []struct {
		name     string
		messages []llm.Message
		thinks   bool
	}{
		{"first call", []llm.Message{go1}, true},
		{"after an answer", []llm.Message{go1, say(llm.RoleAssistant, "a"), go1}, true},
		{"an answer last", []llm.Message{go1, say(llm.RoleAssistant, "a")}, true},
		{"a round that began with it", []llm.Message{go1, began, result("x", "1")}, true},
		{"and goes on without", []llm.Message{go1, began, result("x", "1"), other, result("y", "2")}, true},
		{"a round that began without", []llm.Message{go1, bare, result("x", "1")}, false},
		{"and goes on so", []llm.Message{go1, bare, result("x", "1"), other, result("y", "2")}, false},
		{"and thought then", []llm.Message{go1, bare, result("x", "1"), thoughtful(other, "["+thought("T")+"]"), result("y", "2")}, true},
		{"and thought behind a text", []llm.Message{go1, bare, result("x", "1"), inside, result("y", "2")}, false},
		{"and is over", []llm.Message{go1, bare, result("x", "1"), say(llm.RoleAssistant, "a"), go1}, true},
		{"and more was said", []llm.Message{go1, bare, result("x", "1"), note}, false},
		{"more was said, and no thought since", []llm.Message{go1, began, result("x", "1"), note, other, result("y", "2")}, false},
		{"a picture was shown, and no thought since", []llm.Message{go1, began, result("x", "1"), {Role: llm.RoleUser, Images: []llm.Image{{MediaType: "image/png", Data: []byte{1}}}}, other, result("y", "2")}, false},
		{"a result is missing", []llm.Message{go1, bare}, false},
		{"one of two is missing", []llm.Message{go1, asks("", "x", "y"), result("x", "1")}, false},
		{"thoughts of another maker", []llm.Message{go1, thoughtful(bare, `[{"type":"reasoning","id":"r"}]`), result("x", "1")}, false},
		{"hidden thoughts", []llm.Message{go1, thoughtful(bare, `[{"type":"redacted_thinking","data":"D"}]`), result("x", "1")}, true},
	} {
		half := 0.5
		for thinking, want := range map[int]string{2000: `"max_tokens":2009,"stream":true,"thinking":{"type":"enabled","budget_tokens":2000},`, Adaptive: `"max_tokens":9,"stream":true,"thinking":{"type":"adaptive"},`} {
			cl, sent := offline(t, Config{Thinking: thinking, MaxTokens: 9, Temperature: &half})
			v := cl.Open(llm.Settings{Tools: []llm.Tool{{Name: "f"}}})
			for _, m := range c.messages {
				v.Append(m)
			}
			mustSend(t, v)
			if _, err := v.Send(llm.LimitAnswer(t.Context(), 7), nil); err != nil {
				t.Fatal(err)
			}
			if !c.thinks && thinking != Adaptive {
				want = `"max_tokens":9,"stream":true,"temperature":0.5,`
			}
			lower := strings.NewReplacer(":2009", ":2007", `_tokens":9`, `_tokens":7`).Replace(want)
			for i, want := range []string{want, lower} {
				if got := string((*sent)[i]); !strings.Contains(got, want) {
					t.Errorf("%s: call %d does not hold %s:\n%s", c.name, i+1, want, got)
				}
			}
		}
	}
}

// picky is a transport of an API that takes no thinking back, and the bodies
// that it got.
func picky(t testing.TB, cfg Config, words string) (*client, *[]string) {
	got := new([]string)
	cfg.BaseURL = "http://x"
	cfg.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if *got = append(*got, string(b)); strings.Contains(string(b), `"type":"thinking","thinking":"T"`) {
			return answerWith(400, `{"type":"error","error":{"type":"invalid_request_error","message":"`+words+`"}}`), nil
		}
		return answerWith(200, fine), nil
	})}
	return testClient(t, cfg), got
}

// TestThinkingRefused: where the API takes offence at the thinking it is given
// back, the call is made once more without any, and so are those after it.
func TestThinkingRefused(t *testing.T) {
	t.Parallel()
	history := []llm.Message{
		say(llm.RoleUser, "go"), thoughtful(asks("ab", "x"), `[{"type":"text","bytes":1},`+thought("T")+`,{"type":"text","bytes":1},`+thought("T")+`,{"type":"tool_use"}]`), result("x", "1"),
		thoughtful(asks("", "y"), "["+thought("T")+`,{"type":"redacted_thinking","data":"D"}]`), result("y", "2"),
	}
	for _, words := range []string{
		"messages.1.content.0: Invalid `signature` in `thinking` block",
		"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set ...",
		"messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`.",
		"messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
	} {
		cl, got := picky(t, Config{}, words)
		v := cl.Open(llm.Settings{Tools: []llm.Tool{{Name: "f"}}})
		for _, m := range history {
			v.Append(m)
		}
		mustSend(t, v)
		v.Append(thoughtful(asks("c", "z"), "["+thought("new")+"]"))
		v.Append(result("z", "3"))
		mustSend(t, v)
		const want = `T: !
U: go
A: a | b | use x
U: result x 1!
A: use y
U: result y 2!`
		if len(*got) != 3 {
			t.Fatalf("%s: %d calls", words, len(*got))
		}
		if diff := cmp.Diff(want, outline(t, []byte((*got)[1]))); diff != "" || strings.Contains((*got)[1], "thinking") {
			t.Errorf("%s (-want +got):\n%s\n%s", words, diff, (*got)[1])
		}
		if last := (*got)[2]; !strings.Contains(last, thought("new")) || strings.Count(last, "thinking") != strings.Count(thought("new"), "thinking") {
			t.Errorf("the call after it: %s", last)
		}
	}
	for words, thinks := range map[string]bool{"max_tokens: wrong": true, "Invalid `signature` in `thinking` block": false} {
		cl, got := picky(t, Config{}, words)
		v := cl.Open(llm.Settings{})
		v.Append(say(llm.RoleUser, `"type":"thinking","thinking":"T"`)) // in a text, with its quotes masked, it is none
		if thinks {
			v.Append(thoughtful(say(llm.RoleAssistant, "a"), "["+thought("T")+"]"))
		}
		_, err := v.Send(t.Context(), nil)
		var e *llm.Error
		if thinks && (!errors.As(err, &e) || e.Kind != llm.KindBadRequest || e.Attempts != 1) || !thinks && err != nil || len(*got) != 1 {
			t.Errorf("%s: %v after %d calls", words, err, len(*got))
		}
	}
}

// TestForget: without its thinking a conversation sends what one sends that
// never had any.
func TestForget(t *testing.T) {
	t.Parallel()
	never, plain := picky(t, Config{}, "")
	cl, got := picky(t, Config{}, "invalid `signature` in `thinking` block")
	set, ctx := llm.Settings{Tools: []llm.Tool{{Name: "f"}}}, t.Context()
	message := rapid.Custom(func(t *rapid.T) llm.Message {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return say(llm.RoleUser, rapid.StringN(0, 3, -1).Draw(t, "said"))
		case 1:
			return result("x", "r")
		}
		thoughts := rapid.SliceOfN(rapid.SampledFrom([]string{thought("T"), `{"type":"redacted_thinking","data":"D"}`}), 0, 3).Draw(t, "thoughts")
		return thoughtful(asks(rapid.SampledFrom([]string{"", "a"}).Draw(t, "text"), []string{"x", "x"}[:rapid.IntRange(0, 2).Draw(t, "calls")]...), "["+strings.Join(thoughts, ",")+"]")
	})
	rapid.Check(t, func(t *rapid.T) {
		v, w := cl.Open(set), never.Open(set)
		forgotten := false
		for _, m := range rapid.SliceOfN(message, 1, 12).Draw(t, "messages") {
			if forgotten { // what comes later is kept
				m.Opaque = ""
			}
			v.Append(m)
			m.Opaque = ""
			w.Append(m)
			if rapid.IntRange(0, 4).Draw(t, "send") > 0 {
				continue
			}
			if len(v.(*conversation).tape.thoughts) > 0 {
				v.(*conversation).tape.forget()
				forgotten = true
			}
			for _, conv := range []llm.Conversation{v, w} {
				if _, err := conv.Send(ctx, nil); err != nil {
					t.Fatal(err)
				}
			}
			one, two := (*got)[len(*got)-1], (*plain)[len(*plain)-1]
			if one != two || string(v.Serialized()) != string(w.Serialized()) {
				t.Fatalf("sent\n%s\nnot\n%s", one, two)
			}
			if _, err := llmtest.ParseMessages([]byte(one)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
