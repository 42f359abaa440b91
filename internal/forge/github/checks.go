package github

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// mostAnnotated bounds the failed checks whose annotations are read.
const mostAnnotated = 10

// CheckRuns implements forge.CodeHost: check runs, and the older statuses beside
// them. Each needs a permission of its own, and fine-grained tokens have none for
// check runs: what may be read comes with the error about what may not.
func (f *Forge) CheckRuns(ctx context.Context, r forge.Repo, commit string) ([]forge.CheckRun, error) {
	d, err := f.at(ctx, r, i18n.E("rest.do_checks", commit))
	if err != nil {
		return nil, err
	}
	if !rest.IsCommit(commit) {
		return nil, d.NoCommit()
	}
	all, unread := d.checkRuns(ctx, r, commit)
	if unread != nil && !forge.Is(unread, forge.Forbidden) {
		return nil, unread
	}
	err = rest.EachPage(ctx, d, below(r, "commits", commit, "status"), nil, func(p *github.CombinedStatus) bool {
		for _, s := range p.Statuses {
			c := forge.CheckRun{Name: s.GetContext(), State: statusState(s.GetState())}
			if c.State == forge.CheckFailed {
				c.Output = rest.CutOutput(s.GetDescription())
			}
			all = append(all, c)
		}
		return true
	})
	if err == nil {
		err = unread
	}
	return all, err
}

// checkRuns lists the check runs of a commit.
func (d *call) checkRuns(ctx context.Context, r forge.Repo, commit string) (all []forge.CheckRun, err error) {
	var runs []*github.CheckRun
	if err := rest.EachPage(ctx, d, below(r, "commits", commit, "check-runs"), query("filter", "latest"), func(p *github.ListCheckRunsResults) bool {
		runs = append(runs, p.CheckRuns...)
		return true
	}); err != nil {
		return nil, err
	}
	annotated := 0
	for _, g := range runs {
		c := forge.CheckRun{Name: g.GetName(), State: checkState(g)}
		if c.State == forge.CheckFailed {
			var notes []*github.CheckRunAnnotation
			if g.GetOutput().GetAnnotationsCount() > 0 && annotated < mostAnnotated {
				annotated++
				if _, err := d.Get(ctx, below(r, "check-runs", g.GetID(), "annotations"), rest.Page(nil, 1), &notes); err != nil {
					return nil, err
				}
			}
			c.Output = output(g.GetOutput(), notes)
		}
		all = append(all, c)
	}
	return all, nil
}

func checkState(g *github.CheckRun) string {
	if g.GetStatus() != "completed" {
		return forge.CheckPending
	}
	switch g.GetConclusion() {
	case "success", "neutral":
		return forge.CheckPassed
	case "skipped":
		return forge.CheckSkipped
	case "action_required": // it waits for a person
		return forge.CheckPending
	}
	return forge.CheckFailed
}

func statusState(s string) string {
	switch s {
	case "success":
		return forge.CheckPassed
	case "pending":
		return forge.CheckPending
	}
	return forge.CheckFailed
}

// output is what a failed check prints: where it found something, then its words.
func output(o *github.CheckRunOutput, notes []*github.CheckRunAnnotation) string {
	var b strings.Builder
	if o.GetTitle() != "" {
		b.WriteString(o.GetTitle() + "\n")
	}
	for _, n := range notes {
		fmt.Fprintf(&b, "%s:%d: %s: %s\n", n.GetPath(), n.GetStartLine(), n.GetAnnotationLevel(), strings.TrimSpace(n.GetMessage()))
	}
	for _, s := range []string{o.GetSummary(), o.GetText()} {
		if s != "" {
			b.WriteString(strings.TrimSpace(s) + "\n")
		}
	}
	return rest.CutOutput(strings.TrimSpace(b.String()))
}

// Remote implements forge.CodeHost. Of an App the password is good for the one
// repository's contents only, and for ten minutes at least.
func (f *Forge) Remote(ctx context.Context, r forge.Repo) (forge.Remote, error) {
	if _, err := f.at(ctx, r, i18n.E("rest.do_remote")); err != nil {
		return forge.Remote{}, err
	}
	secret, err := f.access.password(ctx, r)
	if err != nil {
		return forge.Remote{}, err
	}
	return forge.Remote{URL: rest.Git(f.address.web, r), User: "x-access-token", Password: secret}, nil
}
