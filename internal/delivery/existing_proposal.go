package delivery

import (
	"context"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// mostEarlier is how many runs back the pull request is looked for.
const mostEarlier = 20

// existingProposal finds the pull request that an earlier run of the same issue opened and
// that is still open: the work goes on there instead of beside it. A run in
// between may have worked there and proposed nothing, since it was stopped or
// changed nothing. ok is false where there is none; one that is on its way has no number
// yet.
func (r *Run) existingProposal(ctx context.Context) (branch, number string, ok bool, err error) {
	m := r.Ledger.Metadata()
	if m.TaskKey.Type != task.TypeIssue {
		return "", "", false, nil
	}
	all, err := r.Store.Before(ctx, m.TaskKey, m.UUID, mostEarlier)
	if err != nil {
		return "", "", false, err
	}
	for _, earlier := range all {
		at, decided, unreadable := readPlace(earlier.Dir)
		if unreadable != nil || !decided {
			continue // what an earlier run left is a help, not a need
		}
		number, err = r.proposed(ctx, earlier, at)
		switch {
		case err != nil:
			return "", "", false, err
		case number == onTheWay:
			return at.Branch, "", true, nil
		case number != "":
			pull := task.Key{Source: m.TaskKey.Source, Owner: m.TaskKey.Owner, Repo: m.TaskKey.Repo, Type: task.TypeProposed(m.TaskKey.Source), ID: number}
			if ok, err := r.isOpen(ctx, pull, at.Branch); !ok {
				return "", "", false, err
			}
			return at.Branch, number, true, r.branchIsFree(ctx, at.Branch, pull)
		case !at.Exists:
			return "", "", false, nil // it began anew, and left no pull request
		}
	}
	return "", "", false, nil
}

// onTheWay stands for the number of a pull request that is not opened yet, and whose
// branch was pushed already.
const onTheWay = "on the way"

// proposed returns the number of the pull request that came of an earlier run, ""
// where none did. While the forge has not taken the branch of that run it fails:
// work beside it would end in two pull requests for one issue, or in one branch
// that both want.
func (r *Run) proposed(ctx context.Context, earlier contextstore.View, at Place) (number string, err error) {
	id := earlier.Metadata.UUID
	owed, err := r.Store.Undelivered(ctx, id)
	if err != nil {
		return "", err
	}
	url, _, lost, err := r.came(ctx, id)
	switch {
	case err != nil:
		return "", err
	case owes(owed, EffectPush):
		return "", &owedError{i18n.E("agent.owed", order.Ref(r.key()), contextstore.Short(id), at.Branch)}
	case lost != "":
		return "", nil // nor will it ever be there
	case owes(owed, EffectPull):
		return onTheWay, nil
	}
	return numberOf(url), nil
}

// owes reports whether an effect of a kind is among what a run owes.
func owes(owed []contextstore.Effect, kind string) bool {
	return slices.ContainsFunc(owed, func(e contextstore.Effect) bool { return e.Kind == kind })
}

// came is what came of the branch and the pull request that a run owed: the address of that, or the
// kind of the one that the forge will never take, and why.
func (s *Service) came(ctx context.Context, uuid string) (url, why, lost string, err error) {
	done, err := s.Store.Delivered(ctx, uuid)
	for _, kind := range []string{EffectPush, EffectPull} {
		if why, not := strings.CutPrefix(done[uuid+"."+kind], NotDelivered); not {
			return "", why, kind, err
		}
	}
	return done[uuid+"."+EffectPull], "", "", err
}

// numberOf is the number of a pull request at an address.
func numberOf(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// isOpen reports whether a pull request is open, from a branch of the repository.
func (r *Run) isOpen(ctx context.Context, pull task.Key, branch string) (bool, error) {
	it, err := r.Host.Item(ctx, pull)
	if forge.Is(err, forge.NotFound) || forge.Is(err, forge.Gone) {
		return false, nil
	}
	return err == nil && it.Open && it.Pull != nil && it.Pull.Head.Name == branch && it.Pull.Head.Repo == forge.RepoOf(pull), err
}

// branchIsFree fails while a run of one of the tasks works on a branch, or has not handed
// it over: an issue and its pull request share one, and of two that work there at
// once the second could not push.
func (r *Run) branchIsFree(ctx context.Context, branch string, keys ...task.Key) error {
	for _, k := range keys {
		v, ok, err := r.Store.Latest(ctx, k)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		at, decided, err := readPlace(v.Dir)
		if err != nil || !decided || at.Branch != branch {
			continue // it works elsewhere, or nowhere yet
		}
		owed, err := r.Store.Undelivered(ctx, v.Metadata.UUID)
		if err != nil {
			return err
		}
		if !v.Status().Final() || owes(owed, EffectPush) {
			return &owedError{i18n.E("agent.owed", order.Ref(r.key()), contextstore.Short(v.Metadata.UUID), branch)}
		}
	}
	return nil
}

// superseded returns the pull request into which a newer run of the same task
// has put its own work and that of this one, "" where there is none: its text
// says more than that of an earlier run that comes late. One that is still on its
// way is waited for.
func (s *Service) superseded(ctx context.Context, uuid string, key task.Key, branch string) (string, error) {
	newest, ok, err := s.Store.Latest(ctx, key)
	if err != nil || !ok || newest.Metadata.UUID == uuid {
		return "", err
	}
	at, decided, err := readPlace(newest.Dir)
	if err != nil || !decided || at.Branch != branch {
		return "", nil //nolint:nilerr // then this one's is to be there
	}
	owed, err := s.Store.Undelivered(ctx, newest.Metadata.UUID)
	if err != nil {
		return "", err
	}
	if owes(owed, EffectPull) {
		return "", &owedError{i18n.E("agent.owed_newer", order.Ref(key), contextstore.Short(newest.Metadata.UUID))}
	}
	done, err := s.Store.Delivered(ctx, newest.Metadata.UUID)
	if came := done[newest.Metadata.UUID+"."+EffectPull]; !strings.HasPrefix(came, NotDelivered) {
		return came, err
	}
	return "", err
}
