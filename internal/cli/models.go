package cli

import (
	"context"
	"errors"

	"toritsugi/internal/app"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/ops"
)

type modelsCmd struct {
	List listModelsCmd `cmd:"" default:"withargs" help:"${models_list_help}"`
	Test testModelCmd  `cmd:"" help:"${models_test_help}"`
}

// settings is where the models are read from.
type settings struct {
	Config string `placeholder:"FILE" help:"${config_file_help}"`
	JSON   bool   `name:"json" help:"${json_help}"`
}

type listModelsCmd struct {
	Prices   bool `help:"${prices_help}"`
	settings `embed:""`
}

// Run lists the roles, and what is known of who fills them.
func (l listModelsCmd) Run(c *console) error {
	return l.with(c, func(ctx context.Context, m *models.Models) error {
		if l.Prices {
			return m.Prices().Write(c.out)
		}
		return ops.Models(c.out, m.List(ctx), ops.ModelsOptions{JSON: l.JSON, Lang: c.lang, Mask: c.sanitizer().String})
	})
}

type testModelCmd struct {
	Role      string `arg:"" optional:"" placeholder:"ROLE" help:"${models_role_help}"`
	Model     string `placeholder:"PROVIDER/MODEL" help:"${model_help}"`
	LocalOnly bool   `help:"${local_only_help}"`
	settings  `embed:""`
}

// Run makes one call of the model that fills a role.
func (t testModelCmd) Run(c *console) error {
	return t.with(c, func(ctx context.Context, m *models.Models) error {
		trial, err := m.Try(ctx, models.Use{Role: t.Role, Model: t.Model, LocalOnly: t.LocalOnly, Who: "tori models test"})
		var e *llm.Error
		switch {
		case errors.As(err, &e):
			return errors.New(e.Explain(c.lang))
		case err != nil:
			return usage(err)
		}
		return ops.Trial(c.out, trial, ops.ModelsOptions{JSON: t.JSON, Lang: c.lang, Mask: c.sanitizer().String})
	})
}

type healthCmd struct {
	JSON  bool `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Exit codes of tori health, as programs of monitoring read them.
const (
	exitWarning  = 1
	exitCritical = 2
)

// Run shows whether the models in use can be called and what is wrong with the base directory:
// exit 0 where all is well, 1 for warnings, 2 where something critical is wrong.
func (h healthCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		health, err := app.Health(ctx, env, h.BaseDir, h.Config)
		if err != nil {
			return err
		}
		if err := ops.PrintHealth(c.out, health, ops.ModelsOptions{JSON: h.JSON, Lang: c.lang, Mask: c.sanitizer().String}); err != nil {
			return err
		}
		switch health.Status {
		case "warning":
			return &exitError{code: exitWarning}
		case "critical":
			return &exitError{code: exitCritical}
		}
		return nil
	})
}

// with opens the models of the settings for f. Ctrl-C ends it.
func (s settings) with(c *console, f func(context.Context, *models.Models) error) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		m, err := app.Models(env, s.Config)
		if err != nil {
			return err
		}
		defer func() { _ = m.Close() }()
		return f(ctx, m)
	})
}
