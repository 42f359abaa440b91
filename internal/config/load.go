package config

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// maxFile bounds a configuration, in bytes: what is larger was named by mistake,
// and the YAML parser takes time quadratic in it.
const maxFile = 128 << 10

// maxProblems is how many problems are told at once.
const maxProblems = 50

// origin says where a value came from.
type origin struct {
	line int    // of the file; 0 where it did not come from there
	env  string // the variable; "" where it did not come from one
}

func (o origin) set() bool { return o.line > 0 || o.env != "" }

// meta is what a Config knows about itself.
type meta struct {
	file     string
	origins  map[string]origin // by path; no entry is the default
	warnings []error
	secrets  []string
	hold     []string // names of the variables that hold secrets

	path, by string      // of the file in force, see Find
	ignored  error       // see Ignored
	left     *i18n.Error // a base directory that is passed over
	base     error       // what keeps base_dir from being used
}

// contents is what the file at path holds.
func contents(path string) ([]byte, error) {
	data, err := disk.Read(path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, i18n.E("config.missing", path, err)
	case errors.As(err, new(*disk.TooLargeError)):
		return nil, i18n.E("config.too_large", path, maxFile>>10)
	case err != nil:
		return nil, i18n.E("config.read", path, err)
	}
	return data, nil
}

// Parse is Load for a file that was read already; name is what errors call it.
// An empty file gives the defaults. An empty variable counts as not set.
func Parse(name string, data []byte, getenv func(string) string, environ []string) (*Config, error) {
	c := &Config{meta: meta{file: name, origins: map[string]origin{}}}
	read := map[string]bool{}
	p := &parser{name: name, schema: newSchema(), config: c, target: reflect.ValueOf(c).Elem(), getenv: func(name string) string {
		read[name] = true
		return getenv(name)
	}}
	p.defaults()
	p.file(data)
	p.environment()
	p.misspelt(environ)
	c.LLM.addresses(c.IsSet("llm.ollama.endpoint"), p.getenv("OLLAMA_HOST"))
	p.finish()
	p.arguments(append(slices.Clip(environ), c.environment()...))
	if len(p.problems) > 0 {
		return nil, joined(p.problems)
	}
	c.meta.secrets = p.secrets(environ)
	c.meta.hold = holders(environ, read, c.meta.secrets)
	return c, nil
}

// Warnings lists what is allowed but likely wrong; each is an *i18n.Error.
func (c *Config) Warnings() []error { return c.meta.warnings }

// IsSet reports whether the file or the environment sets the key at path, or
// any key of the section at path.
func (c *Config) IsSet(path string) bool {
	for p := range c.meta.origins {
		if p == path || strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// parser collects the values and problems of one configuration.
type parser struct {
	name     string
	schema   *schema
	config   *Config
	target   reflect.Value // of config
	getenv   func(string) string
	problems []error
	lenient  bool // a key that is not known is no problem
}

func (p *parser) problem(key string, args ...any) {
	p.problems = append(p.problems, i18n.E(key, args...))
}

func (p *parser) warn(key string, args ...any) {
	p.config.meta.warnings = append(p.config.meta.warnings, i18n.E(key, args...))
}

// joined makes one error of many, a line each.
func joined(problems []error) error {
	if n := len(problems) - maxProblems; n > 0 {
		problems = append(problems[:maxProblems:maxProblems], i18n.E("config.more", n))
	}
	err := problems[len(problems)-1]
	for i := len(problems) - 2; i >= 0; i-- {
		err = i18n.E("config.list", problems[i], err)
	}
	return err
}

// at names a place for the reader: file:line, a variable, or the default.
func (p *parser) at(o origin) any {
	switch {
	case o.env != "":
		return i18n.E("config.at_env", o.env)
	case o.line > 0:
		return p.line(o.line)
	}
	return i18n.E("config.at_default")
}

func (p *parser) line(n int) string { return fmt.Sprintf("%s:%d", p.name, n) }

func (p *parser) defaults() {
	for _, f := range p.schema.fields {
		if f.def == "" {
			continue
		}
		if f.kind == kindList {
			p.target.FieldByIndex(f.index).Set(reflect.ValueOf(f.defaultList()))
			continue
		}
		text := f.def
		if f.kind == kindString {
			text, _, _ = expand(text, p.getenv)
		}
		v, _ := fromText(f.kind, text)
		p.target.FieldByIndex(f.index).Set(v)
	}
}

// finish does what needs all values: limits between keys, recommendations,
// defaults that are other keys.
func (p *parser) finish() {
	c := p.config
	for _, f := range p.schema.fields {
		if f.kind != kindInt || !f.rules.recommend {
			continue
		}
		n := float64(p.target.FieldByIndex(f.index).Int())
		if o := c.meta.origins[f.path]; o.set() && (n < f.rules.low || n > f.rules.high) {
			p.warn("config.warn.range", p.at(o), f.path, show(n), show(f.rules.low), show(f.rules.high))
		}
	}
	s := c.ContextStorage
	if s.KeepRecentMessages >= s.MinMessagesToSummarize && len(p.problems) == 0 {
		at := p.at(p.set("context_storage.keep_recent_messages", "context_storage.min_messages_to_summarize"))
		p.problem("config.keep_recent", at, s.MinMessagesToSummarize, s.KeepRecentMessages)
	}
	if c.Queue.Driver == "postgres" && s.Backend != "postgres" {
		p.problem("config.queue", p.at(c.meta.origins["queue.driver"]), s.Backend)
	} else if c.Queue.Driver == "postgres" && s.Blobs == "" {
		p.warn("config.warn.blobs", p.at(c.meta.origins["queue.driver"]))
	}
	if o := c.meta.origins["llm.provider"]; c.LLM.Provider == "script" && c.LLM.Script.File == "" {
		p.problem("config.script_file", p.at(o))
	}
	p.roles()
	p.forges()
	p.channels()
	p.monitor()
	p.retention()
	p.inheritance()
	p.confidences()
	p.users()
	for i := range c.MCPServers {
		if s := &c.MCPServers[i]; s.TimeoutSeconds == 0 {
			s.TimeoutSeconds = 120
		}
	}
	for i := range c.Checks {
		if k := &c.Checks[i]; k.TimeoutSeconds == 0 {
			k.TimeoutSeconds = c.ChecksTimeoutSeconds
		}
	}
}

// roles settles what one role is called by under several names.
func (p *parser) roles() {
	c := p.config
	r := &c.Routing.LLM
	p.oldName("routing.llm.code_provider", r.CodeProvider, "routing.llm.coder_provider", &r.Coder.Provider)
	p.oldName("routing.llm.code_model", r.CodeModel, "routing.llm.coder_model", &r.Coder.Model)
	p.same("coder3.provider", c.Coder3.Provider, "routing.llm.coder3_provider", r.Coder3.Provider)
	p.same("coder3.model", c.Coder3.Model, "routing.llm.coder3_model", r.Coder3.Model)
	o := c.Providers.Ollama
	if o.MinContext > o.NumCtx || o.MaxContext > 0 && o.NumCtx > o.MaxContext {
		at := p.at(p.set("providers.ollama.num_ctx", "providers.ollama.max_context", "providers.ollama.min_context"))
		p.problem("config.num_ctx", at, o.NumCtx, o.MinContext, o.MaxContext)
	}
}

// confidences refuses a range in which people would be asked that is none.
func (p *parser) confidences() {
	const section = "planning.replanning.llm_decision."
	d := p.config.Planning.Replanning.LLMDecision
	if d.UserConfirmationThreshold <= d.MinConfidenceThreshold {
		return
	}
	at := p.at(p.set(section+"user_confirmation_threshold", section+"min_confidence_threshold"))
	p.problem("config.confidences", at, section+"user_confirmation_threshold", show(d.UserConfirmationThreshold), section+"min_confidence_threshold", show(d.MinConfidenceThreshold))
}

// oldName takes a value over that was set under a name of former days.
func (p *parser) oldName(old, value, now string, target *string) {
	was, is := p.config.meta.origins[old], p.config.meta.origins[now]
	switch {
	case !was.set() || value == "":
	case !is.set():
		*target = value
		p.config.meta.origins[now] = was
	case value != *target:
		p.problem("config.differs", p.at(was), old, value, now, *target)
	}
}

// same complains of a setting that only repeats another, and differs from it.
func (p *parser) same(key, value, other, is string) {
	if o := p.config.meta.origins[key]; o.set() && value != is {
		p.problem("config.differs", p.at(o), key, value, other, is)
	}
}
