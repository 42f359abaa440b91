package dispatch

import (
	"context"

	"toritsugi/internal/forge"
)

// labelMark is the mark of the label that asks for work, where it was made sure
// of in a repository: one that people delete since is made again by a run.
const labelMark = "label"

// mostLabelled bounds the repositories that one look makes the label in: each
// may take as long as two changes at the forge are to be apart.
const mostLabelled = 20

// label makes the label that asks for work where a repository lacks it, so that
// people have it to choose; it comes last, to hold no work back. Where it may not
// be made, that is logged once, and people make it themselves; what is trouble of
// the forge as a whole is left to the next look.
func (i *Intake) label(ctx context.Context, w *Watch, repos []forge.Repository) {
	err := i.labelAll(ctx, w, repos)
	if err == nil || ctx.Err() != nil {
		return
	}
	if refusesAll(err) {
		w.holdOff(err, i.Now())
	}
	i.Log.Warn("The label that asks for work is not everywhere yet: " + err.Error())
}

func (i *Intake) labelAll(ctx context.Context, w *Watch, repos []forge.Repository) error {
	if !w.Host.Labels.Create {
		return nil
	}
	asked := 0
	for _, r := range repos {
		name, scope := lower(r.Repo), reviewsOf(w, r.Repo)
		if w.labelled[name] {
			continue
		}
		mark, err := i.Store.Mark(ctx, scope, labelMark)
		if err != nil {
			return err
		}
		if mark != w.Label {
			if asked++; asked > mostLabelled {
				return nil
			}
			err = w.Host.EnsureLabels(ctx, r.Repo, []forge.Label{w.Host.Labels.Asking()})
			if err != nil && (atLarge(err) || passing(err)) {
				return err
			}
			if err != nil {
				i.Log.Warn("The label that asks for work cannot be made: "+err.Error(), "repository", r.String(), "label", w.Label)
			} else if err := i.Store.SetMark(ctx, scope, labelMark, w.Label); err != nil {
				return err
			}
		}
		if w.labelled == nil {
			w.labelled = map[forge.Repo]bool{}
		}
		w.labelled[name] = true
	}
	return nil
}
