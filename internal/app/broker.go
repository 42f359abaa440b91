package app

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/broker"
	"toritsugi/internal/delivery"
)

// brokerRules puts together what judges all that leaves the house.
func (s *system) brokerRules() delivery.Rules {
	c := s.cfg.Broker
	return delivery.Rules{
		Filter: broker.NewFilter(broker.FilterOptions{Sanitizer: s.redact, Hosts: append(forgeHosts(s.cfg.Forges()), c.AllowedHosts...), Mentions: c.Mentions}),
		Settings: broker.Settings{
			Trifecta: c.Trifecta, RepositoryUntrusted: c.RepositoryUntrusted, MaxTextBytes: c.MaxTextBytes, MaxPatchMB: c.MaxPatchMB,
			MaxComments: c.MaxComments, MaxPushes: c.MaxPushes, MaxPullRequests: c.MaxPullRequests,
		},
		Facts: s.facts(),
	}
}

// facts are what the configuration puts every run in touch with: secrets and
// paths in a home directory that it grants to tools, and servers of tools.
func (s *system) facts() (all []broker.Fact) {
	strict := s.redact.Strict()
	secrets := func(env map[string]string, of string) {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if line := name + "=" + env[name]; strict.String(line) != line {
				all = append(all, broker.Fact{Leg: broker.Sensitive, What: broker.SecretEnvironment, Detail: name + of})
			}
		}
	}
	secrets(s.cfg.Sandbox.Env, "")
	for _, host := range s.cfg.Sandbox.AllowHosts {
		all = append(all, broker.Fact{Leg: broker.Outward, What: broker.OpenNetwork, Detail: host})
	}
	for _, m := range s.cfg.MCPServers {
		if !m.Trusted {
			all = append(all, broker.Fact{Leg: broker.Untrusted, What: broker.UntrustedServer, Detail: m.Name})
		}
		secrets(m.Env, " of "+m.Name)
		if slices.ContainsFunc(s.cfg.Secrets(), func(secret string) bool { return strings.Contains(m.URL, secret) }) {
			all = append(all, broker.Fact{Leg: broker.Sensitive, What: broker.SecretEnvironment, Detail: "address of " + m.Name})
		}
		if len(m.Headers) > 0 {
			all = append(all, broker.Fact{Leg: broker.Sensitive, What: broker.SecretEnvironment, Detail: "headers of " + m.Name})
		}
		if m.URL != "" || len(m.AllowHosts) > 0 {
			all = append(all, broker.Fact{Leg: broker.Outward, What: broker.OpenNetwork, Detail: m.Name})
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
