package slack

import (
	"context"
	"encoding/json"
	"net/url"

	"toritsugi/internal/channel"
)

// showHome shows a person's app home.
func (s *Slack) showHome(ctx context.Context, user string) error {
	if s.opt.Home == nil || !s.opt.Allowed(user) {
		return nil
	}
	text, err := s.opt.Home(ctx, string(channel.Slack)+":"+user)
	if err != nil {
		return err
	}
	all := sections(mrkdwn(text))
	view, err := json.Marshal(map[string]any{"type": "home", "blocks": all[:min(len(all), maxSections)]})
	if err != nil {
		return err
	}
	return s.api.call(ctx, s.opt.BotToken, "views.publish", url.Values{"user_id": {user}, "view": {string(view)}}, nil)
}
