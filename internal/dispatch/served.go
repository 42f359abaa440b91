package dispatch

import (
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/order"
)

// served reports whether a run is one that is looked after here. Runs of tori run are
// not, nor what tori rollback began: they are of the sources of this machine, too, and go
// on by the hand that began them.
func served(s *contextstore.Store, sources map[string]bool, source, uuid string) bool {
	if source != "folder" && source != string(channel.Terminal) || !sources[source] {
		return sources[source]
	}
	m, err := s.Metadata(uuid)
	return err == nil && !order.ByHand(m)
}

// serves is served for the runs of one watch.
func (w *Watch) serves(s *contextstore.Store, source, uuid string) bool {
	return served(s, map[string]bool{w.Host.Source(): true}, source, uuid)
}

// repository names what a run works on, so that limits count it: a job of a conversation
// says so itself, since its key names the channel (spec/chat §1).
func repository(s *contextstore.Store, w contextstore.Waiting) string {
	if w.Key.Type == "chat" {
		if m, err := s.Metadata(w.UUID); err == nil {
			if o, err := order.Parse(m); err == nil && o.Chat != nil {
				return o.Repo
			}
		}
	}
	return w.Key.Source + ":" + w.Key.Owner + "/" + w.Key.Repo
}
