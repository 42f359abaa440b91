package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/tool/policy"
)

// Approvals are the proposals of a base directory in the hands of who sits at this
// machine.
type Approvals struct {
	*approval.Jobs
	Who   contextstore.Viewer // whose proposals they may see
	Actor string              // their id, as approval.approvers names it
	s     *system
}

// OpenApprovals opens them, and has done what waits for no one: requests whose time is
// over are denied, and runs that were decided about go on. The caller closes them.
func OpenApprovals(ctx context.Context, env Env, base, configFile string) (*Approvals, error) {
	s, who, err := atBase(env, RunOptions{BaseDir: base, Config: configFile, Confined: true, Quiet: true})
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, &ConfigError{err}
	}
	a := &Approvals{Who: who, Actor: "terminal:" + LocalUser(), s: s}
	if a.Jobs, err = s.approvals(); err == nil {
		_, err = a.Settle(ctx)
	}
	if err != nil {
		_ = s.store.Close()
		return nil, err
	}
	return a, nil
}

// Close closes the store.
func (a *Approvals) Close() error { return a.s.store.Close() }

// approvals are the proposals of the store under the settings.
func (s *system) approvals() (*approval.Jobs, error) {
	if s.jobs != nil {
		return s.jobs, nil
	}
	p, err := s.commands()
	if err != nil {
		return nil, &ConfigError{err}
	}
	version, err := policyVersion(p, s.cfg.Approval)
	if err != nil {
		return nil, err
	}
	s.jobs = &approval.Jobs{Store: s.store, Settings: s.approvalSettings(), Policy: p, Version: version, Sanitizer: s.redact, Now: s.env.Now, MayDeliver: s.mayDeliver, Lang: s.speaks(),
		Elsewhere: func(dir string) bool {
			_, asked, err := dialogue.Pending(dir)
			return asked || err != nil
		}}
	return s.jobs, nil
}

// policyVersion names the rules for commands and the settings of approval: what was
// approved under others is asked again. Who may decide, and for how long, is no part of
// what is approved.
func policyVersion(p *policy.Policy, c config.Approval) (string, error) {
	c.Approvers, c.FourEyes, c.ExpiresHours, c.AutoApprove = nil, false, 0, config.AutoApprove{}
	var plain []policy.Rule
	for _, r := range p.Rules() {
		r.File, r.Line = "", 0
		plain = append(plain, r)
	}
	raw, err := json.Marshal([]any{plain, c})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6]), err
}

// approvalSettings are the settings as package approval takes them.
func (s *system) approvalSettings() approval.Settings {
	c := s.cfg.Approval
	account := func(ctx context.Context) (func(string) string, error) {
		at, err := s.access(ctx)
		return at.Account, err
	}
	admins := make([]string, 0, len(s.cfg.Access.Admins))
	for _, name := range s.cfg.Access.Admins {
		admins = append(admins, "terminal:"+name)
	}
	auto := c.AutoApprove
	return approval.Settings{Required: c.RequiredByDefault, Hard: words[approval.RiskKind](c.HardRequireApproval), Approvers: c.Approvers, Admins: admins, FourEyes: c.FourEyes, Account: account,
		Expires: time.Duration(c.ExpiresHours) * time.Hour, Wide: approval.Wide{Files: c.WideOverwrite.Files, Lines: c.WideOverwrite.Lines, Share: c.WideOverwrite.Share}, CostLimit: int64(c.CostLimitTokens),
		Auto: approval.AutoSettings{Enabled: auto.Enabled, TTL: time.Duration(auto.TTLMinutes) * time.Minute, Types: words[approval.TaskType](auto.Scope.AllowedTaskTypes),
			Paths: auto.Scope.AllowedPathsPrefix, Tools: auto.Scope.AllowedTools, Deny: words[approval.RiskKind](auto.Scope.DenyOperations)}}
}

func words[T ~string](list []string) []T {
	all := make([]T, len(list))
	for i, w := range list {
		all[i] = T(w)
	}
	return all
}
