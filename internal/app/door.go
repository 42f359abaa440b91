package app

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/agent"
	"toritsugi/internal/broker"
)

// door puts together what judges all that leaves the house.
func (s *system) door() agent.Door {
	c := s.cfg.Broker
	return agent.Door{
		Filter: broker.NewFilter(broker.FilterOptions{Sanitizer: s.redact, Known: s.cfg.Secrets(), Hosts: c.AllowedHosts, Mentions: c.Mentions}),
		Settings: broker.Settings{
			Trifecta: c.Trifecta, RepositoryUntrusted: c.RepositoryUntrusted, Labels: c.Labels, WebHosts: c.WebHosts, MaxTextBytes: c.MaxTextBytes, MaxPatchMB: c.MaxPatchMB,
			MaxComments: c.MaxComments, MaxLabels: c.MaxLabels, MaxPushes: c.MaxPushes, MaxPullRequests: c.MaxPullRequests, MaxMessages: c.MaxMessages, MaxWebRequests: c.MaxWebRequests,
		},
		Facts: s.facts(),
	}
}

// facts are the sensitive things that the configuration grants to the tools of
// every run: secrets, and paths in a home directory.
func (s *system) facts() (all []broker.Fact) {
	strict := s.redact.Strict()
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Sandbox.Env)) {
		if line := name + "=" + s.cfg.Sandbox.Env[name]; strict.String(line) != line {
			all = append(all, broker.Fact{Leg: broker.Sensitive, What: broker.SecretEnvironment, Detail: name})
		}
	}
	home := filepath.Clean(s.env.Getenv("HOME"))
	for _, path := range s.cfg.Sandbox.ReadOnlyPaths {
		path = filepath.Clean(path)
		within := func(outer, inner string) bool {
			return inner == outer || strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
		}
		if filepath.IsAbs(home) && (within(home, path) || within(path, home)) || within("/home", path) || within("/root", path) {
			all = append(all, broker.Fact{Leg: broker.Sensitive, What: broker.HomePath, Detail: path})
		}
	}
	return all
}
