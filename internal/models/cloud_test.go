package models

import (
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

const away = "llm: {max_retries: 0, openai: {base_url: 'http://api.example.com/v1', api_key: sk-test}}\n"

// What may not go to a cloud is refused before the work begins, and by every
// call: nobody is connected to.
func TestCloudRule(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}))
	for _, c := range []struct {
		name, text string
		use        Use
		refused    string
	}{
		{"local_only", away + "security: {local_only: true}", Use{Role: "coder2"}, "cloud.local_only"},
		{"local_only, by name", away + "security: {local_only: true}", Use{Model: "openai/x"}, "cloud.local_only"},
		{"this task only", away, Use{Role: "coder2", LocalOnly: true}, "cloud.local_only"},
		{"chat", away + "routing: {llm: {chat_provider: openai}}", Use{Role: Chat, Route: "CHAT"}, "cloud.route"},
		{"chat, where it is allowed", away + "routing: {llm: {chat_provider: openai}}\nsecurity: {cloud_allowed_routes: [CHAT]}", Use{Role: Chat, Route: "CHAT"}, ""},
		{"code, where only chat is", away + "security: {cloud_allowed_routes: [CHAT]}", Use{Role: "coder2"}, "cloud.route"},
		{"code", away, Use{Role: "coder2"}, ""},
		{"a listed host", away + "security: {local_only: true, local_hosts: [api.example.com]}", Use{Role: "coder2"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hc, made := elsewhere(t, s.URL)
			h := openHouse(t, c.text, func(o *Options) { o.HTTP = hc })
			client, _, err := h.Client(t.Context(), c.use)
			if c.refused != "" {
				if err == nil || key(err) != c.refused || made.Load() != 0 {
					t.Errorf("%v after %d connections", err, made.Load())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if reply, err := say(t.Context(), client, "go"); err != nil || reply.Message.Content != "fine" {
				t.Errorf("%v, %v", reply, err)
			}
		})
	}
	t.Run("a fallback", func(t *testing.T) {
		t.Parallel()
		hc, made := elsewhere(t, s.URL)
		local := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "another"})
		h := openHouse(t, strings.Replace(away, "llm: {", fmt.Sprintf("llm: {provider: ollama, fallbacks: [openai/x], ollama: {endpoint: %q}, ", local.URL), 1)+"security: {local_only: true}", func(o *Options) { o.HTTP = hc })
		// What is local dials by itself: every connection of hc is one to the cloud.
		_, err := say(t.Context(), h.client(t, Use{}), "go")
		if kind(err) != llm.KindNotFound || !strings.Contains(err.Error(), "forbidden: Nothing was sent: local-only mode is on") || made.Load() != 0 {
			t.Errorf("%v after %d connections", err, made.Load())
		}
	})
}

// A model that a server of one's own passes on is in a cloud.
func TestRemoteModel(t *testing.T) {
	t.Parallel()
	passedOn := llmtest.OllamaModel{Name: "mine", Capabilities: []string{"completion", "tools"}, RemoteHost: "https://ollama.com:443"}
	o := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Text: "fine", Usage: &llm.Usage{PromptTokens: 9}}), passedOn)
	text := fmt.Sprintf("llm: {max_retries: 0, provider: ollama, ollama: {endpoint: %q, model: mine}}\n", o.URL)
	local := openHouse(t, text+"security: {local_only: true}", nil)
	if _, _, err := local.Client(t.Context(), Use{}); err == nil || key(err) != "cloud.local_only" {
		t.Error(err)
	}
	// It was down when the client was made.
	o.Down(nil)
	late, _, err := local.Client(t.Context(), Use{})
	if err != nil {
		t.Fatal(err)
	}
	o.Up()
	if _, err := say(t.Context(), late, "go"); kind(err) != llm.KindForbidden || len(o.Requests())+len(o.Loads()) != 0 {
		t.Errorf("%v after %d calls and %d loads", err, len(o.Requests()), len(o.Loads()))
	}
	free := openHouse(t, text, nil)
	if reply, err := say(t.Context(), free.client(t, Use{}), "mail to taro@example.org"); err != nil || reply.Message.Content != "fine" || reply.Usage.Cost != nil {
		t.Errorf("%+v, %v", reply, err)
	}
	if got := *o.Requests()[0].Messages[0].Content; strings.Contains(got, "taro") {
		t.Errorf("a cloud was sent %q", got)
	}
	for _, r := range free.List(t.Context()) {
		if r.Role == Task && (!r.Cloud || r.Price != nil) {
			t.Errorf("%+v", r)
		}
	}
	for _, r := range local.List(t.Context()) {
		if r.Role == Task && (!r.Cloud || r.Forbidden == nil) {
			t.Errorf("%+v", r)
		}
	}
	if h := local.Health(t.Context()); h.Ready || len(h.Ollama) != 0 {
		t.Errorf("%+v", h)
	}
	if h := free.Health(t.Context()); !h.Ready || len(h.Ollama) != 0 {
		t.Errorf("%+v", h)
	}
}

// security.mask_pii_on_code: numbers of people leave on the routes of code only
// where the setting says so, and on no other (route §7). What is near stays whole.
func TestPersonalDataOnCode(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}))
	const text, masked = "call 090-1234-5678, pay with 4111 1111 1111 1111; password: hunter", "call [REDACTED], pay with [REDACTED]; password: hunter"
	for name, c := range map[string]struct {
		settings string
		use      Use
		want     string
	}{
		"code":                  {"", Use{Role: "coder2"}, masked},
		"code, switched off":    {"security: {mask_pii_on_code: false}", Use{Role: "coder2"}, text},
		"CODE3, switched off":   {"security: {mask_pii_on_code: false}", Use{Role: "coder2", Route: "CODE3"}, text},
		"another, switched off": {"security: {mask_pii_on_code: false, cloud_allowed_routes: [CHAT]}", Use{Role: "coder2", Route: "CHAT"}, "call [REDACTED], pay with [REDACTED]; password: [REDACTED]"},
		"near":                  {"security: {local_hosts: [api.example.com]}", Use{Role: "coder2"}, text},
	} {
		t.Run(name, func(t *testing.T) {
			hc, _ := elsewhere(t, s.URL)
			h := openHouse(t, away+c.settings, func(o *Options) { o.HTTP = hc })
			if _, err := say(t.Context(), h.client(t, c.use), text); err != nil {
				t.Fatal(err)
			}
			all := s.Requests()
			if got := *all[len(all)-1].Messages[0].Content; got != c.want {
				t.Errorf("sent %q, expected %q", got, c.want)
			}
		})
	}
}

// What is sent to a cloud is masked, and that is counted in the log.
func TestMasksAreCounted(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}))
	hc, _ := elsewhere(t, s.URL)
	h := openHouse(t, away, func(o *Options) { o.HTTP = hc })
	const secret = "ask taro@example.org and jiro@example.org with sk-proj-abcdefghijklmnopqrstuvwxyz012345"
	if _, err := say(t.Context(), h.client(t, Use{Role: "coder2"}), secret); err != nil {
		t.Fatal(err)
	}
	if got := *s.Requests()[0].Messages[0].Content; strings.Contains(got, "taro@") || strings.Contains(got, "jiro@") || strings.Contains(got, "abcdefg") || !strings.HasPrefix(got, "ask [") {
		t.Errorf("sent %q", got)
	}
	if got := h.log.with("Masked for the cloud"); len(got) != 1 || !strings.Contains(got[0], "provider=openai model=gpt-4o masked=3 kinds=") || !strings.Contains(got[0], "total=3") {
		t.Errorf("logged %q", got)
	}
	own := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}))
	near := openHouse(t, fmt.Sprintf("llm: {openai: {base_url: %q}}", own.URL), nil)
	if _, err := say(t.Context(), near.client(t, Use{Role: "coder2"}), secret); err != nil || *own.Requests()[0].Messages[0].Content != secret || len(near.log.with("Masked")) > 0 {
		t.Errorf("%v, %q", err, near.log.with("Masked"))
	}
}
