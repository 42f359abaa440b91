package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/line"
	"toritsugi/internal/channel/slack"
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
	members, err := s.checkers(dir)
	if err != nil {
		return nil, &ConfigError{err}
	}
	if len(members) == 0 {
		return nil, &ConfigError{i18n.E("channel.none")}
	}
	for _, m := range members {
		kind, l := m.Kind(), s.env.Lang
		add := func(f ...channel.Finding) {
			for _, one := range f {
				all = append(all, ChannelFinding{kind, one})
			}
		}
		add(m.Check(ctx, s.cfg.Serve.PublicURL)...)
		var nobody error
		if len(m.allowed) == 0 {
			nobody = i18n.E("channel.nobody", string(kind))
		}
		add(channel.Found(l, "allow_from", nobody, "channel.people", len(m.allowed)))
		if !send {
			continue
		}
		if len(m.notify) == 0 {
			add(channel.Found(l, "send", i18n.E("channel.no_notify", string(kind)), ""))
		}
		for _, session := range m.notify {
			err := m.Send(ctx, session, i18n.Lang(s.cfg.Language).T("channel.test"))
			if err != nil {
				err = i18n.E("channel.not_sent", session, err)
			}
			add(channel.Found(l, "send", err, "channel.send", session))
		}
	}
	return all, nil
}

// checked is a channel that is looked over, and whom the settings name for it.
type checked struct {
	channel.Checker
	allowed, notify []string
}

// noInbox is an inbox of a channel that takes nothing in.
type noInbox struct{}

func (noInbox) Put(context.Context, ...channel.Event) error { return errors.New("nothing is taken in") }

// checkers are the channels of the settings, which take nothing in. Their files lie in dir.
func (s *system) checkers(dir string) (all []checked, err error) {
	c, mask, nobody := s.cfg.Channels, s.redact.Strict().String, func(string) bool { return false }
	if c.LINE.On() {
		l, err := line.New(line.Options{ChannelSecret: c.LINE.ChannelSecret, AccessToken: c.LINE.AccessToken, BaseURL: c.LINE.BaseURL, HTTP: s.env.HTTP, Inbox: noInbox{}, Allowed: nobody,
			MediaDir: filepath.Join(dir, "line"), Mask: mask, Lang: s.env.Lang, Now: s.env.Now, Log: s.log})
		if err != nil {
			return nil, err
		}
		all = append(all, checked{l, c.LINE.AllowFrom, c.LINE.Notify})
	}
	if c.Slack.On() {
		l, err := slack.New(slack.Options{BotToken: c.Slack.BotToken, AppToken: c.Slack.AppToken, SigningSecret: c.Slack.SigningSecret, BaseURL: c.Slack.BaseURL, HTTP: s.env.HTTP, Inbox: noInbox{}, Allowed: nobody,
			Mask: mask, Lang: s.env.Lang, Now: s.env.Now, Log: s.log})
		if err != nil {
			return nil, err
		}
		all = append(all, checked{l, c.Slack.AllowFrom, c.Slack.Notify})
	}
	return all, nil
}
