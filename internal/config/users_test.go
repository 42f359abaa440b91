package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/i18n"
)

// house is a configuration with a choice, a key and limits of its own.
const house = `
llm:
  provider: anthropic
  fallbacks: [ollama/spare]
  anthropic: {api_key: key-of-the-house, model: claude-house}
  openai: {api_key: openai-of-the-house, base_url: 'https://gate.example/v1'}
routing: {llm: {task_provider: anthropic, task_model: claude-task, task_context_length: 5000, task_fallbacks: [openai/gpt-4o], task_temperature: 0.5}}
budget: {max_turns: 100, user_day: {max_tokens: 1000}, day: {max_tokens: 9000}}
`

func TestPersonal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, settings string
		want           string
	}{
		{"nothing", ``, ""},
		{"a model of their own", `{llm: {provider: openai, openai: {api_key: sk-hanako-0123456789, model: gpt-own, context_length: 64000}}}`,
			"task openai// 0.5 -> gpt-own, key sk-hanako-0123456789 at https://gate.example/v1, 64000; no fallbacks; models, keys [sk-hanako-0123456789]"},
		{"another provider, on the house", `{llm: {provider: openai}}`, "task openai// 0.5 -> gpt-4o, key openai-of-the-house at https://gate.example/v1, 128000; no fallbacks; models, keys []"},
		{"another model", `{llm: {anthropic: {model: claude-own}}}`, "task anthropic// 0.5 -> claude-own, key key-of-the-house at https://api.anthropic.com, 200000; no fallbacks; models, keys []"},
		{"a key alone", `{llm: {anthropic: {api_key: ant-hanako-0123456789}}}`, "task anthropic/claude-task/5000 0.5 -> claude-house, key ant-hanako-0123456789 at https://api.anthropic.com, 200000; no fallbacks; models, keys [ant-hanako-0123456789]"},
		{"a server of their own gets no key of the house", `{llm: {provider: openai, openai: {base_url: 'https://theirs.example/v1'}}}`, "task openai// 0.5 -> gpt-4o, key  at https://theirs.example/v1, 128000; no fallbacks; models, keys []"},
		{"the house's server, named", `{llm: {provider: openai, openai: {base_url: 'https://gate.example/v1/'}}}`, "task openai// 0.5 -> gpt-4o, key openai-of-the-house at https://gate.example/v1, 128000; no fallbacks; models, keys []"},
		{"a password in an address", `{llm: {provider: ollama, ollama: {endpoint: 'http://u:password-of-hanako@gpu:11434', model: m}}}`,
			"task ollama// 0.5; no fallbacks; models, keys [password-of-hanako]"},
		{"limits", `{budget: {max_tokens: 7, user_day: {max_tokens: 8}}, max_llm_process_num: 50, planning: {enabled: false}}`, "turns 50, tokens 7, day 8 of 9000; plain"},
		{"no more calls than the house allows", `{max_llm_process_num: 1000}`, ""},
		{"wishes", "system_prompt: |\n  Say ${HOME}.\n", "wishes Say ${HOME}."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := parse(t, house, nil)
			p, err := h.Personal("hanako.yaml", []byte(c.settings), false)
			if err != nil {
				t.Fatal(err)
			}
			if got := shownPersonal(h, p); got != c.want {
				t.Errorf("%s\nexpected\n%s", got, c.want)
			}
			if diff := cmp.Diff(parse(t, house, nil), h, cmp.AllowUnexported(Config{}, meta{}, origin{}), cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" {
				t.Errorf("the house's settings changed: %s", diff)
			}
		})
	}
}

// shownPersonal is what is other than the house has it.
func shownPersonal(h *Config, p Personal) string {
	var all []string
	task := p.Routing.LLM.Task
	if p.Models {
		s := "task " + task.Provider + "/" + task.Model + "/"
		if task.ContextLength > 0 {
			s += show(float64(task.ContextLength))
		}
		s += " " + show(task.Temperature)
		if of, ok := p.LLM.Server(task.Provider); ok {
			s += " -> " + of.Model + ", key " + of.APIKey + " at " + of.BaseURL + ", " + show(float64(of.ContextLength))
		}
		all = append(all, s)
		if len(task.Fallbacks)+len(p.LLM.Fallbacks) == 0 {
			all = append(all, "no fallbacks")
		}
		all = append(all, "models, keys ["+strings.Join(p.Keys, " ")+"]")
	}
	if b := p.Budget; b != h.Budget {
		all = append(all, "turns "+show(float64(b.MaxTurns))+", tokens "+show(float64(b.MaxTokens))+", day "+show(float64(b.UserDay.MaxTokens))+" of "+show(float64(b.Day.MaxTokens)))
	}
	if !p.Planning.Enabled {
		all = append(all, "plain")
	}
	if p.Prompt != "" {
		all = append(all, "wishes "+p.Prompt)
	}
	return strings.Join(all, "; ")
}

func TestPersonalRefuses(t *testing.T) {
	t.Parallel()
	h := parse(t, house, nil)
	for _, c := range []struct{ name, settings, want string }{
		{"another key", `{plannning: {enabled: false}}`, `h.yaml:1: plannning: unknown key; did you mean planning?`},
		{"files of the house", `{planning: {history: {directory: /etc}}}`, ``},
		{"the sandbox", `{sandbox: {mode: none}}`, ``},
		{"what all may take", `{budget: {day: {max_tokens: 0}}}`, ``},
		{"what is verified", `{planning: {verification: {enabled: false}}}`, ``},
		{"a script", `{llm: {provider: script}}`, `h.yaml:1: llm.provider: expected one of openai, anthropic, deepseek, ollama, lmstudio, vllm, found the text "script"`},
		{"a key of the wrong kind", `{llm: {openai: {api_key: 12345678}}}`, `h.yaml:1: llm.openai.api_key: expected text, found a value that is not shown`},
		{"too long a prompt", "system_prompt: " + strings.Repeat("x", maxPrompt+1), `h.yaml:1: system_prompt of a user may have 16 KiB at most`},
		{"no YAML", "llm: {openai: {api_key: \"sk-hanako-0123456789}}", ``},
		{"HTML", "<html><body>Log in</body></html>", ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := h.Personal("h.yaml", []byte(c.settings), false)
			if err == nil {
				t.Fatalf("%+v", p)
			}
			got := i18n.English.Error(err)
			if c.want != "" && got != c.want {
				t.Errorf("%s\nexpected\n%s", got, c.want)
			}
			if !strings.HasPrefix(got, "h.yaml:1: ") || strings.Contains(got, "sk-hanako") {
				t.Error(got)
			}
		})
	}
	p, err := h.Personal("h.yaml", []byte(`{"theme": "dark", "llm": {"color": 1, "function_calling": true}}`), true)
	if err != nil || p.LLM.FunctionCalling != "true" || len(p.Warnings()) != 2 || !strings.Contains(i18n.English.Error(p.Warnings()[0]), "theme") || !strings.Contains(i18n.English.Error(p.Warnings()[1]), "llm.color") {
		t.Errorf("%v %v", p.Warnings(), err)
	}
}
