package models

import (
	"fmt"
	"testing"

	"toritsugi/internal/llm/llmtest"
)

// A process that lives long asks for ten thousand clients and keeps what a few
// servers need.
func TestClientsAreKeptInBounds(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "fine"} })
	s := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}))
	h := openHouse(t, fmt.Sprintf("llm: {ollama: {endpoint: %q}, vllm: {base_url: %q, model: m}}\nrouting: {llm: {coder_provider: vllm}}", o.URL, s.URL), nil)
	for n := range 10_000 {
		u := Use{Role: "coder"}
		if n%20 == 0 { // its server is asked for its limits each time
			u = Use{Role: []string{Chat, Worker}[n/20%2], Route: "CHAT"}
		}
		h.client(t, u)
	}
	if got := len(h.kept.clients); got != 2 {
		t.Errorf("%d HTTP clients of 2 servers", got)
	}
	if got := len(h.kept.cares); got != 2 {
		t.Errorf("%d cares of 2 roles", got)
	}
	if got := len(h.breakers) + len(h.slots); got > 4 {
		t.Errorf("%d breakers and slots", got)
	}
}

// Models that people name are without end; those that were asked for last are
// looked after.
func TestCaresAreGivenUp(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "fine"} })
	h := openHouse(t, fmt.Sprintf("llm: {max_retries: 0, ollama: {endpoint: %q}}", o.URL), nil)
	first := h.client(t, Use{Role: Chat, Route: "CHAT"})
	care := h.kept.cares[0].care
	for n := range 3 * maxCares {
		spec := Spec{Role: Task, Provider: "ollama", Address: o.URL, Model: fmt.Sprintf("m%d", n)}
		if _, err := h.care(&spec, h.httpClient(&spec)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(h.kept.cares); got != maxCares {
		t.Errorf("%d cares", got)
	}
	if reply, err := say(t.Context(), first, "go"); err != nil || reply.Message.Content != "fine" {
		t.Errorf("%v, %v of a client whose care is gone", reply, err)
	}
	h.client(t, Use{Role: Chat, Route: "CHAT"})
	if last := h.kept.cares[maxCares-1]; last.care == care || last.role != Chat {
		t.Errorf("the care that was given up is used again: %+v", last)
	}
}
