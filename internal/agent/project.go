package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/project"
	"toritsugi/internal/workspace"
)

// learnTime is how long it may take to read a project.
const learnTime = 2 * time.Minute

// readProject reads what the project says about itself: how it is checked where nothing
// is configured, and, for a run that begins, what the model is told of it. All of
// it comes from the commit of the base branch, never from the tree, which may be
// the head of a pull request or what a model left.
func (r *run) readProject(ctx context.Context) (*project.Project, error) {
	o := r.projectOptions()
	auto := slices.ContainsFunc(r.Project.Setup, func(c workspace.SetupCommand) bool { return c.Run == checkrun.AutoSetup })
	if r.Project.Checks != nil && !o.Rules && !o.Map && !auto {
		return nil, nil
	}
	commit := r.out.TrustedCommit()
	if commit == "" {
		r.log.Warn("Rules and checks of the project are not read: the branch has no commit in common with " + r.out.Place.Onto)
		return nil, nil
	}
	reading, cancel := context.WithTimeout(ctx, learnTime)
	defer cancel()
	p, err := project.Read(reading, r.out.Workspace, commit, o)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case reading.Err() != nil:
		r.log.Warn("Rules and checks of the project are not read: that took too long", "limit", learnTime)
		return nil, nil
	case err != nil:
		return nil, err
	}
	for _, n := range p.Notes {
		r.log.Warn("The project: " + r.Store.Redact(n))
	}
	return p, nil
}

// projectOptions say what is read: less where the model was told.
func (r *run) projectOptions() project.Options {
	if r.start.Whole {
		return project.Options{}
	}
	return r.Project.Options
}

// learn decides on checks where none are configured, once the workspace is set up,
// and on what the model is told of the project.
func (r *run) learn(ctx context.Context, p *project.Project) error {
	r.verify.Checks = r.Project.Checks
	if p == nil {
		return nil
	}
	if r.Project.Checks == nil {
		if err := r.verify.Detect(ctx, p.Checks, r.start.Whole); err != nil {
			return err
		}
	}
	auto := slices.ContainsFunc(r.Project.Setup, func(c workspace.SetupCommand) bool { return c.Run == checkrun.AutoSetup })
	if len(r.Project.Setup) > 0 && !auto {
		p.Setup = nil // somebody decided on that
	} else if !auto && len(p.Setup) > 0 && !r.start.Whole {
		r.log.Info("Nothing is installed for this run; the setting setup could hold: " + strings.Join(p.ToInstall(), "; "))
	}
	r.tellProject(p)
	return nil
}

// tellProject has the model told of a project.
func (r *run) tellProject(p *project.Project) {
	if o := r.projectOptions(); o.Rules || o.Map {
		r.lead.about = func(task string) string { return p.Prompt(r.Window.Tokens/4*3, task) }
	}
}
