package agent

import (
	"context"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
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
	if err := r.asked(ctx, r.out.MayDeliver(ctx, r.report.Commit)); err != nil || r.out.Here() {
		return false, err
	}
	if again, err = r.objected(ctx); err != nil || again {
		return again, err
	}
	return false, r.out.Propose(ctx, r.report.Commit, delivery.ParseMessage(r.lead.answer).Subject, r.description(r.Lang), r.verify.settled())
}
