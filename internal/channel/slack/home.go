package slack

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"toritsugi/internal/channel"
)

// homeEvery is how often the home of a person is published at most.
const homeEvery = 10 * time.Second

// homeOpened is the event that says that somebody looks at the app.
const homeOpened = "app_home_opened"

// home publishes what is told of a person, who opened the app's home. It is not worth a later
// try: they open it again.
func (r receipt) home(ctx context.Context, m *message) error {
	s := r.s
	if s.opt.Home == nil || m.Tab != "home" || !s.opt.Allowed(m.User) {
		return nil
	}
	now := s.opt.Now()
	s.mu.Lock()
	last, _ := s.homes.Get(m.User)
	soon := now.Sub(last) < homeEvery
	if !soon {
		s.homes.Put(m.User, now)
	}
	s.mu.Unlock()
	if soon {
		return nil
	}
	text, err := s.opt.Home(ctx, string(channel.Slack)+":"+m.User)
	if err == nil {
		blocks := sections(mrkdwn(text))
		var view []byte
		if view, err = json.Marshal(map[string]any{"type": "home", "blocks": blocks[:min(len(blocks), maxSections)]}); err == nil {
			err = s.api.call(ctx, s.opt.BotToken, "views.publish", url.Values{"user_id": {m.User}, "view": {string(view)}}, nil)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn(s.opt.Mask("The home of a person in Slack was not shown: " + err.Error()))
	}
	return ctx.Err()
}
