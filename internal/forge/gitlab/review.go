package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/task"
)

var _ forge.Reviewer = (*Forge)(nil)

// Review implements forge.Reviewer. It is written as drafts, which are published together: people
// are notified once.
func (f *Forge) Review(ctx context.Context, k task.Key, p forge.ReviewPost) (c forge.Comment, err error) {
	l, err := f.talk(ctx, k, "gitlab.do_reviewing")
	if err != nil {
		return c, err
	}
	unlock, err := f.posts.Turns.Enter(ctx, strings.ToLower(k.String()))
	if err != nil {
		return c, l.d.Explain(ctx, err)
	}
	defer unlock()
	w := &reviewing{talk: l}
	if c, err = w.find(ctx, p.Marker); err != nil || c.ID != "" {
		return c, err
	}
	if err = w.write(ctx, p); err != nil {
		return c, err
	}
	if err = w.publish(ctx); err != nil {
		return c, err
	}
	return w.find(ctx, p.Marker)
}

// reviewing is a review that is to be there.
type reviewing struct {
	*talk
	said  map[string]bool // markers of what is published
	ours  []int64         // drafts of it
	other bool            // the account has drafts of another kind: a person's
}

// find returns the note with the marker, and notes which of ours there are.
func (w *reviewing) find(ctx context.Context, marker string) (c forge.Comment, err error) {
	all, err := w.posted().Changed(ctx, time.Time{})
	w.said = map[string]bool{}
	for _, n := range all {
		if w.said[n.Marker] = true; n.Marker == marker {
			c = n
		}
	}
	return c, err
}

// write writes the drafts that are not there yet, the text last: what GitLab does not take on
// its line is part of that.
func (w *reviewing) write(ctx context.Context, p forge.ReviewPost) error {
	drafts, err := rest.Pages[gitlab.DraftNote](ctx, w.d, w.at+"/draft_notes", nil)
	if err != nil {
		return err
	}
	versions, err := rest.Pages[gitlab.MergeRequestDiffVersion](ctx, w.d, w.at+"/versions", nil)
	if err != nil {
		return err
	}
	have := map[string]int64{}
	for _, g := range drafts {
		_, marker := rest.Unmark(g.Note)
		mine := marker == p.Marker || slices.ContainsFunc(p.Remarks, func(r forge.Remark) bool { return r.Marker == marker })
		if w.other = w.other || !mine; mine {
			have[marker] = g.ID
		}
	}
	at := slices.IndexFunc(versions, func(v *gitlab.MergeRequestDiffVersion) bool { return v.HeadCommitSHA == p.Commit })
	put := func(marker, text string, pos *gitlab.PositionOptions) error {
		if id, there := have[marker]; there || w.said[marker] {
			if there {
				w.ours = append(w.ours, id)
			}
			return nil
		}
		var g gitlab.DraftNote
		text = harmless(text)
		err := w.d.send(ctx, http.MethodPost, w.at+"/draft_notes", &gitlab.CreateDraftNoteOptions{Note: &text, Position: pos}, &g)
		if err == nil {
			w.ours = append(w.ours, g.ID)
		}
		return err
	}
	var left []forge.Remark
	for _, r := range p.Remarks {
		if at < 0 { // the commit is gone
			left = append(left, r)
			continue
		}
		err := put(r.Marker, rest.RemarkText(r, suggestion(r)), position(versions[at], r))
		if forge.Is(err, forge.Invalid) {
			left = append(left, r)
		} else if err != nil {
			return err
		}
	}
	return put(p.Marker, rest.Mark(rest.WithRemarks(p.Body, left), p.Marker), nil)
}

// publish publishes the drafts: all that the account has at once, or, where others are among
// them, each of ours.
func (w *reviewing) publish(ctx context.Context) error {
	if !w.other {
		return w.d.send(ctx, http.MethodPost, w.at+"/draft_notes/bulk_publish", nil, nil)
	}
	for _, id := range w.ours {
		if err := w.d.send(ctx, http.MethodPut, w.at+"/"+path("draft_notes", id, "publish"), nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// suggestion is the info string of a suggestion, which tells how many lines above the remark's
// it takes the place of; "" where what harmless does to it would be applied.
func suggestion(r forge.Remark) string {
	if r.Suggestion == nil || quickAction().MatchString(*r.Suggestion) {
		return ""
	}
	return fmt.Sprintf("suggestion:-%d+0", r.Line-r.First)
}

// position is where a remark stands in a version of the change. Of a line that is on both sides
// GitLab wants both numbers.
func position(v *gitlab.MergeRequestDiffVersion, r forge.Remark) *gitlab.PositionOptions {
	kind, line, old := "text", int64(r.Line), int64(r.Old)
	pos := &gitlab.PositionOptions{BaseSHA: &v.BaseCommitSHA, StartSHA: &v.StartCommitSHA, HeadSHA: &v.HeadCommitSHA,
		PositionType: &kind, NewPath: &r.Path, OldPath: &r.OldPath, NewLine: &line}
	if old > 0 {
		pos.OldLine = &old
	}
	return pos
}
