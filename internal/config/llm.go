package config

import "time"

// LLM is the section llm (store-v3 §9).
type LLM struct {
	Provider                 string    `yaml:"provider" default:"openai" check:"enum=openai|anthropic|deepseek|ollama|lmstudio|vllm|script" doc:"Who answers where a role names nobody; script replays a written conversation and calls no model."`
	Fallbacks                []string  `yaml:"fallbacks" check:"model" doc:"Models that answer where that one cannot, in order, each PROVIDER/MODEL."`
	FunctionCalling          string    `yaml:"function_calling" default:"auto" check:"enum=auto|true|false" doc:"Whether the model calls tools by itself: true, false (tools are told and called in text), or auto to find out."`
	TimeoutSeconds           int       `yaml:"timeout_seconds" default:"300" check:"min=1,max=604800" doc:"How long to wait for an answer, or for the next part of one, in seconds."`
	ConnectTimeoutSeconds    int       `yaml:"connect_timeout_seconds" default:"10" check:"min=1,max=3600" doc:"How long to wait for a connection, in seconds."`
	FirstTokenTimeoutSeconds int       `yaml:"first_token_timeout_seconds" default:"0" check:"min=0,max=604800" doc:"How long to wait for the first token of an answer, in seconds; 0 waits as timeout_seconds says."`
	MaxRetries               int       `yaml:"max_retries" default:"5" check:"min=0,max=100" doc:"How often a failed call is made again."`
	PricesFile               string    `yaml:"prices_file" doc:"Prices of models, over the built-in ones; tori models --prices prints the form."`
	StateDir                 string    `yaml:"state_dir" doc:"Directory by which all processes of this machine share the servers of models; in the user's state directory where none is given."`
	OpenAI                   Server    `yaml:"openai" set:"model=gpt-4o,context_length=128000,api_key=${OPENAI_API_KEY},base_url=https://api.openai.com/v1,max_parallel=0" doc:"OpenAI, or a server that speaks its protocol."`
	Anthropic                Anthropic `yaml:"anthropic" doc:"Anthropic's Messages API."`
	DeepSeek                 Server    `yaml:"deepseek" set:"model=deepseek-flash,context_length=128000,api_key=${DEEPSEEK_API_KEY},base_url=https://api.deepseek.com,max_parallel=0" doc:"DeepSeek."`
	Ollama                   Ollama    `yaml:"ollama" doc:"A local Ollama."`
	LMStudio                 Server    `yaml:"lmstudio" set:"context_length=8192,base_url=http://127.0.0.1:1234/v1,max_parallel=1" doc:"A local LM Studio."`
	VLLM                     Server    `yaml:"vllm" set:"context_length=32768,base_url=http://127.0.0.1:8000/v1,max_parallel=0" doc:"A vLLM server."`
	Script                   Script    `yaml:"script" doc:"A written conversation, for demos and tests."`
}

// Server is a section of llm: a server that is called with a key, and the model
// that answers where a role names none. Its defaults stand in LLM.
type Server struct {
	Model         string `yaml:"model" doc:"Name of the model."`
	ContextLength int    `yaml:"context_length" check:"min=1" doc:"Context length of the model, in tokens."`
	APIKey        string `yaml:"api_key" secret:"true" doc:"The key; keep it in the environment rather than in this file."`
	BaseURL       string `yaml:"base_url" check:"server" doc:"Address of the API; without a scheme https, of this machine and its network http."`
	MaxParallel   int    `yaml:"max_parallel" check:"min=0,max=1024" doc:"Calls at once from this machine, chat before work; 0 for no limit."`
}

// Anthropic is the section llm.anthropic.
type Anthropic struct {
	Server         `set:"model=claude-sonnet-4.5,context_length=200000,api_key=${ANTHROPIC_API_KEY},base_url=https://api.anthropic.com,max_parallel=0"`
	ThinkingTokens int `yaml:"thinking_tokens" default:"0" check:"min=-1" doc:"Tokens that the model may think for, from 1024; 0 for none, -1 lets it decide."`
}

// Ollama is the section llm.ollama.
type Ollama struct {
	Model         string `yaml:"model" default:"qwen3:30b" check:"nonempty" doc:"Name of the model."`
	ContextLength int    `yaml:"context_length" default:"32768" check:"min=1" doc:"Context length in tokens, asked of the server with every call (num_ctx)."`
	Endpoint      string `yaml:"endpoint" default:"http://127.0.0.1:11434" check:"server" doc:"Address of the server; OLLAMA_HOST where none is given. Without a scheme it is http, without a port 11434."`
	APIKey        string `yaml:"api_key" secret:"true" doc:"Key of a server that asks for one."`
	Think         string `yaml:"think" default:"auto" check:"enum=auto|true|false|low|medium|high|max" doc:"Whether a model that can think does so before it answers; auto leaves it to the model."`
	MaxParallel   int    `yaml:"max_parallel" default:"1" check:"min=0,max=1024" doc:"Calls at once from this machine, chat before work; 0 for no limit."`
}

// Script is the section llm.script.
type Script struct {
	File string `yaml:"file" doc:"The conversation; needed where llm.provider is script."`
}

// Routing is the section routing (route §1.1, §10).
type Routing struct {
	LLM           Roles      `yaml:"llm" doc:"Role names are fixed; who fills them is not."`
	Classifier    Classifier `yaml:"classifier" doc:"Asking a model where messages of a chat go."`
	RulesFile     string     `yaml:"rules_file" doc:"Dictionary that says where messages of a chat go, in place of the built-in one: in the form of internal/routing/dictionary.yaml. It is read again when it changes."`
	FallbackRoute string     `yaml:"fallback_route" default:"CHAT" check:"enum=CHAT|PLAN|ANALYZE|OPS|RESEARCH" doc:"Where a message goes that nothing decides."`
}

// Roles is the section routing.llm: the keys of each role stand flat in it,
// with the role's name before them.
type Roles struct {
	Chat       Role `prefix:"chat" set:"alias=Mio,provider=ollama,model=ollama/chat-v1:latest"`
	Worker     Role `prefix:"worker" set:"alias=Shiro,provider=ollama,model=ollama/worker-v1:latest"`
	Coder      Role `prefix:"coder" set:"alias=Aka,provider=deepseek"`
	Coder2     Role `prefix:"coder2" set:"alias=Ao,provider=openai"`
	Coder3     Role `prefix:"coder3" set:"alias=Claude,provider=anthropic,model=claude-sonnet-4.5"`
	Task       Role `prefix:"task"`
	Summarizer Role `prefix:"summarizer"`

	CodeProvider string `yaml:"code_provider" check:"enum=|openai|anthropic|deepseek|ollama|lmstudio|vllm|script" doc:"Old name of coder_provider."`
	CodeModel    string `yaml:"code_model" doc:"Old name of coder_model."`
}

// Server returns the section of a provider that is called with a key; ok is
// false where it is none.
func (l *LLM) Server(provider string) (s *Server, ok bool) {
	all := map[string]*Server{"openai": &l.OpenAI, "anthropic": &l.Anthropic.Server, "deepseek": &l.DeepSeek, "lmstudio": &l.LMStudio, "vllm": &l.VLLM}
	s, ok = all[provider]
	return s, ok
}

// RoleNames lists the roles in the order of the file.
func RoleNames() []string {
	return []string{"chat", "worker", "coder", "coder2", "coder3", "task", "summarizer"}
}

// Role is who fills one role, and how it is called.
type Role struct {
	Alias           string   `yaml:"alias" doc:"What people call {role}."`
	Provider        string   `yaml:"provider" check:"enum=|openai|anthropic|deepseek|ollama|lmstudio|vllm|script" doc:"Provider of {role}; llm.provider where none is given."`
	Model           string   `yaml:"model" doc:"Model of {role}; that of the provider's section where none is given."`
	ContextLength   int      `yaml:"context_length" default:"0" check:"min=0" doc:"Context length of that model, in tokens; 0 takes that of the provider's section."`
	MaxTokens       int      `yaml:"max_tokens" default:"0" check:"min=0" doc:"Most tokens of one answer; 0 leaves it to the provider."`
	Temperature     float64  `yaml:"temperature" default:"-1" check:"min=-1,max=2" doc:"Temperature, from 0 to 2; -1 leaves it to the model."`
	TimeoutSeconds  int      `yaml:"timeout_seconds" default:"0" check:"min=0,max=604800" doc:"Longest time of one call, in seconds; 0 for no limit but those of llm."`
	FunctionCalling string   `yaml:"function_calling" default:"auto" check:"enum=auto|true|false" doc:"As llm.function_calling, for {role}; auto goes by that."`
	Fallbacks       []string `yaml:"fallbacks" check:"model" doc:"Models that answer where that one cannot, in order, each PROVIDER/MODEL."`
}

// Role returns the settings of a role; ok is false where there is no such role.
func (r *Roles) Role(name string) (role *Role, ok bool) {
	all := map[string]*Role{"chat": &r.Chat, "worker": &r.Worker, "coder": &r.Coder, "coder2": &r.Coder2, "coder3": &r.Coder3, "task": &r.Task, "summarizer": &r.Summarizer}
	role, ok = all[name]
	return role, ok
}

// Coder3 is the section coder3 (route §10.1). Who coder3 is stands in
// routing.llm; here it may only be repeated.
type Coder3 struct {
	Provider       string `yaml:"provider" default:"anthropic" check:"enum=|openai|anthropic|deepseek|ollama|lmstudio|vllm|script" doc:"As routing.llm.coder3_provider; another one is an error."`
	Model          string `yaml:"model" default:"claude-sonnet-4.5" doc:"As routing.llm.coder3_model; another one is an error."`
	MaxTokens      int    `yaml:"max_tokens" default:"16000" check:"min=1" doc:"Most tokens that the answers of one job may have together."`
	RetryMax       int    `yaml:"retry_max" default:"2" check:"min=0,max=100" doc:"How often in a row a failed call is made again."`
	TimeoutSeconds int    `yaml:"timeout_sec" default:"60" check:"min=1,max=604800" doc:"Longest time of one call, in seconds."`
}

// Providers is the section providers (route §10).
type Providers struct {
	OllamaRestartCommand string      `yaml:"ollama_restart_command" doc:"Command that restarts Ollama, e.g. systemctl --user restart ollama; without one it is only warmed up."`
	Ollama               OllamaRoles `yaml:"ollama" doc:"Ollama in the roles chat and worker."`
}

// OllamaRoles is the section providers.ollama.
type OllamaRoles struct {
	NumCtx     int    `yaml:"num_ctx" default:"8192" check:"min=64" doc:"Context length asked for with every call (num_ctx), in tokens."`
	KeepAlive  string `yaml:"keep_alive" default:"-1" check:"keepalive" doc:"How long a model stays in memory after a call: seconds, a duration such as 30m, or -1 for ever."`
	MaxContext int    `yaml:"max_context" default:"8192" check:"min=0" doc:"Largest context length that a model may be loaded with, in tokens; 0 for no limit."`
	MinContext int    `yaml:"min_context" default:"0" check:"min=0" doc:"Smallest context length that a model may be loaded with, in tokens; 0 for no limit."`
}

// Timeout is llm.timeout_seconds.
func (l LLM) Timeout() time.Duration { return time.Duration(l.TimeoutSeconds) * time.Second }

// ConnectTimeout is llm.connect_timeout_seconds.
func (l LLM) ConnectTimeout() time.Duration {
	return time.Duration(l.ConnectTimeoutSeconds) * time.Second
}

// FirstTokenTimeout is llm.first_token_timeout_seconds.
func (l LLM) FirstTokenTimeout() time.Duration {
	return time.Duration(l.FirstTokenTimeoutSeconds) * time.Second
}
