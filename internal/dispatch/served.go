package dispatch

import (
	"toritsugi/internal/contextstore"
	"toritsugi/internal/order"
)

// served reports whether a run is one that is looked after here. Runs of tori run are
// not: they are of the source folder, too, and have a process of their own.
func served(s *contextstore.Store, sources map[string]bool, source, uuid string) bool {
	if source != "folder" || !sources[source] {
		return sources[source]
	}
	m, err := s.Metadata(uuid)
	return err == nil && !order.ByHand(m)
}

// serves is served for the runs of one watch.
func (w *Watch) serves(s *contextstore.Store, source, uuid string) bool {
	return served(s, map[string]bool{w.Host.Source(): true}, source, uuid)
}
