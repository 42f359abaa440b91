package gitlab

import (
	"context"
	"net/http"
	"slices"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/task"
)

var _ forge.Reactions = (*Forge)(nil)

// reactionsAt is where the signs on an item or a comment are; a review takes none, and
// those of its item stand for them.
func (f *Forge) reactionsAt(k task.Key, comment, what string) (d *call, at string, err error) {
	d, at, err = f.on(k, what)
	if kind, id, _ := strings.Cut(comment, "/"); kind == string(forge.Note) || kind == string(forge.Line) {
		at += "/" + path("notes", id)
	}
	return d, at + "/award_emoji", err
}

// signs are the names of those that are used.
var signs = map[string]string{forge.Seen: "eyes", forge.Yes: "thumbsup", forge.No: "thumbsdown"}

// React implements forge.Reactions. GitLab answers that there is nothing where the sign is
// there already, so it is looked for first.
func (f *Forge) React(ctx context.Context, k task.Key, comment, sign string) error {
	self, err := f.Self(ctx)
	if err != nil {
		return err
	}
	there, err := f.Reactions(ctx, k, comment)
	if err != nil || slices.ContainsFunc(there, func(r forge.Reaction) bool { return r.Sign == sign && r.By.ID == self.ID }) {
		return err
	}
	d, at, err := f.reactionsAt(k, comment, "gitlab.do_react")
	if err == nil {
		err = d.send(ctx, http.MethodPost, at, map[string]string{"name": signs[sign]}, nil)
	}
	return err
}

// Reactions implements forge.Reactions.
func (f *Forge) Reactions(ctx context.Context, k task.Key, comment string) ([]forge.Reaction, error) {
	d, at, err := f.reactionsAt(k, comment, "gitlab.do_reactions")
	if err != nil {
		return nil, err
	}
	list, err := rest.Pages[gitlab.AwardEmoji](ctx, d, at, nil)
	var all []forge.Reaction
	for _, g := range list {
		for sign, name := range signs {
			if g.Name == name {
				all = append(all, forge.Reaction{By: person(g.User.ID, g.User.Username), Sign: sign, At: when(g.CreatedAt)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b forge.Reaction) int { return a.At.Compare(b.At) })
	return all, err
}
