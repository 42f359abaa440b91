package app

import (
	"context"
	"errors"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// Retry queues anew what an ended run of a forge or folder was asked for, in the name of
// who asked then and if they still may; tori serve works on it. It returns the new run's
// uuid. Of a run of tori run it returns "" and does nothing: Run does that with
// RunOptions.Again.
func Retry(ctx context.Context, env Env, uuid, base, config string) (run string, err error) {
	s, v, err := found(env, uuid, base, config)
	if err != nil {
		return "", err
	}
	o, err := order.Parse(v.Metadata)
	switch {
	case err != nil:
	case o.ByHand():
		return "", nil
	case !v.Status().Final():
		err = s.liveError(v)
	case o.Chat != nil:
		err = i18n.E("app.retry_chat", contextstore.Short(v.Metadata.UUID))
	}
	if err != nil {
		return "", &ConfigError{err}
	}
	if run, err = s.askAgain(ctx, v, *o.Act); err != nil {
		return "", &ConfigError{err}
	}
	return run, nil
}

// askAgain has an act be judged once more, as of now.
func (s *system) askAgain(ctx context.Context, v contextstore.View, act order.Act) (run string, err error) {
	k := v.Metadata.TaskKey
	if err := s.openHosts(ctx); err != nil {
		return "", err
	}
	h := s.hosts[k.Source]
	if h == nil {
		return "", i18n.E("agent.no_host", order.Ref(k), k.Source)
	}
	if err := s.open(ctx); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	w := s.watch(h)
	w.Config = v.Metadata.Config
	i := &dispatch.Intake{Store: s.store, Lang: i18n.Lang(s.cfg.Language), Log: s.log, Now: s.env.Now, Wake: func() {}, Stats: &dispatch.Stats{}}
	if _, watched, err := i.Watched(ctx, w, forge.RepoOf(k)); err != nil || !watched {
		return "", errors.Join(err, i18n.E("app.retry_unwatched", order.Ref(k)))
	}
	act.At, act.How = s.env.Now(), order.ByCommand
	act.Event = "retry-" + v.Metadata.UUID + "-" + act.At.UTC().Format("20060102150405")
	verdict, last, err := i.Ask(ctx, w, k, act)
	if err != nil {
		return "", i18n.E("app.issue_forge", err)
	}
	switch verdict {
	case dispatch.Refused:
		return "", i18n.E("app.issue_refused", act.By.Login, order.Ref(k), h.Least.String())
	case dispatch.Stopped, dispatch.Often:
		return "", i18n.E("app.issue_"+string(verdict), order.Ref(k))
	case dispatch.InHand:
		return "", s.liveError(last)
	case dispatch.Begun, dispatch.Resumed:
	}
	s.audit("retry", v.Metadata.UUID, last.Metadata.UUID)
	return last.Metadata.UUID, nil
}

// liveError says that a run has not ended, and what can be done with it.
func (s *system) liveError(v contextstore.View) error {
	short := contextstore.Short(v.Metadata.UUID)
	with := short + s.opt.Where()
	return i18n.E("app.retry_live", short, v.Status(), with, with).Of(task.ErrIllegalTransition)
}
