package agent

import (
	"context"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// overheard notes what people who count said between the model's last look and
// the end of the run, for the comment on it: they learn that nobody acted on it.
func (r *run) overheard(ctx context.Context) {
	if r.Host == nil || r.Signals == nil || !r.report.Outcome.Status.Final() {
		return // a paused or queued run hears it when it goes on
	}
	key := r.ledger.Metadata().TaskKey
	for _, c := range append(r.inbox, r.Signals(key)...) {
		if at, before := r.known[c.ID]; before && !c.Edited.After(at) {
			continue
		}
		h, err := r.heard(ctx, c)
		if err != nil {
			r.log.Warn("Who said something too late cannot be asked for: " + err.Error())
			continue
		}
		if h != nil && !h.untrusted && c.URL != "" && !r.followed(ctx, c) {
			r.unheard = append(r.unheard, c.URL)
		}
	}
	r.inbox = nil
}

// followed reports whether a comment that came too late for the run begins
// another one by itself: who stopped the run wanted no more of it.
func (r *run) followed(ctx context.Context, c forge.Comment) bool {
	if !r.Host.FollowUp || !c.WantsChanges() || r.report.Outcome.Status == task.Stopped || r.asked == nil || r.asked.Pull == nil || r.asked.Pull.Marker == "" {
		return false
	}
	self, err := r.Host.Self(ctx)
	return err == nil && r.asked.Author.ID == self.ID
}
