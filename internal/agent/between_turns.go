package agent

import (
	"context"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/workspace"
)

// modelShell is the sandbox of the model's commands, made with the first of them.
func (r *run) modelShell(ctx context.Context) (sandbox.Runner, error) {
	if err := r.verify.Ready(ctx); err != nil {
		return nil, err
	}
	r.env.opening.Lock()
	defer r.env.opening.Unlock()
	if r.env.shell != nil {
		return r.env.shell, nil
	}
	spec, err := r.verify.WithCaches(ctx, r.env.spec, workspace.LayerSteps)
	if err == nil {
		r.env.shell, err = r.env.side.recording(r.Sandbox.Shell)(spec)
	}
	return r.env.shell, err
}

// betweenTurns is what there is to tell the model between two turns: of the base, and what
// people have said.
func (r *run) betweenTurns(ctx context.Context) ([]contextstore.Message, error) {
	var all []contextstore.Message
	if !r.verify.quiet {
		var err error
		if all, err = r.verify.BaseResults(ctx, r.Scripted); err != nil { // a script hears of it at the same place each time
			return nil, err
		}
	}
	said, err := r.talk.Heard(ctx)
	return append(all, said...), err
}
