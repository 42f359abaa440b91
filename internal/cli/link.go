package cli

import (
	"context"

	"toritsugi/internal/app"
	"toritsugi/internal/redact"
)

type linkCmd struct {
	Code   linkCodeCmd   `cmd:"" default:"withargs" help:"${link_code_help}"`
	List   linkListCmd   `cmd:"" help:"${link_list_help}"`
	Remove linkRemoveCmd `cmd:"" help:"${link_remove_help}"`
}

// people opens those who are linked for f.
func (p place) people(c *console, f func(ctx context.Context, a *app.People) error) error {
	return opened(c, p, app.OpenPeople, f)
}

type linkCodeCmd struct {
	User  string `placeholder:"ACCOUNT" help:"${link_user_help}"`
	place `embed:""`
}

// Run shows a code.
func (l linkCodeCmd) Run(c *console) error {
	return l.people(c, func(ctx context.Context, a *app.People) error {
		code, whom, until, err := a.Offer(ctx, l.User)
		if err == nil {
			c.say("cli.link_code", code, redact.Printable(whom), when(until))
		}
		return err
	})
}

type linkListCmd struct {
	JSON  bool `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Run lists who is linked.
func (l linkListCmd) Run(c *console) error {
	return l.people(c, func(ctx context.Context, a *app.People) error {
		all, err := a.List(ctx)
		for _, one := range all {
			switch {
			case l.JSON:
				if err := c.json(one); err != nil {
					return err
				}
			case one.Settings:
				c.say("cli.link_setting", redact.Printable(one.Who), redact.Printable(one.Account))
			default:
				c.say("cli.link_line", redact.Printable(one.Who), redact.Printable(one.Account), when(one.At.Time))
			}
		}
		if err == nil && len(all) == 0 && !l.JSON {
			c.say("cli.no_links")
		}
		return err
	})
}

type linkRemoveCmd struct {
	Who   string `arg:"" placeholder:"WHO" help:"${link_who_help}"`
	place `embed:""`
}

// Run ends a link.
func (l linkRemoveCmd) Run(c *console) error {
	return l.people(c, func(ctx context.Context, a *app.People) error {
		err := a.Remove(ctx, l.Who)
		if err == nil {
			c.say("cli.link_removed", redact.Printable(l.Who))
		}
		return err
	})
}
