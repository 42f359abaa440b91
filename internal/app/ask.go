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

// Ask pauses, resumes or stops a run, and delivers what the world is to see of
// it. It returns the run's whole uuid.
func Ask(ctx context.Context, env Env, opt AskOptions) (string, contextstore.Answer, error) {
	s := &system{env: env, opt: RunOptions{BaseDir: opt.BaseDir, Config: opt.Config, Quiet: true}, fs: &disk.FS{}}
	var a contextstore.Answer
	err := s.settle()
	if err != nil {
		return "", a, err
	}
	if s.opt.BaseDir, err = s.base(); err != nil {
		return "", a, &ConfigError{err}
	}
	who, err := LocalViewer(s.opt.BaseDir, opt.Config, env.Getenv)
	if err != nil {
		return "", a, &ConfigError{err}
	}
	v, err := contextstore.Find(s.opt.BaseDir, opt.UUID, who)
	if err != nil {
		return "", a, &ConfigError{err}
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
			_, ok, err = dialogue.Answer(s.store, v.Metadata.UUID, dialogue.Reply{By: LocalUser(), Text: opt.Answer, At: env.Now()})
		}
		if err == nil && !ok {
			err = i18n.E("cli.not_asked", contextstore.Short(v.Metadata.UUID), v.Status(), contextstore.Short(v.Metadata.UUID))
		}
		if err != nil {
			return v.Metadata.UUID, a, &ConfigError{err}
		}
	}
	if opt.Answer != "" && v.Status() != task.AwaitingApproval { // it reads the answer when it goes on
		return v.Metadata.UUID, contextstore.Answer{Status: v.Status()}, nil
	}
	if a, err = s.store.Ask(ctx, v.Metadata.UUID, opt.Action, LocalUser()); err != nil {
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
