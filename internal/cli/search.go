package cli

import (
	"fmt"
	"strings"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
	"toritsugi/internal/task"
)

type searchCmd struct {
	Words  []string `arg:"" placeholder:"WORDS" help:"${search_words_help}"`
	User   string   `placeholder:"U" help:"${user_help}"`
	Status string   `placeholder:"S" help:"${search_status_help}"`
	From   string   `placeholder:"DAY" help:"${stats_from_help}"`
	To     string   `placeholder:"DAY" help:"${stats_to_help}"`
	Repo   string   `placeholder:"REPO" help:"${stats_repo_help}"`
	In     string   `placeholder:"PART" help:"${search_in_help}"`
	Limit  int      `default:"20" placeholder:"N" help:"${limit_help}"`
	JSON   bool     `name:"json" help:"${json_help}"`
	place  `embed:""`
}

// Run finds runs by words: exit 1 where none is found.
func (s searchCmd) Run(c *console) error {
	base, who, err := s.look(c)
	if err != nil {
		return err
	}
	if s.Limit < 1 || s.Limit > 1000 {
		return usage(i18n.E("cli.bad_limit", s.Limit))
	}
	if s.User, err = app.UserOf(base, s.User, s.Config, c.getenv); err != nil {
		return usage(err)
	}
	ctx, stop := c.untilSignal()
	defer stop()
	o, done := s.searching(c, base, who)
	o.Filter = search.Filter{User: s.User, Status: task.Status(s.Status), Repo: s.Repo, From: s.From, To: s.To, In: s.In, Limit: s.Limit}
	o.Words, o.JSON = s.Words, s.JSON
	found, err := ops.Search(ctx, c.out, base, o)
	done()
	if err != nil {
		return usage(err)
	}
	c.record(base, contextstore.AuditEntry{Actor: who.User, Action: "search", Detail: strings.Join(s.Words, " "), What: s.In})
	if found == 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

// searching is what looking for runs needs to know; done clears what tells of its progress.
func (p place) searching(c *console, base string, who contextstore.Viewer) (o ops.SearchOptions, done func()) {
	o = ops.SearchOptions{Width: width(c.out), Lang: c.lang, Viewer: who, Plans: p.plans(c, base), Note: func(s string) { _, _ = fmt.Fprintln(c.err, s) }}
	o.Progress, done = c.progress()
	return o, done
}
