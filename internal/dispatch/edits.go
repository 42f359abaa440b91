package dispatch

import (
	"context"

	"toritsugi/internal/forge"
)

// editedBy is the login of somebody who may not ask for work and changed what is
// asked for after somebody else had asked, "" for nobody: between the act and the
// first look nobody else sees that. A forge that does not tell is done without.
func (i *Intake) editedBy(ctx context.Context, w *Watch, a candidate) (login string, err error) {
	f, ok := w.Host.Tracker.(forge.Editors)
	if !ok {
		return "", nil
	}
	all, err := f.EditedSince(ctx, a.key, a.act.At)
	if forge.Is(err, forge.RateLimited) { // such questions have a limit of their own
		err = &forge.Error{Kind: forge.Unavailable, Err: err}
	}
	if err != nil {
		// One that is down is asked again, for a while.
		if atLarge(err) || passing(err) && i.clock(w).Sub(a.act.At) < keepFor {
			return "", err
		}
		if !w.blind {
			i.Log.Warn("The forge does not tell who changes what is asked for; it is done without: "+err.Error(), "task", a.key.String())
		}
		w.blind = true
		return "", nil
	}
	w.blind = false
	for _, p := range all {
		if p.ID == w.self.ID && p.ID != 0 || p.ID == a.act.By.ID && p.ID != 0 {
			continue
		}
		if may, err := w.may(ctx, a.key, p); err != nil || !may {
			return p.Login, err
		}
	}
	return "", nil
}
