package app

import (
	"cmp"
	"context"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/models"
	"toritsugi/internal/task"
)

// summarizer is what fills the role summarizer for a run: the model of that role,
// or where none is set for it, and somebody asked for the run's model by name or
// the default cannot be used, the run's own. It is made when it is first needed.
// A script is asked for no summaries: its answers are those of the run.
func (s *system) summarizer(own llm.Client, spec *models.Spec, k task.Key) func(context.Context) (llm.Client, int, error) {
	if own.Provider() == script.Provider {
		return nil
	}
	window := spec.Context
	chosen := s.cfg.Routing.LLM.Summarizer.Provider != ""
	return func(ctx context.Context) (llm.Client, int, error) {
		if !chosen && cmp.Or(s.opt.Model, s.opt.Role) != "" {
			return own, window, nil
		}
		c, found, err := s.models.Client(ctx, models.Use{Role: models.Summarizer, LocalOnly: s.opt.LocalOnly, Who: "summary of " + k.ID})
		switch {
		case err != nil && (chosen || ctx.Err() != nil):
			return nil, 0, err
		case err != nil, found.Provider == script.Provider, found.Provider == own.Provider() && found.Model == spec.Model:
			return own, window, nil
		}
		return c, found.Context, nil
	}
}
