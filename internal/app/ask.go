package app

import (
	"context"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// AskOptions say what is asked of which run.
type AskOptions struct {
	UUID            string // or the beginning of it
	Action          contextstore.Action
	Answer          string // to the question that the run waits for; "" for none
	BaseDir, Config string
}

// atBase is a system, not opened yet, for who sits at this machine, with the base
// directory that the options and settings name. The error is a *ConfigError.
func atBase(env Env, opt RunOptions) (s *system, who contextstore.Viewer, err error) {
	s = &system{env: env, opt: opt, fs: &disk.FS{}}
	if err := s.settle(); err != nil {
		return s, who, err
	}
	if s.opt.BaseDir, err = s.base(); err == nil {
		who, err = LocalViewer(s.opt.BaseDir, opt.Config, env.Getenv)
	}
	if err != nil {
		return s, who, &ConfigError{err}
	}
	return s, who, nil
}

// asAdmin is atBase for who may read and change everything.
func asAdmin(env Env, opt RunOptions) (s *system, actor string, err error) {
	s, who, err := atBase(env, opt)
	if err == nil && !who.Admin {
		err = &ConfigError{i18n.E("check.not_admin", s.opt.BaseDir, who.User)}
	}
	return s, who.User, err
}

// found is atBase with the run that somebody means by the beginning of its uuid.
func found(env Env, uuid, base, config string) (s *system, v contextstore.View, err error) {
	s, who, err := atBase(env, RunOptions{BaseDir: base, Config: config, Quiet: true})
	if err != nil {
		return s, v, err
	}
	if v, err = contextstore.Find(s.opt.BaseDir, uuid, who); err != nil {
		return s, v, &ConfigError{err}
	}
	return s, v, nil
}

// Unlock frees what a dead owner left of a run, and returns the run's whole uuid.
func Unlock(ctx context.Context, env Env, uuid, base, config string) (string, contextstore.Freed, error) {
	s, v, err := found(env, uuid, base, config)
	if err != nil {
		return "", contextstore.Freed{}, err
	}
	if err := s.open(ctx); err != nil {
		return "", contextstore.Freed{}, &ConfigError{err}
	}
	defer func() { _ = s.store.Close() }()
	f, err := s.store.Unlock(ctx, v.Metadata.UUID, orphanGrace)
	if err != nil {
		return v.Metadata.UUID, f, &ConfigError{err}
	}
	if v.Owner.ProcessID != 0 && !f.Left { // opening the ledger freed it already
		f.Left, f.Owner = true, v.Owner
	}
	s.audit("unlock", v.Metadata.UUID, string(f.Status))
	return v.Metadata.UUID, f, nil
}

// Ask pauses, resumes or stops a run, and delivers what the world is to see of
// it. It returns the run's whole uuid.
func Ask(ctx context.Context, env Env, opt AskOptions) (string, contextstore.ControlResult, error) {
	var a contextstore.ControlResult
	s, v, err := found(env, opt.UUID, opt.BaseDir, opt.Config)
	if err != nil {
		return "", a, err
	}
	hosted := !order.ByHand(v.Metadata)
	if hosted {
		// Without a login the daemon delivers what the world is to see.
		if err := s.openHosts(ctx); err != nil {
			s.log.Debug(err.Error())
		}
	}
	if err := s.open(ctx); err != nil {
		return "", a, &ConfigError{err}
	}
	defer func() { _ = s.store.Close() }()
	if opt.Answer != "" {
		ok := !v.Status().Final()
		if ok {
			_, ok, err = dialogue.Answer(s.store, v.Metadata.UUID, dialogue.Reply{By: LocalUser(), Text: opt.Answer, At: contextstore.Time{Time: env.Now()}})
		}
		if err == nil && !ok {
			err = i18n.E("cli.not_asked", contextstore.Short(v.Metadata.UUID), v.Status(), contextstore.Short(v.Metadata.UUID))
		}
		if err != nil {
			return v.Metadata.UUID, a, &ConfigError{err}
		}
	}
	if opt.Answer != "" && v.Status() != task.AwaitingApproval { // it reads the answer when it goes on
		return v.Metadata.UUID, contextstore.ControlResult{Status: v.Status()}, nil
	}
	if a, err = s.store.Control(ctx, v.Metadata.UUID, opt.Action, LocalUser()); err != nil {
		return v.Metadata.UUID, a, &ConfigError{err}
	}
	s.audit(string(opt.Action), v.Metadata.UUID, string(a.Status))
	if hosted {
		if opt.Action == contextstore.Pause {
			err = s.delivery().StayPaused(ctx, v.Metadata.UUID) // a person's word counts for more
		}
		if s.hosts[v.Metadata.TaskKey.Source] == nil {
			return v.Metadata.UUID, a, err
		}
	}
	if err != nil {
		return v.Metadata.UUID, a, err
	}
	return v.Metadata.UUID, a, s.outbox().Deliver(ctx, v.Metadata.UUID)
}
