package delivery

import (
	"context"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/order"
)

// reactTime bounds how long a sign may keep a run waiting.
const reactTime = 10 * time.Second

// TakenUp shows by a sign that the work is taken up, where it was asked for: at a comment,
// or else the item. Where the forge does not take it, the label and the progress say it.
func (r *Run) TakenUp(ctx context.Context) {
	host, ok := r.Host.Tracker.(forge.Reactions)
	act := r.Order.Act
	if !ok || act == nil {
		return
	}
	comment := ""
	if o := r.Order.For; o != nil && o.Run != "" {
		act = &order.Act{} // it was asked for at the issue
	}
	if act.How == order.ByComment || act.How == order.ByReview {
		comment = act.Event
	}
	ctx, cancel := context.WithTimeout(ctx, reactTime)
	defer cancel()
	if err := host.React(ctx, r.key(), comment, forge.Seen); err != nil {
		r.Log.Debug("No sign that the work is taken up: " + r.Store.Redact(err.Error()))
	}
}
