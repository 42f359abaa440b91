package models

import "context"

// Loaded reports whether a call of the model of s begins, or fails, without waiting for it
// to be loaded: false where it is one of a local Ollama that has yet to load it, or that does
// not answer and is restarted.
func (m *Models) Loaded(ctx context.Context, s *Spec) bool {
	if s.Provider != "ollama" || s.Cloud {
		return true
	}
	care, err := m.care(s, m.httpClient(s))
	if err != nil {
		return true // the call tells what is wrong
	}
	h, err := care.Check(ctx)
	if err != nil {
		return true
	}
	if !h.Reachable {
		return m.cfg.Providers.OllamaRestartCommand == ""
	}
	for _, l := range h.Models {
		if !l.Loaded {
			return false
		}
	}
	return true
}
