package config

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// ContextInheritance is the section context_inheritance (inherit §5).
type ContextInheritance struct {
	Enabled            bool `yaml:"enabled" default:"true" doc:"Give a run the final summary of the last completed or stopped run of the same issue or pull request."`
	ContextExpiryDays  int  `yaml:"context_expiry_days" default:"90" check:"min=1,max=36500" doc:"How old a run may be that is inherited from, in days since its end."`
	MaxInheritedTokens int  `yaml:"max_inherited_tokens" default:"8000" check:"min=100,max=10000000" doc:"Tokens that what is inherited may take; 5 to 10 % of the model's context length are a good measure."`
	FollowLinks        bool `yaml:"follow_links" default:"false" doc:"Let a run on a pull request inherit from the run on the issue that the pull request came from."`

	Planning InheritedPlanning `yaml:"planning" doc:"What a run with planning takes over beside the summary."`
}

// InheritedPlanning is the section context_inheritance.planning (inherit §10.9).
type InheritedPlanning struct {
	InheritPlans            bool `yaml:"inherit_plans" default:"true" doc:"Earlier plans and what became of them. Which calls of tools worked and failed is told as long as one of the three inherit_ keys is true."`
	InheritVerifications    bool `yaml:"inherit_verifications" default:"true" doc:"What earlier verifications found, of all runs that may be inherited from."`
	InheritReflections      bool `yaml:"inherit_reflections" default:"true" doc:"Earlier reflections, revisions and decisions to plan anew."`
	MaxPreviousPlans        int  `yaml:"max_previous_plans" default:"3" check:"min=1,max=20" doc:"How many earlier plans are looked at, the latest first."`
	ReuseSuccessfulPatterns bool `yaml:"reuse_successful_patterns" default:"true" doc:"Name what worked before, and not only what failed."`
}

// Expiry is context_expiry_days.
func (c ContextInheritance) Expiry() time.Duration {
	return time.Duration(c.ContextExpiryDays) * 24 * time.Hour
}

// DeleteAfter is how many days ended runs are kept.
func (c *Config) DeleteAfter() int {
	return cmp.Or(c.ContextStorage.Retention.DeleteDays, c.ContextInheritance.ContextExpiryDays)
}

// retention complains of runs that are removed while they may be inherited from
// (spec/README "retention vs inheritance").
func (p *parser) retention() {
	c := p.config
	if most := c.ContextInheritance.ContextExpiryDays; c.ContextInheritance.Enabled && c.DeleteAfter() < most {
		p.problem("config.retention", p.at(p.set("context_storage.retention.delete_days")), "context_storage.retention.delete_days", c.DeleteAfter(), most)
	}
	const rules = "context_storage.retention.rules"
	for i, r := range c.ContextStorage.Retention.Rules {
		// A run that failed is not inherited from.
		if most := c.ContextInheritance.ContextExpiryDays; c.ContextInheritance.Enabled && r.Status != "failed" && r.DeleteDays > 0 && r.DeleteDays < most {
			p.problem("config.retention", p.at(p.set(rules)), fmt.Sprintf("%s[%d].delete_days", rules, i), r.DeleteDays, most)
		}
	}
}

// name is what a rule is about.
func (r RetentionRule) name() string { return strings.TrimSpace(r.Status + " " + r.Repository) }

// retentionRule complains of what an item of context_storage.retention.rules lacks.
func (p *parser) retentionRule(r *RetentionRule, line int, shown string) {
	days := r.GzipDays + r.SlimDays + r.DeleteDays
	switch {
	case r.name() == "":
		p.problem("config.rule_for", p.line(line), shown)
	case r.Keep == (days > 0):
		p.problem("config.rule_does", p.line(line), shown)
	}
}

// inheritance warns of a share of the model's window that is outside of what
// inherit §5.1 recommends.
func (p *parser) inheritance() {
	const key = "context_inheritance.max_inherited_tokens"
	c := p.config
	window := map[string]int{"openai": c.LLM.OpenAI.ContextLength, "anthropic": c.LLM.Anthropic.ContextLength, "deepseek": c.LLM.DeepSeek.ContextLength,
		"ollama": c.LLM.Ollama.ContextLength, "lmstudio": c.LLM.LMStudio.ContextLength, "vllm": c.LLM.VLLM.ContextLength}[c.LLM.Provider]
	n := c.ContextInheritance.MaxInheritedTokens
	if o := c.meta.origins[key]; o.set() && window > 0 && (n < window/20 || n > window/10) {
		p.warn("config.warn.inherited", p.at(o), key, n, window/20, window/10, window)
	}
}
