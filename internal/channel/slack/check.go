package slack

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// botScopes are those of contrib/slack-manifest.yaml.
func botScopes() []string {
	return []string{"app_mentions:read", "channels:history", "chat:write", "commands", "files:read", "files:write", "groups:history", "im:history", "mpim:history", "reactions:write"}
}

// Check implements channel.Checker.
func (s *Slack) Check(ctx context.Context, public string) (all []channel.Finding) {
	add := func(part string, err error, key string, args ...any) {
		if said := (*i18n.Error)(nil); err != nil && !errors.As(err, &said) {
			err = i18n.E("slack.unreachable", err)
		}
		f := channel.Found(s.opt.Lang, part, err, key, args...)
		f.Text = clean(s.opt.Mask(f.Text))
		all = append(all, f)
	}
	me, err := s.who(ctx)
	if add("bot_token", err, "slack.team", me.User, me.Team); err == nil {
		add("scopes", missing(me.header.Values("X-Oauth-Scopes")), "slack.scopes", len(botScopes()))
		all = append(all, channel.Clock(s.opt.Lang, s.opt.Now(), me.header))
	}
	if s.opt.Rotation != nil {
		until, err := s.ends()
		add("rotation", err, "slack.ends", until)
	}
	if s.opt.AppToken != "" {
		add("app_token", s.api.call(ctx, s.opt.AppToken, "apps.connections.open", nil, nil), "slack.socket")
	}
	if s.opt.SigningSecret == "" {
		return all
	}
	address := strings.TrimSuffix(public, "/") + "/webhooks/slack/events"
	if err = i18n.E("channel.public"); public != "" {
		err = s.reach(ctx, address)
	}
	add("webhook", err, "slack.reached", address)
	return all
}

// Send implements channel.Checker.
func (s *Slack) Send(ctx context.Context, session, text string) error {
	return s.Post(ctx, channel.Post{SessionID: session, Key: "check/" + rand.Text(), Kind: channel.Notice, Text: text})
}

// missing says which scopes the bot token has not.
func missing(header []string) error {
	has := strings.FieldsFunc(strings.Join(header, ","), func(r rune) bool { return r == ',' || r == ' ' })
	need := slices.DeleteFunc(botScopes(), func(scope string) bool { return slices.Contains(has, scope) })
	if len(need) == 0 {
		return nil
	}
	return i18n.E("slack.scopes_missing", strings.Join(need, ", "))
}

// reach calls the webhook as somebody would who is not Slack, which it refuses.
func (s *Slack) reach(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	w, err := s.api.http.Do(r)
	if err != nil {
		return i18n.E("slack.not_reached", address, err)
	}
	_ = w.Body.Close()
	if w.StatusCode != http.StatusUnauthorized {
		return i18n.E("slack.other_answer", address, w.StatusCode)
	}
	return nil
}
