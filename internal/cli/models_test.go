package cli

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// settings replaces those of the house; what is said of a file of prices and of
// the state of servers is added.
func (h *house) settings(llm, rest string) {
	h.write("prices.yaml", "models:\n  \"openai/m\": {input: 2, output: 10}\n  \"anthropic/m\": {input: 2, output: 10}\n")
	h.config = h.write("config.yaml", fmt.Sprintf("language: en\nllm: {max_retries: 0, prices_file: %q, %s}\n%s\n", filepath.Join(h.dir, "prices.yaml"), llm, rest))
}

// ends runs tori to its end and demands an exit code and a last line.
func (h *house) ends(code int, last string, args ...string) string {
	h.t.Helper()
	p := h.start(args...)
	if got := p.code(); got != code {
		h.t.Fatalf("exit code %d, want %d:\n%s", got, code, p.out.String())
	}
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	if got := lines[len(lines)-1]; !matches(got, last) {
		h.t.Errorf("last line %q, want %q:\n%s", got, last, p.out.String())
	}
	return p.out.String()
}

// A model that takes no tools works by text, from an issue to a verified commit.
func TestRunWithToolsAsText(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	writes := func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 0 {
			return llmtest.Answer{Text: "I write it.\n\n```json\n" + `{"comment": "as asked", "call_tool": [{"tool": "write_file", "args": {"path": "b.txt", "content": "work\n"}}, {"tool": "read_file", "args": {"path": "b.txt"}}]}` + "\n```"}
		}
		return llmtest.Answer{Text: "It is there."}
	}
	for name, start := range map[string]func(*testing.T) (settings string, requests func() []llmtest.Request){
		"chat format": func(t *testing.T) (string, func() []llmtest.Request) {
			s := llmtest.NewServer(t, writes)
			return fmt.Sprintf("provider: openai, openai: {base_url: %q, model: m}", s.URL), s.Requests
		},
		"Ollama": func(t *testing.T) (string, func() []llmtest.Request) {
			o := llmtest.NewOllama(t, writes, llmtest.OllamaModel{Name: "m", Capabilities: []string{"completion"}})
			return fmt.Sprintf("provider: ollama, ollama: {endpoint: %q, model: m}", o.URL), o.Requests
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, requests := start(t)
			h := newHouse(t, "", "")
			h.settings("function_calling: false, "+settings, "checks: [test -f README.md]")
			h.ends(exitOK, "^completed: checks passed: `test -f README.md`$", h.args...)
			all := requests()
			llmtest.CheckPrefix(t, all)
			if len(all) != 2 || len(all[0].Tools) != 0 || !strings.Contains(*all[0].Messages[0].Content, "## write_file") {
				t.Errorf("%d requests, the first offers %q", len(all), all[0].Tools)
			}
			results := ""
			for _, m := range all[1].Messages[3:] {
				results += m.Role + ": " + *m.Content + "\n"
			}
			if !matches(results, `^user: Result of \S+ \(write_file\):\n(.*\n)+user: Result of \S+ \(read_file\):\n`) {
				t.Errorf("results come as\n%s", results)
			}
			if got := gitOut(t, filepath.Join(h.dir, "repo"), "show", "tori/issue-issue-count-to-a-hundred:b.txt"); got != "work\n" {
				t.Errorf("committed %q", got)
			}
			if v := h.only(); v.State.ToolCallCount != 2 || v.Status() != task.Completed {
				t.Errorf("%s, %d calls of tools", v.Status(), v.State.ToolCallCount)
			}
		})
	}
}

// A whole run on a local Ollama: each request has what Ollama must be told, or
// it would cut the conversation off in silence and let the model go.
func TestRunOnOllama(t *testing.T) {
	t.Parallel()
	loop := llmtest.Loop(3, "write_file", `{"path":"turn{{turn}}.txt","content":"x\n"}`, "Done.")
	o := llmtest.NewOllama(t, func(r *llmtest.Request) llmtest.Answer {
		a := loop(r)
		a.Usage = &llm.Usage{PromptTokens: 2000, CompletionTokens: 10, TotalTokens: 2010}
		return a
	}, llmtest.OllamaModel{Name: "coder-v1:latest", ContextLength: 24000, Capabilities: []string{"completion", "tools", "vision"}})
	h := newHouse(t, "", "")
	h.settings(fmt.Sprintf("provider: ollama, ollama: {endpoint: %q, model: ollama/coder-v1}", o.URL), "checks: [test -f turn3.txt]")
	h.write("issue.md", "# Count to a hundred\n\n![as here](shot.png)\n")
	h.write("shot.png", png+"one")
	h.ends(exitOK, "^completed: checks passed: ", h.args...)
	all := o.Requests()
	llmtest.CheckPrefix(t, all)
	if len(all) != 4 {
		t.Errorf("%d requests", len(all))
	}
	image := []byte(`"images":["` + base64.StdEncoding.EncodeToString([]byte(png+"one")) + `"]`)
	for _, r := range all {
		if r.Model != "coder-v1" || r.NumCtx != 24000 || string(r.KeepAlive) != "-1" || len(r.Tools) < 5 || !bytes.Contains(r.Body, []byte(`"truncate":false,"shift":false`)) || bytes.Count(r.Body, image) != 1 {
			t.Errorf("request %d: model %s, num_ctx %d, keep_alive %s, tools %q: %.300s", r.Number, r.Model, r.NumCtx, r.KeepAlive, r.Tools, r.Body)
		}
	}
	v := h.only()
	if v.Metadata.Config.Provider != "ollama" || v.Metadata.Config.ContextLength != 24000 || v.State.CostMicroUSD != 0 || v.State.UnpricedCalls != 0 || v.State.PromptTokens != 8000 {
		t.Errorf("%+v, %+v", v.Metadata.Config, v.State.Spending)
	}
}

// Where a run ends however far it got, it says which limit that was, and tori
// show what it took.
func TestRunEndsAtItsLimits(t *testing.T) {
	t.Parallel()
	endless := func(*llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "list_files", Arguments: `{}`}}, Usage: &llm.Usage{PromptTokens: 1000, CompletionTokens: 100, TotalTokens: 1100}}
	}
	for _, c := range []struct {
		name, role, settings, last, shown string
		limits                            []int // of the answers that were asked for
	}{
		{name: "the answers of coder3", role: "coder3", settings: "coder3: {max_tokens: 250, model: m}\nrouting: {llm: {coder3_model: m}}",
			last: `^failed: the budget is used up: 300 of 250 \(coder3.max_tokens\)$`, shown: `\$0\.009`, limits: []int{250, 150, 50}},
		{name: "a cost below a millionth", role: "task", settings: "budget: {max_cost_usd: 0.0000001}",
			last: `^failed: the budget is used up: \$0\.0030? of \$0\.000001 \(budget.max_cost_usd\)$`, shown: `\$0\.003`, limits: []int{0}},
		{name: "the cost", role: "task", settings: "budget: {max_cost_usd: 0.005}",
			last: `^failed: the budget leaves no room for another call: \$0\.0030? of \$0\.0050? are taken, and one takes about \$0\.0030? \(budget.max_cost_usd\)$`, shown: `\$0\.003`, limits: []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, endless)
			h := newHouse(t, "", "")
			h.settings(fmt.Sprintf("provider: openai, openai: {base_url: %q, model: m}, anthropic: {base_url: %q}", s.URL, s.URL), c.settings)
			h.ends(exitFailed, c.last, append(h.args, "--role", c.role)...)
			var limits []int
			for _, r := range s.Requests() {
				limits = append(limits, r.Limit)
			}
			if fmt.Sprint(limits) != fmt.Sprint(c.limits) {
				t.Errorf("answers of %v tokens were asked for", limits)
			}
			if out := h.ends(0, "", "show", h.only().Metadata.UUID, "--base-dir", h.base()); !matches(out, c.shown) {
				t.Errorf("no %s in\n%s", c.shown, out)
			}
		})
	}
}

// A run that was killed and resumed has a record of all its answers.
func TestRecordOfAKilledRun(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch r.Turn() {
		case 0:
			return llmtest.Answer{Text: "One.", Calls: []llm.ToolCall{{ID: "c1", Name: "write_file", Arguments: `{"path":"one.txt","content":"1\n"}`}}}
		case 1:
			return llmtest.Answer{Text: "Two.", Calls: []llm.ToolCall{{ID: "c2", Name: "shell", Arguments: `{"command":"touch began; sleep 60"}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h := newHouse(t, server.URL, "")
	first, second := filepath.Join(h.dir, "first.jsonl"), filepath.Join(h.dir, "second.jsonl")
	p := h.start(append(h.args, "--record", first)...)
	h.await("workspaces/*/tree/began")
	_ = p.Process.Kill()
	_ = p.Wait()
	id := h.only().Metadata.UUID
	args := func(file string) []string {
		return append([]string{"run", "--resume", id, "--base-dir", h.base(), "--record", file}, h.bare...)
	}
	h.ends(exitUsage, "first.jsonl", args(first)...)
	h.ends(exitOK, "^completed: ", args(second)...)
	begun, err := readFile(first)
	if err != nil || bytes.Count(begun, []byte("\n")) != 2 {
		t.Errorf("before the kill: %v\n%s", err, begun)
	}
	whole, err := readFile(second)
	if err != nil || bytes.Count(whole, []byte("\n")) != 3 || !bytes.HasPrefix(whole, begun) || !bytes.Contains(whole, []byte(`"content":"Done."`)) {
		t.Errorf("after it: %v\n%s", err, whole)
	}
}
