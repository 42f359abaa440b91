package anthropic

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

const secret = "sk-ant-very-secret-0123456789"

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	good := Config{Provider: "p", Model: "m"}
	for _, c := range []struct {
		key  string
		edit func(*Config)
	}{
		{"llm.base_url", func(c *Config) { c.BaseURL = "api.anthropic.com" }},
		{"llm.base_url", func(c *Config) { c.BaseURL = "ftp://me:" + secret + "@h/v1?key=" + secret }},
		{"llm.api_key", func(c *Config) { c.APIKey = secret + "\nX: y" }},
		{"llm.model", func(c *Config) { c.Model = " " }},
	} {
		cfg := good
		c.edit(&cfg)
		_, err := New(cfg)
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != c.key {
			t.Errorf("%s: got %v", c.key, err)
		} else if both := i18n.English.Error(err) + i18n.Japanese.Error(err); strings.Contains(both, secret) {
			t.Errorf("shows a secret: %s", both)
		}
	}
	if c, err := New(good); err != nil || c.Provider() != "p" || c.Model() != "m" {
		t.Errorf("%v, %v", c, err)
	}
}

func TestAddressesAndHeaders(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                                   "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1/":      "https://api.anthropic.com/v1/messages",
		" https://h/v1/messages ":            "https://h/v1/messages",
		"http://h:1/anthropic":               "http://h:1/anthropic/v1/messages",
		"https://u:p@h/d?api-version=1#frag": "https://u:p@h/d/v1/messages?api-version=1",
	} {
		var got *http.Request
		c := testClient(t, Config{Provider: "p", Model: "m", BaseURL: base, APIKey: secret + "\n",
			HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				got = r
				_, err := io.Copy(io.Discard, r.Body)
				return answerWith(200, fine), err
			})}})
		mustSend(t, c.Open(llm.Settings{}))
		if got.URL.String() != want || strings.ContainsAny(c.wire.Endpoint(), "@?#") {
			t.Errorf("%q: %s, shown as %s", base, got.URL, c.wire.Endpoint())
		}
		if h := got.Header; h.Get("x-api-key") != secret || h.Get("anthropic-version") != "2023-06-01" || h.Get("Content-Type") != "application/json" || strings.HasPrefix(h.Get("Authorization"), "Bearer") {
			t.Errorf("headers %v", h)
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sent string
		max        int
	}{
		{"claude-sonnet-4.5", "claude-sonnet-4-5", 16000}, {"claude-opus-4-1", "claude-opus-4-1", 16000}, {"claude-3.7-sonnet", "claude-3-7-sonnet", 16000},
		{"claude-3-5-haiku-latest", "claude-3-5-haiku-latest", 8192}, {"claude-3-opus-20240229", "claude-3-opus-20240229", 4096}, {"claude-2.1", "claude-2.1", 4096},
		{"claude-instant-1.2", "claude-instant-1.2", 4096}, {"MiniMax-M2.1", "MiniMax-M2.1", 8192}, {"anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4.5", 16000},
	} {
		cl, sent := offline(t, Config{Provider: "p", Model: c.name})
		mustSend(t, cl.Open(llm.Settings{}))
		if want := fmt.Sprintf(`{"model":%q,"max_tokens":%d,"stream":true,"messages"`, c.sent, c.max); !strings.HasPrefix(string((*sent)[0]), want) || cl.Model() != c.name {
			t.Errorf("%s: %s", c.name, (*sent)[0])
		}
	}
	for thinking, want := range map[int]string{
		Adaptive: `"max_tokens":50,"stream":true,"thinking":{"type":"adaptive"}`, 5: `"max_tokens":1074,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024}`,
	} {
		cl, sent := offline(t, Config{Thinking: thinking, MaxTokens: 50})
		mustSend(t, cl.Open(llm.Settings{}))
		if _, err := llmtest.ParseMessages((*sent)[0]); err != nil || !strings.Contains(string((*sent)[0]), want) {
			t.Errorf("%v: %s", err, (*sent)[0])
		}
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		"": `{"type":"object","properties":{}}`, "{ }": `{"type":"object"}`, `{"properties":{"type":{}}}`: `{"type":"object","properties":{"type":{}}}`,
		`{"type": "object"}`: `{"type":"object"}`, "[]": "error", "null": "error", "{": "error", "7": "error",
	} {
		c, sent := offline(t, Config{})
		_, err := c.Open(llm.Settings{Tools: []llm.Tool{{Name: "f", Schema: []byte(schema)}}}).Send(t.Context(), nil)
		var e *llm.Error
		if want == "error" {
			if !errors.As(err, &e) || e.Kind != llm.KindBadRequest || !strings.Contains(e.Message, "the tool f") {
				t.Errorf("%s: %v", schema, err)
			}
		} else if err != nil || !strings.Contains(string((*sent)[0]), `"input_schema":`+want+`,"cache`) {
			t.Errorf("%s: %v, %s", schema, err, *sent)
		}
	}
}

// TestKeyIsNeverShown prints everything there is to print.
func TestKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Status: 401, ErrorText: "wrong key " + secret}))
	url := strings.Replace(srv.URL, "http://", "http://user:"+secret+"@", 1) + "?k=" + secret
	cfg := Config{Provider: "p", Model: "m", BaseURL: url, APIKey: secret + "\n"}
	c := testClient(t, cfg)
	v := c.Open(llm.Settings{})
	_, err := v.Send(t.Context(), nil)
	dead := testClient(t, Config{Provider: "p", Model: "m", BaseURL: "http://u:" + secret + "@127.0.0.1:1/?k=" + secret, APIKey: secret})
	_, refused := dead.Open(llm.Settings{}).Send(t.Context(), nil)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, x := range []any{cfg, &cfg, c, v, *c.wire, err, refused, errors.Unwrap(refused)} {
			if s := fmt.Sprintf(verb, x); strings.Contains(s, secret) {
				t.Errorf("%s of %T: %s", verb, x, s)
			}
		}
	}
	if err == nil || !strings.Contains(err.Error(), "[api key]") {
		t.Errorf("got %v", err)
	}
}
