package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"toritsugi/internal/llm/ollama"
)

// A whole planned run against an Ollama that is there (TORI_TEST_OLLAMA=URL) comes to
// an end of its own: how good its model is decides whether as completed. Recorded
// answers stand in for it in the tests of models and of planned runs.
func TestARealPlannedRun(t *testing.T) {
	address, model := os.Getenv("TORI_TEST_OLLAMA"), os.Getenv("TORI_TEST_OLLAMA_MODEL")
	if address == "" {
		t.Skip("set TORI_TEST_OLLAMA to the address of an Ollama")
	}
	list, err := ollama.ListModels(t.Context(), ollama.Config{BaseURL: address})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		if m, err := ollama.Show(t.Context(), ollama.Config{BaseURL: address, Model: l.Name}); model == "" && err == nil && m.Chat && m.Tools && m.RemoteHost == "" {
			model = l.Name
		}
	}
	if model == "" {
		t.Skip("it has no model that calls tools")
	}
	h := newHouse(t, "", "")
	h.write("issue.md", "# Write a greeting\n\nMake a file greeting.txt that holds the word hello.\n")
	h.settings(fmt.Sprintf("provider: ollama, ollama: {endpoint: %q, model: %q, context_length: 16384}", address, model),
		"checks: [test -f README.md]\nbudget: {max_turns: 40}")
	p := h.start(h.args...)
	code := p.code()
	out := p.out.String()
	t.Logf("%s, exit code %d\n%s", model, code, out)
	if !strings.Contains(out, "Task started") || strings.Contains(out, "panic:") || strings.Contains(out, "not Ollama's") {
		t.Error("it did not work")
	}
	if lines := strings.Split(strings.TrimSpace(out), "\n"); !matches(lines[len(lines)-1], `^(completed|failed|paused|stopped)`) {
		t.Errorf("it did not end: %s", lines[len(lines)-1])
	}
}
