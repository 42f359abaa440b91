package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// taskEffect is the run on a draft that is to be there.
type taskEffect struct {
	Draft string `json:"draft,omitempty"` // its number; "" for the one that this run opens
}

// LeavesWork reports whether the run can leave its work to the task of a draft: it is of an issue
// at a forge that takes drafts.
func (r *Run) LeavesWork() bool {
	return !r.Here() && r.Order.Act != nil && r.key().Type == task.TypeIssue
}

// LeaveWork has the run leave its work to the task of the draft, which is opened where none is
// there yet: from a commit, returned, that changes nothing, for a forge takes no proposal
// without one.
func (r *Run) LeaveWork(ctx context.Context) (commit string, err error) {
	r.onward = &taskEffect{Draft: r.Place.Draft}
	if r.Place.Draft != "" {
		return "", nil
	}
	commit = r.Workspace.Base()
	if !r.Place.Exists { // else an earlier run's draft is on its way
		if commit, err = r.commitAs(ctx, r.Workspace, r.Ledger.Metadata(), commitWork{empty: true}); err != nil {
			return "", err
		}
	}
	if err = r.MayDeliver(ctx, commit); err != nil {
		return "", err
	}
	return commit, r.Propose(ctx, commit, "", r.Lang.T("delivery.opened", r.key().Number()), false)
}

// Onward is the task that the run of an issue left its work to, as far as that is delivered; ok
// is false where it did not.
func Onward(ctx context.Context, store *contextstore.Store, v contextstore.View) (k task.Key, ok bool, err error) {
	k = v.Metadata.TaskKey
	if k.Type != task.TypeIssue || !v.Status().Final() {
		return k, false, nil
	}
	done, err := store.Delivered(ctx, v.Metadata.UUID)
	number := done[v.Metadata.UUID+"."+EffectTask]
	k.Type, k.ID = task.TypeProposed(k.Source), number
	return k, number != "" && !strings.HasPrefix(number, NotDelivered), err
}

// Newest is the newest run of a task: of an issue whose work goes on at its draft, that of the
// draft.
func Newest(ctx context.Context, store *contextstore.Store, k task.Key) (v contextstore.View, ok bool, err error) {
	v, ok, err = store.Latest(ctx, k)
	if err != nil || !ok {
		return v, ok, err
	}
	draft, left, err := Onward(ctx, store, v)
	if err != nil || !left {
		return v, true, err
	}
	if on, there, err := store.Latest(ctx, draft); there || err != nil {
		return on, there, err
	}
	return v, true, nil
}

// Kin are the other tasks of what the run is about, as our files tell: the issue that its draft
// was opened for, and the last drafts that were opened for it.
func (r *Run) Kin(ctx context.Context) (all []task.Key, err error) {
	issue := r.key()
	if r.Order.For != nil {
		issue = r.Order.For.Issue
		all = append(all, issue)
	}
	if issue.Type != task.TypeIssue || r.Here() {
		return all, nil
	}
	runs, err := r.Store.Before(ctx, issue, r.Ledger.UUID(), mostEarlier)
	for _, v := range runs {
		draft, left, derr := Onward(ctx, r.Store, v)
		if err = errors.Join(err, derr); left && draft != r.key() && !slices.Contains(all, draft) && len(all) <= maxLinks {
			all = append(all, draft)
		}
	}
	return all, err
}

// Issue is the issue that the draft of the run was opened for, read once.
func (r *Run) Issue(ctx context.Context) (forge.Item, error) {
	return r.once(ctx, &r.issue, r.Order.For.Issue)
}

// described reports whether an earlier run on the draft said there what it did.
func (r *Run) described(ctx context.Context) (bool, error) {
	runs, err := r.Store.Before(ctx, r.key(), r.Ledger.UUID(), mostEarlier)
	for _, v := range runs {
		done, derr := r.Store.Delivered(ctx, v.Metadata.UUID)
		if err = errors.Join(err, derr); done[v.Metadata.UUID+"."+EffectPull] != "" {
			return true, err
		}
	}
	return false, err
}

// deliverTask enqueues the run on a draft that the run of an issue left its work to: one, which
// bears that run's uuid.
func (s *Service) deliverTask(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	p, err := readEffect[taskEffect](e)
	if err != nil {
		return "", err
	}
	m, err := s.Store.Metadata(uuid)
	if err != nil {
		return "", err
	}
	o, err := order.Parse(m)
	if err != nil {
		return "", err
	}
	url, why, lost, err := s.came(ctx, uuid)
	if err != nil {
		return "", err
	}
	if lost != "" {
		return NotDelivered + why, nil // there is nothing to work on
	}
	k := m.TaskKey
	k.Type, k.ID = task.TypeProposed(k.Source), cmp.Or(p.Draft, numberOf(url))
	runs, err := s.Store.Before(ctx, k, "", mostEarlier)
	if err != nil {
		return "", err
	}
	for _, v := range runs {
		if was, err := order.Parse(v.Metadata); err == nil && was.For != nil && was.For.Run == uuid {
			return k.ID, nil
		}
	}
	raw, err := json.Marshal(order.Order{Act: o.Act, For: &order.Origin{Issue: m.TaskKey, Text: o.Act.Text, EditedBy: o.Act.EditedBy, Run: uuid}})
	if err != nil {
		return "", err
	}
	id, err := s.Store.Enqueue(ctx, contextstore.Metadata{TaskKey: k, User: m.User, Title: m.Title, Config: m.Config, Run: raw}, QueuedLabels)
	if live := (*contextstore.LiveError)(nil); errors.As(err, &live) {
		v, err := s.Store.View(uuid)
		if err != nil {
			return "", err
		}
		at, _, err := readPlace(v.Dir)
		return "", cmp.Or[error](err, &owedError{i18n.E("agent.owed", order.Ref(k), contextstore.Short(live.UUID), at.Branch)})
	}
	if err == nil {
		s.Log.Info("The work goes on as the task of its draft: "+k.String(), "uuid", uuid, "run", id)
	}
	return k.ID, err
}
