package dispatch

import (
	"context"
	"strings"

	"toritsugi/internal/forge"
)

// labelMark is the mark of the labels that ask, where they were made sure of in a
// repository: one that people delete since is made again by a run.
const labelMark = "label"

// mostLabelled bounds the repositories that one look makes the label in: each
// may take as long as two changes at the forge are to be apart.
const mostLabelled = 20

// label makes the labels that ask where a repository lacks them, so that people have
// them to choose; it comes last, to hold no work back. Where they may not be made, that
// is logged once, and people make them themselves; what is trouble of the forge as a
// whole is left to the next look.
func (i *Intake) label(ctx context.Context, w *Watch, repos []forge.Repository) {
	err := i.labelAll(ctx, w, repos)
	if err == nil || ctx.Err() != nil {
		return
	}
	if refusesAll(err) {
		w.holdOff(err, i.Now())
	}
	i.Log.Warn("The labels that ask are not everywhere yet: " + err.Error())
}

func (i *Intake) labelAll(ctx context.Context, w *Watch, repos []forge.Repository) error {
	if !w.Host.Labels.Create {
		return nil
	}
	asked, names := 0, strings.TrimSuffix(w.Label+","+w.Host.Labels.Review, ",")
	for _, r := range repos {
		name, scope := lower(r.Repo), reviewsOf(w, r.Repo)
		if w.labelled[name] {
			continue
		}
		mark, err := i.Store.Mark(ctx, scope, labelMark)
		if err != nil {
			return err
		}
		if mark != names {
			if asked++; asked > mostLabelled {
				return nil
			}
			err = w.Host.EnsureLabels(ctx, r.Repo, w.Host.Labels.Asking())
			if err != nil && (atLarge(err) || passing(err)) {
				return err
			}
			if err != nil {
				i.Log.Warn("The labels that ask cannot be made: "+err.Error(), "repository", r.String(), "labels", names)
			} else if err := i.Store.SetMark(ctx, scope, labelMark, names); err != nil {
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
