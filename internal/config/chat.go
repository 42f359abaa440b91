package config

import (
	"slices"
	"strings"
	"time"

	"toritsugi/internal/i18n"
)

// Chat is the section chat (spec/chat §1, §8).
type Chat struct {
	Deliver      string           `yaml:"deliver" check:"enum=|pull_request|branch|worktree" doc:"Where a granted patch goes in a repository of this machine: branch (a branch of it) or worktree (the files at hand). Empty and pull_request take worktree where tori chat was started in the repository, else branch. In a repository of a forge it is always pull_request: a branch and a draft."`
	PromptsDir   string           `yaml:"prompts_dir" check:"absfile" doc:"Folder with persona, policy, overlays and notices instead of the built-in ones; an absolute path. tori chat prompts export writes those to begin with. What it lacks is taken from the built-in ones."`
	Repositories []ChatRepository `yaml:"repositories" expand:"no" doc:"Repositories that conversations are about, each {name, url or path, base, users, channels}: url names one of a forge (github:owner/name), path one of this machine; base is the branch that work starts from (none: the one that is checked out, or the forge's default); users may name it (ids such as slack:U1; none: everybody), channels have it without being asked (beginnings of session ids, such as slack:T1:C1). tori chat has the one that it is started in besides."`
}

// ChatRepository is one item of chat.repositories.
type ChatRepository struct {
	Name     string   `yaml:"name" check:"nonempty"` // unique
	Path     string   `yaml:"path" check:"absfile"`  // of this machine; either this
	URL      string   `yaml:"url" check:"forgeurl"`  // or github:owner/name
	Base     string   `yaml:"base"`
	Users    []string `yaml:"users" check:"nonempty"`
	Channels []string `yaml:"channels" check:"nonempty"`
}

// Channels is the section channels.
type Channels struct {
	Terminal Channel `yaml:"terminal" doc:"The terminal of tori chat."`
	LINE     LINE    `yaml:"line" doc:"LINE: a channel of the Messaging API, which tori serve answers in."`
	Slack    Slack   `yaml:"slack" doc:"Slack: an app in a workspace, which tori serve answers in."`
	HTTP     HTTP    `yaml:"http" doc:"Anything else that people talk in, by a bridge that speaks signed JSON over HTTP (docs/http.md)."`
}

// LINE is the section channels.line.
type LINE struct {
	ChannelSecret string `yaml:"channel_secret" secret:"true" doc:"Secret of the channel, by which its events are verified; with it and the access token tori serve answers there."`
	AccessToken   string `yaml:"access_token" secret:"true" doc:"Long-lived access token of the channel."`
	People
	BaseURL string `yaml:"base_url" default:"https://api.line.me" check:"url" doc:"Address of the Messaging API."`
}

// Slack is the section channels.slack.
type Slack struct {
	BotToken      string `yaml:"bot_token" secret:"true" doc:"Token of the app's bot user (xoxb-…); with it and one of the next two tori serve answers there."`
	AppToken      string `yaml:"app_token" secret:"true" doc:"Token of the app (xapp-…) for Socket Mode, in which Slack needs no address of this machine."`
	SigningSecret string `yaml:"signing_secret" secret:"true" doc:"Signing secret of the app, by which what Slack sends to serve.public_url is verified."`
	RefreshToken  string `yaml:"refresh_token" secret:"true" doc:"First refresh token (xoxe-…) of an app whose tokens rotate, with which tori serve renews the bot token from then on; with the next two."`
	ClientID      string `yaml:"client_id" doc:"Client id of that app."`
	ClientSecret  string `yaml:"client_secret" secret:"true" doc:"Client secret of that app."`
	People
	Channel
	BaseURL string `yaml:"base_url" default:"https://slack.com/api" check:"url" doc:"Address of the Web API."`
}

// HTTP is the section channels.http.
type HTTP struct {
	Secret string `yaml:"secret" secret:"true" doc:"Secret that both sides sign with: whsec_ and the Base64 of at least 24 random bytes; with it and url tori serve answers there."`
	URL    string `yaml:"url" check:"url,optional" doc:"Address of the bridge that posts are sent to."`
	People
	Channel
}

// Channel is what the sections of channels have in common where not all messages go to Chat.
type Channel struct {
	Entry string `yaml:"entry" default:"router" check:"enum=router|chat" doc:"Who takes a message first: router (commands, dictionary, classifier) or chat (all but commands go to Chat, who may hand them over)."`
}

// ToChat reports whether Chat is the way in.
func (c Channel) ToChat() bool { return c.Entry == "chat" }

// People is what the sections of the channels of tori serve have in common.
type People struct {
	AllowFrom []string `yaml:"allow_from" check:"nonempty" doc:"Ids of the users who are answered, as the log names whoever else writes (U…); none: nobody is."`
	Notify    []string `yaml:"notify" check:"session" doc:"Conversations that are told of what is wrong, and get the digest, by their ids as /show channel tells them, such as line:user:U1, slack:T1:C1 or http:ROOM."`
	Quiet     string   `yaml:"quiet" check:"hours" doc:"Hours in which nobody is told what they did not just ask for, as HH:MM-HH:MM of this machine's time zone, such as 22:00-07:00; it follows when they are over. Empty: none."`
	DigestAt  string   `yaml:"digest_at" check:"clock,optional" doc:"When the conversations of notify are told once a day which runs ended and what waits for people, as HH:MM of this machine's time zone. Empty: never."`
}

// NextDigest is when the digest after one of a time is due; ok is false for never.
func (p People) NextDigest(last time.Time) (next time.Time, ok bool) { return nextAt(p.DigestAt, last) }

// nextAt is when it is next the time of a day, as HH:MM, after a time; ok is false for "".
func nextAt(text string, last time.Time) (next time.Time, ok bool) {
	at, ok := clock(text)
	y, m, d := last.Date()
	for day := d; ok && !next.After(last); day++ {
		next = time.Date(y, m, day, 0, int(at.Minutes()), 0, 0, last.Location())
	}
	return next, ok
}

// Served is a channel that tori serve can answer in.
type Served struct {
	// Kind is the name of its section and the first part of its sessions' ids.
	Kind string
	// On reports whether the settings set it up.
	On bool
	People
	// ToChat says that all but commands go to Chat (channels.*.entry).
	ToChat bool
}

// Served are the channels that tori serve can answer in, whether they are set up or not.
func (c Channels) Served() []Served {
	return []Served{
		{Kind: "line", On: c.LINE.ChannelSecret != "" && c.LINE.AccessToken != "", People: c.LINE.People, ToChat: true},
		{Kind: "slack", On: c.Slack.BotToken != "" && (c.Slack.AppToken != "" || c.Slack.SigningSecret != ""), People: c.Slack.People, ToChat: c.Slack.ToChat()},
		{Kind: "http", On: c.HTTP.Secret != "" && c.HTTP.URL != "", People: c.HTTP.People, ToChat: c.HTTP.ToChat()},
	}
}

// On are the channels of Served that are set up.
func (c Channels) On() []Served {
	return slices.DeleteFunc(c.Served(), func(s Served) bool { return !s.On })
}

// Hours is a part of the day; it may go over midnight.
type Hours struct{ From, To time.Duration } // after midnight; alike: none

// ParseHours reads HH:MM-HH:MM; the empty text is no hours.
func ParseHours(s string) (h Hours, ok bool) {
	if s == "" {
		return h, true
	}
	from, to, _ := strings.Cut(s, "-")
	h.From, ok = clock(from)
	if ok {
		h.To, ok = clock(to)
	}
	return h, ok && h.From != h.To
}

// Within reports whether t, in its own zone, is within the hours.
func (h Hours) Within(t time.Time) bool {
	const day = 24 * time.Hour
	now := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
	return (now-h.From+day)%day < (h.To-h.From+day)%day
}

// clock reads HH:MM as the time after midnight.
func clock(s string) (time.Duration, bool) {
	t, err := time.Parse("15:04", s)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err == nil && len(s) == len("15:04")
}

// Sessions is the section sessions (spec/chat §8).
type Sessions struct {
	Cutover       string `yaml:"cutover" default:"04:00" check:"clock" doc:"When a conversation's day ends, as HH:MM of this machine's time zone: what was said before is not sent to models any more, what was set stays."`
	RecentTurns   int    `yaml:"recent_turns" default:"5" check:"min=1,max=50" doc:"Latest turns of a conversation that stay as they are when its short memory is renewed, and that workers are given."`
	RetentionDays int    `yaml:"retention_days" default:"90" check:"min=1,max=3650" doc:"How long a conversation is kept after the last word in it, and what ANALYZE kept of it, in days."`
}

// Web is the section web (spec/chat §2).
type Web struct {
	SearchURL string `yaml:"search_url" check:"url,optional" doc:"Address of a SearXNG whose settings.yml has json among search.formats, such as http://127.0.0.1:8888; with it RESEARCH has web_search. Queries leave this machine by it, but not where only local models may work."`
}

// DayEnd is sessions.cutover, after midnight.
func (s Sessions) DayEnd() time.Duration {
	d, _ := clock(s.Cutover) // it was checked
	return d
}

// Retention is sessions.retention_days.
func (s Sessions) Retention() time.Duration {
	return time.Duration(s.RetentionDays) * 24 * time.Hour
}

// channels complains of settings of channels that do not go together.
func (p *parser) channels() {
	on := map[string]bool{}
	for _, c := range p.config.Channels.Served() {
		on[c.Kind] = c.On
		key := "channels." + c.Kind + ".notify"
		for _, id := range c.Notify {
			if !strings.HasPrefix(id, c.Kind+":") {
				p.problem("config.other_channel", p.at(p.set(key)), key, c.Kind, short(id))
			}
		}
	}
	l, s, h := p.config.Channels.LINE, p.config.Channels.Slack, p.config.Channels.HTTP
	if (h.Secret == "") != (h.URL == "") {
		p.problem("config.half_http", p.at(p.set("channels.http.secret", "channels.http.url")))
	}
	if (l.ChannelSecret == "") != (l.AccessToken == "") {
		p.problem("config.half_line", p.at(p.set("channels.line.channel_secret", "channels.line.access_token")))
	}
	if r := []string{s.RefreshToken, s.ClientID, s.ClientSecret}; slices.Contains(r, "") && slices.ContainsFunc(r, func(t string) bool { return t != "" }) {
		p.problem("config.half_rotation", p.at(p.set("channels.slack.refresh_token", "channels.slack.client_id", "channels.slack.client_secret")))
	}
	if tokens := []string{s.BotToken, s.AppToken, s.SigningSecret}; !on["slack"] && slices.ContainsFunc(tokens, func(t string) bool { return t != "" }) {
		p.problem("config.half_slack", p.at(p.set("channels.slack.bot_token", "channels.slack.app_token", "channels.slack.signing_secret")))
	}
}

// chatRepository complains of what an item of chat.repositories lacks.
func (p *parser) chatRepository(r *ChatRepository, line int, shown string) {
	switch {
	case r.Name == "":
		p.problem("config.value", p.line(line), shown+".name", i18n.E("config.want.nonempty"), i18n.E("config.found.nothing"))
	case (r.Path == "") == (r.URL == ""):
		p.problem("config.chat_where", p.line(line), shown, short(r.Name))
	}
}
