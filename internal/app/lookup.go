package app

import "toritsugi/internal/tool/web"

// lookup is what RESEARCH looks things up with, nil where the settings name nothing. Pages are
// reached by the rules for commands.
func (s *system) lookup() (*web.Web, error) {
	cfg := s.cfg
	if cfg.Web.SearchURL == "" && len(cfg.Sandbox.AllowHosts) == 0 {
		return nil, nil
	}
	return web.New(web.Options{SearchURL: cfg.Web.SearchURL, Proxy: requestProxy(s.env.Getenv), Network: s.network(), CAFile: cfg.Sandbox.CAFile,
		Filter: s.brokerRules().Filter, Trifecta: cfg.Broker.Trifecta, Log: s.log})
}
