package app

import (
	"context"
	"io"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/turn"
)

// Bench is what a trial without the house takes of it: the settings, the model
// that would work and the sandbox that it would work in. It is its maker's to
// close.
type Bench struct {
	Config *config.Config
	// Shell makes a runner, confined as the settings say.
	Shell func(sandbox.Spec) (sandbox.Runner, error)
	s     *system
}

// OpenBench reads the settings and chooses a sandbox as Run would; of opt only
// Config, Role, Model, LocalOnly and AllowUnsandboxed count. The error is a
// *ConfigError, or ctx's.
func OpenBench(ctx context.Context, env Env, opt RunOptions) (b *Bench, err error) {
	s := &system{env: env, opt: opt}
	if err := s.settle(); err != nil {
		return nil, err
	}
	b = &Bench{Config: s.cfg, s: s}
	if b.Shell, err = s.shell(ctx); err == nil {
		err = s.openModels()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &ConfigError{err}
	}
	return b, nil
}

// Spec is who would work, where nobody names a script. The error is an i18n
// error of a setting, or ctx's.
func (b *Bench) Spec(ctx context.Context) (models.Spec, error) {
	return b.s.models.Spec(ctx, models.Use{Role: b.s.opt.Role, Model: b.s.opt.Model, LocalOnly: b.s.opt.LocalOnly})
}

// Client is the model that works, or the script where one is named. who is shown
// to those who wait for the same server. Errors are as Spec's.
func (b *Bench) Client(ctx context.Context, script, who string) (llm.Client, models.Spec, error) {
	u := models.Use{Role: b.s.opt.Role, Model: b.s.opt.Model, LocalOnly: b.s.opt.LocalOnly, Script: script, Who: who}
	if script != "" {
		u.Role, u.Model = "", ""
	}
	return b.s.models.Client(ctx, u)
}

// Budget is what one run may take.
func (b *Bench) Budget(spec *models.Spec) turn.Budget { return budget(b.Config, spec) }

// budget is what the settings let a run take.
func budget(cfg *config.Config, spec *models.Spec) turn.Budget {
	return turn.Budget{Turns: cfg.Budget.MaxTurns, Tokens: int64(cfg.Budget.MaxTokens), Time: time.Duration(cfg.Budget.MaxMinutes) * time.Minute,
		Cost: microUSD(cfg.Budget.MaxCostUSD), Answers: int64(spec.JobTokens)}
}

// Filter masks the secrets of the settings in what is written.
func (b *Bench) Filter(w io.Writer) io.WriteCloser { return b.s.redact.Writer(w) }

// Redact masks the secrets of the settings in a text.
func (b *Bench) Redact(text string) string { return b.s.redact.String(text) }

// Close ends what looks after servers, and closes idle connections.
func (b *Bench) Close() error { return b.s.models.Close() }
