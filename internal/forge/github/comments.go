package github

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Comments implements forge.Tracker.
func (f *Forge) Comments(ctx context.Context, k task.Key) ([]forge.Comment, int, error) {
	d, n, err := f.on(ctx, k, "rest.do_comments")
	if err != nil {
		return nil, 0, err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return nil, 0, err
	}
	r := forge.RepoOf(k)
	var all []forge.Comment
	length, err := latest(ctx, d, below(r, "issues", n, "comments"), &all, func(c *github.IssueComment) (forge.Comment, bool) { return note(self, c), true })
	if err == nil && k.Type == "pull_request" {
		var more [2]int
		more[0], err = latest(ctx, d, below(r, "pulls", n, "reviews"), &all, func(g *github.PullRequestReview) (forge.Comment, bool) { return review(self, g) })
		if err == nil {
			more[1], err = latest(ctx, d, below(r, "pulls", n, "comments"), &all, func(c *github.PullRequestComment) (forge.Comment, bool) { return remark(self, c), true })
		}
		length += more[0] + more[1]
		if err == nil {
			err = f.settled(ctx, d, r, n, all)
		}
	}
	if err != nil {
		return nil, 0, err
	}
	rest.ByTime(all, func(c forge.Comment) time.Time { return c.Created })
	left := max(0, len(all)-forge.MaxComments)
	for i := range all {
		all[i].Item = k.ID
	}
	return all[left:], max(length-len(all), 0) + left, nil
}

// threads asks which of the last threads of a pull request people have settled: GraphQL alone
// tells that.
const threads = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { issueOrPullRequest(number: $number) { ` +
	`... on PullRequest { reviewThreads(last: 100) { nodes { isResolved comments(first: 1) { nodes { databaseId } } } } } } } }`

// settled marks the remarks whose threads are; a login that GraphQL does not tell leaves them.
func (f *Forge) settled(ctx context.Context, d *call, r forge.Repo, n int, all []forge.Comment) error {
	if !slices.ContainsFunc(all, func(c forge.Comment) bool { return c.Kind == forge.Line }) {
		return nil
	}
	var out struct {
		Repository struct {
			IssueOrPullRequest struct {
				ReviewThreads struct {
					Nodes []struct {
						IsResolved bool
						Comments   struct {
							Nodes []struct {
								DatabaseID int64 `json:"databaseId"`
							}
						}
					}
				}
			}
		}
	}
	err := d.graphql(ctx, f.address.graphql, threads, map[string]any{"owner": r.Owner, "name": r.Name, "number": n}, "pull_requests=read", &out)
	if forge.Is(err, forge.Forbidden) || forge.Is(err, forge.NotFound) || forge.Is(err, forge.Invalid) {
		return nil
	}
	over := map[string]bool{}
	for _, t := range out.Repository.IssueOrPullRequest.ReviewThreads.Nodes {
		for _, first := range t.Comments.Nodes {
			over[rest.CommentID(forge.Line, first.DatabaseID)] = t.IsResolved
		}
	}
	for i, c := range all {
		all[i].Resolved = over[c.ID] || over[c.ReplyTo]
	}
	return err
}

// latest adds the last MaxComments of a list that grows at its end, and returns
// how long the list is without what is no comment.
func latest[T any](ctx context.Context, d *call, path string, all *[]forge.Comment, convert func(*T) (forge.Comment, bool)) (length int, err error) {
	seen := map[string]bool{}
	nothing := 0
	length, err = backward(ctx, d, path, nil, func(page []*T) bool {
		for _, g := range page {
			c, ok := convert(g)
			switch {
			case !ok:
				nothing++
			case !seen[c.ID]:
				seen[c.ID] = true
				*all = append(*all, c)
			}
		}
		return len(seen) < forge.MaxComments
	})
	return length - nothing, err
}

// note is a comment below an item; our own is told by its author, then its
// marker: others can copy the marker.
func note(self forge.Person, g *github.IssueComment) forge.Comment {
	c := forge.Comment{
		ID: rest.CommentID(forge.Note, g.GetID()), Kind: forge.Note, Item: lastPart(g.GetIssueURL()), Author: person(g.GetUser()),
		Body: g.GetBody(), Created: g.GetCreatedAt().UTC(), Edited: g.GetUpdatedAt().UTC(), URL: g.GetHTMLURL(),
	}
	return ours(self, c)
}

// ours takes the marker off a comment of ours.
func ours(self forge.Person, c forge.Comment) forge.Comment {
	if c.Author.ID == self.ID && self.ID != 0 {
		c.Body, c.Marker = rest.Unmark(c.Body)
	}
	return c
}

// review is the text of a review; one that was not sent yet, or that only holds
// remarks, is none.
func review(self forge.Person, g *github.PullRequestReview) (forge.Comment, bool) {
	verdict, ok := verdicts[strings.ToUpper(g.GetState())]
	at := g.GetSubmittedAt().UTC()
	return ours(self, forge.Comment{
		ID: rest.CommentID(forge.Review, g.GetID()), Kind: forge.Review, Item: lastPart(g.GetPullRequestURL()), Author: person(g.GetUser()),
		Body: g.GetBody(), Created: at, Edited: at, URL: g.GetHTMLURL(), Verdict: verdict,
	}), ok && (g.GetBody() != "" || verdict != forge.Commented)
}

var verdicts = map[string]string{
	"APPROVED": forge.Approved, "CHANGES_REQUESTED": forge.ChangesRequested, "COMMENTED": forge.Commented, "DISMISSED": forge.Dismissed,
}

// remark is what was said on a line.
func remark(self forge.Person, g *github.PullRequestComment) forge.Comment {
	c := forge.Comment{
		ID: rest.CommentID(forge.Line, g.GetID()), Kind: forge.Line, Item: lastPart(g.GetPullRequestURL()), Author: person(g.GetUser()),
		Body: g.GetBody(), Created: g.GetCreatedAt().UTC(), Edited: g.GetUpdatedAt().UTC(), URL: g.GetHTMLURL(),
		Path: g.GetPath(), Line: g.GetLine(),
	}
	if g.GetInReplyTo() != 0 {
		c.ReplyTo = rest.CommentID(forge.Line, g.GetInReplyTo())
	}
	return ours(self, c)
}

func lastPart(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// mostPulls bounds the pull requests whose reviews one look reads.
const mostPulls = 1000

// CommentsSince implements forge.Tracker. GitHub lists notes and remarks by
// repository; reviews it lists by pull request only, so those are asked for
// where the pull request changed. The text of a review has no time of its last
// edit: it comes once.
func (f *Forge) CommentsSince(ctx context.Context, r forge.Repo, from time.Time) ([]forge.Comment, error) {
	d, err := f.at(ctx, r, i18n.E("rest.do_news"))
	if err != nil {
		return nil, err
	}
	self, err := f.Self(ctx)
	if err != nil {
		return nil, err
	}
	var all []forge.Comment
	add := func(c forge.Comment) {
		if !c.Edited.Before(from) {
			all = append(all, c)
		}
	}
	notes, err := since(ctx, d, below(r, "issues", "comments"), nil, from, forge.MaxComments+rest.PerPage, (*github.IssueComment).GetID,
		func(c *github.IssueComment) time.Time { return c.GetUpdatedAt().Time })
	if err != nil {
		return nil, err
	}
	for _, c := range notes {
		add(note(self, c))
	}
	lines, err := since(ctx, d, below(r, "pulls", "comments"), nil, from, forge.MaxComments+rest.PerPage, (*github.PullRequestComment).GetID,
		func(c *github.PullRequestComment) time.Time { return c.GetUpdatedAt().Time })
	if err != nil {
		return nil, err
	}
	for _, c := range lines {
		add(remark(self, c))
	}
	changed, err := since(ctx, d, below(r, "issues"), query("state", "all"), from, mostPulls, (*github.Issue).GetID, updated)
	if err != nil {
		return nil, err
	}
	for _, i := range changed {
		if i.PullRequestLinks == nil {
			continue
		}
		if _, err := backward(ctx, d, below(r, "pulls", i.GetNumber(), "reviews"), nil, func(page []*github.PullRequestReview) bool {
			return reversed(page, func(g *github.PullRequestReview) bool {
				c, ok := review(self, g)
				if ok {
					add(c)
				}
				return !ok || !c.Edited.Before(from)
			})
		}); err != nil {
			return nil, err
		}
	}
	rest.ByTime(all, func(c forge.Comment) time.Time { return c.Edited })
	all = slices.CompactFunc(all, func(a, b forge.Comment) bool { return a.ID == b.ID })
	return all[:min(len(all), forge.MaxComments)], nil
}
