package gitlab

import (
	"context"
	"net/http"
	"slices"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// labels are the names of a project's labels, its groups' among them, that are that
// name but for case: to GitLab those are labels of their own.
func (d *call) labels(ctx context.Context, name string) ([]string, error) {
	all, err := rest.Pages[gitlab.Label](ctx, d, d.below("labels"), query("search", name))
	var names []string
	for _, l := range all {
		if strings.EqualFold(l.Name, name) && !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	return names, err
}

func (d *call) allLabels(ctx context.Context) ([]string, error) {
	all, err := rest.Pages[gitlab.Label](ctx, d, d.below("labels"), nil)
	return rest.Each(all, func(l *gitlab.Label) string { return l.Name }), err
}

// EnsureLabels implements forge.Tracker.
func (f *Forge) EnsureLabels(ctx context.Context, r forge.Repo, wanted []forge.Label) error {
	d, err := f.at(r, i18n.E("rest.do_labels"))
	if err != nil {
		return err
	}
	names, err := d.allLabels(ctx)
	if err != nil {
		return err
	}
	for _, l := range wanted {
		if rest.Contains(names, l.Name) {
			continue
		}
		body := map[string]string{"name": l.Name, "color": "#" + l.Color, "description": l.Description}
		if err := d.send(ctx, http.MethodPost, d.below("labels"), body, nil); err != nil && !forge.Is(err, forge.Conflict) {
			return err // 409: somebody else was faster
		}
		names = append(names, l.Name)
	}
	return nil
}

// SetLabels implements forge.Tracker, in one request. A label that the project has in
// other case is taken as it is written there.
func (f *Forge) SetLabels(ctx context.Context, k task.Key, add, remove []string) error {
	d, at, err := f.on(k, "gitlab.do_set_labels")
	if err != nil {
		return err
	}
	var on struct{ Labels []string }
	if _, err := d.Get(ctx, at, nil, &on); err != nil {
		return err
	}
	missing, leave := rest.LabelChanges(on.Labels, add, remove)
	for i, l := range missing {
		names, err := d.labels(ctx, l)
		if err != nil {
			return err
		}
		missing[i] = append(names, l)[0]
	}
	body := map[string]string{}
	if missing != nil {
		body["add_labels"] = strings.Join(missing, ",")
	}
	if leave != nil {
		body["remove_labels"] = strings.Join(leave, ",")
	}
	if len(body) == 0 {
		return nil
	}
	return d.send(ctx, http.MethodPut, at, body, nil)
}
