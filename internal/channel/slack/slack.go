// Package slack is the channel of Slack: events come by HTTP or Socket Mode into an inbox,
// what people say goes to a handler, posts into threads. It knows nothing of models and
// keeps no files: what it said before a restart it finds by its messages' metadata.
package slack

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// Options are what a Slack needs to know.
type Options struct {
	BotToken      string // "xoxb-…", or the first one, "xoxe.xoxb-…", of an app whose tokens rotate
	AppToken      string // "xapp-…" for Socket Mode, "" without
	SigningSecret string // for events by HTTP, "" without
	// Rotation renews the bot token; nil for one that does not end.
	Rotation *Rotation
	// Allowed reports whether a person is answered, by the id ("U…" or "W…"). It is asked
	// of who speaks to tori, before anything is read or shown.
	Allowed func(user string) bool
	// BaseURL is the address of the Web API, "" for Slack's own.
	BaseURL string
	// HTTP is how Slack is reached; its Transport's proxy and certificates hold for Socket
	// Mode, too.
	HTTP  *http.Client
	Inbox channel.Inbox
	// Known reports whether a session exists: in its thread tori is answered without a
	// mention.
	Known func(sessionID string) bool
	// AtOnce reports whether a text is a command that acts while a turn goes on. It is
	// asked before the event is kept; nil means that none is.
	AtOnce func(text string) bool
	// Home is what a person, "slack:U1", is told in the app's home, as Markdown; nil for no
	// home.
	Home func(ctx context.Context, who string) (string, error)
	// Mask masks the secrets of what is logged, and of a command that is shown to a channel.
	Mask func(string) string
	Now  func() time.Time
	Log  *slog.Logger
	Lang i18n.Lang
}

// Slack implements channel.Receiver. Close is called once, when nothing else is under way.
type Slack struct {
	opt     Options
	api     *api
	log     *slog.Logger
	started time.Time
	lines   channel.Turns // by session: posts are shown in order
	me      atomic.Pointer[identity]

	mu      sync.Mutex
	said    channel.Recent[string]    // part of a post → ts of its message
	unsure  channel.Recent[string]    // parts of which it is not known whether they were taken
	looked  channel.Recent[string]    // sessions whose thread was looked through
	homes   channel.Recent[time.Time] // when the home of a person was published
	jobs    map[string]*progress
	trouble error // why nothing comes by Socket Mode
	others  error // who else has connections by Socket Mode
	closed  bool
	flushes sync.WaitGroup
}

// identity is who the bot token is.
type identity struct {
	TeamID string      `json:"team_id"`
	UserID string      `json:"user_id"`
	BotID  string      `json:"bot_id"`
	User   string      `json:"user"`
	Team   string      `json:"team"`
	header http.Header // of the answer
}

// headed implements header.
func (me *identity) headed(h http.Header) { me.header = h }

// New returns a Slack that is connected to nothing yet. Its error names the option that is
// missing or wrong.
func New(opt Options) (*Slack, error) {
	switch {
	case strings.HasPrefix(opt.BotToken, "xoxe.xoxb-"):
		if opt.Rotation == nil {
			return nil, i18n.E("slack.rotates")
		}
	case !strings.HasPrefix(opt.BotToken, "xoxb-"):
		return nil, i18n.E("slack.bot_token")
	}
	switch {
	case opt.AppToken == "" && opt.SigningSecret == "":
		return nil, i18n.E("slack.no_way_in")
	case opt.AppToken != "" && !strings.HasPrefix(opt.AppToken, "xapp-"):
		return nil, i18n.E("slack.app_token")
	}
	if opt.BaseURL == "" {
		opt.BaseURL = "https://slack.com/api/"
	}
	base, err := url.Parse(strings.TrimSuffix(opt.BaseURL, "/") + "/")
	if err != nil || base.Host == "" {
		return nil, i18n.E("slack.base_url", opt.BaseURL)
	}
	if opt.AtOnce == nil {
		opt.AtOnce = func(string) bool { return false }
	}
	api := newAPI(base, opt.HTTP, opt.Now)
	api.rotation = newRotation(opt)
	return &Slack{opt: opt, api: api, log: opt.Log, started: opt.Now(), jobs: map[string]*progress{},
		said: channel.Recent[string]{Most: maxRemembered}, unsure: channel.Recent[string]{Most: maxRemembered}, looked: channel.Recent[string]{Most: maxRemembered}, homes: channel.Recent[time.Time]{Most: maxRemembered}}, nil
}

// Kind implements channel.Channel.
func (s *Slack) Kind() channel.Kind { return channel.Slack }

// Ready says why nothing comes by Socket Mode, or nothing goes out, nil where all is well.
func (s *Slack) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.trouble, s.api.ready(s.opt.BotToken))
}

// Shared says that another program takes events by the same app token, as far as the latest
// connection showed; nil where none does.
func (s *Slack) Shared() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.others
}

// troubled notes why nothing comes by Socket Mode; nil is nothing.
func (s *Slack) troubled(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
}

// Close drops progress that is yet to be shown, and waits for what is being shown.
func (s *Slack) Close() {
	s.mu.Lock()
	s.closed = true
	for _, p := range s.jobs {
		p.stop(&s.flushes)
	}
	s.mu.Unlock()
	s.flushes.Wait()
}

// who asks once who the bot is.
func (s *Slack) who(ctx context.Context) (identity, error) {
	if me := s.me.Load(); me != nil {
		return *me, nil
	}
	me := &identity{}
	if err := s.api.call(ctx, s.opt.BotToken, "auth.test", nil, me); err != nil {
		return identity{}, err
	}
	s.me.Store(me)
	return *me, nil
}

// own reports whether the program wrote a message itself.
func (me identity) own(m *message) bool {
	return m.User == me.UserID || me.BotID != "" && m.BotID == me.BotID
}

// place is where a session's messages stand.
type place struct {
	channel string
	thread  string // ts of the thread's first message; "" is a direct message outside of one
}

// session is the session's id (spec/chat §8): TEAM is the one that installed the app,
// whichever workspace of an enterprise or of a shared channel the event came by, so
// that a thread has one session. A direct message has no part for its thread outside of one.
func (me identity) session(p place) string {
	id := string(channel.Slack) + ":" + me.TeamID + ":" + p.channel
	if p.thread != "" {
		id += ":" + p.thread
	}
	return id
}

// placeOf is where a session's messages stand.
func placeOf(session string) (place, error) {
	parts := strings.Split(session, ":")
	if len(parts) < 3 || len(parts) > 4 || parts[0] != string(channel.Slack) || parts[2] == "" {
		return place{}, i18n.E("slack.session", session)
	}
	return place{parts[2], strings.Join(parts[3:], "")}, nil
}

// maxRemembered is how much is remembered of each kind, at least.
const maxRemembered = 4096
