package agent

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"toritsugi/internal/blobs"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
	"toritsugi/internal/verdict"
)

// settings are what the loop of the run works with: the window and the tools. first tells that
// no owner offered these to the model before.
func (r *run) settings(ctx context.Context) (s turn.Settings, first bool, err error) {
	root, err := r.out.Workspace.Root()
	if err != nil {
		return s, false, err
	}
	// A result takes an eighth of the window at most, those of one answer half.
	limits := tool.Limits{MaxOutput: max(min(r.Tools.MaxOutput, r.Window.Tokens/2), tool.MinMaxOutput), Filter: r.Masking.Filter,
		SpillDir: filepath.Join(r.ledger.Dir(), spillDir), Disk: r.Store.FS, NoSync: r.Store.NoSync}
	if r.review != nil {
		own := append(r.review.tools(root, limits), &memory.Recall{Record: r.ledger.MessageLog(), Image: r.ledger.ReadImage, SpillDir: limits.SpillDir, MaxOutput: limits.MaxOutput})
		return r.loopSettings(limits, nil, own)
	}
	own := tool.Builtins(tool.Env{Root: root, Dir: r.out.Workspace.Tree(), Shell: shell{r}, Hosts: r.Sandbox.Network.AllowHosts, ShellTimeout: r.Sandbox.ShellTimeout,
		Judge: r.judge, Jobs: r.env.jobs, Git: r.out.Workspace, Masks: r.standIns, Limits: limits})
	own = append(own, &memory.Recall{Record: r.ledger.MessageLog(), Image: r.ledger.ReadImage, SpillDir: limits.SpillDir, MaxOutput: limits.MaxOutput, Sources: append(r.earlier(), r.similarRuns()...)})
	own = append(own, r.talk.Tools()...)
	if r.lead.history != nil {
		own = append(own, planning.Tools()...)
	}
	before, err := Offered(r.ledger.Dir())
	if err != nil {
		return s, false, err
	}
	all, err := r.withServers(ctx, limits, budget(before, r.Window.Tokens), own)
	if err != nil {
		return s, false, err
	}
	return r.loopSettings(limits, before, r.steps(append(all, absent(before, all)...)))
}

// loopSettings are those of a loop with some tools; before is what an earlier owner offered.
func (r *run) loopSettings(limits tool.Limits, before []llm.Tool, all []tool.Tool) (s turn.Settings, first bool, err error) {
	tools, err := tool.NewRegistry(limits, all...)
	if err == nil {
		tools, err = r.restricted(tools)
	}
	if err != nil {
		return s, false, err
	}
	offered, err := r.offer(before, tools)
	if err != nil {
		return s, false, err
	}
	policy := r.Window.Memory
	policy.Limit, policy.Fixed, policy.Log, policy.Summarizer = r.Window.Tokens, llm.ToolsBytes(offered), r.log, r.summaries()
	w, err := memory.Open(r.ledger, r.Client.Open(llm.Settings{Tools: offered}), policy)
	if err != nil {
		return s, false, err
	}
	s = turn.Settings{Ledger: r.ledger, Window: w, Tools: tools, Budget: r.Limits.Run, Log: r.log, Now: r.Now, Scripted: r.Scripted, MaxResults: 2 * r.Window.Tokens, KeepLast: r.lead.history != nil}
	if r.days != nil {
		s.Days = r.days
	}
	return s, before == nil, nil
}

// reopen tells the model what it must know of the workspace and its tools as the loop
// is taken up. first tells that no owner offered these tools before.
func (r *run) reopen(ctx context.Context, loop *turn.Loop, first bool) error {
	if told := r.withheldTold(); told != "" && first {
		if err := loop.Tell(ctx, told); err != nil {
			return err
		}
	}
	if r.env.lost {
		return r.remade(ctx, loop)
	}
	if commit := r.out.Place.Work; commit != "" {
		return r.follow(ctx, commit)
	}
	if r.ledger.Rebooted() && r.ledger.LastSeq() > int64(r.start.Size) {
		return loop.Tell(ctx, restarted+r.sinceLastStep(ctx))
	}
	if told := r.snapshot(ctx, "before the first step of this owner"); told != "" {
		return loop.Tell(ctx, told)
	}
	return ctx.Err()
}

// remade tells the model what its workspace is that was gone.
func (r *run) remade(ctx context.Context, loop *turn.Loop) error {
	kept, ws := r.out.Restored, r.out.Workspace
	if st := r.ledger.State(); st.Commit != "" && !ws.Contains(ctx, st.Commit) {
		if err := r.ledger.Committed(0, ""); err != nil {
			return err
		}
	}
	if kept != nil {
		r.log.Warn("The workspace was gone and is made again from what was stored of it", "after", kept.Label, "seq", kept.Seq)
		if commit := r.out.Place.Work; commit != "" && ws.Contains(ctx, commit) {
			return errors.Join(loop.Tell(ctx, restoredWorkspace(kept)), r.follow(ctx, commit))
		}
	} else {
		r.log.Warn("The workspace was gone and is made anew from the base")
		if r.out.Place.Merge {
			if _, err := r.out.Merge(ctx); err != nil {
				return err
			}
		}
	}
	if r.out.Place.Work != "" { // it is gone, too
		if err := r.out.Followed(); err != nil {
			return err
		}
	}
	if kept != nil {
		return loop.Tell(ctx, restoredWorkspace(kept))
	}
	return loop.Tell(ctx, lostWorkspace)
}

// restoredWorkspace tells the model how far its workspace is what it was.
func restoredWorkspace(kept *blobs.Snapshot) string {
	return "The run was interrupted and goes on elsewhere. The workspace was made again from what was last stored of it, as it was at message " + strconv.FormatInt(kept.Seq, 10) +
		" (" + kept.Label + "). What was changed after that is gone, and so are files that git ignores, such as build output and installed packages. Look at what you changed last before you build on it."
}

// spillDir holds the outputs that were too long for the conversation, below the
// directory of the context.
const spillDir = "spill"

// lostWorkspace tells the model that what it did is gone.
const lostWorkspace = "The workspace was lost while the run was interrupted and has been made anew from the base commit: every change made so far is gone. Do again what is still needed."

// restarted tells the model that the disk may be behind the conversation: the
// files of the workspace are not synced (PROTOCOL "Claim" 5).
const restarted = "The machine was restarted while the run was interrupted: files that were changed shortly before may be missing or incomplete. Look at what you changed last before you build on it."

// shell lets the shell tool run commands in the sandbox.
type shell struct{ *run }

// Run runs one command of the model.
func (s shell) Run(ctx context.Context, script, input, dir string, timeout time.Duration, out io.Writer) (tool.ShellExit, error) {
	runner, err := s.modelShell(ctx)
	if err != nil {
		return tool.ShellExit{}, err
	}
	e, err := runner.Run(ctx, sandbox.Command{Script: script, Input: input, Dir: dir, Timeout: timeout, Output: out})
	return tool.ShellExit{Code: e.Code, TimedOut: e.TimedOut, Limit: verdict.LimitText(i18n.English, e.Limit, e.Bound), Signal: e.Signal}, err
}
