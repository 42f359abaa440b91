package delivery

import (
	"context"
	"errors"
	"strings"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// Review puts a review together of what the broker lets out of it: a finding that may not go out
// keeps the whole back. A suggestion that would be changed by that is left out, as it would not
// be what was meant.
func (r *Run) Review(ctx context.Context, p forge.ReviewPost) (err error) {
	p.Marker = r.Ledger.UUID() + "." + EffectReview
	if p.Body, err = r.mayReview(ctx, p.Body); err != nil {
		return err
	}
	for i := range p.Remarks {
		m := &p.Remarks[i]
		if m.Body, err = r.mayReview(ctx, m.Body); err != nil {
			return err
		}
		if m.Suggestion == nil {
			continue
		}
		fenced := "~~~\n" + *m.Suggestion + "\n~~~"
		if text, err := r.mayReview(ctx, fenced); err != nil || strings.TrimSpace(text) != fenced {
			m.Suggestion = nil
		}
	}
	r.review = &p
	return nil
}

// mayReview is a text of a review as the broker lets it out. All of one review count as one
// comment.
func (r *Run) mayReview(ctx context.Context, text string) (string, error) {
	text, err := allowed(ctx, r.Broker, comment(r.Ledger.Metadata(), EffectReview, text))
	if errors.As(err, new(*i18n.Error)) { // to go on would not help
		err = &TaskError{Err: err}
	}
	return redact.Printable(r.Store.Redact(text)), err
}

// deliverReview delivers a review, once: it bears its key.
func (*Service) deliverReview(ctx context.Context, _ string, h *Host, key task.Key, p forge.ReviewPost) (string, error) {
	host, ok := h.Tracker.(forge.Reviewer)
	if !ok {
		return "", i18n.E("agent.no_host", key.String(), key.Source)
	}
	c, err := host.Review(ctx, key, p)
	return c.URL, err
}
