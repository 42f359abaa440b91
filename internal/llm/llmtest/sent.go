package llmtest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"toritsugi/internal/llm"
)

// keeper is a transport that answers at once; it reads what is sent only where
// it is prompt.
type keeper struct {
	prompt bool
	answer string
	bodies []io.ReadCloser
}

func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	body := r.Body
	if k.prompt {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = io.NopCloser(bytes.NewReader(b))
	}
	k.bodies = append(k.bodies, body)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(k.answer)), Request: r}, nil
}

// SentBytesStay checks a client that sends from the memory of its conversation: what a
// transport has not read yet does not change with the conversation, and is what
// one that reads at once got; most messages move nothing. answer is the vendor's
// form of the text "ok".
func SentBytesStay(t *testing.T, answer string, build func(*http.Client) llm.Client) {
	t.Helper()
	const rounds = 12
	sent := map[bool][]string{}
	for _, prompt := range []bool{true, false} {
		k := &keeper{prompt: prompt, answer: answer}
		v := build(&http.Client{Transport: k}).Open(llm.Settings{})
		var serialized []string
		moved := 0
		for n := range rounds {
			v.Append(llm.Message{Role: llm.RoleUser, Content: strings.Repeat("a", 10*n+1)})
			during := ""
			if _, err := v.Send(t.Context(), func(string) { during = string(v.Serialized()) }); err != nil {
				t.Fatal(err)
			}
			if after := string(v.Serialized()); during != after {
				t.Fatalf("serialized within the call:\n%s\nafter it:\n%s", during, after)
			}
			if _, err := v.Send(llm.LimitAnswer(t.Context(), n+1), nil); err != nil { // with another tail
				t.Fatal(err)
			}
			serialized = append(serialized, string(v.Serialized()))
			at := &v.Serialized()[0]
			v.Append(llm.Message{Role: llm.RoleAssistant, Content: "ok"})
			if at != &v.Serialized()[0] {
				moved++
			}
		}
		v.Reset()
		v.Append(llm.Message{Role: llm.RoleUser, Content: strings.Repeat("another beginning", rounds)})
		for n, s := range serialized {
			if n > 0 && !strings.HasPrefix(s, serialized[n-1]) {
				t.Errorf("not a prefix:\n%s\n%s", serialized[n-1], s)
			}
		}
		for _, body := range k.bodies {
			b, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			sent[prompt] = append(sent[prompt], string(b))
		}
		if moved > rounds/2 {
			t.Errorf("it moved %d times of %d", moved, rounds)
		}
	}
	if n := len(sent[true]); n != 2*rounds || n != len(sent[false]) {
		t.Fatalf("%d and %d requests, want %d", n, len(sent[false]), 2*rounds)
	}
	for n, want := range sent[true] {
		if got := sent[false][n]; got != want {
			t.Errorf("request %d, read late:\n%s\nread at once:\n%s", n+1, got, want)
		}
		if n%2 == 1 && want == sent[true][n-1] {
			t.Errorf("request %d has no limit of its own: %s", n+1, want)
		}
	}
}
