package job

import (
	"context"
	"errors"
	"strings"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/workspace"
)

// words are those of the commit. At a forge they are the house's own, and cleaned.
func (r *Runner) words(job approval.Job) (workspace.CommitOptions, error) {
	words := workspace.CommitOptions{Message: job.Title + "\n\n" + job.Plan + "\n", AuthorName: job.Requester, When: job.At.Time}
	if job.Deliver != approval.PullRequest {
		return words, nil
	}
	var err error
	words.Message, err = r.Delivery.ChatMessage(words.Message)
	words.AuthorName, words.AuthorEmail = r.Delivery.Author.Name, r.Delivery.Author.Email
	words.Trailers = []workspace.Trailer{{Key: "Tori-Run", Value: job.Run}}
	return words, err
}

// hand is what a granted proposal owes to its forge: a branch at a commit, and a draft.
func (r *Runner) hand(ctx context.Context, c *contextstore.Context, w *workspace.Workspace, job approval.Job, at delivery.Place, commit string) ([]contextstore.Effect, error) {
	err := r.Approvals.ConfirmDelivery(ctx, job)
	if errors.As(err, new(*approval.NotAllowedError)) {
		err = &approval.FailedError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	text, err := r.draft(c, job)
	if err != nil {
		return nil, err
	}
	owes, err := r.Delivery.ChatEffects(ctx, c, w, delivery.ChatWork{Place: at, Commit: commit, Title: job.Title, Text: text})
	if errors.As(err, new(*delivery.TaskError)) {
		err = &approval.FailedError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	told, err := delivery.NewEffect(c.UUID()+"."+delivery.EffectTold, delivery.EffectTold, struct{}{})
	return append(owes, told), err
}

// draft is the text of the draft: what changes and why, the checks, who approved it.
func (r *Runner) draft(c *contextstore.Context, job approval.Job) (string, error) {
	all, err := c.Checks()
	if err != nil {
		return "", err
	}
	b := &strings.Builder{}
	b.WriteString(strings.TrimSpace(job.Plan))
	for i, n := range job.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\n- " + n)
	}
	b.WriteString("\n\n" + r.ForgeLang.T("job.draft_checks") + "\n")
	ran := false
	for _, run := range all {
		if run.Setup || run.Round == 0 {
			continue
		}
		key := "job.draft_red"
		if run.Passed() {
			key = "job.draft_green"
		}
		ran = true
		b.WriteString("\n- " + r.ForgeLang.T(key, "`"+strings.ReplaceAll(run.Command, "`", "'")+"`"))
	}
	if !ran {
		b.WriteString("\n" + r.ForgeLang.T("job.draft_unchecked"))
	}
	s := job.State
	approver := s.Approver
	if s.Status == approval.AutoApproved {
		approver = r.ForgeLang.T("job.draft_auto", approver)
	}
	b.WriteString("\n\n" + r.ForgeLang.T("job.draft_approved", "`"+approver+"`", s.Decided.UTC().Format("2006-01-02 15:04 UTC"), job.Job, job.Requester) + "\n")
	return b.String(), nil
}
