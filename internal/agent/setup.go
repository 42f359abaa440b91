package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"toritsugi/internal/tool"
	"toritsugi/internal/workspace"
)

// maxNamed is how many submodules or files the model is told by name.
const maxNamed = 20

// missing tells the model what a clone leaves out on purpose.
func (r *run) missing(ctx context.Context) (string, error) {
	m, err := r.out.Workspace.Missing(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if len(m.Submodules) > 0 {
		fmt.Fprintf(&b, "\nSubmodules are not checked out here: %s. Their directories are empty, and nothing in them becomes part of your change.\n", someFiles(m.Submodules, maxNamed))
	}
	if m.LFS > 0 {
		fmt.Fprintf(&b, "\n%d files are kept in Git LFS: here they are short pointer files, not their contents. Do not change them.\n", m.LFS)
	}
	return b.String(), nil
}

// steps records the tree after each call that may have changed it, so that it
// can be shown and taken back. A failure is the log's: the call itself was done.
func (r *run) steps(tools []tool.Tool) []tool.Tool {
	for i, t := range tools {
		if !t.Definition().ReadOnly {
			tools[i] = step{t, r}
		}
	}
	return tools
}

type step struct {
	tool.Tool
	run *run
}

func (s step) Call(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	res, err := s.Tool.Call(ctx, args)
	if err == nil {
		if told := s.run.snapshot(ctx, s.Definition().Name); told != "" {
			res.Text += "\n" + told
		}
	}
	return res, err
}

// snapshot records a step. Where the tree cannot be recorded, which may be for what
// the model made of it, told says so once for each reason: no commit could be made
// of it either.
func (r *run) snapshot(ctx context.Context, label string) (told string) {
	s, err := r.out.Workspace.Snapshot(ctx, label)
	if ctx.Err() != nil {
		return ""
	}
	if err == nil {
		r.env.unrecorded = ""
		r.out.Keeper.Keep(s)
		r.log.Debug("Snapshot", "id", s.ID, "label", s.Label)
		return ""
	}
	why := r.Store.Redact(err.Error())
	if why == r.env.unrecorded {
		return ""
	}
	r.env.unrecorded = why
	r.log.Warn("Steps are not recorded as snapshots: " + why)
	if errors.Is(err, workspace.ErrNoRoom) {
		return "" // a commit needs none of it
	}
	return unfit(why)
}

// unfit tells the model that its tree cannot be recorded.
func unfit(why string) string {
	return "[The workspace cannot be recorded as it is now, nor your work be handed over: " + why + "]"
}

// sinceLastStep tells which files are not as the last step left them, after a
// power cut: they were not synced, the snapshot was (PROTOCOL "Claim" 5).
func (r *run) sinceLastStep(ctx context.Context) string {
	all, err := r.out.Workspace.Snapshots(ctx)
	if err != nil || len(all) == 0 {
		return ""
	}
	changes, err := r.out.Workspace.Changes(ctx, all[len(all)-1].ID)
	if err != nil {
		return ""
	}
	if len(changes) == 0 {
		return " All files are as they were after your last finished call."
	}
	return " Not as they were after your last finished call: " + someFiles(workspace.Paths(changes), maxNamed) + "."
}
