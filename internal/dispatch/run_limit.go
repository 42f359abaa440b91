package dispatch

import (
	"context"
	"strings"
	"time"

	"toritsugi/internal/order"
)

// answers are what people were told, within the hour, about work that is asked for
// too often.
type answers struct {
	since time.Time // the first of them
	said  int       // to comments, which are handled once
	label bool      // a label or an assignment stays, and was answered
}

// tooOften reports whether a task was run so often within the hour that it has
// to wait: two programs that answer each other would never end.
func (i *Intake) tooOften(ctx context.Context, w *Watch, a candidate) (bool, error) {
	k, now := a.key.String(), i.Now()
	n, err := i.Store.CountSince(ctx, a.key, now.Add(-time.Hour), w.MaxPerHour)
	if err != nil || n < w.MaxPerHour {
		delete(w.deferred, k)
		return false, err
	}
	for other, t := range w.deferred {
		if now.Sub(t.since) >= time.Hour {
			delete(w.deferred, other)
		}
	}
	told, ok := w.deferred[k]
	if a.act.How == order.ByChat || a.act.How == order.ByCommand {
		return true, nil // it is told there
	}
	said := a.act.How == order.ByComment || a.act.How == order.ByReview
	if said && told.said >= w.MaxPerHour || !said && told.label {
		return true, nil
	}
	i.Log.Warn("Not begun yet: this was asked for too often", "task", k, "within_an_hour", n)
	text := "dispatch.too_often"
	if said {
		text = "dispatch.too_often_said"
	}
	marker := "often-" + strings.ReplaceAll(a.act.Event, "/", "-") // the id of a comment has one
	if _, err := w.Host.Post(ctx, a.key.Item(), marker, i.Lang.T(text, n)); err != nil && (atLarge(err) || passing(err)) {
		return true, err
	} else if err != nil {
		i.Log.Warn("Not answered: "+err.Error(), "task", k)
	}
	if !ok {
		told.since = now
	}
	if said {
		told.said++
	} else {
		told.label = true
	}
	if w.deferred == nil {
		w.deferred = map[string]answers{}
	}
	w.deferred[k] = told
	return true, nil
}
