package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/llm/llmtest"
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
	if err := realRun(t, address, model); err != nil {
		t.Error(err)
	}
}

// realRun has a model plan and do a small task. It fails where the run shows no more
// than that a server is there: without a plan of the model, or an end that is neither
// completed nor, after a tool call, that of its budget.
func realRun(t *testing.T, address, model string) error {
	h := newHouse(t, "", "")
	h.write("issue.md", "# Write a greeting\n\nMake a file greeting.txt that holds the word hello.\n")
	h.settings(fmt.Sprintf("provider: ollama, ollama: {endpoint: %q, model: %q, context_length: 16384}", address, model),
		"checks: [test -f README.md]\nbudget: {max_turns: 40}")
	h.env = []string{"TORI_PLANNING_ENABLED=true"}
	p := h.start(h.args...)
	code := p.code()
	out := p.out.String()
	t.Logf("%s, exit code %d\n%s", model, code, out)
	v := h.only()
	calls, _ := readFile(filepath.Join(v.Dir, "tools.jsonl"))
	plan, err := readFile(filepath.Join(v.Dir, "planning", v.Metadata.UUID+".jsonl"))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	switch {
	case strings.Contains(out, "panic:") || strings.Contains(out, "not Ollama's") || strings.Contains(out, "could not be used"):
		return errors.New("it did not work")
	case err != nil || !matches(string(plan), `"type":"plan"`) || matches(string(plan), `"The plan cannot be used`):
		return fmt.Errorf("no plan is stored: %v", err)
	case strings.HasPrefix(last, "completed"), matches(last, `^failed: .*budget`) && len(calls) > 0:
		return nil
	}
	return fmt.Errorf("it ended as: %s", last)
}

// The test of real servers tells a server that works from one that does not.
func TestTheRealRunsTest(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, c := range map[string]struct {
		answers []llmtest.Answer
		works   bool
	}{
		"it fails":     {[]llmtest.Answer{{Status: 500, ErrorText: "boom"}}, false},
		"it only says": {[]llmtest.Answer{{Text: "Hello."}}, false},
		"it works":     {planned(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.NewOllama(t, func(r *llmtest.Request) llmtest.Answer { return c.answers[min(r.Turn(), len(c.answers)-1)] })
			if err := realRun(t, srv.URL, "m:latest"); (err == nil) != c.works {
				t.Errorf("%v", err)
			}
		})
	}
}
