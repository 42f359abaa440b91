package cli

import (
	"context"
	"io"
	"os"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
	"toritsugi/internal/routing"
)

type routesCmd struct {
	Test  routesTestCmd  `cmd:"" help:"${routes_test_help}"`
	Stats routesStatsCmd `cmd:"" help:"${routes_stats_help}"`
}

type routesTestCmd struct {
	File     string `arg:"" placeholder:"FILE" help:"${routes_file_help}"`
	Rules    string `placeholder:"FILE" help:"${routes_rules_help}"`
	settings `embed:""`
}

// Run decides labelled messages by commands and dictionary; exit 1 where one is wrong.
func (r routesTestCmd) Run(c *console) error {
	path := r.Rules
	if path == "" {
		cfg, err := c.load(r.Config)
		if err != nil {
			return usage(err)
		}
		path = cfg.Routing.RulesFile
	}
	rules, err := routing.OpenRules(path, func(err error) { c.complain(err) })
	if err != nil {
		return usage(err)
	}
	all, err := r.messages()
	if err != nil {
		return usage(err)
	}
	router := routing.New(rules, routing.Settings{})
	tried, wrong := make([]ops.Tried, len(all)), false
	for i, m := range all {
		tried[i] = ops.Tried{Labelled: m, Decision: router.Decide(context.Background(), routing.Input{Text: m.Text})}
		wrong = wrong || tried[i].Decision.PrimaryRoute != m.Route
	}
	if err := ops.RoutesTest(c.out, tried, ops.RoutesOptions{JSON: r.JSON, Lang: c.lang, Mask: c.sanitizer().String}); err != nil {
		return err
	}
	if wrong {
		return &exitError{code: exitFailed}
	}
	return nil
}

// messages reads the labelled messages of the file, or of standard input.
func (r routesTestCmd) messages() ([]routing.Labelled, error) {
	var from io.Reader = os.Stdin
	if r.File != "-" {
		f, err := disk.OpenPlain(r.File)
		if err != nil {
			return nil, i18n.E("routing.labelled_read", r.File, err)
		}
		defer func() { _ = f.Close() }() // only read from
		from = f
	}
	all, err := routing.ReadLabelled(r.File, from)
	if err == nil && len(all) == 0 {
		err = i18n.E("routing.tried_none", r.File)
	}
	return all, err
}

type routesStatsCmd struct {
	place `embed:""`
	JSON  bool `name:"json" help:"${json_help}"`
}

// Run shows what was decided in the sessions of the base directory.
func (r routesStatsCmd) Run(c *console) error {
	base, err := r.base(c)
	if err != nil {
		return err
	}
	stats, err := ops.ReadRouteStats(base)
	if err != nil {
		return err
	}
	return ops.RoutesStats(c.out, base, stats, ops.RoutesOptions{JSON: r.JSON, Lang: c.lang, Mask: c.sanitizer().String})
}
