package cli

import (
	"fmt"
	"os"

	"toritsugi/internal/app"
	"toritsugi/internal/config"
)

type configCmd struct {
	Check   configCheckCmd   `cmd:"" help:"${config_check_help}"`
	Print   configPrintCmd   `cmd:"" help:"${config_print_help}"`
	Trust   configTrustCmd   `cmd:"" help:"${config_trust_help}"`
	Example configExampleCmd `cmd:"" help:"${config_example_help}"`
}

type configFlag struct {
	Config string `placeholder:"FILE" help:"${config_file_help}"`
}

type configCheckCmd struct {
	configFlag `embed:""`
}

// Run checks the configuration: exit 0 with what deserves a second look, or 2
// with every error.
func (f configCheckCmd) Run(c *console) error {
	cfg, err := app.LoadConfig(f.Config, c.getenv)
	if err != nil {
		return usage(err)
	}
	if err := app.CheckRules(cfg); err != nil {
		return usage(err)
	}
	c.say(cfg.InForce().Key, cfg.InForce().Args...)
	for _, w := range cfg.Warnings() {
		_, _ = fmt.Fprintln(c.out, c.lang.Error(w))
	}
	c.say("cli.config_ok", len(cfg.Warnings()))
	return nil
}

type configPrintCmd struct {
	configFlag `embed:""`
}

// Run prints the effective configuration, secrets masked.
func (f configPrintCmd) Run(c *console) error {
	cfg, err := c.load(f.Config)
	if err != nil {
		return usage(err)
	}
	c.say("cli.comment", cfg.InForce())
	return cfg.Print(c.out)
}

type configTrustCmd struct {
	File string `arg:"" optional:"" default:"config.yaml" help:"${config_trust_file_help}"`
}

// Run records that a file is trusted as it is now.
func (f configTrustCmd) Run(c *console) error {
	cfg, err := config.Trust(f.File, c.getenv, os.Environ())
	if err != nil {
		return usage(err)
	}
	c.say("cli.config_trusted", cfg.File())
	return nil
}

// load loads the configuration in force, and tells of a file that is not.
func (c *console) load(path string) (*config.Config, error) {
	cfg, err := app.LoadConfig(path, c.getenv)
	if err == nil && cfg.Ignored() != nil {
		c.complain(cfg.Ignored())
	}
	return cfg, err
}

type configExampleCmd struct{}

// Run prints a commented config.yaml with every default.
func (configExampleCmd) Run(c *console) error {
	_, err := c.out.Write(config.Example())
	return err
}
