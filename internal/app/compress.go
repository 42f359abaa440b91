package app

import (
	"cmp"
	"context"
	"errors"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/models"
	"toritsugi/internal/order"
)

// Compressed is what a summary by hand did, in tokens of a request.
type Compressed struct {
	UUID          string
	Before, After int
	By            string // PROVIDER/MODEL
}

// Compress has the model of the role summarizer sum up the older messages of a run that nobody
// works on; the model of a run that somebody named one for writes its summaries itself where none
// is set for that role, as while it runs. Of a run that is worked on, has ended, or is a job of a
// conversation it says why not, as a *ConfigError.
func Compress(ctx context.Context, env Env, uuid, base, config string) (done Compressed, err error) {
	s, v, err := found(env, uuid, base, config)
	if err != nil {
		return done, err
	}
	short := contextstore.Short(v.Metadata.UUID)
	o, err := order.Parse(v.Metadata)
	switch {
	case err != nil:
	case v.Status().Final():
		err = i18n.E("app.compress_ended", short, v.Status())
	case o.Chat != nil:
		err = i18n.E("app.compress_chat", short)
	case v.Held:
		err = i18n.E("app.compress_live", short, v.Owner.ProcessID, v.Owner.Hostname, short)
	default:
		err = s.openModels()
	}
	if err != nil {
		return done, &ConfigError{err}
	}
	defer func() { _ = s.models.Close() }()
	use := models.Use{Role: models.Summarizer, LocalOnly: o.LocalOnly, Who: "summary of " + short}
	if s.cfg.Routing.LLM.Summarizer.Provider == "" && cmp.Or(o.Model, o.Role) != "" {
		use.Role, use.Model = o.Role, o.Model
	}
	client, spec, err := s.models.Client(ctx, use)
	if err != nil {
		return done, &ConfigError{err}
	}
	if err := s.open(ctx); err != nil {
		return done, &ConfigError{err}
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	done = Compressed{UUID: v.Metadata.UUID, By: client.Provider() + "/" + client.Model()}
	by := LocalUser()
	err = s.store.Borrow(ctx, done.UUID, func(c *contextstore.Context) error {
		tools, err := agent.Offered(c.Dir())
		if err != nil {
			return err
		}
		own := models.Spec{Context: c.Metadata().Config.ContextLength}
		p := s.memory(&own)
		p.Limit, p.Fixed, p.Log = int(float64(own.Context)*s.cfg.ContextStorage.WindowRatio), llm.ToolsBytes(tools), s.log
		p.Summarizer = func(context.Context) (memory.Summarizer, error) { return memory.ByModel(client, spec.Context), nil }
		done.Before, done.After, err = memory.Compress(ctx, c, p, "asked for by "+by)
		return err
	})
	if errors.Is(err, contextstore.ErrBusy) || errors.Is(err, contextstore.ErrEnded) || errors.As(err, new(*contextstore.OrphansError)) {
		return done, &ConfigError{err}
	}
	if err == nil {
		s.audit("compress", done.UUID, "")
	}
	return done, err
}
