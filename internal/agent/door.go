package agent

import (
	"context"
	"fmt"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Door is what the broker of every run is made of.
type Door struct {
	Filter   *broker.Filter
	Settings broker.Settings
	Facts    []broker.Fact // what every run is in touch with, by the configuration
}

// open returns the broker of a run, which stands by what log says.
func (d Door) open(m contextstore.Metadata, p place, log broker.Recorder) (*broker.Broker, error) {
	return broker.Open(broker.Options{
		Settings: d.Settings, Filter: d.Filter, Recorder: log,
		// The comments of a folder's issue are a file beside it; those of a private
		// repository are read by those who may read the repository.
		Scope: broker.Scope{Task: m.TaskKey, Items: []string{m.TaskKey.ID}, Branch: p.Branch, Base: p.Onto, Private: m.TaskKey.Source == "folder" || p.Private},
	})
}

// openDoor opens the run's broker and tells it what the run is in touch with.
func (r *run) openDoor() (err error) {
	if r.door, err = r.Door.open(r.ledger.Metadata(), r.place, r.ledger.Effects()); err != nil {
		return err
	}
	facts := append([]broker.Fact{{Leg: broker.Untrusted, What: broker.RepositoryFiles, Detail: r.ledger.Metadata().TaskKey.Repo}}, r.Door.Facts...)
	if r.place.Private {
		facts = append(facts, broker.Fact{Leg: broker.Sensitive, What: broker.PrivateRepository, Detail: r.ledger.Metadata().TaskKey.Repo})
	}
	for _, f := range facts {
		if err := r.door.Report(f); err != nil {
			return err
		}
	}
	return nil
}

// mayPush asks the broker whether the branch may be handed over, with all that
// it changes: what the commit holds is judged, not the tree, which a server of
// tools may have changed before and after it was committed.
func (r *run) mayPush(ctx context.Context) error {
	var patch limited
	if err := r.ws.CommittedText(ctx, r.report.Commit, &patch); err != nil {
		return err
	}
	v, err := r.door.Judge(ctx, broker.Request{
		Kind: broker.Push, Key: r.ledger.UUID() + "." + EffectPush, Task: r.ledger.Metadata().TaskKey,
		Target: broker.Target{Branch: r.place.Branch}, Patch: patch.String(),
	})
	switch {
	case err != nil:
		return err
	case v.Decision == broker.Allow:
		return nil
	case len(v.Findings) > 0:
		return &taskError{v.Reason} // the change itself is at fault: trying again would not help
	}
	return v.Reason
}

// ending is the request to comment on the end of a run.
func ending(m contextstore.Metadata, s task.Status, text string) broker.Request {
	return broker.Request{
		Kind: broker.Comment, Key: m.UUID + "." + string(s), Task: m.TaskKey, Target: broker.Target{Item: m.TaskKey.ID},
		Text: text,
	}
}

// speak puts together the comment on the end of the run and asks the broker
// whether it may be posted. A run whose comment may not be posted is not
// completed: nobody would hear of it. looking is the context of git.
func (r *run) speak(ctx, looking context.Context) {
	o := &r.report.Outcome
	if r.ws != nil && r.report.Files == nil && o.Status != task.Completed {
		// What was done until then is in the tree: say so, if git can tell.
		if changes, err := r.ws.ChangedFiles(looking); err == nil {
			r.report.Files = workspace.Paths(changes)
		}
	}
	if !r.tells() {
		return
	}
	if r.Host != nil && (o.Status == task.Stopped || o.Status == task.Failed) {
		r.save(looking)
	}
	if o.Status == task.AwaitingApproval {
		if err := r.put(ctx); err != nil {
			o.Status = task.Paused
			r.adds("agent.not_told", err)
		}
	}
	r.report.Comment = r.comment(r.Lang)
	if r.job.Issue == "" && r.Host == nil {
		return // nobody to tell
	}
	reason := r.told(ctx)
	if reason == nil {
		return
	}
	r.silent = true
	if o.Status != task.Completed {
		r.adds("agent.not_told", reason)
		return
	}
	err := i18n.E("agent.not_told", reason)
	r.concludes(func(l i18n.Lang) task.Outcome { return r.conclude(ctx, err, l) })
}

// tells reports whether the world hears of how the run stands.
func (r *run) tells() bool {
	switch s := r.report.Outcome.Status; {
	case s.Final(), s == task.AwaitingApproval:
		return true
	default:
		return r.Host != nil && s == task.Paused
	}
}

// told asks the broker about the comment, and says why it may not be posted.
func (r *run) told(ctx context.Context) error {
	if r.door == nil { // the run ended before it had one
		if err := r.openDoor(); err != nil {
			return err
		}
	}
	req := ending(r.ledger.Metadata(), r.report.Outcome.Status, r.report.Comment)
	req.Folds = r.folded()
	v, err := r.door.Judge(ctx, req)
	if err != nil {
		return err
	}
	if v.Decision != broker.Allow {
		return v.Reason
	}
	r.report.Comment = v.Text
	return nil
}

// mayComment asks a broker about the comment on a run that nobody works on; the
// caller holds its locks.
func (a *Agent) mayComment(ctx context.Context, v contextstore.View, s task.Status, text string) (broker.Verdict, error) {
	p, _, err := readPlace(v.Dir)
	if err != nil {
		return broker.Verdict{}, err
	}
	b, err := a.Door.open(v.Metadata, p, a.Store.EffectsOf(v))
	if err != nil {
		return broker.Verdict{}, err
	}
	return b.Judge(ctx, ending(v.Metadata, s, text))
}

// message is the text of a commit, as it may go out with it.
func (a *Agent) message(text string) (string, error) {
	clean, _, err := a.Door.Filter.Clean(broker.Commit, text)
	if err != nil {
		return "", &taskError{fmt.Errorf("message of the commit: %w", err)}
	}
	return clean, nil
}
