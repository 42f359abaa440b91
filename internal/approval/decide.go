package approval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Decision is what somebody decided about a job.
type Decision struct {
	Job    string // its job id or the uuid of its run
	Hash   string // the first ShortHash digits, or more, of what it is about; a denial may go without
	Grant  bool
	By     string // "slack:U1"
	How    string // button, command, cli, comment
	Where  string // the channel, or "this machine"
	Reason string
	// Message is the id of the message that says it, where one may come again: its work is
	// done once more after a crash.
	Message string
	// Permitted says that by the forge's word who decides may write to the repository.
	Permitted bool
}

// Decide puts a decision down and has the run go on: a granted one goes back into the
// queue, a denied one ends. Of decisions from several places exactly one counts, the
// others get a *DecidedError; the one that counted is good again while nobody works on what was
// granted. One about another hash is an *OtherHashError with the
// request to be shown; a grant without one is told what to say. With any error nothing was
// decided, but for expiry.
func (j *Jobs) Decide(ctx context.Context, d Decision) (Job, error) {
	job, err := j.Find(ctx, d.Job, everyone)
	if err != nil {
		return job, err
	}
	expired := false
	if d.Grant && !d.Permitted && job.State.Status == Pending && j.may(ctx, job, d) == nil { // a forge is asked without the lock
		if err := j.mayDeliver(ctx, job, d.By); err != nil {
			return job, err
		}
	}
	err = j.locked(ctx, &job, func() error {
		if err := j.may(ctx, job, d); err != nil { // who may not is told nothing of it
			return err
		}
		switch {
		case job.State.Status != Pending:
			if v, err := j.Store.View(job.Run); d.Message == "" || d.Message != job.State.Message || err != nil || job.State.Status.Approved() && v.Status() != task.AwaitingApproval && v.Status() != task.Queued {
				return &DecidedError{job}
			}
			return nil // the same one: a crash came before it was told, and what it led to is not told yet
		case j.overdue(job):
			expired = true
			return j.append(&job, j.bySystem(ReasonExpired))
		}
		if job.Policy != j.Version { // what the request was bound to is not in force any more
			if err := j.rebind(&job); err != nil {
				return err
			}
			return &OtherHashError{job}
		}
		asked := job.State.Hash == job.Hash()
		if !asked { // a kill came before its request
			if err := j.recordRequest(&job, ""); err != nil {
				return err
			}
		}
		if d.Grant && d.Hash == "" && asked && job.Grantable() {
			return i18n.E("approval.no_hash", job.Job, job.Title, grants(job))
		}
		if (d.Grant || d.Hash != "") && !itsHash(job.Hash(), d.Hash) {
			return &OtherHashError{job}
		}
		e := Event{Event: "approval.denied", Status: Denied, Approver: d.By, By: d.How, Where: d.Where, Message: d.Message, Reason: d.Reason, Decided: contextstore.Time{Time: j.Now().UTC()}}
		if d.Grant {
			if !job.Grantable() {
				return i18n.E("approval.no_diff", job.Job)
			}
			e.Event, e.Status = "approval.granted", Granted
		}
		return j.append(&job, e)
	})
	if err != nil {
		return job, err
	}
	if err := j.settle(ctx, job); err != nil {
		return job, err
	}
	if expired {
		return job, &DecidedError{job}
	}
	return job, nil
}

// grants is the command that grants a job as it is.
func grants(job Job) string { return "/approve " + job.Job + " " + job.Short() }

// locked reads a job anew and calls f while nobody else decides about it.
func (j *Jobs) locked(ctx context.Context, job *Job, f func() error) error {
	run := job.Run
	return locked(ctx, func() (string, error) {
		v, err := j.Store.View(run)
		return v.Dir, err
	}, func(dir string) (err error) {
		if *job, err = Read(dir); err != nil {
			return err
		}
		return f()
	})
}

// May reports whether somebody may decide about a job, or deny it.
func (j *Jobs) May(ctx context.Context, job Job, who string) bool {
	return j.may(ctx, job, Decision{By: who}) == nil
}

// may says why somebody may not decide about a job.
func (j *Jobs) may(ctx context.Context, job Job, d Decision) error {
	people, err := j.Settings.persons(ctx)
	if err != nil {
		return err
	}
	approver := d.Permitted || people.among(j.Settings.Approvers, d.By)
	switch {
	case d.By == "" || d.By == System:
		return &NotAllowedError{Job: job.Job, By: d.By, Key: "approval.not_allowed"}
	case people.same(d.By, job.Requester) && j.Settings.FourEyes && d.Grant:
		return &NotAllowedError{Job: job.Job, By: d.By, Key: "approval.four_eyes"}
	case people.same(d.By, job.Requester), approver:
		return nil
	}
	return &NotAllowedError{Job: job.Job, By: d.By, Key: "approval.not_allowed"}
}

func (j *Jobs) overdue(job Job) bool {
	return !job.State.Expires.IsZero() && !j.Now().Before(job.State.Expires)
}

// bySystem is a denial of the program's own.
func (j *Jobs) bySystem(reason string) Event {
	return Event{Event: "approval.denied", Status: Denied, Approver: System, Reason: reason, Decided: contextstore.Time{Time: j.Now().UTC()}}
}

// rebind has a proposal ask again under the policy that is in force. The caller holds
// the lock.
func (j *Jobs) rebind(job *Job) error {
	for _, cmd := range job.Commands {
		if _, err := j.command(cmd); err != nil {
			return err
		}
	}
	job.Policy = j.Version
	if err := j.write(job.Dir, job.Proposal); err != nil {
		return err
	}
	return j.recordRequest(job, "policy")
}

// settle does what follows from a decision: its line in audit.jsonl, and the status of
// the run, where that waits. Whoever still works on it reads the decision itself.
func (j *Jobs) settle(ctx context.Context, job Job) error {
	s := job.State
	action, do := "deny", contextstore.Stop
	switch s.Status {
	case Pending:
		return nil
	case Granted:
		action, do = "approve", contextstore.Resume
	case AutoApproved:
		action, do = "auto_approve", contextstore.Resume
	case Denied:
	}
	entry := contextstore.AuditEntry{Actor: s.Approver, Action: action, UUID: job.Run, What: job.Job, Detail: fmt.Sprintf("%s %s %s %s", s.Hash[:min(len(s.Hash), ShortHash)], s.By, s.Where, s.Reason)}
	if err := contextstore.Audit(j.Store.FS, j.Store.BaseDir, j.Now(), j.Store.Redact, entry); err != nil {
		return err
	}
	return j.move(ctx, job, do)
}

// move takes a run that waits to where a decision has it.
func (j *Jobs) move(ctx context.Context, job Job, do contextstore.Action) error {
	v, err := j.Store.View(job.Run)
	if err != nil || v.Status() != task.AwaitingApproval {
		return err
	}
	if do == contextstore.Stop {
		_, err = j.Store.StopFor(ctx, job.Run, job.State.Approver, job.Denial(j.Lang), j.Store.Redact(job.Left(i18n.English, "")))
	} else {
		_, err = j.Store.Control(ctx, job.Run, do, job.State.Approver)
	}
	if errors.Is(err, task.ErrIllegalTransition) || errors.Is(err, contextstore.ErrBusy) {
		return nil // somebody else was faster
	}
	return err
}

// Settle looks through what waits: requests whose time is over are denied, and runs that
// were decided about when a process died go on. It returns the jobs that it moved.
func (j *Jobs) Settle(ctx context.Context) (moved []Job, err error) {
	l, err := contextstore.List(ctx, j.Store.BaseDir, everyone, contextstore.Filter{Status: task.AwaitingApproval, Limit: mostWaiting})
	if err != nil {
		return nil, err
	}
	for _, v := range l.Views {
		job, rerr := Read(v.Dir)
		if rerr != nil {
			if !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
			continue
		}
		switch {
		case job.State.Status == Pending && j.overdue(job):
			rerr = j.System(ctx, &job, ReasonExpired)
		case job.State.Status == Pending:
			continue
		case j.Elsewhere != nil && j.Elsewhere(v.Dir):
			continue
		default:
			rerr = j.settle(ctx, job) // a second line in audit.jsonl is better than none
		}
		if err = errors.Join(err, rerr); rerr == nil {
			moved = append(moved, job)
		}
	}
	return moved, err
}

// System denies a job for a reason of the program's own: it expired, or its base is not
// what it was. What was granted and is stale is denied, too; what was denied stays.
func (j *Jobs) System(ctx context.Context, job *Job, reason string) error {
	err := j.locked(ctx, job, func() error {
		if job.State.Status == Denied || reason == ReasonExpired && (job.State.Status != Pending || !j.overdue(*job)) {
			return &DecidedError{*job}
		}
		return j.append(job, j.bySystem(reason))
	})
	if errors.As(err, new(*DecidedError)) {
		return nil
	}
	if err != nil {
		return err
	}
	return j.settle(ctx, *job)
}

// Confirm makes sure, right before something is done, that a job is approved and that
// what was approved is what is there (spec/chat §7). Where the policy has changed since, or
// automatic approval was switched off, people are asked again: a *WithdrawnError.
func (j *Jobs) Confirm(ctx context.Context, job *Job) error {
	return j.locked(ctx, job, func() error {
		s := job.State
		switch {
		case !s.Status.Approved():
			return &DecidedError{*job}
		case s.Hash != job.Hash() || job.Policy != j.Version:
			if err := j.rebind(job); err != nil {
				return err
			}
			return &WithdrawnError{*job}
		case s.Status == AutoApproved && s.Auto != "":
			on, err := j.autoHolds(s.Auto)
			if err != nil {
				return err
			}
			if !on {
				if err := j.recordRequest(job, "auto_approve_off"); err != nil {
					return err
				}
				return &WithdrawnError{*job}
			}
		}
		return nil
	})
}
