// Package config is config.yaml as a typed struct. Every key, its default, its
// limits and its documentation stand once, in the tags of Config; the file, the
// environment and the printed forms are derived from them by reflection.
package config

import (
	"cmp"
	"maps"
	"regexp"
	"strings"
	"time"
)

// Config is the effective configuration: defaults, overridden by the file,
// overridden by the environment. The tags of a key are
//
//	yaml     its name
//	default  its default as YAML text; without one, the zero value
//	check    its limits: min=, max=, gt=, le=, enum=a|b, and the named checks of check.go
//	warn     the recommended range, low..high
//	env      the seeds' own variable, besides TORI_ + path
//	secret   "true" where the value is never shown
//	expand   "no" where ${VAR} is left to someone else
//	doc      one line for its reader
//
// Sources of keys and defaults: store-v3 §9, spec/config-keys.md.
type Config struct {
	ContextStorage       ContextStorage `yaml:"context_storage" doc:"The ledger: where every message of every run is kept."`
	LLM                  LLM            `yaml:"llm" doc:"The models, and the servers behind them."`
	Routing              Routing        `yaml:"routing" doc:"Which model answers in which role, and where messages of a chat go."`
	Loop                 Loop           `yaml:"loop" doc:"How far one turn of a chat goes."`
	Chat                 Chat           `yaml:"chat" doc:"Conversations: tori chat, and what tori serve answers in channels."`
	Channels             Channels       `yaml:"channels" doc:"Where conversations are held."`
	Sessions             Sessions       `yaml:"sessions" doc:"How conversations are kept."`
	Web                  Web            `yaml:"web" doc:"What RESEARCH looks things up with (docs/chat.md)."`
	Coder3               Coder3         `yaml:"coder3" doc:"Limits of the role coder3."`
	Providers            Providers      `yaml:"providers" doc:"Looking after a local Ollama."`
	Checks               []Check        `yaml:"checks" expand:"no" doc:"Commands that must pass before a task counts as completed; without any, those that the base branch names or lets expect (docs/project.md); [] for none. A command line each, or {name, run, timeout_seconds, junit}: junit is a pattern of the JUnit XML reports that the command writes, relative to the repository (build/**/TEST-*.xml), from which failures are told. The shell expands their variables, not this file."`
	ChecksTimeoutSeconds int            `yaml:"checks_timeout_seconds" default:"600" check:"min=1,max=604800" doc:"Time limit of one check that names none, in seconds."`
	MCPServers           []MCPServer    `yaml:"mcp_servers" doc:"Servers with further tools, each {mcp_server_name, command: [...], env, state} or {mcp_server_name, url, headers, oauth: {client_id, client_secret, scopes, redirect_port}}, and allow, deny, allow_hosts, timeout_seconds, trusted. A program runs in the sandbox, without network but to allow_hosts, with env, state or allow_hosts in its home and else in the workspace, which TORI_WORKSPACE names; its home ends with the run, or is the directory that state names (an absolute path), which lasts."`
	Tools                Tools          `yaml:"tools" doc:"Which tools a model may use."`
	Setup                []Check        `yaml:"setup" expand:"no" doc:"Commands that make a fresh clone ready, run once for each tree that work starts from before the model's first turn: a command line each, or {name, run, timeout_seconds}; auto stands for those that the lock files of the base branch name (npm ci, go mod download …), as far as their programs are there. The shell expands their variables, not this file."`
	Commands             Commands       `yaml:"commands" doc:"Which commands of the model are run."`
	Sandbox              Sandbox        `yaml:"sandbox" doc:"How commands of the model and checks are confined."`
	Budget               Budget         `yaml:"budget" doc:"Where a run ends, however far it got."`
	Workspace            Workspace      `yaml:"workspace" doc:"The branch and the commits of a task."`
	Language             string         `yaml:"language" default:"ja" check:"enum=ja|en" doc:"Language of what is posted: comments, summaries, declarations."`
	Tokens               Tokens         `yaml:"tokens" doc:"How tokens are counted."`
	Security             Security       `yaml:"security" doc:"Masking of secrets."`
	Broker               Broker         `yaml:"broker" doc:"What a run may send out: comments, branches, pull requests."`
	Access               Access         `yaml:"access" doc:"Who may see which tasks."`
	UserConfigAPI        UserConfigAPI  `yaml:"user_config_api" doc:"A server that knows the settings of users: models, keys, limits (docs/models.md)."`
	UserConfig           UserConfig     `yaml:"user_config" doc:"Settings of single users."`
	GitHub               GitHub         `yaml:"github" doc:"GitHub, whose issues and pull requests tori serve works on."`
	GitLab               GitLab         `yaml:"gitlab" doc:"GitLab, whose issues and merge requests tori serve works on."`
	Gitea                Gitea          `yaml:"gitea" doc:"Gitea or Forgejo, whose issues and pull requests tori serve works on."`
	Folder               Folder         `yaml:"folder" doc:"A folder of issues, Markdown files of this machine, that tori serve works on."`
	Scheduling           Scheduling     `yaml:"scheduling" doc:"How often the forges are looked at."`
	Queue                Queue          `yaml:"queue" doc:"Who wakes what works on runs."`
	Workers              Workers        `yaml:"workers" doc:"How much tori serve works on at once."`
	Logging              Logging        `yaml:"logging" doc:"What is logged."`
	Telemetry            Telemetry      `yaml:"telemetry" doc:"What is told of runs to other programs."`
	Monitor              Monitor        `yaml:"monitor" doc:"Looking after runs, and telling what is wrong."`
	Recovery             Recovery       `yaml:"recovery" doc:"Runs whose owner died."`
	PauseResume          PauseResume    `yaml:"pause_resume" doc:"Pausing everything by a file."`
	IssueToMR            IssueToMR      `yaml:"issue_to_mr" doc:"Where the work on an issue of a forge goes on."`
	TaskStop             TaskStop       `yaml:"task_stop" doc:"Stopping a run at its issue."`
	Serve                Serve          `yaml:"serve" doc:"What tori serve shows of itself."`
	Planning             Planning       `yaml:"planning" doc:"How a task is led."`
	Approval             Approval       `yaml:"approval" doc:"Who decides about what is proposed."`

	ProjectAgentRules ProjectAgentRules `yaml:"project_agent_rules" doc:"Files in which a project says how agents work in it: AGENTS.md, CLAUDE.md, AGENT.md, always as the base branch has them."`
	FileListContext   FileListContext   `yaml:"file_list_context" doc:"The map of the project's files that a model begins with."`

	Maintenance Maintenance `yaml:"maintenance" doc:"What is done at night, by tori serve or by tori maintain."`
	Backup      Backup      `yaml:"backup" doc:"Copies of what must not be lost (docs/operations.md)."`

	Search RunSearch `yaml:"search" doc:"Finding runs that ended by what they were about (tori search)."`

	ContextInheritance ContextInheritance `yaml:"context_inheritance" doc:"What a run takes over from the last one of the same task."`

	meta meta
}

// ContextStorage is the section context_storage (store-v3 §9).
type ContextStorage struct {
	Enabled                bool      `yaml:"enabled" default:"true" env:"CONTEXT_STORAGE_ENABLED" doc:"Keep contexts in files."`
	BaseDir                string    `yaml:"base_dir" default:"logs/contexts" check:"nonempty" doc:"Directory of the contexts; where nothing sets it and no configuration file is named or of the working directory, or that is a checkout, contexts in the user's state directory (~/.local/state/tori)."`
	Backend                string    `yaml:"backend" default:"jsonl" check:"enum=jsonl|sqlite|postgres" doc:"Where contexts lie: jsonl, in files of a directory each; sqlite, in tables of ledger.db in base_dir; postgres, with tasks.db and house.db, in tables of a server."`
	Postgres               Postgres  `yaml:"postgres" doc:"The server of backend: postgres, version 14 or newer."`
	Blobs                  string    `yaml:"blobs" check:"blobs,optional" doc:"Where workspaces of runs are kept besides, so that another machine goes on with them (docs/database.md): file:///DIR, of a file system that all machines see, s3://BUCKET/PREFIX?endpoint=https://…&region=… or azure://CONTAINER/PREFIX?endpoint=https://…, with the login of backup.s3 or backup.azure, and its endpoint and region where the address names none. Empty: a workspace is its machine's alone."`
	MaxMemoryMessages      int       `yaml:"max_memory_messages" default:"20" check:"min=1" warn:"10..30" env:"CONTEXT_STORAGE_MAX_MEMORY" doc:"How many of the latest messages are kept in memory."`
	CompressionThreshold   float64   `yaml:"compression_threshold" default:"0.7" check:"gt=0,le=1" env:"COMPRESSION_THRESHOLD" doc:"Share of the model's context length at which older messages are summarised."`
	MinMessagesToSummarize int       `yaml:"min_messages_to_summarize" default:"10" check:"min=1" doc:"How many messages must wait before a summary is worth its call."`
	KeepRecentMessages     int       `yaml:"keep_recent_messages" default:"5" check:"min=0" doc:"How many of the latest messages a summary leaves out; fewer than min_messages_to_summarize."`
	Durability             string    `yaml:"durability" default:"fsync" check:"enum=fsync|os" doc:"fsync survives a power cut; os only the end of the process, but is faster."`
	HeartbeatSeconds       int       `yaml:"heartbeat_seconds" default:"30" check:"min=1,max=3600" doc:"How often the owner of a run shows that it lives, in seconds."`
	StaleSeconds           int       `yaml:"stale_seconds" default:"60" check:"min=1" doc:"Age of a heartbeat at which a run is reported as hanging, in seconds; in a database (backend) an owner that was not heard of for as long, but 5 at least, has lost its run."`
	StateLockTimeout       int       `yaml:"state_lock_timeout_seconds" default:"5" check:"min=1" doc:"How long a repair waits for another one of the same run, in seconds."`
	WindowRatio            float64   `yaml:"window_ratio" default:"0.7" check:"gt=0,le=1" doc:"Share of the model's context length that a request may fill."`
	Retention              Retention `yaml:"retention" doc:"For how long ended runs keep what, counted from their ends: tori serve and tori cleanup see to it."`
	Masking                Masking   `yaml:"masking" doc:"Old tool output and long arguments become lines of a few words; the model can recall the originals."`
}

// Postgres is the section context_storage.postgres.
type Postgres struct {
	URL          string `yaml:"url" secret:"true" doc:"postgres://USER@HOST:PORT/DATABASE with the parameters of libpq: sslmode=verify-full and sslrootcert for TLS, search_path for the schema, which is made where it may be; and pool_max_conns, 8 where it is not given: as many connections, and one more for locks, does each process take at the most. Two programs that work on the same runs name the same schema."`
	PasswordFile string `yaml:"password_file" check:"absfile" doc:"A file that holds the password alone; an absolute path. Else that of the URL, of PGPASSWORD or of ~/.pgpass counts."`
}

// Retention is the section context_storage.retention (store-v2 §7.2, §8.1).
type Retention struct {
	GzipDays   int `yaml:"gzip_days" default:"7" check:"min=0,max=36500" doc:"After how many days messages and tool calls are compressed; everything that reads them opens both forms. 0: never."`
	SlimDays   int `yaml:"slim_days" default:"30" check:"min=0,max=36500" doc:"After how many days they are removed; what was asked, decided, summed up and planned stays, and can be inherited. 0: never."`
	DeleteDays int `yaml:"delete_days" default:"0" check:"min=0,max=36500" doc:"After how many days all of a run is removed; no fewer than context_inheritance.context_expiry_days while runs inherit. 0: as many as those."`

	MaxGB float64         `yaml:"max_gb" default:"0" check:"min=0,max=1000000" doc:"Disk space of all ended runs without their workspaces, in GB of 1,000,000,000 bytes: the oldest go first, whatever their age, but for kept ones; from nine tenths on there is a warning. 0: no limit."`
	Rules []RetentionRule `yaml:"rules" expand:"no" doc:"Other days for some runs, each {status, repository, gzip_days, slim_days, delete_days, keep}: the first that fits a run counts. status is completed, stopped or failed, repository is owner/name or the name alone; days that are not given are those above; keep: true keeps such runs from everything. tori keep does so with a single run."`
}

// RetentionRule is one item of context_storage.retention.rules.
type RetentionRule struct {
	Status     string `yaml:"status" check:"enum=completed|stopped|failed"` // each where empty
	Repository string `yaml:"repository" check:"nonempty"`                  // each where empty
	GzipDays   int    `yaml:"gzip_days" check:"min=1,max=36500"`            // the general ones where 0
	SlimDays   int    `yaml:"slim_days" check:"min=1,max=36500"`
	DeleteDays int    `yaml:"delete_days" check:"min=1,max=36500"`
	Keep       bool   `yaml:"keep"`
}

// RunSearch is the section search (store-v2 §10.2).
type RunSearch struct {
	Similar SimilarRuns `yaml:"similar" doc:"Runs on other tasks of the same repository that are like a new one."`
}

// SimilarRuns is the section search.similar.
type SimilarRuns struct {
	Enabled    bool   `yaml:"enabled" default:"false" doc:"Tell a run as it begins of up to three that are like it; the model can recall their summaries."`
	Embeddings string `yaml:"embeddings" check:"embeddings,optional" doc:"A model for embeddings, PROVIDER/MODEL of a server of llm, such as ollama/nomic-embed-text: by meaning, and not by words alone, runs are found that are alike. What a run was asked is sent to it, masked; by the rules for models in a cloud, and never what was run with --local-only. Nothing: words alone."`
}

// Masking is the section context_storage.masking: of old tool output, not of secrets.
type Masking struct {
	Enabled   bool    `yaml:"enabled" default:"true" doc:"Do it; without it old tool output stays until a summary takes its place."`
	KeepTurns int     `yaml:"keep_turns" default:"10" check:"min=1,max=10000" doc:"How many of the latest turns keep their tool output."`
	MinShare  float64 `yaml:"min_share" default:"0.1" check:"gt=0,le=1" doc:"Share of the request that must become free at once: each time, the provider's cache is lost from there on."`
}

// AutoSetup stands in Setup for the commands that the project's lock files name.
const AutoSetup = "auto"

// Check is one command that judges the work.
type Check struct {
	Name           string `yaml:"name"` // unique; the command itself where none is given
	Run            string `yaml:"run" check:"nonempty"`
	TimeoutSeconds int    `yaml:"timeout_seconds" check:"min=1,max=604800"` // checks_timeout_seconds where none is given
	JUnit          string `yaml:"junit" check:"treepattern"`                // reports that the command writes; none where empty
}

// Commands is the section commands.
type Commands struct {
	RulesFile string `yaml:"rules_file" doc:"Rules for commands, over the built-in ones: in the form of internal/tool/policy/default.yaml; a rule of the same name replaces a built-in one."`
	OnAsk     string `yaml:"on_ask" default:"run" check:"enum=run|refuse" doc:"What becomes of a command that somebody should be asked about: run is for a sandbox, refuse does without it."`
}

// MCPServer is one server of tools: a program that is started, or an address.
type MCPServer struct {
	Name           string            `yaml:"mcp_server_name" check:"nonempty"`        // unique
	Command        []string          `yaml:"command" check:"nonempty"`                // program and arguments; no shell
	Env            map[string]string `yaml:"env" check:"envname"`                     // of the program, beside PATH and a language
	State          string            `yaml:"state" check:"absfile"`                   // directory that is the program's home in every run
	URL            string            `yaml:"url" check:"url"`                         // of a streamable-HTTP server
	Headers        map[string]string `yaml:"headers" check:"header" secret:"true"`    // sent to it; never shown
	OAuth          MCPLogin          `yaml:"oauth"`                                   // of tori mcp login
	Allow          []string          `yaml:"allow" check:"nonempty"`                  // tools that may be used, * for any part of a name; none: all
	Deny           []string          `yaml:"deny" check:"nonempty"`                   // tools that may not
	AllowHosts     []string          `yaml:"allow_hosts" check:"reach"`               // what the program may reach besides nothing
	TimeoutSeconds int               `yaml:"timeout_seconds" check:"min=1,max=86400"` // of a call; 120 where none is given
	Trusted        bool              `yaml:"trusted"`                                 // what it says of its tools (read-only …) is believed
}

// MCPLogin is what a login at a server needs besides what the server tells.
type MCPLogin struct {
	ClientID     string   `yaml:"client_id" check:"nonempty"`               // where this program was registered by hand, or the https address of a document about it
	ClientSecret string   `yaml:"client_secret" secret:"true"`              // likewise; never shown
	Scopes       []string `yaml:"scopes" check:"nonempty"`                  // to ask for; none: those that the server names
	RedirectPort int      `yaml:"redirect_port" check:"min=1024,max=65535"` // of this machine, for the browser; 0 takes a free one
}

// Sandbox is the section sandbox.
type Sandbox struct {
	Mode                string            `yaml:"mode" default:"auto" check:"enum=auto|bwrap|namespaces|landlock|container|none" doc:"auto uses the best sandbox of this machine, of bwrap, namespaces and landlock in this order; none runs bare, which the flag --allow-unsandboxed must allow as well."`
	Engine              string            `yaml:"engine" doc:"podman or docker, or a path to one, for mode container."`
	ReadOnlyPaths       []string          `yaml:"read_only_paths" check:"abs" doc:"Further directories that commands may read; absolute paths."`
	Env                 map[string]string `yaml:"env" check:"envname" doc:"Further variables of the commands' environment."`
	AllowHosts          []string          `yaml:"allow_hosts" check:"reach" doc:"Hosts that commands of the model and checks may reach, and whose pages RESEARCH may read (web_fetch), such as registry.npmjs.org, *.example.org, nexus.corp:443 or 10.0.0.5:8080; without a port at 80 and 443 of public addresses, with one at that port and in your own network, too. Without any they have no network."`
	CAFile              string            `yaml:"ca_file" check:"absfile" doc:"A file of certificates (PEM) that commands with a network trust besides this machine's, such as your company's; an absolute path."`
	ShellTimeoutSeconds int               `yaml:"shell_timeout_seconds" default:"120" check:"min=1,max=600" doc:"Time limit of a command of the model that asks for none, in seconds; it may ask for up to 600."`
	MemoryMB            int               `yaml:"memory_mb" default:"4096" check:"min=0,max=16777216" doc:"Memory limit of all commands of a run together, MCP servers and files in /tmp among it, in MiB; 0 for none."`
	MaxOutputBytes      int               `yaml:"max_output_bytes" default:"30000" check:"min=1024" doc:"How much of a command's output the model is shown, in bytes."`
}

// Budget is the section budget.
type Budget struct {
	MaxTurns   int `yaml:"max_turns" default:"500" check:"min=1" doc:"Calls of the model in one run."`
	MaxTokens  int `yaml:"max_tokens" default:"0" check:"min=0" doc:"Tokens of one run, sent and received; 0 for no limit."`
	MaxMinutes int `yaml:"max_minutes" default:"0" check:"min=0,max=525600" doc:"Minutes of one run; 0 for no limit."`
	// MaxCostUSD counts what has a price only.
	MaxCostUSD float64 `yaml:"max_cost_usd" default:"0" check:"min=0,max=1000000" doc:"US dollars of one run, as far as the prices of its models are known; 0 for no limit."`

	UserDay DayBudget `yaml:"user_day" doc:"What all runs of one user may take together on one day, of the universal time; a run that it leaves no room for is paused until the next day."`
	Day     DayBudget `yaml:"day" doc:"What all runs may take together on one day, of the universal time; a run that it leaves no room for is paused until the next day."`
}

// DayBudget is a part of the section budget that holds for a day.
type DayBudget struct {
	MaxTurns   int     `yaml:"max_turns" default:"0" check:"min=0" doc:"Calls of models on one day; 0 for no limit."`
	MaxTokens  int     `yaml:"max_tokens" default:"0" check:"min=0" doc:"Tokens on one day, sent and received; 0 for no limit."`
	MaxMinutes int     `yaml:"max_minutes" default:"0" check:"min=0,max=5256000" doc:"Minutes on one day, those of runs side by side added up; 0 for no limit."`
	MaxCostUSD float64 `yaml:"max_cost_usd" default:"0" check:"min=0,max=1000000" doc:"US dollars on one day, as far as the prices of the models are known; 0 for no limit."`
}

// Workspace is the section workspace.
type Workspace struct {
	BranchPattern string `yaml:"branch_pattern" default:"tori/issue-{id}-{slug}" check:"branch" doc:"Name of a task's branch; {id} is the task's number, {slug} a short form of its title."`
	AuthorName    string `yaml:"author_name" default:"tori" check:"author" doc:"Author of the commits."`
	AuthorEmail   string `yaml:"author_email" default:"tori@localhost" check:"author" doc:"Address of that author."`

	SetupTimeoutSeconds int      `yaml:"setup_timeout_seconds" default:"1800" check:"min=1,max=604800" doc:"Time limit of one setup command that names none, in seconds."`
	SetupNetwork        string   `yaml:"setup_network" default:"registries" check:"enum=registries|none" doc:"What setup commands may reach: registries are the hosts of workspace.registries, none is nothing."`
	Registries          []string `yaml:"registries" default:"proxy.golang.org|sum.golang.org|registry.npmjs.org|registry.yarnpkg.com|pypi.org|files.pythonhosted.org|index.crates.io|static.crates.io|rubygems.org|index.rubygems.org|repo.maven.apache.org|plugins.gradle.org|api.nuget.org|repo.packagist.org|hex.pm|repo.hex.pm|pub.dev" check:"reach" doc:"Hosts of package registries, for setup commands; a mirror in your own network with its port, as in sandbox.allow_hosts."`
	MaxFileMB           int      `yaml:"max_file_mb" default:"256" check:"min=1,max=4096" doc:"Size of a file, in MiB, above which it is in no snapshot and no commit; which files that are is told."`
	KeepDays            int      `yaml:"keep_days" default:"7" check:"min=0,max=3650" doc:"How long the workspace of an ended run, an unused mirror and an unused setup are kept, in days; 0 removes them as soon as they are not in use."`
	MaxGB               float64  `yaml:"max_gb" default:"20" check:"min=0,max=1000000" doc:"Disk space of all workspaces, mirrors and setups, in GB of 1,000,000,000 bytes: the least recently used of those not in use go first; 0 for no limit."`
}

// Tokens is the section tokens.
type Tokens struct {
	Estimator string `yaml:"estimator" default:"chars4" check:"enum=chars4|o200k" doc:"How a request is measured until the provider has reported how many tokens it takes: chars4 by its length, o200k by the tokenizer of OpenAI's newer models. What is stored is always four characters for a token."`
}

// Security is the section security.
type Security struct {
	RedactPatterns     []string `yaml:"redact_patterns" check:"regexp" expand:"no" doc:"Regular expressions (RE2) of further texts to mask as [REDACTED]."`
	LocalOnly          bool     `yaml:"local_only" default:"false" doc:"No model in a cloud is ever called."`
	CloudAllowedRoutes []string `yaml:"cloud_allowed_routes" default:"CODE|CODE1|CODE2|CODE3" check:"enum=CHAT|PLAN|ANALYZE|OPS|RESEARCH|CODE|CODE1|CODE2|CODE3|CLASSIFY|SUMMARY" doc:"Routes on which a model in a cloud may be called. Issues, pull requests and tori run are CODE."`
	MaskPIIOnCode      bool     `yaml:"mask_pii_on_code" default:"true" doc:"Mask telephone and card numbers in what goes to a model in a cloud on the routes of code, too; secrets and e-mail addresses always are. A line with a masked number cannot be edited by that model."`
	LocalHosts         []string `yaml:"local_hosts" check:"nonempty" doc:"Hosts that count as local though their address does not show it: names, *.suffix, or networks such as 203.0.113.0/24."`
}

// Access is the section access (store-v2 §11.2).
type Access struct {
	Admins []string          `yaml:"admins" check:"nonempty" doc:"Users who may see every task; the others see their own. On this machine the owner of the files and root may always."`
	People map[string]string `yaml:"people" check:"person" doc:"Accounts at forges of people in chats, each CHANNEL:ID: FORGE:NAME, such as slack:U123: github:hanako; several stand with spaces between. What those may do to a repository there, the people may have done; people of one account count as one person."`
}

// Account is the account at a forge that a person in chats or at the command line is linked
// to ("github:hanako"), or the person's own id where there is none.
// Of several it is the first.
func (a Access) Account(id string) string {
	account, _, _ := strings.Cut(strings.TrimSpace(a.People[id]), " ")
	return cmp.Or(account, id)
}

// Login is the name of a person's account at one forge, "" for none.
func (a Access) Login(id, source string) string {
	for _, account := range append(strings.Fields(a.People[id]), id) {
		if at, login, _ := strings.Cut(account, ":"); at == source {
			return login
		}
	}
	return ""
}

// User is whose the runs of a person are: the name of the account, under which runs on the
// forge are, too, or the id of the person whom they are one with at the command line, or
// their own.
func (a Access) User(id string) string {
	account := a.Account(id)
	if source, login, ok := strings.Cut(account, ":"); ok && account != id && source != "terminal" {
		return login
	}
	return account
}

// With is a with accounts that are linked otherwise, too (tori link), as far as the settings
// name none for them.
func (a Access) With(links map[string]string) Access {
	if len(links) == 0 {
		return a
	}
	people := maps.Clone(links)
	maps.Copy(people, a.People)
	resolved := make(map[string]string, len(people))
	for who := range people {
		account := people[who]
		for range len(people) { // somebody at the command line may be linked, too
			next, more := people[account]
			if !more {
				break
			}
			account = next
		}
		resolved[who] = account
	}
	a.People = resolved
	return a
}

// Timeout is the check's time limit.
func (c Check) Timeout() time.Duration { return time.Duration(c.TimeoutSeconds) * time.Second }

// ShellTimeout is sandbox.shell_timeout_seconds.
func (s Sandbox) ShellTimeout() time.Duration {
	return time.Duration(s.ShellTimeoutSeconds) * time.Second
}

// Regexps compiles security.redact_patterns. Of a Config that Load or Parse
// returned, all of them compile.
func (s Security) Regexps() []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, p := range s.RedactPatterns {
		if re, err := regexp.Compile(p); err == nil {
			all = append(all, re)
		}
	}
	return all
}
