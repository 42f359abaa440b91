package github

import (
	"context"
	"net/http"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// EnsureLabels implements forge.Tracker.
func (f *Forge) EnsureLabels(ctx context.Context, r forge.Repo, wanted []forge.Label) error {
	d, err := f.at(ctx, r, i18n.E("rest.do_labels"))
	if err != nil {
		return err
	}
	have, err := rest.Pages[github.Label](ctx, d, below(r, "labels"), nil)
	if err != nil {
		return err
	}
	names := labels(have)
	for _, l := range wanted {
		if rest.Contains(names, l.Name) {
			continue
		}
		_, err := d.Send(ctx, http.MethodPost, below(r, "labels"), &github.Label{Name: &l.Name, Color: &l.Color, Description: &l.Description}, nil)
		if err != nil && !said(err, http.StatusUnprocessableEntity, "already_exists") {
			return err
		}
		names = append(names, l.Name)
	}
	return nil
}

// SetLabels implements forge.Tracker. It adds before it takes away, so that an
// item is never seen without any; a label in both lists stays.
func (f *Forge) SetLabels(ctx context.Context, k task.Key, add, remove []string) error {
	d, n, err := f.on(ctx, k, "rest.do_set_labels")
	if err != nil {
		return err
	}
	r := forge.RepoOf(k)
	on, err := rest.Pages[github.Label](ctx, d, below(r, "issues", n, "labels"), nil)
	if err != nil {
		return err
	}
	missing, leave := rest.LabelChanges(labels(on), add, remove)
	if missing != nil {
		if _, err := d.Send(ctx, http.MethodPost, below(r, "issues", n, "labels"), map[string]any{"labels": missing}, nil); err != nil {
			return err
		}
	}
	for _, l := range leave {
		if _, err := d.Send(ctx, http.MethodDelete, below(r, "issues", n, "labels", l), nil, nil); err != nil && !forge.Is(err, forge.NotFound) {
			return err // 404: somebody else took it away
		}
	}
	return nil
}
