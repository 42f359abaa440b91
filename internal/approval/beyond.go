package approval

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"toritsugi/internal/contextstore"
)

// covered are what whoever asks for a run on a forge has agreed to, or what no decision would
// change (docs/decisions/060): deletes and renames are named in the draft, what is sensitive the
// broker masks or refuses, what a run may cost is budget's.
var covered = []RiskKind{Delete, Rename, SendSensitive, CostOverLimit}

// Beyond are the kinds of approval.hard_require_approval that a run on a forge asks about,
// though somebody asked for it; writer says that they may write to the repository, which
// covers what is public.
func (s Settings) Beyond(writer bool) []RiskKind {
	return slices.DeleteFunc(slices.Clone(s.Hard), func(k RiskKind) bool { return slices.Contains(covered, k) || k == PushPublic && writer })
}

// Held is what people must agree to before a change goes out, nil where they need not or did:
// the kinds of its risks that are among those. dir is the context's.
func (j *Jobs) Held(ctx context.Context, dir string, d Draft, base Base, kinds []RiskKind) (held []RiskKind, err error) {
	p, err := j.judge(ctx, d, base)
	if err != nil {
		return nil, err
	}
	for _, r := range p.Risks {
		if slices.Contains(kinds, r.Kind) {
			held = append(held, r.Kind)
		}
	}
	old, err := Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return held, nil
	}
	if err == nil && old.State.Status.Approved() && old.State.Hash == p.Hash() {
		return nil, nil
	}
	return held, err
}

// Ask puts a change of a run on a forge to people, once: job is a new job id, for the first
// time. What was decided about another change of the run does not count. A *DecidedError
// says that this very one was denied.
func (j *Jobs) Ask(ctx context.Context, c *contextstore.Context, job string, d Draft, base Base) (Job, error) {
	p, err := j.judge(ctx, d, base)
	if err != nil {
		return Job{}, err
	}
	p.Job = job
	old, err := Read(c.Dir())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Job{}, err
	default:
		if p.Job = old.Job; old.State.Hash == p.Hash() {
			if old.State.Status == Denied {
				return old, &DecidedError{old}
			}
			return old, nil
		}
	}
	return j.put(ctx, c, p, d.Patch, true)
}
