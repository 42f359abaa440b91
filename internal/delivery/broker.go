package delivery

import (
	"context"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Rules are what the broker of every run is made of.
type Rules struct {
	Filter   *broker.Filter
	Settings broker.Settings
	Facts    []broker.Fact // what every run is in touch with, by the configuration
}

// broker returns the broker of a run, which stands by what log says.
func (r Rules) broker(m contextstore.Metadata, p Place, log broker.Recorder) (*broker.Broker, error) {
	return broker.Open(broker.Options{
		Settings: r.Settings, Filter: r.Filter, Recorder: log,
		// The comments of a folder's issue are a file beside it; those of a private
		// repository are read by those who may read the repository.
		Scope: broker.Scope{Task: m.TaskKey, Items: []string{m.TaskKey.ID}, Branch: p.Branch, Base: p.Onto, Private: m.TaskKey.Source == "folder" || p.Private},
	})
}

// brokerOf is the broker of a run that nobody works on; the caller holds its locks.
func (s *Service) brokerOf(v contextstore.View, p Place) (*broker.Broker, error) {
	return s.Rules.broker(v.Metadata, p, s.Store.EffectsOf(v))
}

// OpenBroker opens the run's broker and tells it what the run is in touch with.
func (r *Run) OpenBroker() (err error) {
	if r.Broker, err = r.Rules.broker(r.Ledger.Metadata(), r.Place, r.Ledger.Effects()); err != nil {
		return err
	}
	facts := append([]broker.Fact{{Leg: broker.Untrusted, What: broker.RepositoryFiles, Detail: r.key().Repo}}, r.Rules.Facts...)
	if r.Place.Private {
		facts = append(facts, broker.Fact{Leg: broker.Sensitive, What: broker.PrivateRepository, Detail: r.key().Repo})
	}
	for _, f := range facts {
		if err := r.Broker.Report(f); err != nil {
			return err
		}
	}
	return nil
}

// MayComment asks the broker about the comment on how the run stands and returns the
// text that may be posted; the error says why none may.
func (r *Run) MayComment(ctx context.Context, s task.Status, text string, folds []broker.CollapsedList) (string, error) {
	if r.Broker == nil { // the run ended before it had one
		if err := r.OpenBroker(); err != nil {
			return "", err
		}
	}
	req := comment(r.Ledger.Metadata(), string(s), text)
	req.Collapsed = folds
	return allowed(ctx, r.Broker, req)
}

// mayCommentOf is MayComment for a run that nobody works on; the caller holds its
// locks.
func (s *Service) mayCommentOf(ctx context.Context, v contextstore.View, st task.Status, text string) (string, error) {
	p, _, err := readPlace(v.Dir)
	if err != nil {
		return "", err
	}
	b, err := s.brokerOf(v, p)
	if err != nil {
		return "", err
	}
	return allowed(ctx, b, comment(v.Metadata, string(st), text))
}

// mayPush asks a broker whether a branch may be handed over, with all that it changes:
// what the commit holds is judged, not the tree, which a server of tools may have
// changed before and after it was committed.
func mayPush(ctx context.Context, b *broker.Broker, m contextstore.Metadata, p Place, ws *workspace.Workspace, commit string) error {
	patch, err := Patch(ctx, ws, commit)
	if err != nil {
		return err
	}
	v, err := b.Judge(ctx, broker.Request{
		Kind: broker.Push, Key: m.UUID + "." + EffectPush, Task: m.TaskKey,
		Target: broker.Target{Branch: p.Branch}, Patch: patch,
	})
	return denied(v, err)
}

// denied is why the broker does not let out a change: a *TaskError where the change
// itself is at fault, for trying again would not help.
func denied(v broker.Verdict, err error) error {
	switch {
	case err != nil:
		return err
	case v.Decision == broker.Allow:
		return nil
	case len(v.Findings) > 0:
		return &TaskError{Err: v.Reason}
	}
	return v.Reason
}

// comment is the request to comment on a run; what tells the comments of one from
// each other.
func comment(m contextstore.Metadata, what, text string) broker.Request {
	return broker.Request{Kind: broker.Comment, Key: m.UUID + "." + what, Task: m.TaskKey, Target: broker.Target{Item: m.TaskKey.ID}, Text: text}
}

// allowed is the text of a request as it may go out.
func allowed(ctx context.Context, b *broker.Broker, req broker.Request) (string, error) {
	v, err := b.Judge(ctx, req)
	if err == nil && v.Decision != broker.Allow {
		err = v.Reason
	}
	return v.Text, err
}

// MayShow asks the broker about the comment that shows the run's progress.
func (r *Run) MayShow(ctx context.Context, head string, fold broker.CollapsedList) (bool, error) {
	req := comment(r.Ledger.Metadata(), "progress", head)
	req.Collapsed = []broker.CollapsedList{fold}
	v, err := r.Broker.Judge(ctx, req)
	return err == nil && v.Decision == broker.Allow, err
}
