package app

import (
	"context"
	"slices"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/config"
	"toritsugi/internal/conversation"
	"toritsugi/internal/models"
	"toritsugi/internal/routing"
	"toritsugi/internal/task"
)

// converse makes what answers messages: models and store are opened for it, unless they are. here
// is the repository that the program was started in, nil for none. Whoever answers adds
// its channels, and calls end when all turns are over.
func (s *system) converse(ctx context.Context, here *conversation.Repository) (e *conversation.Engine, end func(), err error) {
	var undo []func()
	undone := func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}
	defer func() {
		if err != nil {
			undone()
		}
	}()
	if s.models == nil {
		if err := s.openModels(); err != nil {
			return nil, nil, &ConfigError{err}
		}
		undo = append(undo, func() { _ = s.models.Close() }) // what it looked after is no longer called
	}
	if s.store == nil {
		if err := s.open(ctx); err != nil {
			return nil, nil, &ConfigError{err}
		}
		undo = append(undo, func() { _ = s.store.Close() })
	}
	rules, err := routing.OpenRules(s.cfg.Routing.RulesFile, func(err error) { s.log.Error(s.env.Lang.Error(err)) })
	if err != nil {
		return nil, nil, &ConfigError{err}
	}
	cfg := s.cfg
	o := conversation.Options{Store: s.store, Models: s.models, Router: routing.New(rules, routerSettings(cfg)), Limits: loopLimits(cfg), Cloud: cfg.Security.CloudAllowedRoutes,
		ToChat: map[channel.Kind]bool{channel.Terminal: cfg.Channels.Terminal.ToChat()}, Here: here, PromptsDir: cfg.Chat.PromptsDir, RecentTurns: cfg.Sessions.RecentTurns, Cutover: cfg.Sessions.DayEnd(), Retention: cfg.Sessions.Retention(), Zone: time.Local,
		Lang: s.speaks(), Redact: s.redact.String, Strict: s.redact.Strict().String, Settled: s.redact.Strict().Settled, Log: s.log, Now: s.env.Now, Access: access(cfg, models.Worker, task.Key{}), Quiet: s.quiet,
		Set: func(role string) bool {
			r, ok := cfg.Routing.LLM.Role(role)
			return ok && (r.Provider != "" || r.Model != "")
		}}
	for _, c := range cfg.Channels.Served() {
		o.ToChat[channel.Kind(c.Kind)] = c.ToChat
	}
	for _, r := range cfg.Chat.Repositories {
		o.Repositories = append(o.Repositories, conversation.Repository(r))
	}
	if o.Web, err = s.lookup(); err != nil {
		return nil, nil, &ConfigError{err}
	}
	if e, err = conversation.New(o); err != nil {
		return nil, nil, &ConfigError{err}
	}
	undo = append(undo, func() { _ = e.Close() }, s.forgetting(ctx, e)) // what was said is on disk
	return e, undone, nil
}

// forgetFirst and forgetEvery are when conversations are looked through for old ones: not
// while somebody waits for the first answer.
const (
	forgetFirst = time.Minute
	forgetEvery = 24 * time.Hour
)

// forgetting removes conversations that are over, until stop is called.
func (s *system) forgetting(ctx context.Context, e *conversation.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		next := time.NewTimer(forgetFirst)
		defer next.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
			}
			n, err := e.Clean(ctx)
			if err != nil && ctx.Err() == nil {
				s.log.Warn("Old conversations cannot be removed: " + err.Error())
			}
			if n > 0 {
				s.log.Info("Removed old conversations", "sessions", n)
			}
			next.Reset(forgetEvery)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// routerSettings are how messages are routed.
func routerSettings(cfg *config.Config) routing.Settings {
	c := cfg.Routing.Classifier
	return routing.Settings{Classifier: c.Enabled, MinConfidence: c.MinConfidence, MinConfidenceForCode: c.MinConfidenceForCode, Fallback: routing.Route(cfg.Routing.FallbackRoute)}
}

// loopLimits are how far a turn goes.
func loopLimits(cfg *config.Config) routing.Limits {
	l, c := cfg.Loop, cfg.Routing.Classifier
	return routing.Limits{MaxLoops: l.MaxLoops, Max: time.Duration(l.MaxMillis) * time.Millisecond, ConfirmBelow: l.ConfirmBelow, AutoReroute: l.AllowAutoRerouteOnce,
		ChatReroute: l.AllowChatProposeRerouteOnce, MinConfidence: c.MinConfidence, MinConfidenceForCode: c.MinConfidenceForCode}
}
