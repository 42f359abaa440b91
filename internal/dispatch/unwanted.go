package dispatch

import (
	"context"
	"errors"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// stopUnwanted stops a run whose item was closed, or whose label or assignment somebody took
// away: also at the issue that its draft was opened for.
func (i *Intake) stopUnwanted(ctx context.Context, w *Watch, r contextstore.Row) error {
	// Asked before the items are read: only a label that was there by then can be
	// missing on one.
	before, err := i.Store.View(r.UUID)
	if err != nil {
		return nil //nolint:nilerr // it moved on meanwhile
	}
	job, err := order.Parse(before.Metadata)
	if err != nil || job.Act == nil {
		return nil //nolint:nilerr // not ours to judge
	}
	if job.For != nil && job.For.Run != "" { // a /stop may have come before there was this run
		late, err := i.stopped(ctx, candidate{key: job.For.Issue, act: *job.Act})
		if err != nil {
			return err
		}
		if late {
			return i.stop(ctx, r, "dispatch.stopped")
		}
	}
	if !w.StopRemoved {
		return nil
	}
	labelled, err := i.labelled(ctx, r.UUID)
	if err != nil {
		return err
	}
	for _, k := range job.Items(r.Key) {
		why, err := i.unwanted(ctx, w, before, job, k, labelled)
		if err != nil {
			return err
		}
		if why != "" {
			return i.stop(ctx, r, why)
		}
	}
	return nil
}

// unwanted is why a run is not wanted any more, as an item of it tells; "" where it is.
func (i *Intake) unwanted(ctx context.Context, w *Watch, before contextstore.View, job order.Order, k task.Key, labelled bool) (why string, err error) {
	closed := "dispatch.closed"
	if k != before.Metadata.TaskKey {
		closed = "dispatch.closed_origin"
	}
	it, err := w.Host.Item(ctx, k.Item())
	if forge.Is(err, forge.Gone) {
		return closed, nil
	}
	if forge.Is(err, forge.NotFound) {
		// Where the repository cannot be seen either, that says nothing of the item.
		_, err := w.Host.Repositories(ctx, []string{forge.RepoOf(k).String()})
		return closed, err
	}
	if err != nil {
		return "", err
	}
	v, err := i.Store.View(before.Metadata.UUID)
	if err != nil || v.Status() != before.Status() || v.State.Generation != before.State.Generation {
		return "", nil //nolint:nilerr // it moved on meanwhile, perhaps with other labels
	}
	processing := w.Host.Labels.Status[task.Running]
	asked := job.For == nil || (job.For.Run == "") == (k == before.Metadata.TaskKey) // here, and not at the other item
	switch {
	case !it.Open && it.Pull != nil && it.Pull.Merged:
		return "dispatch.merged", nil
	case !it.Open:
		return closed, nil
	case asked && job.Act.How == order.ByAssignment && !it.AssignedTo(w.self):
		return "dispatch.unassigned", nil
	case v.Metadata.TaskKey.Type == task.TypeReview, !labelled || v.Status() != task.Running && v.Status() != task.Queued || it.Has(processing):
		return "", nil
	}
	// The item may have been read as it was a moment ago, and a label may have
	// been given another name: only that somebody took it off stops the run.
	_, err = w.Host.Asked(ctx, k, forge.Trigger{Label: processing})
	var taken *forge.TriggerRemoved
	if !errors.As(err, &taken) || taken.At.Before(begun(v).Truncate(time.Second)) || taken.By.ID == w.self.ID && taken.By.ID != 0 {
		if errors.Is(err, forge.ErrNotAsked) {
			return "", nil
		}
		return "", err
	}
	return "dispatch.label_gone", nil
}

// labelled reports whether all labels that a run has called for are on its item.
func (i *Intake) labelled(ctx context.Context, uuid string) (bool, error) {
	left, err := i.Store.Undelivered(ctx, uuid)
	if err != nil || len(left) > 0 {
		return false, err
	}
	done, err := i.Store.Delivered(ctx, uuid)
	return done[delivery.QueuedLabels(uuid).Key] != "", err
}

// stop stops a run because of what somebody did to its item.
func (i *Intake) stop(ctx context.Context, r contextstore.Row, why string) error {
	_, err := i.Store.Control(ctx, r.UUID, contextstore.Stop, why)
	if errors.Is(err, task.ErrIllegalTransition) {
		return nil // it ended by itself
	}
	i.Log.Info("Stopped: "+i18n.English.T(why), "uuid", r.UUID, "task", r.Key.String())
	i.Wake()
	return err
}
