package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/line"
	"toritsugi/internal/channel/slack"
	"toritsugi/internal/channel/webhook"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// ChannelFinding is how one part of a channel is.
type ChannelFinding struct {
	Channel channel.Kind `json:"channel"`
	channel.Finding
}

// CheckChannels looks over the channels that the settings set up, whether tori serve runs or
// not. With send each conversation of channels.*.notify is sent a test.
func CheckChannels(ctx context.Context, env Env, configFile string, send bool) (all []ChannelFinding, err error) {
	s := &system{env: env, opt: RunOptions{Config: configFile, Confined: true, Quiet: true}, fs: &disk.FS{}}
	if err := s.settle(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tori-channels-") // that of tori serve may be in use
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	set := s.cfg.Channels.On()
	if len(set) == 0 {
		return nil, &ConfigError{i18n.E("channel.none")}
	}
	for _, c := range set {
		kind, l := channel.Kind(c.Kind), s.env.Lang
		m, err := s.checker(kind, dir)
		if err != nil {
			return nil, &ConfigError{err}
		}
		add := func(f ...channel.Finding) {
			for _, one := range f {
				all = append(all, ChannelFinding{kind, one})
			}
		}
		add(m.Check(ctx, s.cfg.Serve.PublicURL)...)
		var nobody error
		if len(c.AllowFrom) == 0 {
			nobody = i18n.E("channel.nobody", string(kind))
		}
		add(channel.Found(l, "allow_from", nobody, "channel.people", len(c.AllowFrom)))
		if !send {
			continue
		}
		if len(c.Notify) == 0 {
			add(channel.Found(l, "send", i18n.E("channel.no_notify", string(kind)), ""))
		}
		for _, session := range c.Notify {
			err := m.Send(ctx, session, i18n.Lang(s.cfg.Language).T("channel.test"))
			if err != nil {
				err = i18n.E("channel.not_sent", session, err)
			}
			add(channel.Found(l, "send", err, "channel.send", session))
		}
	}
	return all, nil
}

// noInbox is an inbox of a channel that takes nothing in.
type noInbox struct{}

func (noInbox) Put(context.Context, ...channel.Event) error { return errors.New("nothing is taken in") }

// checker is a channel of the settings, which takes nothing in. Its files lie in dir.
func (s *system) checker(kind channel.Kind, dir string) (channel.Checker, error) {
	c, mask, nobody := s.cfg.Channels, s.redact.Strict().String, func(string) bool { return false }
	switch kind {
	case channel.HTTP:
		return webhook.New(webhook.Options{Secret: c.HTTP.Secret, URL: c.HTTP.URL, HTTP: s.env.HTTP, Inbox: noInbox{}, Allowed: nobody, AtOnce: nobody, Mask: mask, Now: s.env.Now, Log: s.log})
	case channel.LINE:
		return line.New(line.Options{ChannelSecret: c.LINE.ChannelSecret, AccessToken: c.LINE.AccessToken, BaseURL: c.LINE.BaseURL, HTTP: s.env.HTTP, Inbox: noInbox{}, Allowed: nobody,
			MediaDir: filepath.Join(dir, "line"), Mask: mask, Lang: s.env.Lang, Now: s.env.Now, Log: s.log})
	case channel.Slack:
		var rotation *slack.Rotation
		if c.Slack.RefreshToken != "" {
			base, err := s.base()
			if err != nil {
				return nil, err
			}
			rotation = s.slackRotation(base, false)
		}
		return slack.New(slack.Options{BotToken: c.Slack.BotToken, Rotation: rotation, AppToken: c.Slack.AppToken, SigningSecret: c.Slack.SigningSecret, BaseURL: c.Slack.BaseURL, HTTP: s.env.HTTP, Inbox: noInbox{}, Allowed: nobody,
			Mask: mask, Lang: s.env.Lang, Now: s.env.Now, Log: s.log})
	}
	return nil, fmt.Errorf("no channel %q", kind)
}
