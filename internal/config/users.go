package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// UserConfigAPI is the section user_config_api (store-v2 §6.1).
type UserConfigAPI struct {
	Enabled        bool   `yaml:"enabled" default:"false" env:"USE_USER_CONFIG_API" doc:"Ask a server for the settings of the user of each run: GET {url}/config/{forge}/{login} with the key as a Bearer token."`
	URL            string `yaml:"url" check:"url,optional" env:"USER_CONFIG_API_URL" doc:"Address of that server; https, but for one in your own network: it answers with keys of users."`
	APIKey         string `yaml:"api_key" secret:"true" env:"USER_CONFIG_API_KEY" doc:"The key; keep it in the environment rather than in this file."`
	TimeoutSeconds int    `yaml:"timeout_seconds" default:"10" check:"min=1,max=300" doc:"How long to wait for its answer, in seconds."`
}

// UserConfig is the section user_config (store-v2 §6.1).
type UserConfig struct {
	Directory string `yaml:"directory" check:"absfile" doc:"Folder with the settings of users, in place of such a server: {forge}/{login}.yaml in lower case, such as github/hanako.yaml (docs/models.md); an absolute path."`
	OnFailure string `yaml:"on_failure" default:"defaults" check:"enum=defaults|wait" doc:"What becomes of a run whose user's settings cannot be had, and were not before: defaults goes by this file, wait lets it wait until they can be."`
}

// users complains of settings of users that could not be found.
func (p *parser) users() {
	switch c := p.config; {
	case c.UserConfigAPI.Enabled && c.UserConfigAPI.URL == "":
		p.problem("config.user_api", p.at(p.set("user_config_api.enabled")))
	case c.UserConfigAPI.Enabled && c.UserConfig.Directory != "":
		p.problem("config.user_both", p.at(p.set("user_config.directory")))
	}
}

// Timeout is timeout_seconds.
func (c UserConfigAPI) Timeout() time.Duration { return time.Duration(c.TimeoutSeconds) * time.Second }

// Personal is a configuration as the settings of one user have it.
type Personal struct {
	*Config
	Prompt string   // of the user, for the system prompt; "" for none
	Models bool     // who answers, or by which key, is the user's own
	Keys   []string // secrets among them
}

// personal is what the settings of a user may say, of Config as far as its path is
// in usersKeys.
type personal struct {
	Config
	SystemPrompt string `yaml:"system_prompt"`
	MaxCalls     int    `yaml:"max_llm_process_num" check:"min=1"`
}

// usersKeys are the settings, and with a dot at the end the sections, that a user
// may have otherwise: none that reaches into files, into the sandbox or past what
// the house verifies.
var usersKeys = []string{
	"system_prompt", "max_llm_process_num", "llm.provider", "llm.function_calling",
	"llm.openai.", "llm.anthropic.", "llm.deepseek.", "llm.ollama.", "llm.lmstudio.", "llm.vllm.",
	"planning.enabled", "planning.strategy", "planning.max_subtasks", "planning.decomposition_level",
	"planning.pre_planning.", "planning.reflection.", "planning.revision.", "planning.replanning.",
	"budget.max_turns", "budget.max_tokens", "budget.max_minutes", "budget.max_cost_usd", "budget.user_day.",
}

func usersKey(path string) bool {
	return !strings.HasSuffix(path, ".max_parallel") && slices.ContainsFunc(usersKeys, func(k string) bool {
		return path == k || strings.HasSuffix(k, ".") && strings.HasPrefix(path, k)
	})
}

// usersSchema is the shape of such settings. Variables are not replaced in them: the
// environment is the house's.
var usersSchema = sync.OnceValue(func() *schema {
	all, s := schemaOf(reflect.TypeFor[personal]()), emptySchema()
	for _, f := range all.fields {
		if !usersKey(f.path) {
			continue
		}
		f.expand = false
		f.rules.enum = slices.DeleteFunc(f.rules.enum, func(v string) bool { return v == "script" })
		s.fields, s.byPath[f.path] = append(s.fields, f), f
		parts := strings.Split(f.path, ".")
		for i := range parts {
			section := strings.Join(parts[:i], ".")
			if section != "" {
				s.sections[section] = all.sections[section]
			}
			if !slices.Contains(s.children[section], parts[i]) {
				s.children[section] = append(s.children[section], parts[i])
			}
		}
	}
	return s
})

// maxPrompt is the most bytes of a user's system_prompt.
const maxPrompt = 16 << 10

// Personal is c as the settings of a user have it, which are YAML; name is what
// errors call them. c stays as it is. With lenient, keys that are not known are
// warnings and no errors.
//
// Source: store-v2 §6.1, plan §4.
func (c *Config) Personal(name string, data []byte, lenient bool) (Personal, error) {
	u := &personal{Config: *c}
	u.meta.warnings, u.meta.origins = nil, map[string]origin{}
	p := &parser{name: name, schema: usersSchema(), config: &u.Config, target: reflect.ValueOf(u).Elem(), lenient: lenient,
		getenv: func(string) string { return "" }}
	p.file(data)
	if len(u.SystemPrompt) > maxPrompt {
		p.problem("config.user_prompt", p.at(p.set("system_prompt")), maxPrompt>>10)
	}
	if u.LLM.Fallbacks = slices.Clone(u.LLM.Fallbacks); len(p.problems) == 0 {
		p.confidences()
	}
	if len(p.problems) > 0 {
		return Personal{}, joined(p.problems)
	}
	of := Personal{Config: &u.Config, Prompt: strings.TrimSpace(u.SystemPrompt)}
	u.LLM.addresses(true, "")
	p.ownServers(&c.LLM)
	for _, f := range p.schema.fields {
		if !u.meta.origins[f.path].set() {
			continue
		}
		of.Models = of.Models || strings.HasPrefix(f.path, "llm.")
		switch text := p.target.FieldByIndex(f.index); {
		case f.secret:
			of.Keys = append(of.Keys, text.String())
		case f.rules.isURL():
			of.Keys = append(of.Keys, addressSecrets(text.String())...)
		}
	}
	p.ownTask()
	if u.MaxCalls > 0 {
		u.Budget.MaxTurns = min(u.Budget.MaxTurns, u.MaxCalls)
	}
	own := u.meta.origins
	u.meta.origins = maps.Clone(c.meta.origins)
	maps.Copy(u.meta.origins, own)
	return of, nil
}

// ownServers takes the house's key from servers that are the user's own: it is not
// for them. One that is the house's all the same counts as not given.
func (p *parser) ownServers(house *LLM) {
	l, origins := &p.config.LLM, p.config.meta.origins
	for _, provider := range modelProviders {
		address, key, was, at := &l.Ollama.Endpoint, &l.Ollama.APIKey, house.Ollama.Endpoint, "llm."+provider+".endpoint"
		if s, ok := l.Server(provider); ok {
			theirs, _ := house.Server(provider)
			address, key, was, at = &s.BaseURL, &s.APIKey, theirs.BaseURL, "llm."+provider+".base_url"
		}
		if strings.TrimSuffix(*address, "/") == strings.TrimSuffix(was, "/") {
			*address = was
			delete(origins, at)
		} else if !origins["llm."+provider+".api_key"].set() {
			*key = ""
		}
	}
}

// ownTask has the role task filled by what the user says of models, in place of the
// house's choice for the role. Whoever brings a model or a key is answered by no other.
func (p *parser) ownTask() {
	l, task, origins := &p.config.LLM, &p.config.Routing.LLM.Task, p.config.meta.origins
	provider := l.Provider
	if !origins["llm.provider"].set() && task.Provider != "" {
		provider = task.Provider
	}
	has := func(key string) bool { return origins["llm."+provider+"."+key].set() }
	chosen := origins["llm.provider"].set() || has("model")
	if chosen || has("api_key") || has("base_url") || has("endpoint") {
		l.Fallbacks, task.Fallbacks = nil, nil
	}
	if chosen {
		task.Provider, task.Model = provider, ""
	}
	if chosen || has("context_length") {
		task.ContextLength = 0
	}
	if origins["llm.function_calling"].set() {
		task.FunctionCalling = "auto"
	}
}

// unknownProblem tells of a key that is not known: as a warning where that is enough.
func (p *parser) unknownProblem(key string, args ...any) {
	if p.lenient {
		p.warn(key, args...)
		return
	}
	p.problem(key, args...)
}
