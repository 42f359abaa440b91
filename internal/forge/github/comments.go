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
	d, n, err := f.talk(ctx, k, "rest.do_comments")
	if err != nil {
		return nil, 0, err
	}
	r := forge.RepoOf(k)
	var all []forge.Comment
	length, err := latest(ctx, d, below(r, "issues", n, "comments"), &all, func(c *github.IssueComment) (forge.Comment, bool) { return d.note(c), true })
	if err == nil && k.Type == "pull_request" {
		var more [2]int
		more[0], err = latest(ctx, d, below(r, "pulls", n, "reviews"), &all, d.said)
		if err == nil {
			more[1], err = latest(ctx, d, below(r, "pulls", n, "comments"), &all, func(c *github.PullRequestComment) (forge.Comment, bool) { return d.remark(c), true })
		}
		length += more[0] + more[1]
		if err == nil {
			err = f.settled(ctx, d, r, n, all)
		}
	}
	if err != nil {
		return nil, 0, err
	}
	all, left := rest.Said(all, k)
	return all, max(length-len(all)-left, 0) + left, nil
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
	length, err = rest.Backward(ctx, d, path, nil, func(page []*T) bool {
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

// note is a comment below an item.
func (d *call) note(g *github.IssueComment) forge.Comment {
	return rest.Ours(d.self, forge.Comment{
		ID: rest.CommentID(forge.Note, g.GetID()), Kind: forge.Note, Item: rest.LastPart(g.GetIssueURL()), Author: person(g.GetUser()),
		Body: g.GetBody(), Created: g.GetCreatedAt().UTC(), Edited: g.GetUpdatedAt().UTC(), URL: g.GetHTMLURL(),
	})
}

// said is the text of a review; one that was not sent yet, or that only holds
// remarks, is none.
func (d *call) said(g *github.PullRequestReview) (forge.Comment, bool) {
	verdict, ok := verdicts[strings.ToUpper(g.GetState())]
	at := g.GetSubmittedAt().UTC()
	return rest.Ours(d.self, forge.Comment{
		ID: rest.CommentID(forge.Review, g.GetID()), Kind: forge.Review, Item: rest.LastPart(g.GetPullRequestURL()), Author: person(g.GetUser()),
		Body: g.GetBody(), Created: at, Edited: at, URL: g.GetHTMLURL(), Verdict: verdict,
	}), ok && (g.GetBody() != "" || verdict != forge.Commented)
}

var verdicts = map[string]string{
	"APPROVED": forge.Approved, "CHANGES_REQUESTED": forge.ChangesRequested, "COMMENTED": forge.Commented, "DISMISSED": forge.Dismissed,
}

// remark is what was said on a line.
func (d *call) remark(g *github.PullRequestComment) forge.Comment {
	c := forge.Comment{
		ID: rest.CommentID(forge.Line, g.GetID()), Kind: forge.Line, Item: rest.LastPart(g.GetPullRequestURL()), Author: person(g.GetUser()),
		Body: g.GetBody(), Created: g.GetCreatedAt().UTC(), Edited: g.GetUpdatedAt().UTC(), URL: g.GetHTMLURL(),
		Path: g.GetPath(), Line: g.GetLine(),
	}
	if g.GetSide() == "LEFT" { // a line that was deleted: the number is none of the file
		c.Line = 0
	}
	if g.GetInReplyTo() != 0 {
		c.ReplyTo = rest.CommentID(forge.Line, g.GetInReplyTo())
	}
	return rest.Ours(d.self, c)
}

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
	if d.self, err = f.Self(ctx); err != nil {
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
		add(d.note(c))
	}
	lines, err := since(ctx, d, below(r, "pulls", "comments"), nil, from, forge.MaxComments+rest.PerPage, (*github.PullRequestComment).GetID,
		func(c *github.PullRequestComment) time.Time { return c.GetUpdatedAt().Time })
	if err != nil {
		return nil, err
	}
	for _, c := range lines {
		add(d.remark(c))
	}
	changed, err := since(ctx, d, below(r, "issues"), query("state", "all"), from, mostPulls, (*github.Issue).GetID, updated)
	if err != nil {
		return nil, err
	}
	for _, i := range changed {
		if i.PullRequestLinks == nil {
			continue
		}
		if _, err := rest.Backward(ctx, d, below(r, "pulls", i.GetNumber(), "reviews"), nil, func(page []*github.PullRequestReview) bool {
			for _, g := range slices.Backward(page) {
				c, ok := d.said(g)
				if ok && c.Edited.Before(from) {
					return false
				}
				if ok {
					add(c)
				}
			}
			return true
		}); err != nil {
			return nil, err
		}
	}
	return rest.News(all), nil
}
