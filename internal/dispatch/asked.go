package dispatch

import (
	"context"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// Ask has an act be judged that asks for the run of an issue or pull request in another place than on its forge, as
// one on the forge is: it begins the run, or says why not. last is the newest run of
// the issue then. Whoever asks has a Watch of their own.
func (i *Intake) Ask(ctx context.Context, w *Watch, k task.Key, act order.Act) (v Verdict, last contextstore.View, err error) {
	if _, err := w.repositories(ctx, i.Now(), i.Log); err != nil {
		return "", last, err
	}
	it, err := w.Host.Item(ctx, k.Item())
	if forge.Is(err, forge.NotFound) || forge.Is(err, forge.Gone) || err == nil && it.Pull != nil && k.Type == task.TypeIssue {
		return "", last, i18n.E("dispatch.no_issue", order.Ref(k))
	}
	if err != nil {
		return "", last, err
	}
	if !it.Open {
		return "", last, i18n.E("dispatch.closed_issue", order.Ref(k))
	}
	if it.Repository.Repo != (forge.Repo{}) { // names are the same in any case, keys are not
		it.Key.Owner, it.Key.Repo = it.Repository.Owner, it.Repository.Name
	}
	if k.Type == task.TypeReview {
		it.Key = it.Key.Review()
	}
	if v, err = i.consider(ctx, w, candidate{it.Key, it, act}); err != nil || v == Refused {
		return v, last, err
	}
	last, _, err = i.latest(ctx, it.Key)
	return v, last, err
}

// Watched is the repository of a name in which runs are begun, as the forge spells it.
func (i *Intake) Watched(ctx context.Context, w *Watch, r forge.Repo) (forge.Repo, bool, error) {
	all, err := w.repositories(ctx, i.Now(), i.Log)
	for _, known := range all {
		if lower(known.Repo) == lower(r) {
			return known.Repo, true, nil
		}
	}
	return r, false, err
}
