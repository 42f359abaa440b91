package app

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/config"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/redact"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool/mcp"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/turn"
	"toritsugi/internal/workspace"
)

// shell finds how commands are confined.
func (s *system) shell(ctx context.Context) (func(sandbox.Spec) (sandbox.Runner, error), error) {
	bare := func(spec sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(spec), nil }
	if s.cfg.Sandbox.Mode == "none" {
		if !s.opt.AllowUnsandboxed {
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
	if !s.opt.AllowUnsandboxed || prefer != "" {
		return nil, err
	}
	s.env.Notice("app.unsandboxed")
	return bare, nil
}

// agent puts the agent together.
func (s *system) agent(client llm.Client, spec *models.Spec, shell func(sandbox.Spec) (sandbox.Runner, error)) *agent.Agent {
	cfg := s.cfg
	a := &agent.Agent{
		Store: s.store, Client: client, Shell: shell, Masks: redact.ContainsMask, Filter: s.redact.Writer, Log: s.log, Now: s.env.Now, Lang: i18n.Lang(cfg.Language), Reader: s.env.Lang,
		Secrets: func(text string) []string {
			var shown []string
			for _, f := range s.redact.FindSecrets(text) {
				if f.Token == redact.Redacted {
					f.Token = f.Kind // says more
				}
				shown = append(shown, f.Token)
			}
			slices.Sort(shown)
			return slices.Compact(shown)
		},
		CheckTimeout: time.Duration(cfg.ChecksTimeoutSeconds) * time.Second,
		Budget: turn.Budget{Turns: cfg.Budget.MaxTurns, Tokens: int64(cfg.Budget.MaxTokens), Time: time.Duration(cfg.Budget.MaxMinutes) * time.Minute,
			Cost: microUSD(cfg.Budget.MaxCostUSD), Answers: int64(spec.JobTokens)},
		Window:       int(float64(spec.Context) * cfg.ContextStorage.WindowRatio),
		ShellTimeout: cfg.Sandbox.ShellTimeout(), MaxOutput: cfg.Sandbox.MaxOutputBytes,
		ReadOnly: cfg.Sandbox.ReadOnlyPaths, Env: cfg.Sandbox.Env, MemoryMB: cfg.Sandbox.MemoryMB,
		AuthorName: cfg.Workspace.AuthorName, AuthorEmail: cfg.Workspace.AuthorEmail, Door: s.door(),
		Scripted: client.Provider() == "script", StopAsked: s.env.StopAsked,
	}
	for _, c := range cfg.Checks {
		timeout := c.Timeout()
		if timeout == 0 {
			timeout = a.CheckTimeout
		}
		a.Checks = append(a.Checks, agent.Check{Command: c.Run, Timeout: timeout})
	}
	for _, c := range cfg.Setup {
		timeout := c.Timeout()
		if timeout == 0 {
			timeout = time.Duration(cfg.Workspace.SetupTimeoutSeconds) * time.Second
		}
		a.Setup = append(a.Setup, workspace.SetupCommand{Run: c.Run, Timeout: timeout, Network: cfg.Workspace.SetupNetwork == "registries"})
	}
	a.Registries, a.Commands, a.RefuseAsked = cfg.Workspace.Registries, s.commands, cfg.Commands.OnAsk == "refuse"
	a.Online = func(spec sandbox.Spec, hosts []string) (sandbox.Runner, error) {
		spec.Network = sandbox.Network{AllowHosts: hosts}
		return shell(spec)
	}
	for _, m := range cfg.MCPServers {
		a.Servers = append(a.Servers, agent.Server{AllowHosts: m.AllowHosts, Server: mcp.Server{Name: m.Name, Command: m.Command, Env: m.Env, URL: m.URL, Header: m.Headers,
			Timeout: time.Duration(m.TimeoutSeconds) * time.Second, Allow: m.Allow, Deny: m.Deny, TrustHints: m.Trusted}})
	}
	if cfg.IsSet("checks") && a.Checks == nil {
		a.Checks = []agent.Check{}
	}
	return a
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
// does, with their examples. It fails with an error that a user reads.
func CheckRules(cfg *config.Config) error {
	_, err := rules(cfg.Commands.RulesFile)
	return err
}

// rules are the built-in rules for commands, and those of a file over them.
func rules(file string) (*policy.Policy, error) {
	own, err := policy.Default()
	if err != nil || file == "" {
		return newPolicy(err, own)
	}
	f, err := disk.OpenPlain(file)
	if err != nil {
		return nil, i18n.E("app.rules", file, err)
	}
	defer func() { _ = f.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	if err == nil && len(data) > maxRules {
		err = errors.New("too large")
	}
	if err != nil {
		return nil, i18n.E("app.rules", file, err)
	}
	more, err := policy.Parse(file, data)
	return newPolicy(err, own, more)
}

func newPolicy(err error, sets ...[]policy.Rule) (*policy.Policy, error) {
	if err != nil {
		return nil, err
	}
	return policy.New(sets...)
}

// maxRules is the most bytes of a file of rules.
const maxRules = 1 << 20
