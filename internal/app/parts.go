package app

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/checkrun"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/models"
	"toritsugi/internal/planning"
	repository "toritsugi/internal/project"
	"toritsugi/internal/redact"
	"toritsugi/internal/routing"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/confined"
	"toritsugi/internal/tool/mcp"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/workspace"
)

// shell finds how commands are confined.
func (s *system) shell(ctx context.Context) (_ func(sandbox.Spec) (sandbox.Runner, error), err error) {
	if s.walls == nil {
		s.walls, err = s.chooseShell(ctx)
	}
	return s.walls, err
}

func (s *system) chooseShell(ctx context.Context) (func(sandbox.Spec) (sandbox.Runner, error), error) {
	bare := func(spec sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(spec), nil }
	if s.cfg.Sandbox.Mode == "none" {
		switch {
		case s.opt.AllowUnsandboxed:
		case s.opt.Confined:
			return nil, i18n.E("app.sandbox_none_here")
		default:
			return nil, i18n.E("app.sandbox_none")
		}
		s.env.Notice("app.unsandboxed")
		return bare, nil
	}
	prefer := s.cfg.Sandbox.Mode
	if prefer == "auto" {
		prefer = ""
	}
	box, err := sandbox.Choose(ctx, sandbox.Options{Prefer: prefer, Engine: s.cfg.Sandbox.Engine})
	if err == nil {
		return box.Runner, nil
	}
	switch {
	case prefer != "" || s.opt.Confined || ctx.Err() != nil:
		return nil, err
	case !s.opt.AllowUnsandboxed:
		return nil, i18n.E("app.sandbox_or_bare", err)
	}
	s.env.Notice("app.unsandboxed")
	return bare, nil
}

// agent puts the agent together.
func (s *system) agent(client llm.Client, spec *models.Spec, project task.Key, shell func(sandbox.Spec) (sandbox.Runner, error)) *agent.Agent {
	cfg := s.cfg
	a := &agent.Agent{
		Store: s.store, Client: client, Scripted: client.Provider() == "script", Log: s.log, Now: s.env.Now, Lang: i18n.Lang(cfg.Language), Reader: s.env.Lang,
		Notice: s.env.Notice, StopAsked: s.env.StopAsked,
		Delivery: s.deliveryIn(shell),
		Dialogue: dialogue.Settings{Asking: asking(cfg)},
		Masking:  agent.Masking{Masks: redact.ContainsMask, Filter: s.redact.Writer, Strict: s.redact.Strict().String, Learn: s.redact.Learn},
		Sandbox: agent.Sandbox{Shell: shell, ShellTimeout: cfg.Sandbox.ShellTimeout(), ReadOnly: cfg.Sandbox.ReadOnlyPaths, Env: cfg.Sandbox.Env, MemoryMB: cfg.Sandbox.MemoryMB,
			Network: s.network(), Proxy: requestProxy(s.env.Getenv), CAFile: cfg.Sandbox.CAFile},
		Project: work(cfg),
		Tools: agent.Tools{Servers: servers(cfg), Access: access(cfg, cmp.Or(spec.Role, models.Task), project), Commands: s.commands, RefuseAsked: cfg.Commands.OnAsk == "refuse",
			MaxOutput: cfg.Sandbox.MaxOutputBytes},
		Limits:   agent.Limits{Run: budget(cfg, spec), Day: dayLimits(cfg)},
		Window:   agent.Window{Tokens: int(float64(spec.Context) * cfg.ContextStorage.WindowRatio), Memory: s.memory(spec), Summarizer: s.summarizer(client, spec, project)},
		Planning: planned(cfg), Progress: s.progress(), Wishes: s.wishes,
	}
	a.Inheritance, a.DraftFirst = s.inheritance(), cfg.IssueToMR.Enabled
	if cfg.Search.Similar.Enabled {
		a.Similar = s.similar
	}
	return a
}

// inheritance is what runs take over from earlier ones by the settings.
func (s *system) inheritance() memory.Inheritance {
	cfg, inherit := s.cfg, s.cfg.ContextInheritance
	return memory.Inheritance{Enabled: inherit.Enabled, Expiry: inherit.Expiry(), MaxTokens: inherit.MaxInheritedTokens, FollowLinks: inherit.FollowLinks,
		History: func(uuid string) string {
			return planning.HistoryFile(s.store.BaseDir, cfg.Planning.History.Directory, uuid)
		}}
}

// work is what the settings want done with a project besides the work.
func work(cfg *config.Config) agent.Project {
	rules, files := cfg.ProjectAgentRules, cfg.FileListContext
	p := agent.Project{Settings: checkrun.Settings{Timeout: time.Duration(cfg.ChecksTimeoutSeconds) * time.Second, Registries: cfg.Workspace.Registries},
		Options: repository.Options{Rules: rules.Enabled, MaxFile: rules.MaxFileSize, MaxTotal: rules.MaxTotalSize, Map: files.Enabled, MaxDepth: files.MaxDepth}}
	if cfg.IsSet("checks") {
		p.Checks = []checkrun.Check{}
	}
	for _, c := range cfg.Checks {
		p.Checks = append(p.Checks, checkrun.Check{Command: c.Run, Timeout: cmp.Or(c.Timeout(), p.Timeout), Reports: c.JUnit})
	}
	for _, c := range cfg.Setup {
		timeout := cmp.Or(c.Timeout(), time.Duration(cfg.Workspace.SetupTimeoutSeconds)*time.Second)
		p.Setup = append(p.Setup, workspace.SetupCommand{Run: c.Run, Timeout: timeout, Network: cfg.Workspace.SetupNetwork == "registries"})
	}
	return p
}

// secrets are what looks like secrets in a text, as people may see it.
func (s *system) secrets(text string) (shown []string) {
	for _, f := range s.redact.FindSecrets(text) {
		if f.Token == redact.Redacted {
			f.Token = f.Kind // says more
		}
		shown = append(shown, f.Token)
	}
	slices.Sort(shown)
	return slices.Compact(shown)
}

// network is the way out of commands: to the hosts of the settings, through the
// proxy that this machine's environment names.
func (s *system) network() sandbox.Network {
	return sandbox.Network{AllowHosts: s.cfg.Sandbox.AllowHosts, Through: proxies(s.env.Getenv)}
}

// servers are the servers of tools of the settings.
func servers(cfg *config.Config) (all []confined.Server) {
	for _, m := range cfg.MCPServers {
		all = append(all, confined.Server{AllowHosts: m.AllowHosts, Server: mcp.Server{Name: m.Name, Command: m.Command, Env: m.Env, Home: m.State, URL: m.URL, Header: m.Headers,
			Timeout: time.Duration(m.TimeoutSeconds) * time.Second, Allow: m.Allow, Deny: m.Deny, TrustHints: m.Trusted, OAuth: mcp.OAuth(m.OAuth)}})
	}
	return all
}

// access are the rules for tools that hold for a role and a project.
func access(cfg *config.Config, role string, project task.Key) (all []tool.Access) {
	add := func(of string, allow, deny []string) {
		if len(allow)+len(deny) > 0 {
			all = append(all, tool.Access{Of: of, Allow: allow, Deny: deny})
		}
	}
	add("the setting tools", cfg.Tools.Allow, cfg.Tools.Deny)
	own := cfg.Tools.Roles.Role(role)
	add("the role "+role, own.Allow, own.Deny)
	for _, p := range cfg.Tools.Projects {
		if p.Matches(project.Owner, project.Repo) {
			add("the project "+p.Project, p.Allow, p.Deny)
		}
	}
	return all
}

// dayLimits are what the settings let all runs of a day take.
func dayLimits(cfg *config.Config) contextstore.DayLimits {
	of := func(b config.DayBudget) contextstore.Amount {
		return contextstore.Amount{Turns: int64(b.MaxTurns), Tokens: int64(b.MaxTokens), MicroUSD: microUSD(b.MaxCostUSD),
			MS: (time.Duration(b.MaxMinutes) * time.Minute).Milliseconds()}
	}
	return contextstore.DayLimits{User: of(cfg.Budget.UserDay), All: of(cfg.Budget.Day)}
}

// microUSD is an amount of US dollars in millionths: at least one, since none
// would be no limit.
func microUSD(usd float64) int64 {
	if usd <= 0 {
		return 0
	}
	return max(1, int64(math.Round(usd*1e6)))
}

// CheckRules reads the rules for commands that a configuration names, as a run
// does, with their examples, and the dictionary of a chat. It fails with an error
// that a user reads.
func CheckRules(cfg *config.Config) error {
	if _, err := rules(cfg.Commands.RulesFile); err != nil {
		return err
	}
	if cfg.Routing.RulesFile == "" {
		return nil
	}
	_, err := routing.OpenRules(cfg.Routing.RulesFile, nil)
	return err
}

// rules are the built-in rules for commands, and those of a file over them.
func rules(file string) (*policy.Policy, error) {
	own := policy.Default()
	if file == "" {
		return policy.New(own)
	}
	data, err := disk.Read(file, maxRules)
	if err != nil {
		return nil, i18n.E("app.rules", file, err)
	}
	more, err := policy.Parse(file, data)
	if err != nil {
		return nil, err
	}
	return policy.New(own, more)
}

// maxRules is the most bytes of a file of rules.
const maxRules = 1 << 20
