package config

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// GitHub is the section github.
type GitHub struct {
	URL               string   `yaml:"url" default:"https://github.com" check:"url" doc:"Address of GitHub, or of an enterprise server."`
	Token             string   `yaml:"token" default:"${GITHUB_TOKEN}" secret:"true" doc:"Personal access token; or the app_ settings. None: nothing is taken from GitHub."`
	TokenFile         string   `yaml:"token_file" doc:"File with the token, which goes before token: what is written there later is used without a restart."`
	AppID             int      `yaml:"app_id" default:"0" check:"min=0" doc:"Number of a GitHub App, 0 for none."`
	AppPrivateKeyFile string   `yaml:"app_private_key_file" doc:"File with the private key of the app (PEM)."`
	AppInstallationID int      `yaml:"app_installation_id" default:"0" check:"min=0" doc:"Installation of the app; 0 finds that of each repository."`
	Repositories      []string `yaml:"repositories" check:"repository" doc:"Repositories that work is taken from: owner/name, or owner/* for all that can be seen."`

	WebhookSecret     string `yaml:"webhook_secret" secret:"true" doc:"Secret of the webhooks that GitHub sends to serve.public_url/webhooks/github; none: none are taken."`
	WebhookSecretFile string `yaml:"webhook_secret_file" doc:"File with that secret, which goes before webhook_secret: what is written there later is used without a restart."`

	WriteSpacingMS int `yaml:"write_spacing_ms" default:"1000" check:"min=0,max=60000" doc:"Least time between two changes at GitHub, in milliseconds: a second is what github.com asks for."`

	BotLabel        string `yaml:"bot_label" default:"coding agent" check:"label" doc:"Label that asks for work on an issue or a pull request."`
	ProcessingLabel string `yaml:"processing_label" default:"coding agent processing" check:"label" doc:"Label while it waits or is worked on."`
	DoneLabel       string `yaml:"done_label" default:"coding agent done" check:"label" doc:"Label when it is completed."`
	PausedLabel     string `yaml:"paused_label" default:"coding agent paused" check:"label" doc:"Label while it is paused."`
	StoppedLabel    string `yaml:"stopped_label" default:"coding agent stopped" check:"label" doc:"Label when somebody stopped it."`
	FailedLabel     string `yaml:"failed_label" default:"coding agent failed" check:"label" doc:"Label when it failed."`
	WaitingLabel    string `yaml:"waiting_label" default:"coding agent waiting" check:"label" doc:"Label while it waits for an answer or an approval."`
	CreateLabels    bool   `yaml:"create_labels" default:"true" doc:"Create those labels where a repository lacks them."`

	Assignment        bool   `yaml:"assignment" default:"true" doc:"Assigning the account asks for work as the label does."`
	MinPermission     string `yaml:"min_permission" default:"write" check:"enum=triage|write|maintain|admin" doc:"What who asks for work, or gives commands in comments, must be allowed in the repository."`
	UntrustedComments string `yaml:"untrusted_comments" default:"mark" check:"enum=mark|omit" doc:"Comments of others, and those written or edited after work was asked for: mark shows them to the model as untrusted, omit leaves them out."`
	FollowUp          bool   `yaml:"follow_up" default:"true" doc:"A review of one of its own pull requests that asks for changes asks for work on it."`
	MaxRunsPerHour    int    `yaml:"max_runs_per_hour" default:"5" check:"min=1" doc:"Runs on one issue or pull request in an hour; further ones wait."`
}

// Folder is the section folder.
type Folder struct {
	Path       string `yaml:"path" check:"absfile" doc:"Directory of the issues, its *.md files; an absolute path. None: nothing is taken from a folder."`
	Repository string `yaml:"repository" check:"absfile" doc:"Git repository that they are about and that gets the branches; an absolute path. None: the one that the folder lies in."`
	BotLabel   string `yaml:"bot_label" default:"coding agent" check:"label" doc:"Label in the front matter of an issue that asks for work. Those that show how it stands are this one with processing, waiting, paused, done, stopped or failed behind it."`
}

// Scheduling is the section scheduling.
type Scheduling struct {
	Interval         int `yaml:"interval" default:"300" check:"min=5,max=86400" doc:"How often work is looked for, in seconds."`
	CommentsInterval int `yaml:"comments_interval" default:"30" check:"min=5,max=86400" doc:"How often comments on what is being worked on are looked for, in seconds."`
}

// Workers is the section workers.
type Workers struct {
	Max           int `yaml:"max" default:"4" check:"min=1,max=10000" doc:"Tasks that tori serve works on at once."`
	PerRepository int `yaml:"per_repository" default:"2" check:"min=0" doc:"Of those, how many of one repository; 0 for no limit."`
	PerUser       int `yaml:"per_user" default:"0" check:"min=0" doc:"Of those, how many that one person asked for; 0 for no limit."`
}

// Recovery is the section recovery.
type Recovery struct {
	Mode        string `yaml:"mode" default:"resume" check:"enum=resume|fail" doc:"What becomes of a run whose owner died: it goes on, or it fails (store-v2 §4.4)."`
	MaxAttempts int    `yaml:"max_attempts" default:"3" check:"min=1" doc:"How often an owner of one run may die before the run fails."`
}

// PauseResume is the section pause_resume.
type PauseResume struct {
	Enabled    bool   `yaml:"enabled" default:"true" doc:"Look for the signal file."`
	SignalFile string `yaml:"signal_file" default:"contexts/pause_signal" check:"nonempty" doc:"While this file exists, tori serve pauses all it works on and begins nothing."`
}

// TaskStop is the section task_stop.
type TaskStop struct {
	Enabled bool `yaml:"enabled" default:"true" doc:"Taking the label or the assignment away stops the run; what it did until then stays on its branch."`
}

// Serve is the section serve.
type Serve struct {
	Listen string   `yaml:"listen" default:"127.0.0.1:8420" check:"listen" doc:"Address of /healthz, /readyz and /metrics; empty for none."`
	Hosts  []string `yaml:"hosts" check:"host" doc:"Names that it answers to, besides addresses, localhost and the names in listen and public_url."`

	PublicURL string `yaml:"public_url" check:"url,optional" doc:"Address at which others reach listen, such as https://tori.example.com of a proxy that ends TLS: for webhooks of channels and forges, and links to diffs. Empty: none."`
}

// Names are the names that tori serve answers to, in lower case.
func (s Serve) Names() []string {
	listen, _, _ := net.SplitHostPort(s.Listen) // was checked
	public := ""
	if u, err := url.Parse(s.PublicURL); err == nil {
		public = u.Hostname()
	}
	return strings.Fields(strings.ToLower(strings.Join(s.Hosts, " ") + " " + listen + " " + public))
}

// repositoryPattern reports whether s is owner/name or owner/*.
func repositoryPattern(s string) bool {
	owner, name, ok := strings.Cut(s, "/")
	return ok && PlainName(owner) && (name == "*" || PlainName(name))
}

// PlainName reports whether s can be the name of an owner or a repository.
func PlainName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return s != "" && s != "." && s != ".." && strings.Trim(s, letters) == ""
}

// labelName reports whether s can be a label.
func labelName(s string) bool {
	return strings.TrimSpace(s) == s && s != "" && len([]rune(s)) <= 50 && !strings.ContainsAny(s, ",\r\n\t\x00")
}

// forges complains of settings of a forge that do not go together.
func (p *parser) forges() {
	g := &p.config.GitHub
	names := map[string]string{}
	for _, l := range g.labels() {
		name := strings.ToLower(l.name)
		if other, taken := names[name]; taken {
			p.problem("config.same_label", p.at(p.set(l.key, other)), l.key, l.name, other)
			continue
		}
		names[name] = l.key
	}
	for _, who := range slices.Sorted(maps.Keys(p.config.Access.People)) {
		account := p.config.Access.People[who]
		if source, login, _ := strings.Cut(account, ":"); source != "github" || !PlainName(login) {
			p.problem("config.account", p.at(p.set("access.people")), clean(who), short(account))
		}
	}
	if g.AppID != 0 && g.AppPrivateKeyFile == "" {
		p.problem("config.app_key", p.at(p.set("github.app_id")))
	}
}

// label is a label with the key that names it.
type label struct{ key, name string }

func (g *GitHub) labels() []label {
	return []label{
		{"github.bot_label", g.BotLabel}, {"github.processing_label", g.ProcessingLabel}, {"github.done_label", g.DoneLabel}, {"github.paused_label", g.PausedLabel},
		{"github.stopped_label", g.StoppedLabel}, {"github.failed_label", g.FailedLabel}, {"github.waiting_label", g.WaitingLabel},
	}
}

// set is where the first of the keys that is set was set.
func (p *parser) set(keys ...string) origin {
	for _, key := range keys {
		if o := p.config.meta.origins[key]; o.set() {
			return o
		}
	}
	return origin{}
}
