package models

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"toritsugi/internal/config"
	"toritsugi/internal/llm/endpoint"
	"toritsugi/internal/llm/ollama"
)

// Health is what is known at one moment of all that the models in use need.
type Health struct {
	Ready  bool             `json:"ready"`
	Models []Row            `json:"models"` // of the roles in use
	Ollama []ollama.Health  `json:"ollama"` // a server each
	Queues []endpoint.Queue `json:"queues"` // who is at which server, of all processes of this machine
	Err    error            `json:"-"`      // of what could not be looked at
}

// Health looks at the roles in use: task and summarizer, and those that the
// settings name. It repairs nothing and takes as long as List does. Ready says
// that every one of them can be called now, and that every model of a local
// Ollama is loaded as it must be (route §10).
func (m *Models) Health(ctx context.Context) Health {
	h := Health{Ready: true, Models: []Row{}, Ollama: []ollama.Health{}, Queues: []endpoint.Queue{}}
	away := map[string]bool{} // roles whose server passes the model on
	made := map[string]int{}  // what the models of roles were made for, in tokens
	for _, r := range m.List(ctx) {
		if r.Fallback == 0 && r.Cloud {
			away[r.Role] = true
		}
		if r.Fallback == 0 && r.Present == Yes {
			made[r.Role] = r.Context
		}
		if !m.inUse(r.Role) {
			continue
		}
		h.Models = append(h.Models, r)
		h.Ready = h.Ready && !r.down()
	}
	servers, err := m.servers(ctx, away, made)
	for _, s := range servers {
		seen, serr := s.Check(ctx)
		if err = errors.Join(err, serr, s.Close()); serr == nil {
			h.Ollama = append(h.Ollama, seen)
			h.Ready = h.Ready && seen.Ready()
		}
	}
	queues, qerr := endpoint.Queues(m.slotsDir())
	h.Queues = append(h.Queues, queues...)
	if h.Err = errors.Join(err, qerr); h.Err != nil {
		h.Ready = false
	}
	return h
}

// Down are the models in use that cannot be called now, without what takes their place.
func (h Health) Down() (all []Row) {
	for _, r := range h.Models {
		if r.down() {
			all = append(all, r)
		}
	}
	return all
}

// down reports that the first model of a role cannot be called now.
func (r *Row) down() bool {
	return r.Fallback == 0 && (r.Problem != nil || r.Forbidden != nil || r.Reachable == No || r.Present == No && sure(r.Provider))
}

// sure reports whether a provider's list of models is all that can be called;
// gateways know names that they do not list, and LM Studio loads what is asked for.
func sure(provider string) bool {
	return provider == "ollama" || provider == "anthropic" || provider == "vllm"
}

// inUse reports whether a role will be asked for anything: task always, and a
// role that the settings name.
func (m *Models) inUse(role string) bool {
	if role == Task || role == Summarizer {
		return true
	}
	for _, key := range []string{"_provider", "_model"} {
		if m.cfg.IsSet("routing.llm." + role + key) {
			return true
		}
	}
	return false
}

// servers are the cares of the local servers of Ollama in use, each with all
// models that must be loaded there, as large as they were made; those of the roles in
// away never are.
func (m *Models) servers(ctx context.Context, away map[string]bool, made map[string]int) ([]*ollama.Supervisor, error) {
	quiet := m.quiet()
	models := map[string][]Spec{}
	var order []string
	for _, role := range config.RoleNames() {
		s, err := quiet.Spec(ctx, Use{Role: role, Route: routeOf(role)})
		if err != nil || !m.inUse(role) || s.Provider != "ollama" || s.Cloud || away[role] {
			continue // told of in its row
		}
		s.fit(made[role])
		if models[s.Address] == nil {
			order = append(order, s.Address)
		}
		models[s.Address] = append(models[s.Address], s)
	}
	var all []*ollama.Supervisor
	var errs error
	for _, address := range order {
		specs := models[address]
		cfg := ollama.CareConfig{BaseURL: address, APIKey: specs[0].key, HTTP: m.httpClient(&specs[0]), Dir: filepath.Join(m.state, "ollama"), FS: m.FS, Now: m.Now}
		for i := range specs {
			if r := specs[i].requirement(); !slices.Contains(cfg.Models, r) {
				cfg.Models = append(cfg.Models, r)
			}
		}
		c, err := ollama.NewSupervisor(cfg)
		if errs = errors.Join(errs, err); err == nil {
			all = append(all, c)
		}
	}
	return all, errs
}
