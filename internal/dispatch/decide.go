package dispatch

import (
	"context"
	"errors"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
	"toritsugi/internal/task"
)

// decide decides about the change of a run by a comment: /approve JOB [HASH], /deny JOB [REASON].
// Who may is the forge's to say (spec/chat §7). What is not decided is logged: an answer would
// let strangers make us talk.
func (i *Intake) decide(ctx context.Context, w *Watch, k task.Key, last contextstore.View, c forge.Comment) error {
	have, err := w.Host.Permission(ctx, forge.RepoOf(k), c.Author)
	if err != nil || i.Approvals == nil {
		return err
	}
	job, err := approval.Read(last.Dir)
	d := approval.Decision{By: delivery.Requester(k.Source, c.Author), How: "comment", Where: k.String(), Permitted: have >= forge.Write}
	first, _ := dialogue.Line(c.Body)
	switch cmd := routing.ParseCommand(first).(type) {
	case routing.Approve:
		d.Job, d.Hash, d.Grant = cmd.Job, cmd.Hash, true
		if d.Hash == "" && !c.Edited.Before(job.State.Requested) {
			d.Hash = job.Short() // of what was asked about when it was said
		}
	case routing.Deny:
		d.Job, d.Hash, d.Reason = cmd.Job, cmd.Hash, cmd.Reason
	}
	if err != nil || d.Job != job.Job {
		i.Log.Info("A decision about nothing that is asked about here", "task", k.String(), "by", c.Author.Login)
		return nil //nolint:nilerr // the run asked about nothing
	}
	_, err = i.Approvals.Decide(ctx, d)
	if told := (*i18n.Error)(nil); errors.As(err, &told) {
		i.Log.Warn("Not decided: "+told.Error(), "task", k.String(), "by", c.Author.Login)
		return nil
	}
	if err == nil {
		i.Log.Info("Decided", "task", k.String(), "by", c.Author.Login, "job_id", d.Job, "granted", d.Grant)
		i.Wake()
	}
	return err
}
