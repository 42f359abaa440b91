package models

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/cloud"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/llm/script"
)

// The roles (route §1.1); task works on issues and messages to tori run, and
// summarizer shortens what has become long.
const (
	Chat       = "chat"
	Worker     = "worker"
	Coder3     = "coder3"
	Task       = "task"
	Summarizer = "summarizer"
)

// Use is what a model is wanted for.
type Use struct {
	Role      string // one of config.RoleNames; "" is Task
	Model     string // PROVIDER/MODEL that somebody asks for by name; "" takes the role's
	Script    string // file of a written conversation, instead of a model
	Route     string // of the work; "" is CODE, that of every issue and of tori run (route §7)
	LocalOnly bool   // of this task, beside security.local_only
	Who       string // shown to those who wait for the same server

	Temperature *float64 // of this call, instead of the role's; nil for the role's
}

// Spec is one model with all that it is called with.
type Spec struct {
	Role, Alias     string
	Provider, Model string
	Address         string // of the server; "" of a script
	Cloud           bool
	Context         int  // tokens that a conversation may have: the smallest of the limits in force
	Explicit        bool // somebody asked for this very model: no other answers in its place
	Fallbacks       []Spec
	Priced          bool // of a Client: the prices of all that may answer are known

	MaxTokens   int      // of one answer; 0 leaves it to the provider
	JobTokens   int      // of all answers of one job; 0 is no limit
	Temperature *float64 // nil leaves it to the model
	Timeout     time.Duration
	Retries     int
	TextTools   string // auto, true (the model calls tools by itself) or false

	NumCtx, MinContext, MaxContext int // of Ollama
	KeepAlive                      string

	key         string
	parallel    int
	needsKey    string
	scriptFile  string
	thinkTokens int
	think       string
}

// Name is PROVIDER/MODEL.
func (s *Spec) Name() string { return s.Provider + "/" + ollama.ModelName(s.Model) }

// resolver reads specs out of a configuration.
type resolver struct {
	cfg    *config.Config
	policy *cloud.Policy
}

// spec settles who fills a role. The error is an i18n error: a role that is
// not configured is never filled by another.
func (r *resolver) spec(u Use, found *Spec) (Spec, error) {
	name := cmp.Or(u.Role, Task)
	role, ok := r.cfg.Routing.LLM.Role(name)
	if !ok {
		return Spec{}, i18n.E("models.no_role", name, strings.Join(config.RoleNames(), ", "))
	}
	provider, model, explicit := role.Provider, role.Model, false
	switch {
	case u.Script != "":
		provider, explicit = script.Provider, true
	case u.Model != "":
		p, m, ok := strings.Cut(u.Model, "/")
		if !ok || strings.TrimSpace(m) == "" || !slices.Contains(named, p) {
			return Spec{}, i18n.E("models.bad_model", u.Model, strings.Join(named, ", "))
		}
		provider, model, explicit = p, m, true
	case provider == "" && found != nil:
		provider, model = found.Provider, cmp.Or(model, found.Model)
	}
	s := r.member(name, cmp.Or(provider, r.cfg.LLM.Provider), model)
	s.scriptFile = cmp.Or(u.Script, s.scriptFile)
	s.Alias, s.Explicit = role.Alias, explicit
	if role.ContextLength > 0 && !explicit {
		s.setContext(role.ContextLength)
	}
	r.limits(&s, name, role)
	s.Temperature = cmp.Or(u.Temperature, s.Temperature)
	if err := s.usable(); err != nil {
		return s, i18n.E("models.not_configured", name, err)
	}
	if explicit {
		return s, nil
	}
	list := role.Fallbacks
	if role.Provider == "" && len(list) == 0 {
		list = r.cfg.LLM.Fallbacks
	}
	for _, f := range list {
		p, m, _ := strings.Cut(f, "/") // its form was checked with the configuration
		next := r.member(name, p, m)
		r.limits(&next, name, role)
		next.Temperature = cmp.Or(u.Temperature, next.Temperature)
		if err := next.usable(); err != nil {
			return s, i18n.E("models.fallback", name, f, err)
		}
		s.Fallbacks = append(s.Fallbacks, next)
	}
	return s, nil
}

// named are the providers whose models can be asked for by name.
var named = []string{"openai", "anthropic", "deepseek", "ollama", "lmstudio", "vllm"}

// keyNames are the variables with the keys of the providers that are hosted
// where their section does not say otherwise.
var keyNames = map[string]string{"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "deepseek": "DEEPSEEK_API_KEY"}

// member is a model of a provider, with what the provider's section says.
func (r *resolver) member(role, provider, model string) Spec {
	l := &r.cfg.LLM
	s := Spec{Role: role, Provider: provider}
	if o, ok := l.Server(provider); ok {
		s.Model, s.Address, s.key, s.Context, s.parallel = cmp.Or(model, o.Model), o.BaseURL, o.APIKey, o.ContextLength, o.MaxParallel
		if env, hosted := keyNames[provider]; hosted && o.APIKey == "" && !r.cfg.IsSet("llm."+provider+".base_url") {
			s.needsKey = "llm." + provider + ".api_key (" + env + ")"
		}
	}
	switch provider {
	case "anthropic":
		s.thinkTokens = l.Anthropic.ThinkingTokens
	case "ollama":
		r.ollama(&s, role, model)
	case script.Provider:
		s.scriptFile, s.Context = l.Script.File, l.OpenAI.ContextLength
		s.Model = s.scriptFile
	}
	s.Cloud = s.Address != "" && r.policy.IsCloud(s.Address, s.Model)
	return s
}

// ollama fills in what belongs to Ollama. The roles chat and worker have
// numbers of their own (route §10); the others are checked against what they
// ask for (spec/README "Ollama context").
func (r *resolver) ollama(s *Spec, role, model string) {
	o, small := r.cfg.LLM.Ollama, r.cfg.Providers.Ollama
	s.Model, s.Address, s.key, s.parallel, s.think = cmp.Or(model, o.Model), o.Endpoint, o.APIKey, o.MaxParallel, o.Think
	s.KeepAlive = small.KeepAlive
	if role == Chat || role == Worker {
		s.NumCtx, s.MinContext, s.MaxContext = small.NumCtx, small.MinContext, small.MaxContext
		s.Context = s.NumCtx
		return
	}
	s.setContext(o.ContextLength)
}

// setContext sets the context length that a model is asked for, or known by.
// Of Ollama it is also the most that a loaded model may have; route §10's limit
// of chat and worker stays, so the smaller of the two holds.
func (s *Spec) setContext(n int) {
	s.Context = n
	if s.Provider != "ollama" {
		return
	}
	s.NumCtx = n
	if s.Role != Chat && s.Role != Worker {
		s.MinContext, s.MaxContext = n, n // it is checked against what it asks for
	} else if s.MaxContext > 0 && n > s.MaxContext {
		s.NumCtx, s.Context = s.MaxContext, s.MaxContext
	}
}

// limits fills in how a role is called.
func (r *resolver) limits(s *Spec, name string, role *config.Role) {
	s.MaxTokens, s.Retries = role.MaxTokens, r.cfg.LLM.MaxRetries
	s.Timeout = time.Duration(role.TimeoutSeconds) * time.Second
	if role.Temperature >= 0 {
		t := role.Temperature
		s.Temperature = &t
	}
	if s.TextTools = role.FunctionCalling; s.TextTools == "auto" {
		s.TextTools = r.cfg.LLM.FunctionCalling
	}
	if name == Coder3 {
		c := r.cfg.Coder3
		s.JobTokens, s.Retries = c.MaxTokens, c.RetryMax
		if s.Timeout == 0 {
			s.Timeout = time.Duration(c.TimeoutSeconds) * time.Second
		}
	}
}

// usable returns what is missing to call the model, nil where nothing is.
func (s *Spec) usable() error {
	switch {
	case s.Provider == script.Provider && s.scriptFile == "":
		return i18n.E("models.script_file")
	case s.needsKey != "":
		return i18n.E("models.needs_key", s.Provider, s.needsKey)
	case s.Model == "" && s.Provider != script.Provider:
		return i18n.E("models.needs_model", s.Provider, "llm."+s.Provider+".model")
	}
	return nil
}
