package app

import (
	"toritsugi/internal/i18n"
	"toritsugi/internal/memory"
	"toritsugi/internal/models"
)

// memory is how the settings want the windows of runs kept; who writes the
// summaries is the agent's to say.
func (s *system) memory(spec *models.Spec) memory.Policy {
	c := s.cfg.ContextStorage
	p := memory.Policy{Context: spec.Context, Threshold: c.CompressionThreshold, MinMessages: c.MinMessagesToSummarize, KeepRecent: c.KeepRecentMessages, Lang: i18n.Lang(s.cfg.Language),
		Masking: memory.Masking{Enabled: c.Masking.Enabled, KeepTurns: c.Masking.KeepTurns, MinShare: c.Masking.MinShare}}
	if s.cfg.Tokens.Estimator == "o200k" {
		p.Count = memory.O200k()
	}
	return p
}
