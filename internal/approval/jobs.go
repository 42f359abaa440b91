// Package approval holds what a coder proposes until people decide: jobs and their proposals, risk
// computed from the patch, who may decide, automatic approval, and the steps by which a granted
// patch is applied once or not at all (route §6, spec/chat §7). It calls no model.
package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/workspace"
)

// Jobs are the proposals of a base directory. It may be used by many at once, and by
// several processes.
type Jobs struct {
	Store     *contextstore.Store
	Settings  Settings
	Policy    *policy.Policy
	Version   string // of the policy and the settings, part of what is bound
	Sanitizer *redact.Sanitizer
	Now       func() time.Time
	Lang      i18n.Lang // of why a run is stopped, or not applied
	// MayDeliver says why somebody of a conversation may not have a pull request made in
	// a repository of a forge (spec/chat §1): a *NotAllowedError, or that it cannot be
	// asked now. nil where no forge is set up: then nobody may.
	MayDeliver func(ctx context.Context, who, repository string) error
	// Elsewhere reports whether a run, by its directory, waits for something else than a
	// decision: what was decided does not set that going. nil for never.
	Elsewhere func(dir string) bool
}

// mayDeliver says why the work of a job may not go out by the word of somebody.
func (j *Jobs) mayDeliver(ctx context.Context, job Job, who string) error {
	switch {
	case job.Deliver != PullRequest:
		return nil
	case j.MayDeliver == nil:
		return &NotAllowedError{Job: job.Job, By: who, Key: "approval.no_forge"}
	}
	return j.MayDeliver(ctx, who, job.Repository)
}

// ConfirmDelivery says why what was approved may not go out any more: who approved it has no
// right to it at the forge. What nobody approved in person goes out by the word of who asked.
func (j *Jobs) ConfirmDelivery(ctx context.Context, job Job) error {
	who := job.State.Approver
	if who == System {
		who = job.Requester
	}
	return j.mayDeliver(ctx, job, who)
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Base tries patches on the base of a proposal: a *workspace.Workspace, or a HandTree.
type Base interface {
	TryPatch(ctx context.Context, p *workspace.Patch) (workspace.Trial, error)
	// ReviewPatch writes what the patch changes, with so many lines around each change.
	ReviewPatch(ctx context.Context, p *workspace.Patch, lines int, to io.Writer) error
}

// Propose judges a draft and puts it to people: blob, proposal.json and request are on
// disk, in this order, when it returns. The owner of the context calls it; job is a new
// job id, or that of a proposal of this run that waits and is made anew. A
// *RefusedError says what is wrong with the draft.
func (j *Jobs) Propose(ctx context.Context, c *contextstore.Context, job string, d Draft, base Base) (Job, error) {
	if !IsJob(job) {
		return Job{}, fmt.Errorf("propose: %q is no job id", job)
	}
	p, err := j.judge(ctx, d, base)
	if err != nil {
		return Job{}, err
	}
	p.Job = job
	return j.put(ctx, c, p, d.Patch, false)
}

// put puts a proposal to people, in place of one that waits, or, with again, that was
// decided about.
func (j *Jobs) put(ctx context.Context, c *contextstore.Context, p Proposal, patch []byte, again bool) (Job, error) {
	p.Run = c.UUID()
	var made Job
	err := locked(ctx, func() (string, error) { return c.Dir(), nil }, func(dir string) error {
		old, err := Read(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case old.State.Status != Pending && !again:
			return &DecidedError{old}
		}
		if len(patch) > 0 {
			if err := j.Store.FS.MkdirAll(filepath.Dir(patchPath(dir, p.Patch))); err != nil {
				return err
			}
			if err := j.Store.FS.Replace(patchPath(dir, p.Patch), patch, true); err != nil {
				return err
			}
		}
		if err := j.write(dir, p); err != nil {
			return err
		}
		if made, err = Read(dir); err != nil {
			return err
		}
		return j.recordRequest(&made, "")
	})
	return made, err
}

// Judge puts down what the coder's verification came to. The owner of the context calls it.
func (j *Jobs) Judge(ctx context.Context, job *Job, v Judged, taken Cost) error {
	for i := range v.Open {
		v.Open[i] = j.Store.Redact(v.Open[i])
	}
	return j.locked(ctx, job, func() error {
		job.Judged, job.Cost.Tokens, job.Cost.MicroUSD = &v, taken.Tokens, taken.MicroUSD
		return j.write(job.Dir, job.Proposal)
	})
}

// judge makes a proposal of a draft.
func (j *Jobs) judge(ctx context.Context, d Draft, base Base) (Proposal, error) {
	p := Proposal{Format: proposalFormat, At: contextstore.Time{Time: j.Now().UTC()}, Session: d.Session, Requester: d.Requester,
		Title: d.Title, Summary: slices.Clone(d.Summary[:min(len(d.Summary), 3)]), Plan: d.Plan, Notes: d.Notes, Tests: d.Tests, Checks: d.Checks, CoderRisk: d.CoderRisk, Type: d.Type,
		Commands: d.Commands, Base: d.Base, Repository: d.Repository, Deliver: d.Deliver, Onto: d.Onto, Policy: j.Version, Cost: d.Cost, Reverts: d.Reverts}
	a := assessment{wide: j.Settings.Wide, costLimit: j.Settings.CostLimit, cost: d.Cost, visibility: d.Visibility, deliver: d.Deliver,
		personal: j.Sanitizer.Personal(), texts: append([]string{d.Title, d.Plan}, d.Summary...)}
	if len(d.Patch) > 0 {
		patch, err := j.gate(d.Patch)
		if err == nil {
			a.patch = patch
			a.trial, err = base.TryPatch(ctx, patch)
		}
		if own := (*i18n.Error)(nil); errors.As(err, &own) {
			return p, &RefusedError{own}
		}
		if err != nil {
			return p, err
		}
		p.Patch = patch.SHA256
		for _, f := range patch.Files {
			p.Files = append(p.Files, File{Path: j.Store.Redact(f.Path), From: j.Store.Redact(f.From), Action: f.Action, Added: f.Added, Removed: f.Removed, Mode: f.NewMode, Binary: f.Binary})
		}
	}
	for _, cmd := range d.Commands {
		v, err := j.command(cmd)
		if err != nil {
			return p, &RefusedError{err}
		}
		a.commands = append(a.commands, judged{cmd, v})
	}
	p.Risks = a.risks()
	j.clean(&p)
	return p, nil
}

// gate parses a patch and refuses one that holds a secret or a mask: it is never
// rewritten (DESIGN §2.7).
func (j *Jobs) gate(raw []byte) (*workspace.Patch, error) {
	patch, err := workspace.ParsePatch(raw)
	if err != nil {
		return nil, err
	}
	texts := []string{string(raw)}
	for _, f := range patch.Files {
		texts = append(texts, f.NewText, f.OldText) // signs of lines hide a key of several
		if token, ok := redact.ContainsMask(f.NewText); ok && strings.Count(f.NewText, token) > strings.Count(f.OldText, token) {
			return nil, i18n.E("approval.mask", f.Path, token)
		}
	}
	for _, text := range texts {
		if found := j.Sanitizer.FindSecrets(text); len(found) > 0 {
			return nil, i18n.E("approval.secret", found[0].Kind)
		}
	}
	return patch, nil
}

// command judges a command of a proposal. What the policy forbids, and what could not be
// shown and kept as it is, is never put to anybody.
func (j *Jobs) command(cmd string) (policy.Verdict, error) {
	if j.Store.Redact(cmd) != cmd {
		return policy.Verdict{}, i18n.E("approval.command_secret")
	}
	v := j.Policy.Judge(cmd, policy.Place{Workspace: "/work"})
	if v.Decision == policy.Forbid {
		return v, i18n.E("approval.command_forbidden", cmd, v.Findings[0].Rule)
	}
	return v, nil
}

// clean redacts every text of a proposal that people and models wrote.
func (j *Jobs) clean(p *Proposal) {
	for _, s := range []*string{&p.Title, &p.Plan, &p.CoderRisk} {
		*s = j.Store.Redact(*s)
	}
	for _, list := range [][]string{p.Summary, p.Notes, p.Tests} {
		for i := range list {
			list[i] = j.Store.Redact(list[i])
		}
	}
	for i := range p.Risks {
		for k := range p.Risks[i].Details {
			p.Risks[i].Details[k] = j.Store.Redact(p.Risks[i].Details[k])
		}
	}
}

// write puts proposal.json down.
func (j *Jobs) write(dir string, p Proposal) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return j.Store.FS.Replace(filepath.Join(dir, proposalFile), append(b, '\n'), true)
}

// recordRequest puts down that a decision is asked for. The caller holds the lock.
func (j *Jobs) recordRequest(job *Job, reason string) error {
	now := contextstore.Time{Time: j.Now().UTC()}
	e := Event{Event: "approval.requested", Status: Pending, Requested: now, Reason: reason, Output: strings.Join(job.Summary, " / ")}
	if j.Settings.Expires > 0 {
		e.Expires = contextstore.Time{Time: now.Add(j.Settings.Expires)}
	}
	return j.append(job, e)
}

// append puts a line of a job down and takes it into its state. The caller holds the lock.
func (j *Jobs) append(job *Job, e Event) error {
	e.Timestamp, e.Job, e.Run, e.Hash = contextstore.Time{Time: j.Now().UTC()}, job.Job, job.Run, job.Hash()
	if e.Requested.IsZero() {
		e.Requested = contextstore.Time{Time: job.State.Requested}
	}
	if err := approvalsFile.Append(j.Store, job.Dir, e, true); err != nil {
		return fmt.Errorf("record %s of job %s: %w", e.Event, job.Job, err)
	}
	job.State = job.State.apply(e)
	return nil
}

// everyone sees all: who may decide is asked for each job.
var everyone = contextstore.Viewer{Admin: true}

// Find finds a job by its job id, or by the uuid of its run or the beginning of that.
// ErrUnknown: there is none that who may see.
func (j *Jobs) Find(ctx context.Context, id string, who contextstore.Viewer) (Job, error) {
	if !IsJob(id) {
		v, err := contextstore.Find(j.Store.BaseDir, id, who)
		if bad := (*i18n.Error)(nil); errors.Is(err, contextstore.ErrNotFound) || errors.As(err, &bad) && bad.Key == "contextstore.bad_uuid" {
			return Job{}, unknown("approval.no_id", id)
		}
		if err != nil {
			return Job{}, err
		}
		job, err := Read(v.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			return job, unknown("approval.no_proposal", v.Metadata.UUID)
		}
		return job, err
	}
	for _, f := range []contextstore.Filter{{ID: id, Limit: 1}, {Status: task.AwaitingApproval, Limit: mostWaiting}, {Status: task.Running, Limit: mostWaiting}, {Status: task.Queued, Limit: mostWaiting}} {
		l, err := contextstore.List(ctx, j.Store.BaseDir, who, f)
		if err != nil {
			return Job{}, err
		}
		for _, v := range l.Views {
			if job, err := j.read(v); err == nil && job.Job == id {
				return job, nil
			}
		}
	}
	return Job{}, UnknownJob(id)
}

// read is Read of a run, which may have moved since it was listed.
func (j *Jobs) read(v contextstore.View) (job Job, err error) {
	for dir := v.Dir; ; dir = v.Dir {
		if job, err = Read(dir); err == nil {
			return job, nil
		}
		if v, _ = j.Store.View(v.Metadata.UUID); v.Dir == "" || v.Dir == dir {
			return job, err
		}
	}
}

// UnknownJob is ErrUnknown of a job, for people.
func UnknownJob(id string) error { return unknown("approval.unknown", id) }

// unknown is ErrUnknown in a text for people.
func unknown(key, id string) error {
	return i18n.E(key, id).Of(ErrUnknown)
}

// mostWaiting is how many runs that wait are looked through.
const mostWaiting = 1000

// Waiting are the proposals that wait for a decision, the newest first, of the runs that
// who may see.
func (j *Jobs) Waiting(ctx context.Context, who contextstore.Viewer) ([]Job, error) {
	l, err := contextstore.List(ctx, j.Store.BaseDir, who, contextstore.Filter{Status: task.AwaitingApproval, Limit: mostWaiting})
	if err != nil {
		return nil, err
	}
	var all []Job
	for _, v := range l.Views {
		job, err := Read(v.Dir)
		if err == nil && job.State.Status == Pending {
			all = append(all, job)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return all, nil
}
