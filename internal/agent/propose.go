package agent

import (
	"context"
	"fmt"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/planning"
	"toritsugi/internal/workspace"
)

// propose makes sure that the branch can be handed over, and proposes it at the
// forge. again reports that somebody said something since the last answer, while the
// checks ran or the forge was asked: then nothing is handed over yet.
func (r *run) propose(ctx context.Context) (again bool, err error) {
	if again, err = r.objected(ctx); err != nil || again {
		return again, err
	}
	if err := r.ledger.Activity(contextstore.Completing, "hand_over"); err != nil {
		return false, err
	}
	if r.report.Commit == "" {
		return false, nil
	}
	err = r.out.MayDeliver(ctx, r.report.Commit)
	if workspace.Moved(err) {
		return true, r.follow(ctx, r.report.Commit)
	}
	if err := r.asked(ctx, err); err != nil || r.out.Here() {
		return false, err
	}
	if again, err = r.objected(ctx); err != nil || again {
		return again, err
	}
	return false, r.out.Propose(ctx, r.report.Commit, delivery.ParseMessage(r.lead.answer).Subject, r.description(r.Lang), r.verify.settled())
}

// leaveWork has the work on an issue go on as the task of its draft, which is opened before
// any of it is done.
func (r *run) leaveWork(ctx context.Context) (err error) {
	r.left = true
	r.out.TakenUp(ctx)
	if r.report.Commit, err = r.out.LeaveWork(ctx); err == nil {
		err = context.Cause(ctx) // whoever stops it now wants no draft
	}
	return err
}

// follow merges what others pushed to the branch with the work up to a commit, and has the
// model look at both together.
func (r *run) follow(ctx context.Context, commit string) error {
	f, err := r.out.Follow(ctx, commit)
	if err != nil {
		return err
	}
	r.report.Commit = "" // the work is to be committed anew
	if err := r.ledger.Committed(0, ""); err != nil {
		return err
	}
	if err := r.lead.loop.Ask(ctx, planning.AskRemark, followedText(r.out.Place.Branch, f)+r.wake(ctx)); err != nil {
		return err
	}
	return r.out.Followed()
}

// followedText tells the model what others did on its branch.
func followedText(branch string, f workspace.Followed) string {
	text := fmt.Sprintf("While you worked, others pushed to the branch %s (commits: %d). That is merged into your tree, and your own changes are on top of it. They changed: %s. ", branch, f.Commits, someFiles(f.Files, maxFilesNamed))
	if len(f.Conflicts) > 0 {
		text += conflictsText(f.Conflicts) + " "
	}
	return text + "See whether your work still holds together with theirs, and mend what does not; what they did stays. Then answer again with the whole commit message of your own work: the checks run once more."
}
