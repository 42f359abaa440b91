package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// Of what a local Ollama has, the newest model that calls tools is taken, never one
// that cannot chat, and one in a cloud last; also of a server whose list does not
// tell what its models can do.
func TestDetectTakesAModelThatWorks(t *testing.T) {
	t.Parallel()
	embed := llmtest.OllamaModel{Name: "bge-m3:latest", Capabilities: []string{"embedding"}, Modified: "2026-11-22T00:00:00Z"}
	chat := llmtest.OllamaModel{Name: "gemma3:4b", Capabilities: []string{"completion", "vision"}, Modified: "2026-11-21T00:00:00Z"}
	newer := llmtest.OllamaModel{Name: "qwen3:8b", Capabilities: []string{"completion", "tools", "thinking"}, Modified: "2026-11-19T00:00:00+09:00"}
	older := llmtest.OllamaModel{Name: "llama3.1:8b", Capabilities: []string{"completion", "tools"}, Modified: "2026-11-18T00:00:00Z"}
	away := llmtest.OllamaModel{Name: "gpt-oss:120b-mine", Capabilities: []string{"completion", "tools"}, RemoteHost: "https://ollama.com:443", Modified: "2026-11-23T00:00:00Z"}
	for want, all := range map[string][]llmtest.OllamaModel{
		"qwen3:8b":                {embed, older, chat, newer, away},
		"gemma3:4b":               {away, embed, chat},
		"gpt-oss:120b-mine":       {embed, away},
		"has none that can chat.": {embed},
	} {
		for _, listed := range []bool{true, false} {
			for i := range all {
				all[i].Listed = listed
			}
			hc, _ := elsewhere(t, llmtest.NewOllama(t, nil, all...).URL)
			h := openHouse(t, "security: {local_hosts: [127.0.0.1]}\n", func(o *Options) { o.HTTP = hc })
			s, err := h.Spec(t.Context(), Use{})
			if err == nil && s.Model != want || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, told in the list: %t: %s, %v", want, listed, s.Model, err)
			}
		}
	}
}

// A model that the server does not have is found when its client is made, and told
// with those that are there; where others answer in its place the work goes on.
func TestAModelThatIsNotThere(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}), llmtest.OllamaModel{Name: "qwen3:8b"}, llmtest.OllamaModel{Name: "gemma3:4b"})
	text := fmt.Sprintf("llm: {provider: ollama, max_retries: 0, ollama: {endpoint: %q, model: qwen3:30b}", o.URL)
	_, _, err := openHouse(t, text+"}", nil).Client(t.Context(), Use{})
	if err == nil || !strings.Contains(err.Error(), "has no model qwen3:30b; it has: qwen3:8b, gemma3:4b") {
		t.Error(err)
	}
	if len(o.Requests())+len(o.Loads()) > 0 {
		t.Error("it was called, or loaded")
	}
	h := openHouse(t, text+", fallbacks: ['ollama/gemma3:4b']}", nil)
	if reply, err := say(t.Context(), h.client(t, Use{}), "go"); err != nil || reply.By != "ollama/gemma3:4b" {
		t.Errorf("%+v, %v", reply, err)
	}
	if len(h.log.with("has no model qwen3:30b")) != 1 || len(o.Loads()) > 0 {
		t.Errorf("logged %q; loads %v", h.log.all, o.Loads())
	}
}

// A server that restarts is waited for before a client of it is made.
func TestAServerThatRestarts(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, nil, llmtest.OllamaModel{Name: "m:latest", ContextLength: 4096, Capabilities: []string{"completion"}})
	var begun time.Time
	o.Down(func() bool {
		if begun.IsZero() {
			begun = time.Now()
		}
		return time.Since(begun) > time.Second
	})
	h := openHouse(t, fmt.Sprintf("llm: {provider: ollama, ollama: {endpoint: %q, model: m}}", o.URL), nil)
	_, s, err := h.Client(t.Context(), Use{})
	if err != nil || s.Context != 4096 || len(h.log.with("will be repeated")) == 0 {
		t.Errorf("%v, a context of %d", err, s.Context)
	}
}

// A server that refuses the form of a tool's arguments is told of the tools in text.
func TestAFormThatIsRefused(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Status: 500, ErrorText: "invalid JSON schema in format"}, llmtest.Answer{Text: "fine"}))
	h := openHouse(t, fmt.Sprintf("llm: {provider: ollama, ollama: {endpoint: %q, model: m}}", o.URL), nil)
	v := h.client(t, Use{}).Open(llm.Settings{Tools: []llm.Tool{{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}}})
	fill := func() error { v.Append(llm.Message{Role: llm.RoleUser, Content: "go"}); return nil }
	v.(llm.Refillable).OnMove(fill)
	_ = fill()
	if reply, err := v.Send(t.Context(), nil); err != nil || reply.Message.Content != "fine" {
		t.Error(err)
	}
	if r := o.Requests(); len(r) != 2 || len(r[0].Tools) != 1 || len(r[1].Tools) != 0 || !strings.Contains(string(r[1].Body), "look") {
		t.Errorf("%d requests", len(r))
	}
}

// What is asked of models that cannot think is not sent to them.
func TestThinkingIsAskedOfModelsThatCan(t *testing.T) {
	t.Parallel()
	for _, can := range []bool{true, false} {
		model := llmtest.OllamaModel{Name: "m:latest", Capabilities: []string{"completion"}}
		if can {
			model.Capabilities = append(model.Capabilities, "thinking")
		}
		o := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}), model)
		h := openHouse(t, fmt.Sprintf("llm: {provider: ollama, max_retries: 0, ollama: {endpoint: %q, model: m, think: \"true\"}}", o.URL), nil)
		if _, err := say(t.Context(), h.client(t, Use{}), "go"); err != nil {
			t.Error(err)
		}
		if r := o.Requests(); len(r) != 1 || r[0].Think != can || len(h.log.with("cannot think")) > 0 == can {
			t.Errorf("can think: %t; %d requests, logged %q", can, len(r), h.log.all)
		}
	}
}

// A model that was made for less than it is asked for is loaded with that, and
// health finds it as it must be.
func TestHealthOfAModelMadeForLess(t *testing.T) {
	t.Parallel()
	o := llmtest.NewOllama(t, llmtest.Sequence(llmtest.Answer{Text: "fine"}), llmtest.OllamaModel{Name: "m:latest", ContextLength: 8192, Capabilities: []string{"completion"}})
	h := openHouse(t, fmt.Sprintf("llm: {provider: ollama, ollama: {endpoint: %q, model: m, context_length: 32768}}", o.URL), nil)
	if _, err := say(t.Context(), h.client(t, Use{}), "go"); err != nil {
		t.Fatal(err)
	}
	seen := h.Health(t.Context())
	if !seen.Ready || len(seen.Ollama) != 1 || seen.Ollama[0].Models[0].ContextLength != 8192 {
		t.Errorf("%+v", seen)
	}
}

// A mistake of the settings is none that loading the model, or a restart, mends.
func TestAMistakeIsNoReasonForARepair(t *testing.T) {
	t.Parallel()
	for _, a := range []llmtest.Answer{{Status: 400, ErrorText: "invalid options: num_ctx"}, {Status: 401, ErrorText: "unauthorized"}, {Status: 404, ErrorText: "model 'm' not found"}} {
		var o *mended
		o = newMended(t, func(*llmtest.Request) llmtest.Answer {
			o.Unload("qwen3:30b")
			return a
		})
		h := openHouse(t, o.text+"\nrouting: {llm: {task_provider: ollama}}", nil)
		_, err := say(t.Context(), h.client(t, Use{}), "go")
		var e *llm.Error
		if !errors.As(err, &e) || e.Status != a.Status {
			t.Errorf("%+v: %v", a, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if o.restarts() > 0 || len(o.Loads()) > 0 {
			t.Errorf("%+v: %d restarts, %d loads", a, o.restarts(), len(o.Loads()))
		}
	}
}

// cutting is a server with a window of 4,096 tokens, that drops what is longer in
// silence as Ollama does where nobody can ask for more; four bytes are a token.
func cutting(r *llmtest.Request) llmtest.Answer {
	n := min(len(r.Body)/4, 4096-7*r.Number)
	return llmtest.Answer{Text: "fine", Usage: &llm.Usage{PromptTokens: n, CompletionTokens: 1, TotalTokens: n + 1}}
}

// A server that answers a part of a request is noticed by what it counts, whatever
// its format and whether it is known to cut; an Ollama among them is told before any
// call, with the settings that mend it.
func TestAPartIsNotAnswered(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic", "vllm"} {
		for _, version := range []string{"0.24.0", ""} {
			srv := llmtest.NewServer(t, cutting)
			srv.OllamaVersion = version
			base := srv.URL
			if provider == "anthropic" {
				base = strings.TrimSuffix(base, "/v1")
			}
			h := openHouse(t, fmt.Sprintf("llm: {provider: %s, max_retries: 0, %s: {base_url: %q, model: m, api_key: k}}", provider, provider, base), nil)
			v := h.client(t, Use{}).Open(llm.Settings{})
			var e *llm.Error
			sent := 0
			for n := range 40 {
				text := fmt.Sprintf("part %d: ", n) + strings.Repeat("the quick brown fox jumps over the lazy dog; ", 45)
				sent += len(text)
				v.Append(llm.Message{Role: llm.RoleUser, Content: text})
				reply, err := v.Send(t.Context(), nil)
				if errors.As(err, &e) {
					break
				}
				if err != nil || sent > 2*4*4096 {
					t.Fatalf("%s: an answer to %d bytes by a window of 4096 tokens: %v", provider, sent, err)
				}
				v.Append(reply.Message)
			}
			if e == nil || e.Kind != llm.KindContext || e.Read < 3500 || e.Read > 4096 || sent < 4*3500 || e.Provider != provider {
				t.Errorf("%s: %+v after %d bytes", provider, e, sent)
			}
			if advised := strings.Contains(fmt.Sprint(e), "llm.ollama.endpoint: "+strings.TrimSuffix(srv.URL, "/v1")); advised != (version != "") {
				t.Errorf("%s, version %q: %v", provider, version, e)
			}
			if n := len(h.log.with("is an Ollama")); n > 0 != (version != "") {
				t.Errorf("%s, version %q: told %d times", provider, version, n)
			}
			long := h.client(t, Use{}).Open(llm.Settings{})
			long.Append(llm.Message{Role: llm.RoleUser, Content: strings.Repeat("設定を読み込めない理由。", 2000)})
			if _, err := long.Send(t.Context(), nil); version != "" && (!errors.As(err, &e) || e.Kind != llm.KindContext) {
				t.Errorf("%s: a first request of 72 KB: %v", provider, err)
			}
		}
	}
}

// A server that counts of a prompt only what its cache had not is believed.
func TestACountOfWhatIsNew(t *testing.T) {
	t.Parallel()
	last := 0
	srv := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		n := len(r.Body)/4 - last
		last += n
		return llmtest.Answer{Text: "fine", Usage: &llm.Usage{PromptTokens: n, CompletionTokens: 1, TotalTokens: n + 1}}
	})
	h := openHouse(t, fmt.Sprintf("llm: {provider: vllm, max_retries: 0, vllm: {base_url: %q, model: m}}", srv.URL), nil)
	v := h.client(t, Use{}).Open(llm.Settings{})
	for n, size := range []int{200, 100, 300, 120, 400} {
		v.Append(llm.Message{Role: llm.RoleUser, Content: strings.Repeat("the quick brown fox jumps over the lazy dog; ", size)})
		reply, err := v.Send(t.Context(), nil)
		if err != nil {
			t.Fatalf("request %d: %v", n+1, err)
		}
		v.Append(reply.Message)
	}
}

// Who lists the models reads the same advice.
func TestTheListAdvises(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, nil)
	srv.OllamaVersion = "0.24.0"
	h := openHouse(t, fmt.Sprintf("llm: {provider: openai, openai: {base_url: %q, model: model-a, api_key: k}}", srv.URL), nil)
	for _, r := range h.List(context.Background()) {
		if r.Role == Task && (r.Advice == nil || !strings.Contains(r.Advice.Error(), "set provider ollama")) {
			t.Errorf("%+v", r)
		}
	}
}

// Who waits for a model that computes is told so once a minute, with what is waited
// for and how far it is, in the language of the run; after the answer nothing is told.
func TestAWaitIsTold(t *testing.T) {
	t.Parallel()
	for lang, want := range map[i18n.Lang][]string{
		i18n.English:  {"waiting for vllm/m since 1m0s: 3 KB sent, 0 characters", "since 2m0s: 3 KB sent, 7 characters"},
		i18n.Japanese: {"vllm/m の応答を待っています（1m0s 経過、送信 3 KB、受信した文章 0 文字）", "2m0s 経過"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := openHouse(t, "", func(o *Options) { o.Lang = lang })
			heard, stop := h.alive("vllm/m", 2400)
			time.Sleep(90 * time.Second)
			heard("設定を読んだ。")
			time.Sleep(45 * time.Second)
			stop()
			time.Sleep(time.Hour)
			if got := h.log.with("vllm/m"); len(got) != 2 || !strings.Contains(got[0], want[0]) || !strings.Contains(got[1], want[1]) {
				t.Errorf("%q", got)
			}
		})
	}
}
