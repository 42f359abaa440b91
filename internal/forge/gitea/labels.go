package gitea

import (
	"context"
	"net/http"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// label is a label of a repository, or of the organization that it belongs to.
type label struct {
	*sdk.Label
	shared bool // the organization's
}

// labels lists the labels that items of a repository can bear.
func (f *Forge) labels(ctx context.Context, d *call, r forge.Repo) ([]label, error) {
	own, err := pages[sdk.Label](ctx, d, below(r, "labels"), nil)
	if err != nil {
		return nil, err
	}
	var all []label
	for _, l := range own {
		all = append(all, label{Label: l})
	}
	owner := strings.ToLower(r.Owner)
	if _, user := f.users.Load(owner); user {
		return all, nil
	}
	shared, err := pages[sdk.Label](ctx, d, path("orgs", r.Owner, "labels"), nil)
	if forge.Is(err, forge.NotFound) || forge.Is(err, forge.Forbidden) {
		// A person's, or of an organization that the token does not reach (read:organization).
		f.users.Store(owner, true)
		return all, nil
	}
	for _, l := range shared {
		all = append(all, label{Label: l, shared: true})
	}
	return all, err
}

// find is the label of that name, or else one whose name differs in case.
func find(all []label, name string) (l label, found bool) {
	for _, o := range all {
		if o.Name == name {
			return o, true
		}
		if !found && strings.EqualFold(o.Name, name) {
			l, found = o, true
		}
	}
	return l, found
}

// EnsureLabels implements forge.Tracker.
func (f *Forge) EnsureLabels(ctx context.Context, r forge.Repo, wanted []forge.Label) error {
	d, err := f.at(r, i18n.E("rest.do_labels"))
	if err != nil {
		return err
	}
	_, err = f.ensure(ctx, d, r, wanted)
	return err
}

// ensure creates the labels that are lacking and returns all. Gitea would make two of the
// same name.
func (f *Forge) ensure(ctx context.Context, d *call, r forge.Repo, wanted []forge.Label) ([]label, error) {
	leave, err := f.posts.Turns.Enter(ctx, "labels of "+strings.ToLower(r.String()))
	if err != nil {
		return nil, d.Explain(ctx, err)
	}
	defer leave()
	all, err := f.labels(ctx, d, r)
	if err != nil {
		return nil, err
	}
	for _, w := range wanted {
		if _, found := find(all, w.Name); found {
			continue
		}
		var l sdk.Label
		if _, err := d.Send(ctx, http.MethodPost, below(r, "labels"), sdk.CreateLabelOption{Name: w.Name, Color: "#" + w.Color, Description: w.Description}, &l); err != nil {
			return nil, err
		}
		all = append(all, label{Label: &l})
	}
	return all, nil
}

// plainColor is the colour of a label that nobody chose one for.
const plainColor = "ededed"

// SetLabels implements forge.Tracker. Labels go by their numbers, so that those that are put
// on are there first. It adds before it takes away, so that an item is never seen without
// any; a label in both lists stays.
func (f *Forge) SetLabels(ctx context.Context, k task.Key, add, remove []string) error {
	d, n, err := f.on(k, "rest.do_set_labels")
	if err != nil {
		return err
	}
	r := forge.RepoOf(k)
	on, err := f.labelsOn(ctx, d, r, n)
	if err != nil {
		return err
	}
	lacks, leave := rest.LabelChanges(names(on), add, remove)
	var missing []forge.Label
	for _, l := range lacks {
		missing = append(missing, forge.Label{Name: l, Color: plainColor})
	}
	if missing != nil {
		all, err := f.ensure(ctx, d, r, missing)
		if err != nil {
			return err
		}
		var ids []int64
		for _, m := range missing {
			if l, found := find(all, m.Name); found {
				ids = append(ids, l.ID)
			}
		}
		if _, err := d.Send(ctx, http.MethodPost, below(r, "issues", n, "labels"), sdk.IssueLabelsOption{Labels: ids}, nil); err != nil {
			return err
		}
	}
	for _, l := range on {
		if l == nil || !rest.Contains(leave, l.Name) {
			continue
		}
		if _, err := d.Send(ctx, http.MethodDelete, below(r, "issues", n, "labels", l.ID), nil, nil); err != nil && !forge.Is(err, forge.NotFound) {
			return err // 404: somebody else took it away
		}
	}
	return nil
}

func (f *Forge) labelsOn(ctx context.Context, d *call, r forge.Repo, n int) ([]*sdk.Label, error) {
	var on []*sdk.Label // comes whole
	if _, err := d.Get(ctx, below(r, "issues", n, "labels"), nil, &on); err != nil {
		return nil, d.absent(ctx, r, n, err)
	}
	return on, nil
}
