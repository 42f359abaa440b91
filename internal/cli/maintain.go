package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

type maintainCmd struct {
	JSON  bool `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Run does the nightly work, for cron or a timer: exit 1 where a step failed.
func (m maintainCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		var failed []string
		var unsaid error
		base, who, err := app.Maintain(ctx, env, m.BaseDir, m.Config, func(s app.NightStep) {
			if s.Err != nil {
				failed = append(failed, s.Name)
			}
			unsaid = errors.Join(unsaid, m.tell(c, s))
		})
		if errors.Is(err, contextstore.ErrBusy) {
			c.note("cli.maintain_busy", base)
			return nil
		}
		if err = errors.Join(err, unsaid); err != nil {
			return err
		}
		entry := contextstore.AuditEntry{Actor: who, Action: "maintain"}
		if len(failed) > 0 {
			entry.Detail = "failed: " + strings.Join(failed, ", ")
		}
		c.record(base, entry)
		if len(failed) > 0 {
			return i18n.E("cli.maintain_partial", strings.Join(failed, ", "))
		}
		return nil
	})
}

// tell tells of one step.
func (m maintainCmd) tell(c *console, s app.NightStep) error {
	did := map[string]any{}
	var words []string
	for i := 0; i+1 < len(s.Did); i += 2 {
		did[fmt.Sprint(s.Did[i])] = s.Did[i+1]
		words = append(words, fmt.Sprintf("%v=%v", s.Did[i], s.Did[i+1]))
	}
	switch why := c.masked(s.Err); {
	case m.JSON:
		return c.json(struct {
			Step    string         `json:"step"`
			Seconds float64        `json:"seconds"`
			Did     map[string]any `json:"did"`
			Error   string         `json:"error,omitempty"`
		}{s.Name, s.Took.Seconds(), did, why})
	case s.Err != nil:
		c.say("cli.maintain_failed", fmt.Sprintf("%-10s", s.Name), why)
	default:
		c.say("cli.maintained", fmt.Sprintf("%-10s", s.Name), s.Took.Round(time.Millisecond), strings.Join(words, " "))
	}
	return nil
}
