package cli

import (
	"context"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
	"toritsugi/internal/task"
)

type statsCmd struct {
	User   string `placeholder:"U" help:"${user_help}"`
	From   string `placeholder:"DAY" help:"${stats_from_help}"`
	To     string `placeholder:"DAY" help:"${stats_to_help}"`
	Status string `placeholder:"S" help:"${status_help}"`
	Repo   string `placeholder:"REPO" help:"${stats_repo_help}"`
	Model  string `placeholder:"MODEL" help:"${stats_model_help}"`
	JSON   bool   `name:"json" xor:"form" help:"${json_help}"`
	CSV    bool   `name:"csv" xor:"form" help:"${stats_csv_help}"`
	HTML   string `name:"html" xor:"form" placeholder:"FILE" help:"${stats_html_help}"`
	Goals  bool   `help:"${stats_goals_help}"`
	place  `embed:""`
}

// Run tells what runs took; with --goals, exit 1 where one of them is missed.
func (s statsCmd) Run(c *console) error {
	base, who, err := s.look(c)
	if err != nil {
		return err
	}
	if s.User, err = app.UserOf(base, s.User, s.Config, c.getenv); err != nil {
		return usage(err)
	}
	ctx, stop := c.untilSignal()
	defer stop()
	o := ops.StatsOptions{
		StatsFilter: contextstore.StatsFilter{User: s.User, Status: task.Status(s.Status), Repo: s.Repo, Model: s.Model, From: s.From, To: s.To},
		JSON:        s.JSON, CSV: s.CSV, Lang: c.lang, Now: time.Now(), Viewer: who,
	}
	if s.Goals {
		return s.goals(ctx, c, base, o)
	}
	r, err := ops.ReadStats(ctx, base, o)
	if err != nil {
		return usage(err)
	}
	if s.HTML == "" {
		return ops.PrintStats(c.out, r, o)
	}
	page, err := ops.StatsPage(ctx, base, r, o, c.sanitizer().String)
	if err == nil {
		err = ops.WriteStatsPage(&disk.FS{}, s.HTML, page)
	}
	return usage(err)
}

func (s statsCmd) goals(ctx context.Context, c *console, base string, o ops.StatsOptions) error {
	if s.CSV || s.HTML != "" {
		return usage(i18n.E("cli.usage_both", "--goals", map[bool]string{true: "--csv", false: "--html"}[s.CSV]))
	}
	all, err := ops.Goals(ctx, base, o)
	if err != nil {
		return usage(err)
	}
	missed, err := ops.PrintGoals(c.out, all, s.JSON, c.lang)
	if err == nil && missed {
		err = &exitError{code: exitFailed}
	}
	return err
}
