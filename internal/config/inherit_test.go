package config

import "testing"

// What is inherited should take 5 to 10 % of the window (inherit §5.1); only what
// somebody set is warned of.
func TestWarnsOfInheritedTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"llm: {provider: ollama}":                                                                                   "",
		"context_inheritance: {max_inherited_tokens: 12800}":                                                        "",
		"context_inheritance: {max_inherited_tokens: 6400}":                                                         "",
		"context_inheritance: {max_inherited_tokens: 6399}":                                                         "c.yaml:1: context_inheritance.max_inherited_tokens is 6399; 6400 to 12800 are recommended: 5 to 10 % of the model's context length of 128000",
		"llm: {provider: ollama, ollama: {context_length: 1000}}\ncontext_inheritance: {max_inherited_tokens: 101}": "c.yaml:2: context_inheritance.max_inherited_tokens is 101; 50 to 100 are recommended: 5 to 10 % of the model's context length of 1000",
		"llm: {provider: script, script: {file: s.yaml}}\ncontext_inheritance: {max_inherited_tokens: 101}":         "",
	} {
		if got := warnings(parse(t, text, nil)); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
	if c := parse(t, "context_inheritance: {context_expiry_days: 2}", nil); c.ContextInheritance.Expiry().Hours() != 48 {
		t.Error(c.ContextInheritance.Expiry())
	}
}
