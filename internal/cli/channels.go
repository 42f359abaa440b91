package cli

import (
	"fmt"

	"toritsugi/internal/app"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

type channelsCmd struct {
	Check channelsCheckCmd `cmd:"" help:"${channels_check_help}"`
}

type channelsCheckCmd struct {
	Send     bool `help:"${channels_send_help}"`
	settings `embed:""`
}

// Run looks over the channels of the settings; exit 1 where one is not set up well.
func (k channelsCheckCmd) Run(c *console) error {
	env, err := c.env(c.note)
	if err != nil {
		return err
	}
	ctx, stop := c.untilSignal()
	defer stop()
	all, err := app.CheckChannels(ctx, env, k.Config, k.Send)
	if err != nil {
		return err
	}
	wrong := 0
	for _, f := range all {
		how := "channel.well"
		if !f.OK {
			how = "channel.wrong"
			wrong++
		}
		if k.JSON {
			err = c.json(f)
		} else {
			_, err = fmt.Fprintf(c.out, "%-6s %-13s %s %s\n", f.Channel, f.Part, c.lang.T(how), redact.Printable(f.Text))
		}
		if err != nil {
			return err
		}
	}
	if wrong > 0 {
		return i18n.E("channel.failed", wrong)
	}
	return nil
}
