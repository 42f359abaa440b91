package agent

import (
	"context"
	"fmt"
	"path/filepath"

	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool/policy"
)

// judge says why a command of the model is not run in dir, relative to the
// workspace; "" where it is. What the rules forbid is not run, and the model
// reads why; what a person should be asked about is run or not as the settings
// say, because nobody can be asked yet, and is logged.
func (r *run) judge(ctx context.Context, command, dir string) string {
	if r.Tools.Commands == nil {
		return ""
	}
	rules, err := r.Tools.Commands()
	if err != nil {
		return fmt.Sprintf("Not run: the rules for commands cannot be read: %v", err)
	}
	tree := r.out.Workspace.Tree()
	place := policy.Place{Workspace: tree, Dir: filepath.Join(tree, dir)}
	if shell, err := r.modelShell(ctx); err == nil && sandbox.HasTree(shell.Kind()) {
		place.Also = sandbox.Tree
	}
	v := rules.Judge(command, place)
	if v.Decision == policy.Allow {
		return ""
	}
	run := v.Decision == policy.Ask && !r.Tools.RefuseAsked
	r.log.Info("Command policy: "+v.Decision.String(), "run", run, "why", v.Text(i18n.English))
	if run {
		return ""
	}
	return v.Text(i18n.English) + "\nDo it in another way, or go on without it and say so at the end."
}
