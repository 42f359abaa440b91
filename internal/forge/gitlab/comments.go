package gitlab

import (
	"context"
	"slices"
	"strconv"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Comments implements forge.Tracker. Notes that the server wrote are left out but for
// the verdicts of reviews; so are internal notes where others see the project.
func (f *Forge) Comments(ctx context.Context, k task.Key) ([]forge.Comment, int, error) {
	l, err := f.talk(ctx, k, "gitlab.do_comments")
	if err != nil {
		return nil, 0, err
	}
	q := query("sort", "asc", "order_by", "created_at")
	if k.Type == issue { // there the server's notes are of no interest
		q.Set("activity_filter", "only_comments")
	}
	nothing := 0
	seen := map[int64]bool{}
	length, err := rest.Backward(ctx, l.d, l.at+"/notes", q, func(page []*gitlab.Note) bool {
		for _, n := range page {
			switch {
			case seen[n.ID]:
			case !spoken(n):
				nothing++
			default:
				seen[n.ID] = true
				l.notes = append(l.notes, n)
			}
		}
		return len(l.notes) < forge.MaxComments
	})
	if err != nil {
		return nil, 0, err
	}
	all, err := l.comments(ctx)
	if err != nil {
		return nil, 0, err
	}
	all, left := rest.Said(all, k)
	return all, max(length-nothing-len(l.notes), 0) + left, nil
}

// What the server notes of a review. It writes these in English on every server.
const (
	noteApproved   = "approved this merge request"
	noteUnapproved = "unapproved this merge request"
	noteChanges    = "requested changes"
)

// spoken reports whether a note is people's, or the server's of what a review came to.
func spoken(n *gitlab.Note) bool {
	return !n.System || n.NoteableType == "MergeRequest" && (n.Body == noteApproved || n.Body == noteUnapproved || n.Body == noteChanges)
}

// talk is what was said on an item.
type talk struct {
	f         *Forge
	d         *call
	self      forge.Person
	at        string // the item's path
	kind, iid string
	head      string // of a merge request, "" where it is not known yet
	project   project
	notes     []*gitlab.Note // those that are spoken
}

// talk begins a call about what is said on an item.
func (f *Forge) talk(ctx context.Context, k task.Key, what string) (*talk, error) {
	d, at, err := f.on(k, what)
	if err != nil {
		return nil, err
	}
	self, err := f.Self(ctx)
	return &talk{f: f, d: d, self: self, at: at, kind: k.Type, iid: k.ID}, err
}

// comments are the notes as comments, in no order.
func (l *talk) comments(ctx context.Context) ([]forge.Comment, error) {
	threads, err := l.threads(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.notes, func(a, b *gitlab.Note) int { return int(a.ID - b.ID) })
	var all []forge.Comment
	verdict := map[forge.Person]int{} // the last one of each reviewer, in all
	for _, n := range l.notes {
		hidden, err := l.project.hides(ctx, l.d, n.Internal)
		if err != nil {
			return nil, err
		}
		if hidden {
			continue
		}
		c := l.comment(n)
		if first := threads[n.ID]; first != 0 && first != n.ID && c.Kind == forge.Line {
			c.ReplyTo = rest.CommentID(forge.Line, first)
		}
		if c.Kind == forge.Review {
			last, known := verdict[c.Author]
			if c.Verdict == forge.Dismissed {
				if known && all[last].Verdict == forge.Approved {
					all[last].Verdict = forge.Dismissed
				}
				delete(verdict, c.Author)
				continue
			}
			verdict[c.Author] = len(all)
		}
		all = append(all, c)
	}
	return all, l.settle(ctx, all, verdict)
}

// comment is a note.
func (l *talk) comment(n *gitlab.Note) forge.Comment {
	c := forge.Comment{
		ID: rest.CommentID(forge.Note, n.ID), Kind: forge.Note, Item: l.iid, ItemType: l.kind, Author: person(n.Author.ID, n.Author.Username),
		Body: n.Body, Created: when(n.CreatedAt), Edited: when(n.UpdatedAt), Resolved: n.Resolved,
		URL: l.f.web.String() + l.url(n.ID),
	}
	switch {
	case n.System:
		c.ID, c.Kind, c.Body, c.Edited = rest.CommentID(forge.Review, n.ID), forge.Review, "", c.Created
		c.Verdict = map[string]string{noteApproved: forge.Approved, noteUnapproved: forge.Dismissed, noteChanges: forge.ChangesRequested}[n.Body]
	case n.Type == gitlab.DiffNote && n.Position != nil:
		c.ID, c.Kind, c.Path = rest.CommentID(forge.Line, n.ID), forge.Line, n.Position.NewPath
		if c.Path == "" {
			c.Path = n.Position.OldPath
		}
		if l.head == "" || n.Position.HeadSHA == l.head {
			c.Line = int(n.Position.NewLine)
		}
	}
	return rest.Ours(l.self, c)
}

// url is where people find a note, below the server.
func (l *talk) url(n int64) string {
	return l.d.Repo + "/-/" + l.kind + "s/" + l.iid + "#note_" + strconv.FormatInt(n, 10)
}

// threads tell of each remark on a line which one began its thread.
func (l *talk) threads(ctx context.Context) (map[int64]int64, error) {
	if !slices.ContainsFunc(l.notes, func(n *gitlab.Note) bool { return n.Type == gitlab.DiffNote }) {
		return nil, nil
	}
	if l.head == "" {
		var g gitlab.MergeRequest
		if _, err := l.d.Get(ctx, l.at, nil, &g); err != nil {
			return nil, err
		}
		l.head = g.SHA
	}
	first := map[int64]int64{}
	err := rest.Forward(ctx, l.d, l.at+"/discussions", nil, func(page []*gitlab.Discussion) bool {
		for _, t := range page {
			for _, n := range rest.Present(t.Notes) {
				first[n.ID] = t.Notes[0].ID
			}
		}
		return true
	})
	return first, err
}

// settle marks the last verdicts that do not hold any more as dismissed: approvals fall
// with a push, or when they are taken back, and who is asked for a review again wants no
// changes any more. What the server does not tell stays.
func (l *talk) settle(ctx context.Context, all []forge.Comment, verdict map[forge.Person]int) error {
	for _, kind := range []string{forge.Approved, forge.ChangesRequested} {
		var of []int
		for _, last := range verdict {
			if all[last].Verdict == kind {
				of = append(of, last)
			}
		}
		if of == nil {
			continue
		}
		who, err := l.standing(ctx, kind)
		switch {
		case forge.Is(err, forge.NotFound) || forge.Is(err, forge.Forbidden):
			continue
		case err != nil:
			return err
		}
		for _, last := range of {
			if !who[all[last].Author.ID] {
				all[last].Verdict = forge.Dismissed
			}
		}
	}
	return nil
}

// standing is whose verdict is that one now.
func (l *talk) standing(ctx context.Context, verdict string) (map[int64]bool, error) {
	who := map[int64]bool{}
	if verdict == forge.Approved {
		var a gitlab.MergeRequestApprovals
		_, err := l.d.Get(ctx, l.at+"/approvals", nil, &a)
		for _, by := range rest.Present(a.ApprovedBy) {
			who[user(by.User).ID] = true
		}
		return who, err
	}
	reviewers, err := rest.Pages[gitlab.MergeRequestReviewer](ctx, l.d, l.at+"/reviewers", nil)
	for _, r := range reviewers {
		if r.State == "requested_changes" {
			who[user(r.User).ID] = true
		}
	}
	return who, err
}

// CommentsSince implements forge.Tracker. GitLab lists notes by item only, and an item
// changes when one of its notes is written or edited: they are read of each item that
// changed, from the last edited one back.
func (f *Forge) CommentsSince(ctx context.Context, r forge.Repo, from time.Time) ([]forge.Comment, error) {
	d, err := f.at(r, i18n.E("rest.do_news"))
	if err != nil {
		return nil, err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return nil, err
	}
	changed := from
	if !from.IsZero() {
		changed = from.Add(-time.Second) // those of the same moment
	}
	issues, err := since(ctx, d, d.below("issues"), query("state", "all"), changed, everything, issueID, issueUpdated)
	if err != nil {
		return nil, err
	}
	merges, err := since(ctx, d, d.below("merge_requests"), query("state", "all"), changed, everything, mergeID, mergeUpdated)
	if err != nil {
		return nil, err
	}
	var all []forge.Comment
	var at project
	read := func(kind string, iid int64, head string) error {
		n := strconv.FormatInt(iid, 10)
		l := &talk{f: f, d: d, self: self, at: d.below(kind+"s", n), kind: kind, iid: n, head: head, project: at}
		if l.notes, err = d.changed(ctx, l.at, from); err != nil {
			return gone(err)
		}
		some, err := l.comments(ctx)
		at = l.project
		all = append(all, some...)
		return gone(err)
	}
	for _, g := range issues {
		hidden, err := at.hides(ctx, d, g.Confidential)
		if err == nil && !hidden && g.UserNotesCount > 0 {
			err = read(issue, g.IID, "")
		}
		if err != nil {
			return nil, err
		}
	}
	for _, g := range merges {
		if err := read(mergeRequest, g.IID, g.SHA); err != nil {
			return nil, err
		}
	}
	return rest.News(all), nil
}

// everything bounds no list: what is left out of one could not be told from what was
// looked at.
const everything = 1 << 30

// gone is an error that is not about an item which was deleted meanwhile.
func gone(err error) error {
	if forge.Is(err, forge.NotFound) {
		return nil
	}
	return err
}

// changed lists the notes that were written or edited at or after a time.
func (d *call) changed(ctx context.Context, at string, from time.Time) (all []*gitlab.Note, err error) {
	seen := map[int64]bool{}
	err = rest.Forward(ctx, d, at+"/notes", query("sort", "desc", "order_by", "updated_at"), func(page []*gitlab.Note) bool {
		for _, n := range page {
			if when(n.UpdatedAt).Before(from) {
				return false
			}
			if spoken(n) && !seen[n.ID] {
				seen[n.ID] = true
				all = append(all, n)
			}
		}
		return true
	})
	return all, err
}
