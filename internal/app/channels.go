package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/inbox"
	"toritsugi/internal/channel/line"
	"toritsugi/internal/channel/slack"
	"toritsugi/internal/channel/webhook"
	"toritsugi/internal/config"
	"toritsugi/internal/conversation"
	"toritsugi/internal/forge/hook"
	"toritsugi/internal/i18n"
	"toritsugi/internal/web"
)

// member is a channel that tori serve speaks in.
type member struct {
	channel.Receiver
	// hooks are the pages that its vendor calls, by the patterns of http.ServeMux:
	// "POST /webhooks/line". They verify what comes and put it into the inbox.
	hooks map[string]http.Handler
	// run is what it does besides, such as keeping a socket, until its context ends;
	// nil for nothing.
	run func(context.Context)
	// ready says why nothing comes in or goes out now, nil where all is well; nil for always.
	ready func() error
	// shared says that another program has its login, nil where none does; nil for never.
	shared func() error
}

// opener makes the members that the settings name. What comes in goes into in.
type opener func(d *daemon, in channel.Inbox, g *guard) ([]member, error)

// channels is the opener of tori serve.
func channels(d *daemon, in channel.Inbox, g *guard) (all []member, err error) {
	for _, c := range d.cfg.Channels.On() {
		m, err := d.member(channel.Kind(c.Kind), in, g)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// member makes the channel of a kind.
func (d *daemon) member(kind channel.Kind, in channel.Inbox, g *guard) (member, error) {
	c, lang, mask := d.cfg.Channels, i18n.Lang(d.cfg.Language), d.redact.Strict().String
	allowed := func(id string) bool { return g.Allowed(kind, id) }
	commands := d.talks.engine.Commands()
	atOnce := func(text string) bool { return channel.AtOnce(commands, text) }
	switch kind {
	case channel.HTTP:
		w, err := webhook.New(webhook.Options{Secret: c.HTTP.Secret, URL: c.HTTP.URL, HTTP: d.env.HTTP, Inbox: in, Allowed: allowed, AtOnce: atOnce, Mask: mask, Now: d.env.Now, Log: d.log})
		if err != nil {
			return member{}, err
		}
		return member{Receiver: w, hooks: map[string]http.Handler{"POST /webhooks/http": w}, ready: w.Ready}, nil
	case channel.LINE:
		var page func(who string, a *channel.Approval) string
		if d.pages != nil {
			page = d.pages.Link
		}
		l, err := line.New(line.Options{ChannelSecret: c.LINE.ChannelSecret, AccessToken: c.LINE.AccessToken, BaseURL: c.LINE.BaseURL, HTTP: d.env.HTTP, Inbox: in,
			Allowed: allowed, MediaDir: filepath.Join(d.store.BaseDir, "media", "line"), Page: page, Mask: mask, Lang: lang, Now: d.env.Now, Log: d.log})
		if err != nil {
			return member{}, err
		}
		return member{Receiver: l, hooks: map[string]http.Handler{"POST /webhooks/line": l}, ready: l.Ready, run: func(ctx context.Context) { every(ctx, watchEvery, l.Watch) }}, nil
	case channel.Slack:
		s, err := slack.New(slack.Options{BotToken: c.Slack.BotToken, Rotation: d.slackRotation(d.store.BaseDir, true), AppToken: c.Slack.AppToken, SigningSecret: c.Slack.SigningSecret, BaseURL: c.Slack.BaseURL, HTTP: d.env.HTTP, Inbox: in,
			Allowed: allowed, Known: d.talks.engine.Known, Home: d.talks.home, AtOnce: atOnce,
			Mask: mask, Lang: lang, Now: d.env.Now, Log: d.log})
		if err != nil {
			return member{}, err
		}
		return member{Receiver: s, hooks: s.Handlers(), ready: s.Ready, shared: s.Shared, run: func(ctx context.Context) {
			var watching sync.WaitGroup
			defer watching.Wait()
			watching.Go(func() { every(ctx, watchEvery, s.Watch) })
			if err := s.Run(ctx); err != nil && ctx.Err() == nil {
				d.log.Error("Slack: nothing comes by Socket Mode any more: " + err.Error())
			}
			<-ctx.Done()
			s.Close()
		}}, nil
	}
	return member{}, fmt.Errorf("no channel %q", kind)
}

// kinds are the channels that the settings set up in tori serve.
func kinds(cfg *config.Config) (all []channel.Kind) {
	for _, c := range cfg.Channels.On() {
		all = append(all, channel.Kind(c.Kind))
	}
	return all
}

// quiet reports whether it is quiet in a channel now (channels.*.quiet).
func (s *system) quiet(kind channel.Kind) bool {
	for _, c := range s.cfg.Channels.Served() {
		if c.Kind == string(kind) {
			h, ok := config.ParseHours(c.Quiet)
			return ok && h.Within(s.env.Now().In(time.Local))
		}
	}
	return false
}

// maxStrangers is how many of those who are not answered are told apart in the log.
const maxStrangers = 1000

// guard hands on what people say who are answered. It is the one place where
// channels.*.allow_from is looked at.
type guard struct {
	*conversation.Engine
	allow map[channel.Kind][]string // vendors' ids
	log   func(msg string, args ...any)

	mu        sync.Mutex
	strangers channel.Recent[bool] // who wrote and is not answered
}

// newGuard is the guard of what the settings allow.
func (d *daemon) newGuard() *guard {
	g := &guard{Engine: d.talks.engine, allow: map[channel.Kind][]string{}, log: d.log.Warn, strangers: channel.Recent[bool]{Most: maxStrangers}}
	for _, c := range d.cfg.Channels.On() {
		g.allow[channel.Kind(c.Kind)] = c.AllowFrom
	}
	return g
}

// Allowed reports whether somebody is answered. The log says once how to have whoever is not
// answered; nobody else is told.
func (g *guard) Allowed(kind channel.Kind, id string) bool {
	if id != "" && slices.Contains(g.allow[kind], id) {
		return true
	}
	who := string(kind) + ":" + id
	g.mu.Lock()
	_, known := g.strangers.Get(who)
	g.strangers.Put(who, true)
	g.mu.Unlock()
	if !known {
		g.log("Somebody who is not answered wrote; to have them answered add the id to channels."+string(kind)+".allow_from", "id", id)
	}
	return false
}

// may is Allowed of a message.
func (g *guard) may(m channel.Message) bool {
	id, ok := strings.CutPrefix(m.User, string(m.Channel)+":")
	return ok && g.Allowed(m.Channel, id)
}

// Handle implements channel.Handler.
func (g *guard) Handle(ctx context.Context, m channel.Message) error {
	if !g.may(m) {
		return nil
	}
	return g.Engine.Handle(ctx, m)
}

// Revise implements channel.EventHandler.
func (g *guard) Revise(ctx context.Context, m channel.Message) error {
	if !g.may(m) {
		return nil
	}
	return g.Engine.Revise(ctx, m)
}

// openChannels opens the inbox and makes the members that the settings name. The caller
// closes the inbox.
func (d *daemon) openChannels(ctx context.Context, open opener) (err error) {
	if d.callers, err = d.webhooks(); err != nil || len(kinds(d.cfg)) == 0 && len(d.callers) == 0 {
		return err
	}
	if d.aside.Load() {
		d.inbox = inbox.Beside(d.store, d.log, d.env.Now)
	} else if d.inbox, err = inbox.Open(ctx, d.store, d.log, d.env.Now); err != nil {
		return err
	}
	if len(kinds(d.cfg)) == 0 {
		return nil
	}
	if d.pages, err = d.proposalPages(); err != nil {
		d.inbox.Close()
		return err
	}
	d.guard = d.newGuard()
	if d.members, err = open(d, d.inbox, d.guard); err != nil {
		d.inbox.Close()
		return err
	}
	if !d.aside.Load() {
		d.join()
	}
	return nil
}

// join has what is said to conversations go out by the members.
func (d *daemon) join() {
	for _, m := range d.members {
		d.talks.engine.Add(m.Receiver)
	}
}

// speak works on what people say in channels until ctx ends. What was said in them by other
// processes, and what a vendor did not take, is said meanwhile.
func (d *daemon) speak(ctx context.Context) {
	if d.inbox == nil {
		return
	}
	w := inbox.Worker{Handler: d.guard}
	for _, c := range d.callers {
		w.Gatherers = append(w.Gatherers, c)
	}
	var all sync.WaitGroup
	for _, m := range d.members {
		w.Receivers = append(w.Receivers, m.Receiver)
		if m.run != nil {
			all.Go(func() { m.run(ctx) })
		}
	}
	if d.guard != nil {
		all.Go(func() { d.tellUnsaid(ctx) })
	}
	d.inbox.Run(ctx, w)
	all.Wait()
}

// owedEvery is how often what a vendor did not take, and what another process said, is looked
// for; lately is how old the last word in a session may be that is told at the start what it
// was not told before.
const (
	owedEvery = 15 * time.Second
	lately    = 7 * 24 * time.Hour
)

// tellUnsaid says what is on record and was not said: at the start what the program that ended
// had yet to say, then what vendors do not take, other processes say, and became of jobs that nobody goes on with.
func (d *daemon) tellUnsaid(ctx context.Context) {
	all, err := d.talks.engine.Recent(d.env.Now().Add(-lately), kinds(d.cfg)...)
	if err != nil {
		d.log.Warn("Not all that is still to be said is: " + err.Error())
	}
	for _, session := range all {
		if ctx.Err() != nil {
			return
		}
		d.talks.tellUntold(ctx, session)
	}
	d.talks.tellWaiting(ctx, kinds(d.cfg)...)
	every(ctx, owedEvery, func(ctx context.Context) {
		d.talks.tellGivenUp(ctx)
		if err := d.talks.engine.PostOwing(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("What is still to be said: " + err.Error())
		}
	})
}

// notify says news to all conversations of channels.*.notify, each once by its key.
func (d *daemon) notify(ctx context.Context, n news) (err error) {
	for _, c := range d.cfg.Channels.On() {
		for _, session := range c.Notify {
			err = errors.Join(err, d.notifyOne(ctx, session, n.Key, n.Text))
		}
	}
	return err
}

// notifyTime is how long one conversation may keep the others waiting.
const notifyTime = 30 * time.Second

// notifyOne is notify of one conversation. What its channel does not take in time is tried again
// by tellUnsaid.
func (d *daemon) notifyOne(ctx context.Context, session, key, text string) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	return d.talks.engine.Post(ctx, channel.Post{SessionID: session, Key: key, Kind: channel.Notice, Text: text})
}

// hooks are the pages of all members, and those that they lead to.
func (d *daemon) hooks() (all []web.Hook) {
	if d.pages != nil {
		all = append(all, d.pages.Hook())
	}
	for _, m := range d.members {
		for pattern, h := range m.hooks {
			all = append(all, web.Hook{Pattern: pattern, Handler: h})
		}
	}
	for _, c := range d.callers {
		all = append(all, web.Hook{Pattern: "POST " + hook.Path(c.source), Handler: c.receiver, Most: hook.MaxBody})
	}
	return all
}
