package gitea

import (
	"context"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// CheckRuns implements forge.CodeHost: the last status of each context, which is where
// Gitea's own actions say how they ended, too.
func (f *Forge) CheckRuns(ctx context.Context, r forge.Repo, commit string) ([]forge.CheckRun, error) {
	d, err := f.at(r, i18n.E("rest.do_checks", commit))
	if err != nil {
		return nil, err
	}
	if !rest.IsCommit(commit) {
		return nil, d.NoCommit()
	}
	var all []forge.CheckRun
	err = eachPage(ctx, d, below(r, "commits", commit, "status"), nil, func(p *sdk.CombinedStatus) int {
		for _, s := range p.Statuses {
			if s == nil {
				continue
			}
			c := forge.CheckRun{Name: s.Context, State: checkState(s.State)}
			if c.State == forge.CheckFailed {
				c.Output = rest.CutOutput(s.Description)
			}
			all = append(all, c)
		}
		return len(p.Statuses)
	})
	return all, err
}

// checkState is a status as checks have it: to Gitea a warning is a failure.
func checkState(s sdk.StatusState) string {
	switch s {
	case sdk.StatusSuccess:
		return forge.CheckPassed
	case sdk.StatusPending:
		return forge.CheckPending
	case "skipped":
		return forge.CheckSkipped
	}
	return forge.CheckFailed
}

// Remote implements forge.CodeHost. The name beside a token is not looked at.
func (f *Forge) Remote(_ context.Context, r forge.Repo) (forge.Remote, error) {
	if _, err := f.at(r, i18n.E("rest.do_remote")); err != nil {
		return forge.Remote{}, err
	}
	return forge.Remote{URL: rest.Git(f.address.web, r), User: "x-access-token", Password: f.token.Now()}, nil
}
