package models

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"toritsugi/internal/llm/llmtest"
)

// Two processes of one user share a server that takes one call at a time: chat
// goes before work that came earlier.
func TestSlotsAreShared(t *testing.T) {
	t.Parallel()
	arrived, answer := make(chan string), make(chan struct{})
	o := llmtest.NewOllama(t, func(r *llmtest.Request) llmtest.Answer {
		arrived <- *r.Messages[0].Content
		<-answer
		return llmtest.Answer{Text: "fine"}
	})
	state := t.TempDir()
	text := fmt.Sprintf("llm: {state_dir: %q, provider: ollama, ollama: {endpoint: %q, max_parallel: 1}}\n", state, o.URL)
	one, two := openHouse(t, text, nil), openHouse(t, text, nil)
	calls := []struct {
		h    *house
		role string
	}{{one, Task}, {one, Summarizer}, {two, Chat}}
	var wg sync.WaitGroup
	defer wg.Wait()
	var order []string
	for i, c := range calls {
		client := c.h.client(t, Use{Role: c.role, Route: routeOf(c.role), Who: c.role + " of a test"})
		wg.Go(func() {
			if _, err := say(t.Context(), client, c.role); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			order = append(order, <-arrived) // it holds the only slot
		} else {
			c.h.log.await(t, 1, "Waiting for ollama")
		}
	}
	var waiting []string
	for _, q := range one.Health(t.Context()).Queues {
		for _, p := range q.Parties {
			waiting = append(waiting, fmt.Sprint(p.Who, " ", p.Holding))
		}
	}
	if want := []string{"task of a test true", "chat of a test false", "summarizer of a test false"}; !slices.Equal(waiting, want) {
		t.Errorf("the queue is %q", waiting)
	}
	for range 2 {
		answer <- struct{}{}
		order = append(order, <-arrived)
	}
	answer <- struct{}{}
	if want := []string{Task, Chat, Summarizer}; !slices.Equal(order, want) {
		t.Errorf("called in the order %q", order)
	}
}

// Where the directory cannot be had, calls are made without it, and that is said.
func TestNoSlots(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}))
	h := openHouse(t, fmt.Sprintf("llm: {state_dir: /dev/null/x, provider: ollama, ollama: {endpoint: %q}}\n", o.URL), nil)
	if reply, err := say(t.Context(), h.client(t, Use{}), "go"); err != nil || reply.Message.Content != "fine" {
		t.Errorf("%v, %v", reply, err)
	}
	if got := h.log.with("are not limited across processes"); len(got) != 1 {
		t.Errorf("logged %q", got)
	}
}
