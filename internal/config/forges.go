package config

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Watching are the settings of a forge that tori serve takes work from.
type Watching struct {
	Repositories []string `yaml:"repositories" check:"repository" doc:"Repositories that work is taken from: owner/name, or owner/* for all that can be seen. An owner at GitLab is the full path of a group."`

	WebhookSecret     string `yaml:"webhook_secret" secret:"true" doc:"Secret of the webhooks that the forge sends to serve.public_url/webhooks/ and the name of this section; none: none are taken."`
	WebhookSecretFile string `yaml:"webhook_secret_file" doc:"File with that secret, which goes before webhook_secret: what is written there later is used without a restart."`

	BotLabel        string `yaml:"bot_label" default:"coding agent" check:"label" doc:"Label that asks for work on an issue, or on a pull or merge request."`
	ReviewLabel     string `yaml:"review_label" default:"coding agent review" check:"label" doc:"Label that asks for a review of a pull or merge request."`
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
	FollowUp          bool   `yaml:"follow_up" default:"true" doc:"A review of one of its own pull or merge requests that asks for changes asks for work on it."`
	MaxRunsPerHour    int    `yaml:"max_runs_per_hour" default:"5" check:"min=1" doc:"Runs on one issue, or pull or merge request, in an hour; further ones wait."`
}

// GitHub is the section github.
type GitHub struct {
	URL               string `yaml:"url" default:"https://github.com" check:"url" doc:"Address of GitHub, or of an enterprise server."`
	Token             string `yaml:"token" default:"${GITHUB_TOKEN}" secret:"true" doc:"Personal access token; or the app_ settings. None: nothing is taken from GitHub."`
	TokenFile         string `yaml:"token_file" doc:"File with the token, which goes before token: what is written there later is used without a restart."`
	CAFile            string `yaml:"ca_file" check:"absfile" doc:"File with certificates (PEM) that are trusted there instead of the system's; an absolute path."`
	AppID             int    `yaml:"app_id" default:"0" check:"min=0" doc:"Number of a GitHub App, 0 for none."`
	AppPrivateKeyFile string `yaml:"app_private_key_file" doc:"File with the private key of the app (PEM)."`
	AppInstallationID int    `yaml:"app_installation_id" default:"0" check:"min=0" doc:"Installation of the app; 0 finds that of each repository."`
	WriteSpacingMS    int    `yaml:"write_spacing_ms" default:"1000" check:"min=0,max=60000" doc:"Least time between two changes at GitHub, in milliseconds: a second is what github.com asks for."`

	Watching
}

// GitLab is the section gitlab.
type GitLab struct {
	URL       string `yaml:"url" default:"https://gitlab.com" check:"url" doc:"Address of GitLab; one below a path is written with it."`
	Token     string `yaml:"token" default:"${GITLAB_TOKEN}" secret:"true" doc:"Project, group or personal access token with the scope api. None: nothing is taken from GitLab."`
	TokenFile string `yaml:"token_file" doc:"File with the token, which goes before token: what is written there later is used without a restart."`
	CAFile    string `yaml:"ca_file" check:"absfile" doc:"File with certificates (PEM) that are trusted there instead of the system's; an absolute path."`

	Watching
}

// Gitea is the section gitea.
type Gitea struct {
	URL       string `yaml:"url" check:"url,optional" doc:"Address of Gitea or Forgejo; one below a path is written with it."`
	Token     string `yaml:"token" default:"${GITEA_TOKEN}" secret:"true" doc:"Access token with write permission for issues and repositories, and to read users. None: nothing is taken from there."`
	TokenFile string `yaml:"token_file" doc:"File with the token, which goes before token: what is written there later is used without a restart."`
	CAFile    string `yaml:"ca_file" check:"absfile" doc:"File with certificates (PEM) that are trusted there instead of the system's; an absolute path."`

	Watching
}

// Forge is a forge as the settings name it.
type Forge struct {
	Source           string // github, gitlab or gitea: the name of its section
	URL              string
	Token, TokenFile string
	CAFile           string
	App              bool // a GitHub App logs in
	*Watching
}

// Login reports whether there is a login for it.
func (f Forge) Login() bool { return f.Token != "" || f.TokenFile != "" || f.App }

// Forges are the forges, whether they have a login or not.
func (c *Config) Forges() []Forge {
	h, l, t := &c.GitHub, &c.GitLab, &c.Gitea
	return []Forge{
		{"github", h.URL, h.Token, h.TokenFile, h.CAFile, h.AppID != 0, &h.Watching},
		{"gitlab", l.URL, l.Token, l.TokenFile, l.CAFile, false, &l.Watching},
		{"gitea", t.URL, t.Token, t.TokenFile, t.CAFile, false, &t.Watching},
	}
}

// Forge is the forge of that source.
func (c *Config) Forge(source string) (Forge, bool) {
	for _, f := range c.Forges() {
		if f.Source == source {
			return f, true
		}
	}
	return Forge{}, false
}

// IsForge reports whether source is that of a forge.
func IsForge(source string) bool {
	_, is := (&Config{}).Forge(source)
	return is
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

// Queue is the section queue.
type Queue struct {
	Driver string `yaml:"driver" default:"local" check:"enum=local|postgres" doc:"local: tori serve works on what waits, on one machine. postgres: River hands runs to any number of tori serve and tori worker (docs/cluster.md); it needs context_storage.backend: postgres."`
}

// Workers is the section workers.
type Workers struct {
	Max           int `yaml:"max" default:"4" check:"min=1,max=10000" doc:"Tasks that tori serve, or one tori worker, works on at once."`
	PerRepository int `yaml:"per_repository" default:"2" check:"min=0" doc:"How many of one repository are worked on at once, in all processes; 0 for no limit."`
	PerUser       int `yaml:"per_user" default:"0" check:"min=0" doc:"How many that one person asked for are worked on at once, in all processes; 0 for no limit."`
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

// IssueToMR is the section issue_to_mr.
type IssueToMR struct {
	Enabled bool `yaml:"enabled" default:"false" doc:"Open branch and draft of an issue before any work on it, and let the work go on as the task of that pull or merge request; a folder of issues has none (docs/serve.md)."`
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

// repositoryPattern reports whether s is owner/name or owner/*; an owner may be the path of
// a group in a group.
func repositoryPattern(s string) bool {
	parts := strings.Split(s, "/")
	last := len(parts) - 1
	for i, part := range parts {
		if !PlainName(part) && (i != last || part != "*") {
			return false
		}
	}
	return last > 0
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
	for _, f := range p.config.Forges() {
		names := map[string]string{}
		for _, l := range f.labels() {
			name := strings.ToLower(l.name)
			if other, taken := names[name]; taken {
				p.problem("config.same_label", p.at(p.set(l.key, other)), l.key, l.name, other)
				continue
			}
			names[name] = l.key
		}
	}
	if t := p.config.Gitea; t.URL == "" && (len(t.Repositories) > 0 || t.TokenFile != "") {
		p.problem("config.gitea_url", p.at(p.set("gitea.repositories", "gitea.token_file")))
	}
	for _, who := range slices.Sorted(maps.Keys(p.config.Access.People)) {
		for _, account := range strings.Fields(p.config.Access.People[who]) {
			if source, login, _ := strings.Cut(account, ":"); !IsForge(source) || !PlainName(login) {
				p.problem("config.account", p.at(p.set("access.people")), clean(who), short(account))
			}
		}
	}
	if g := p.config.GitHub; g.AppID != 0 && g.AppPrivateKeyFile == "" {
		p.problem("config.app_key", p.at(p.set("github.app_id")))
	}
}

// label is a label with the key that names it.
type label struct{ key, name string }

func (f Forge) labels() []label {
	all := []label{
		{"bot_label", f.BotLabel}, {"processing_label", f.ProcessingLabel}, {"done_label", f.DoneLabel}, {"paused_label", f.PausedLabel},
		{"stopped_label", f.StoppedLabel}, {"failed_label", f.FailedLabel}, {"waiting_label", f.WaitingLabel},
	}
	for i := range all {
		all[i].key = f.Source + "." + all[i].key
	}
	return all
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
