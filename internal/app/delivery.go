package app

import (
	"context"
	"sync"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// mirror gives the hosts the mirrors of the store, once both are there.
func (s *system) mirror() {
	for _, h := range s.hosts {
		if s.store != nil {
			h.Mirrors = &workspace.Mirrors{Dir: s.store.MirrorsDir(), Now: s.env.Now, FS: s.fs}
		}
	}
}

// delivery delivers what runs made. It finds a sandbox where a workspace must be
// committed.
func (s *system) delivery() *delivery.Service {
	choose := sync.OnceValues(func() (func(sandbox.Spec) (sandbox.Runner, error), error) { return s.chooseShell(context.Background()) })
	return s.deliveryIn(func(spec sandbox.Spec) (sandbox.Runner, error) {
		walls, err := choose()
		if err != nil {
			return nil, err
		}
		return walls(spec)
	})
}

// deliveryIn is delivery where git looks at trees in a sandbox that is chosen already.
func (s *system) deliveryIn(shell func(sandbox.Spec) (sandbox.Runner, error)) *delivery.Service {
	w := s.cfg.Workspace
	return &delivery.Service{Store: s.store, Hosts: s.hosts, ByHand: s.byHand, Rules: s.brokerRules(), Secrets: s.secrets,
		Box:    workspace.Box{Shell: shell, MemoryMB: s.cfg.Sandbox.MemoryMB, MaxFileMB: w.MaxFileMB},
		Author: delivery.Author{Name: w.AuthorName, Email: w.AuthorEmail}, BranchPattern: w.BranchPattern,
		Lang: i18n.Lang(s.cfg.Language), Now: s.env.Now, Log: s.log, Approvals: s.approvals, Blobs: s.blobs}
}

// changed is what comes of a change that somebody made of a run that no process works
// on: what its owner held, who may have died, is free again.
func (s *system) changed(ctx context.Context, v contextstore.View, o task.Outcome) (string, []contextstore.Effect, error) {
	agent.FreeDay(ctx, s.store, dayLimits(s.cfg), v, s.log)
	return s.delivery().Changed(ctx, v, o, func() string { return agent.RecordedSummary(s.store, v) })
}

func (s *system) outbox() *dispatch.Outbox {
	d := s.delivery()
	return &dispatch.Outbox{Store: s.store, Log: s.log, Handlers: d.Handlers(), Lang: d.Lang,
		Mine:      func(m contextstore.Metadata) bool { return order.ByHand(m) || s.hosts[m.TaskKey.Source] != nil },
		Later:     agent.EffectSummary,
		Meanwhile: d.CommentMeanwhile}
}

// deliver hands over what an ended run still owes.
func (s *system) deliver(ctx context.Context) (agent.Report, error) {
	v := s.ended
	report := agent.Report{UUID: v.Metadata.UUID, Dir: v.Dir, Outcome: task.Outcome{Status: v.Status()}}
	if err := s.openHosted(ctx); err != nil {
		return report, &ConfigError{err}
	}
	if err := s.open(ctx); err != nil {
		return report, &ConfigError{err}
	}
	defer func() { _ = s.store.Close() }()
	left, err := s.store.Undelivered(ctx, v.Metadata.UUID)
	if err != nil {
		return report, err
	}
	if len(left) == 0 && v.State.Phase == "" {
		return report, &ConfigError{i18n.E("app.has_ended", v.Metadata.UUID, v.Status())}
	}
	if len(left) == 0 {
		return report, &ConfigError{i18n.E("app.had_ended", v.Metadata.UUID)}
	}
	if s.env.Started != nil {
		s.env.Started(v.Metadata.UUID)
	}
	report.Reason = s.env.Lang.T("app.owed", len(left))
	if report.Undelivered = s.outbox().Deliver(ctx, v.Metadata.UUID); report.Undelivered == nil {
		report.Reason = s.env.Lang.T("app.delivered", len(left))
		if s.env.Ended != nil {
			s.env.Ended(report)
		}
		return report, s.outbox().DeliverLater(ctx, v.Metadata.UUID, s.summarise)
	}
	return report, nil
}
