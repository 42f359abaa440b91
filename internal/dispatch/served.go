package dispatch

import (
	"toritsugi/internal/contextstore"
	"toritsugi/internal/order"
)

// served reports whether a run is one that is looked after here. Runs of tori run are
// not: they are of the source folder, too, and have a process of their own.
func served(s *contextstore.Store, sources map[string]bool, source, uuid string) bool {
	return sources[source] && (source != "folder" || askedFor(s, uuid))
}

// serves is served for the runs of one watch.
func (d *Watch) serves(s *contextstore.Store, source, uuid string) bool {
	return served(s, map[string]bool{d.Host.Source(): true}, source, uuid)
}

// askedFor reports whether somebody asked for a run where that is watched for.
func askedFor(s *contextstore.Store, uuid string) bool {
	m, err := s.Metadata(uuid)
	if err != nil {
		return false
	}
	o, err := order.Parse(m)
	return err == nil && o.Act != nil
}
