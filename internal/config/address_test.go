package config

import "testing"

// Addresses are taken as people write them, OLLAMA_HOST as Ollama's own client does.
func TestServerAddresses(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"localhost:11434": "http://localhost:11434", "localhost": "http://localhost:11434", ":8080": "http://127.0.0.1:8080", "0.0.0.0": "http://127.0.0.1:11434",
		"0.0.0.0:11434": "http://127.0.0.1:11434", "http://0.0.0.0:11434": "http://127.0.0.1:11434", "[::]:11434": "http://[::1]:11434", "192.168.1.7": "http://192.168.1.7:11434",
		"gpu-box:11434": "http://gpu-box:11434", "ollama.com": "https://ollama.com", "https://gpu.example.com/ollama": "https://gpu.example.com/ollama",
		"gpu.example.com:8443/ollama": "https://gpu.example.com:8443/ollama", "http://box": "http://box",
	} {
		if c := parse(t, "", vars{"OLLAMA_HOST": given}); c.LLM.Ollama.Endpoint != want || c.IsSet("llm.ollama.endpoint") {
			t.Errorf("OLLAMA_HOST %s: %s", given, c.LLM.Ollama.Endpoint)
		}
		if c := parse(t, "llm: {ollama: {endpoint: '"+given+"'}}", vars{"OLLAMA_HOST": "other"}); c.LLM.Ollama.Endpoint != want {
			t.Errorf("endpoint %s: %s", given, c.LLM.Ollama.Endpoint)
		}
	}
	if c := parse(t, "llm: {openai: {base_url: 'localhost:1234/v1'}, vllm: {base_url: api.example.com/v1}}", nil); c.LLM.OpenAI.BaseURL != "http://localhost:1234/v1" || c.LLM.VLLM.BaseURL != "https://api.example.com/v1" {
		t.Errorf("%s %s", c.LLM.OpenAI.BaseURL, c.LLM.VLLM.BaseURL)
	}
}
