package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/llm/script"
)

func asLive(err error) *contextstore.LiveError {
	var live *contextstore.LiveError
	if errors.As(err, &live) {
		return live
	}
	return nil
}

// client chooses the model: the command line, else the configuration, else
// what is at hand. It returns the context length to count on, in tokens.
func (s *system) client(ctx context.Context) (llm.Client, int, error) {
	provider, model, err := s.chosen()
	if err != nil {
		return nil, 0, err
	}
	if provider == "" {
		if provider, model, err = s.detect(ctx); err != nil {
			return nil, 0, err
		}
	}
	switch provider {
	case "script":
		file := s.opt.Script
		if file == "" {
			file = s.cfg.LLM.Script.File
		}
		if file == "" {
			return nil, 0, i18n.E("app.script_file")
		}
		c, err := script.Open(file)
		if err == nil {
			s.env.Notice("app.scripted", file)
		}
		return c, s.cfg.LLM.OpenAI.ContextLength, err
	case "ollama":
		o := s.cfg.LLM.Ollama
		if model == "" {
			model = o.Model
		}
		c, err := ollama.New(ollama.Config{Provider: "ollama", Model: model, BaseURL: o.Endpoint, NumCtx: o.ContextLength, HTTP: s.env.HTTP,
			StallTimeout: s.cfg.LLM.Timeout(), MaxRetries: s.cfg.LLM.MaxRetries, OnRetry: s.retried})
		return c, o.ContextLength, err
	case "anthropic":
		a := s.cfg.LLM.Anthropic
		if model == "" {
			model = a.Model
		}
		c, err := anthropic.New(anthropic.Config{Provider: "anthropic", Model: model, BaseURL: a.BaseURL, APIKey: a.APIKey, HTTP: s.env.HTTP,
			StallTimeout: s.cfg.LLM.Timeout(), MaxRetries: s.cfg.LLM.MaxRetries, OnRetry: s.retried})
		return c, a.ContextLength, err
	}
	o := s.cfg.LLM.OpenAI
	if model == "" {
		model = o.Model
	}
	c, err := openai.New(openai.Config{Provider: "openai", Model: model, BaseURL: o.BaseURL, APIKey: o.APIKey, HTTP: s.env.HTTP,
		StallTimeout: s.cfg.LLM.Timeout(), MaxRetries: s.cfg.LLM.MaxRetries, OnRetry: s.retried})
	return c, o.ContextLength, err
}

func (s *system) retried(e *llm.Error, wait time.Duration) {
	s.log.Warn("LLM call failed and will be repeated: "+e.Error(), "wait", wait.Round(time.Millisecond))
}

// chosen is the provider that someone asked for, "" where nobody did.
func (s *system) chosen() (provider, model string, err error) {
	switch {
	case s.opt.Script != "" && s.opt.Model != "":
		return "", "", i18n.E("app.script_and_model")
	case s.opt.Script != "":
		return "script", "", nil
	case s.opt.Model != "":
		provider, model, ok := strings.Cut(s.opt.Model, "/")
		if !ok || model == "" || !slices.Contains([]string{"openai", "anthropic", "ollama"}, provider) {
			return "", "", i18n.E("app.bad_model", s.opt.Model)
		}
		return provider, model, nil
	case s.cfg.IsSet("llm.provider"):
		return s.cfg.LLM.Provider, "", nil
	}
	for _, p := range []string{"openai", "anthropic", "ollama", "script"} {
		for _, k := range []string{"model", "base_url", "api_key", "endpoint", "file"} {
			if s.cfg.IsSet("llm." + p + "." + k) {
				return p, "", nil
			}
		}
	}
	return "", "", nil
}

// detect uses OPENAI_API_KEY or ANTHROPIC_API_KEY, else a local Ollama that answers.
func (s *system) detect(ctx context.Context) (provider, model string, err error) {
	if s.env.Getenv("OPENAI_API_KEY") != "" {
		return "openai", "", nil
	}
	if s.env.Getenv("ANTHROPIC_API_KEY") != "" {
		return "anthropic", "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	o := s.cfg.LLM.Ollama
	models, err := ollama.ListModels(ctx, ollama.Config{BaseURL: o.Endpoint, HTTP: s.env.HTTP})
	if err != nil || len(models) == 0 {
		return "", "", i18n.E("app.no_model", o.Endpoint)
	}
	model = o.Model
	if !slices.ContainsFunc(models, func(m ollama.Listed) bool { return ollama.SameModel(m.Name, model) }) {
		model = models[0].Name
	}
	s.env.Notice("app.ollama_found", o.Endpoint, model)
	return "ollama", model, nil
}
